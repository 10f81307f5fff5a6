/* cluster/services/relay.h: bytes go both ways, also many of them, and an end on one side ends the
 * other. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cluster/services/relay.h"

#define MANY ((size_t)3 << 20)

/* Sends back what comes, for one connection. */
static _Noreturn void echo(int listener)
{
        char buf[4096];
        int fd = accept(listener, NULL, NULL);
        for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0;)
                for (ssize_t at = 0, w; at < n; at += w)
                        if ((w = write(fd, buf + at, (size_t)(n - at))) < 0)
                                _exit(1);
        _exit(0);
}

static _Noreturn void client(unsigned port)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                .sin_port = htons((uint16_t)port),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        static char buf[65536];
        size_t sent = 0, got = 0;
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
                _exit(2);
        while (got < MANY) {
                memset(buf, (int)(sent % 251), sizeof(buf));
                if (sent < MANY && write(fd, buf, sizeof(buf)) != sizeof(buf))
                        _exit(3);
                sent += sent < MANY ? sizeof(buf) : 0;
                for (size_t n = 0; n < sizeof(buf);) {
                        ssize_t r = read(fd, buf, sizeof(buf) - n);
                        if (r <= 0)
                                _exit(4);
                        n += (size_t)r;
                        got += (size_t)r;
                }
        }
        _exit(0);
}

static void reap(evutil_socket_t fd, short what, void *arg)
{
        int *left = arg, status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0; --*left)
                assert_int_equal(status, 0);
}

static void relayed(void **state)
{
        char dir[] = "/tmp/slipway-relay-XXXXXX";
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        struct error err CLEANUP(error_release) = { 0 };
        struct event_base *base = event_base_new();
        struct relay *r = NULL;
        int listener = socket(AF_UNIX, SOCK_STREAM, 0), left = 2;
        assert_non_null(mkdtemp(dir));
        snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", dir);
        assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(relay_open(base, at.sun_path, &r, &err), 0);
        if (fork() == 0)
                echo(listener);
        if (fork() == 0)
                client(relay_port(r));
        struct event *timer = event_new(base, -1, EV_PERSIST, reap, &left);
        event_add(timer, &(struct timeval){ .tv_usec = 10000 });
        while (left)
                event_base_loop(base, EVLOOP_ONCE);
        event_free(timer);
        relay_free(r);
        event_base_free(base);
        close(listener);
        unlink(at.sun_path);
        rmdir(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(relayed) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
