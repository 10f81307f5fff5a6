/* Called as "probe forward PORT HOST TO", the agent accepts connections at the node's loopback
 * address and passes their bytes to HOST:TO and back: the addon registry is reached by the node's
 * container runtime this way. Each connection is a process, so a slow one delays no other. */
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "agent/agent.h"

#define FORWARD_BUFFER  65536
#define FORWARD_OPEN    256    /* connections at the same time */
#define FORWARD_IDLE_MS 600000 /* without a byte in either direction */

static int forward_connect(const char *host, const char *port)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
        int fd = -1, problem = getaddrinfo(host, port, &hints, &list);
        for (const struct addrinfo *a = list; !problem && a && fd < 0; a = a->ai_next) {
                fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0)
                        close_p(&fd);
        }
        if (fd < 0)
                fprintf(stderr, "probe: cannot connect to %s:%s: %s\n", host, port,
                        problem ? gai_strerror(problem) : strerror(errno));
        if (list)
                freeaddrinfo(list);
        return fd;
}

/* Passes on what there is; false: no more comes from there. */
static bool forward_bytes(int from, int to)
{
        static char buffer[FORWARD_BUFFER];
        ssize_t n = read(from, buffer, sizeof(buffer)), sent = 0;
        for (ssize_t k; n > 0 && sent < n; sent += k)
                if ((k = send(to, buffer + sent, (size_t)(n - sent), MSG_NOSIGNAL)) <= 0)
                        return false;
        if (n <= 0)
                shutdown(to, SHUT_WR);
        return n > 0;
}

static void forward_both(int a, int b)
{
        struct pollfd p[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };
        while ((p[0].fd >= 0 || p[1].fd >= 0) && poll(p, 2, FORWARD_IDLE_MS) > 0)
                for (int i = 0; i < 2; i++)
                        if (p[i].fd >= 0 && p[i].revents && !forward_bytes(i ? b : a, i ? a : b))
                                p[i].fd = -1; /* poll leaves it out */
}

static void forward_one(int fd, const char *host, const char *to)
{
        int out CLEANUP(close_p) = forward_connect(host, to);
        if (out >= 0)
                forward_both(fd, out);
}

int forward_main(const char *port, const char *host, const char *to)
{
        size_t open = 0;
        int fd CLEANUP(close_p) = -1, r = probe_listen(port, true, &fd);
        if (r)
                return r;
        printf("forwarding 127.0.0.1:%s to %s:%s\n", port, host, to);
        fflush(stdout);
        for (;;) {
                int one CLEANUP(close_p) = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
                while (waitpid(-1, NULL, open >= FORWARD_OPEN ? 0 : WNOHANG) > 0)
                        open--;
                if (one < 0)
                        continue;
                pid_t child = fork();
                if (child == 0) {
                        forward_one(one, host, to);
                        _exit(0);
                }
                open += child > 0;
        }
}
