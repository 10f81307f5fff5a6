/* The program in the test pods, static and alone in its image:
 *   probe serve PORT        answers every HTTP request with the pod's name
 *   probe get HOST PORT     prints the body of http://HOST:PORT/, the name looked up as the pod's
 * resolv.conf says probe name              prints the pod's name */
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char *own_name(void)
{
        static char name[256];

        return gethostname(name, sizeof(name) - 1) < 0 ? "unknown" : name;
}

static int serve(const char *port)
{
        struct sockaddr_in6 any = { .sin6_family = AF_INET6,
                .sin6_port = htons((unsigned short)strtoul(port, NULL, 10)) };
        int one = 1, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
                bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 64) < 0) {
                perror("serve");
                return 1;
        }
        printf("serving as %s\n", own_name());
        fflush(stdout);
        for (;;) {
                char request[4096];
                int c = accept(fd, NULL, NULL);

                if (c < 0)
                        continue;
                if (read(c, request, sizeof(request)) > 0)
                        dprintf(c, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s\n",
                                strlen(own_name()) + 1, own_name());
                close(c);
        }
}

static int get(const char *host, const char *port)
{
        struct addrinfo *list, hints = { .ai_socktype = SOCK_STREAM };
        struct timeval patience = { .tv_sec = 5 };
        int e = getaddrinfo(host, port, &hints, &list);

        if (e) {
                fprintf(stderr, "%s: %s\n", host, gai_strerror(e));
                return 1;
        }
        for (struct addrinfo *a = list; a; a = a->ai_next) {
                int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
                char reply[4096], *body;
                size_t n = 0;
                ssize_t r;

                setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
                setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
                if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
                        perror(host);
                        continue;
                }
                dprintf(fd, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", host);
                while (n < sizeof(reply) - 1 &&
                        (r = read(fd, reply + n, sizeof(reply) - 1 - n)) > 0)
                        n += (size_t)r;
                reply[n] = '\0';
                body = strstr(reply, "\r\n\r\n");
                if (body)
                        return fputs(body + 4, stdout) < 0;
        }
        return 1;
}

/* The first process of a container is spared what it does not handle. */
static void end(int sig) { _exit(sig == SIGTERM ? 0 : 1); }

int main(int argc, char **argv)
{
        signal(SIGPIPE, SIG_IGN);
        signal(SIGTERM, end);
        if (argc == 3 && strcmp(argv[1], "serve") == 0)
                return serve(argv[2]);
        if (argc == 4 && strcmp(argv[1], "get") == 0)
                return get(argv[2], argv[3]);
        if (argc == 2 && strcmp(argv[1], "name") == 0)
                return puts(own_name()) < 0;
        fputs("usage: probe serve PORT | get HOST PORT | name\n", stderr);
        return 2;
}
