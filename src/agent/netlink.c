/* Tests for a kernel feature by netlink, the only way to find one that is built in and has no file.
 * The message layouts are fixed by the kernel; musl has no headers for them. */
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "agent/agent.h"

#define NETLINK_ROUTE     0
#define NETLINK_NETFILTER 12
#define FLAG_REQUEST      1
#define FLAG_ACK          4
#define FLAG_NEW          0x600 /* create, but only if it does not exist */
#define MSG_ERROR         2
#define MSG_NEWLINK       16
#define MSG_NFT_GETGEN    (10 << 8 | 16)
#define ATTR_LINKINFO     18
#define ATTR_INFO_KIND    1

struct message {
        uint32_t len;
        uint16_t type, flags;
        uint32_t seq, port;
        uint8_t body[64];
};

int netlink_ask(int protocol, const void *message, size_t len)
{
        struct {
                struct message m;
                char rest[1024];
        } answer = { 0 };
        int code, fd CLEANUP(close_p) = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
        struct timeval wait = { .tv_sec = 5 };
        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        if (send(fd, message, len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 20)
                return -errno;
        memcpy(&code, answer.m.body, sizeof(code));
        return answer.m.type == MSG_ERROR ? code : 0;
}

/* Writes one attribute at `to`; returns its size. */
static size_t attribute(uint8_t *to, uint16_t type, const void *data, size_t n)
{
        uint16_t head[2] = { (uint16_t)(n + 4), type };
        memcpy(to, head, sizeof(head));
        memcpy(to + 4, data, n);
        return (n + 4 + 3) & ~(size_t)3;
}

/* Creates a link of that kind in a network namespace of its own, which ends with the process.
 * An unknown kind is "not supported"; any other error comes from the kind itself, which may
 * need more attributes. */
bool link_kind_works(const char *kind)
{
        struct message m = {
                .len = 16 + 16, .type = MSG_NEWLINK, .flags = FLAG_REQUEST | FLAG_ACK | FLAG_NEW
        };
        uint8_t info[32] = { 0 };
        int status;
        size_t n = attribute(info, ATTR_INFO_KIND, kind, strlen(kind) + 1);
        m.len += (uint32_t)attribute(m.body + 16, ATTR_LINKINFO, info, n);
        pid_t pid = fork();
        if (pid == 0) {
                int r = unshare(CLONE_NEWNET) < 0 ? -EOPNOTSUPP
                                                  : netlink_ask(NETLINK_ROUTE, &m, m.len);
                _exit(r == -EOPNOTSUPP || r == -EPERM);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool nftables_works(void)
{
        struct message m = { .len = 16 + 4, .type = MSG_NFT_GETGEN, .flags = FLAG_REQUEST };
        int r = netlink_ask(NETLINK_NETFILTER, &m, m.len);
        return r == 0 || r == -EPERM;
}
