/* Started as "probe", the agent verifies a cluster from inside its pods: a server that answers with
 * its name, and a client that reports whether others answer. With it no image with a shell and curl
 * is needed.
 *
 *   probe serve PORT NAME               answers every request with NAME and prints a line for each
 *   probe ask [-t SECONDS] URL...       http://HOST[:PORT]/PATH or tcp://HOST:PORT (connecting is
 *     enough); all at once, repeated until the time is over; prints a line each, in order:
 *     "ok URL ANSWER" or "failed URL: WHY"; its status is the number of failures
 *   probe keep|kept FILE TEXT           writes the text, or says whether it is there (volume.c)
 *   probe forward PORT HOST PORT        connections to the loopback address (forward.c) */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "agent/agent.h"

#define URLS_MAX    256
#define REQUEST_MAX 2048
#define TRY_MS      2000 /* for one connection and one answer */
#define PAUSE_MS    100
#define WAIT_SECS   5

/* Untrusted text must not break a line of a log. */
static void one_line(char *text)
{
        text[strcspn(text, "\r\n")] = 0;
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
                        *c = '?';
}

static bool wait_for(int fd, short what, int64_t until)
{
        struct pollfd p = { .fd = fd, .events = what };
        int64_t left = until - clock_ms();
        return left > 0 && poll(&p, 1, (int)left) > 0;
}

/* Reads until `end` was read, the other side closed, the buffer is full or the time is over. */
static size_t probe_read_text(int fd, char *text, size_t size, const char *end, int64_t until)
{
        size_t n = 0;
        ssize_t got;
        text[0] = 0;
        while (n + 1 < size && !(end && strstr(text, end)) && wait_for(fd, POLLIN, until) &&
                (got = read(fd, text + n, size - n - 1)) > 0) {
                n += (size_t)got;
                text[n] = 0;
        }
        return n;
}

/* ---- serve ---- */

static void on_term(int sig)
{
        (void)sig;
        _exit(0);
}

static void answer(int fd, const struct sockaddr_in6 *from, const char *name)
{
        char text[REQUEST_MAX], peer[INET6_ADDRSTRLEN] = "";
        /* the client only connected */
        if (!probe_read_text(fd, text, sizeof(text), "\r\n\r\n", clock_ms() + TRY_MS))
                return;
        one_line(text);
        inet_ntop(AF_INET6, &from->sin6_addr, peer, sizeof(peer));
        printf("%.200s from %s\n", text, has_prefix(peer, "::ffff:") ? peer + 7 : peer);
        fflush(stdout);
        char *reply CLEANUP(free_p) = xasprintf(
                "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
                strlen(name) + 1, name);
        if (send(fd, reply, strlen(reply), MSG_NOSIGNAL) > 0)
                shutdown(fd, SHUT_WR);
}

static int listen_at(const struct sockaddr *at, socklen_t len)
{
        int one = 1, zero = 0, fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if ((at->sa_family == AF_INET6 &&
                    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0) ||
                bind(fd, at, len) < 0 || listen(fd, 64) < 0)
                close_p(&fd);
        return fd;
}

/* One socket for both address families, or only IPv4 if the kernel has no IPv6. */
static int listen_on(uint16_t port, bool loopback)
{
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        struct sockaddr_in four = { .sin_family = AF_INET,
                .sin_port = htons(port),
                .sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY) };
        int fd = loopback ? -1 : listen_at((const struct sockaddr *)&six, sizeof(six));
        return fd < 0 ? listen_at((const struct sockaddr *)&four, sizeof(four)) : fd;
}

int probe_listen(const char *port, bool loopback, int *fd)
{
        char *end;
        long n = strtol(port, &end, 10);
        if (*end || n < 1 || n > 65535) {
                fprintf(stderr, "probe: %s is not a port\n", port);
                return EXIT_USAGE;
        }
        signal(SIGTERM, on_term); /* process 1 of a container has no default action */
        signal(SIGINT, on_term);
        *fd = listen_on((uint16_t)n, loopback);
        if (*fd >= 0)
                return 0;
        fprintf(stderr, "probe: cannot listen on port %ld: %s\n", n, strerror(errno));
        return EXIT_INTERNAL;
}

static int serve(const char *port, const char *name)
{
        int fd CLEANUP(close_p) = -1, r = probe_listen(port, false, &fd);
        if (r)
                return r;
        printf("serving %s on port %s\n", name, port);
        fflush(stdout);
        for (;;) {
                struct sockaddr_storage from = { 0 };
                socklen_t len = sizeof(from);
                int one CLEANUP(close_p) =
                        accept4(fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
                struct sockaddr_in6 peer = { 0 };
                if (from.ss_family == AF_INET6)
                        memcpy(&peer, &from, sizeof(peer));
                if (one >= 0)
                        answer(one, &peer, name);
        }
}

/* ---- ask ---- */

struct result { /* shared with the parent */
        bool good;
        char text[160]; /* the answer, or why there is none */
};

struct url {
        bool http;
        char host[256], port[8];
        const char *path;
};

static bool url_parse(const char *text, struct url *u)
{
        *u = (struct url){ .http = has_prefix(text, "http://") };
        if (!u->http && !has_prefix(text, "tcp://"))
                return false;
        text += u->http ? 7 : 6;
        bool six = *text == '[';
        size_t n = six ? strcspn(++text, "]") : strcspn(text, ":/");
        if (!n || n >= sizeof(u->host) || (six && text[n] != ']'))
                return false;
        memcpy(u->host, text, n);
        text += n + six;
        size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;
        if (digits > 5 || (*text == ':' && !digits) || (!digits && !u->http))
                return false;
        snprintf(u->port, sizeof(u->port), "%.*s", digits ? (int)digits : 2,
                digits ? text + 1 : "80");
        text += digits ? digits + 1 : 0;
        u->path = *text ? text : "/";
        return *u->path == '/' && strlen(u->path) < 1024 && !strpbrk(u->path, " \r\n");
}

static void probe_why(struct result *r, const char *what, const char *cause)
{
        snprintf(r->text, sizeof(r->text), "%s%s%s", what, *cause ? ": " : "", cause);
}

static bool connect_to(int fd, const struct addrinfo *a, struct result *r)
{
        int problem = 0;
        socklen_t len = sizeof(problem);
        if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
                problem = errno;
        else if (!wait_for(fd, POLLOUT, clock_ms() + TRY_MS))
                problem = ETIMEDOUT;
        else
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len);
        if (problem)
                probe_why(r, "cannot connect",
                        problem == ETIMEDOUT ? "no answer" : strerror(problem));
        return !problem;
}

