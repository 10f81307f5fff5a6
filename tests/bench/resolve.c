/* In the pods of the benchmark: asks the name server of its resolv.conf for NAME, ten times a
 * second, until there is an address; then says so and sleeps. A resolver of a libc would wait for
 * seconds between two tries, and that would be measured. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int name_server(struct sockaddr_in *to)
{
        char line[256], host[64];
        FILE *f = fopen("/etc/resolv.conf", "r");
        *to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(53) };
        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "nameserver %63s", host) == 1)
                        return inet_pton(AF_INET, host, &to->sin_addr);
        return 0;
}

static size_t question(const char *name, unsigned char *q)
{
        static const unsigned char head[12] = { 0x51, 0x17, 1, 0, 0, 1 },
                                   tail[5] = { 0, 0, 1, 0, 1 };
        size_t n = sizeof(head);
        memcpy(q, head, n);
        for (size_t part; *name; name += part + (name[part] == '.')) {
                part = strcspn(name, ".");
                q[n++] = (unsigned char)part;
                memcpy(q + n, name, part);
                n += part;
        }
        memcpy(q + n, tail, sizeof(tail));
        return n + sizeof(tail);
}

int main(int argc, char **argv)
{
        unsigned char q[512], a[1500];
        struct sockaddr_in to;
        signal(SIGTERM, _exit);
        if (argc != 2 || strlen(argv[1]) > 255 || !name_server(&to))
                return 2;
        size_t n = question(argv[1], q);
        for (;;) { /* a socket of its own for each try: the kernel remembers where a flow went */
                int fd = socket(AF_INET, SOCK_DGRAM, 0);
                struct pollfd p = { .fd = fd, .events = POLLIN };
                if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && send(fd, q, n, 0) > 0 &&
                        poll(&p, 1, 100) > 0 && recv(fd, a, sizeof(a), 0) > 12 &&
                        (a[3] & 15) == 0 && (a[6] || a[7]))
                        break;
                close(fd);
                poll(NULL, 0, 50);
        }
        puts("resolved");
        fflush(stdout);
        for (;;)
                pause();
}