static bool exchange(int fd, const struct url *u, struct result *r)
{
        char text[REQUEST_MAX];
        char *request CLEANUP(free_p) = xasprintf(
                "GET %s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n\r\n", u->path, u->host);
        if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
                probe_why(r, "cannot send", strerror(errno));
                return false;
        }
        size_t n = probe_read_text(fd, text, sizeof(text), NULL, clock_ms() + TRY_MS);
        char *body = strstr(text, "\r\n\r\n");
        if (!n || !body) {
                probe_why(r, "connected, but there was no answer", "");
                return false;
        }
        body += 4;
        one_line(body);
        bool good = has_prefix(text, "HTTP/1.") && n > 12 && has_prefix(text + 8, " 200");
        one_line(text);
        snprintf(r->text, sizeof(r->text), "%s%.100s", good ? "" : "it answered ",
                good ? body : text);
        return good;
}

static bool try_once(const struct url *u, struct result *r)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
        int problem = getaddrinfo(u->host, u->port, &hints, &list);
        if (problem) {
                probe_why(r, "the name does not resolve", gai_strerror(problem));
                return false;
        }
        bool good = false;
        for (const struct addrinfo *a = list; a && !good; a = a->ai_next) {
                int fd CLEANUP(close_p) =
                        socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                if (fd < 0) {
                        probe_why(r, "cannot open a socket", strerror(errno));
                        continue;
                }
                good = connect_to(fd, a, r) && (!u->http || exchange(fd, u, r));
                if (good && !u->http)
                        probe_why(r, "connected", "");
        }
        freeaddrinfo(list);
        return good;
}

/* Runs in a child process: the resolver blocks, and queries must not wait for each other. */
static void ask_one(const char *text, struct result *r, int64_t until)
{
        struct url u;
        if (!url_parse(text, &u)) {
                probe_why(r, "this is not http://HOST[:PORT]/PATH or tcp://HOST:PORT", "");
                return;
        }
        /* the result if the parent kills this child */
        probe_why(r, "the name server does not answer", "");
        while (!(r->good = try_once(&u, r)) && clock_ms() < until)
                poll(NULL, 0, PAUSE_MS);
}

static void probe_ask_all(char **urls, int n, struct result *results, int64_t until)
{
        pid_t pids[URLS_MAX];
        for (int i = 0; i < n; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        ask_one(urls[i], &results[i], until);
                        _exit(0);
                }
                if (pids[i] < 0)
                        probe_why(&results[i], "cannot start a process", strerror(errno));
        }
        for (int i = 0; i < n; i++) {
                while (pids[i] > 0 && waitpid(pids[i], NULL, WNOHANG) == 0) {
                        if (clock_ms() > until + TRY_MS)
                                kill(pids[i], SIGKILL);
                        poll(NULL, 0, 5);
                }
        }
}

static int probe_ask(int argc, char **argv)
{
        long seconds = WAIT_SECS;
        if (argc > 2 && streq(argv[0], "-t")) {
                seconds = strtol(argv[1], NULL, 10);
                argc -= 2;
                argv += 2;
        }
        if (argc < 1 || argc > URLS_MAX || seconds < 1 || seconds > 3600) {
                fprintf(stderr, "usage: probe ask [-t SECONDS] URL...   (at most %d)\n", URLS_MAX);
                return EXIT_USAGE;
        }
        size_t size = (size_t)argc * sizeof(struct result);
        struct result *results =
                mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (results == MAP_FAILED) {
                fprintf(stderr, "probe: %s\n", strerror(errno));
                return EXIT_INTERNAL;
        }
        probe_ask_all(argv, argc, results, clock_ms() + seconds * 1000);
        int failed = 0;
        for (int i = 0; i < argc; i++) {
                const struct result *r = &results[i];
                failed += !r->good;
                printf(r->good ? "ok %s %.*s\n" : "failed %s: %.*s\n", argv[i],
                        (int)sizeof(r->text), r->text);
        }
        munmap(results, size);
        return failed < 100 ? failed : 100; /* an exit status has one byte */
}

int probe_main(int argc, char **argv)
{
        if (argc == 4 && streq(argv[1], "serve"))
                return serve(argv[2], argv[3]);
        if (argc > 2 && streq(argv[1], "ask"))
                return probe_ask(argc - 2, argv + 2);
        if (argc > 1 && argv[1][0] == '-')
                return volume_main(argc, argv);
        if (argc == 4 && (streq(argv[1], "keep") || streq(argv[1], "kept")))
                return volume_keeps(argv);
        if (argc == 5 && streq(argv[1], "forward"))
                return forward_main(argv[2], argv[3], argv[4]);
        fprintf(stderr, "usage: probe serve PORT NAME | probe ask [-t SECONDS] URL...\n");
        return EXIT_USAGE;
}
