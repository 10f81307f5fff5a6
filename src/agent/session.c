#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "agent/child.h"

/* One frame of the largest size, and some read-ahead. */
#define INPUT (WIRE_MAX + ((size_t)256 << 10))

int session_init(struct session *s, int in, int out, struct error *err)
{
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        *s = (struct session){ .in = in,
                .out = out,
                .signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                .buf = xmalloc(INPUT) };
        if (s->signals < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot watch signals: %s", strerror(errno));
        /* fewer reads per blob; fails for a socket, which is harmless */
        fcntl(in, F_SETPIPE_SZ, 1 << 20);
        return 0;
}

void session_release(struct session *s)
{
        children_end(s);
        wipe(s->buf, INPUT);
        free(s->buf);
        str_wipe_release(&s->outgoing);
        close_p(&s->signals);
        *s = (struct session){ .in = -1, .out = -1, .signals = -1 };
}

/* Writes all outgoing bytes; a closed output is a cut connection. */
void session_flush(struct session *s)
{
        for (size_t at = 0; at < s->outgoing.len && !s->broken;) {
                ssize_t n = write(s->out, s->outgoing.data + at, s->outgoing.len - at);
                if (n > 0)
                        at += (size_t)n;
                else if (n < 0 && errno == EAGAIN)
                        poll(&(struct pollfd){ .fd = s->out, .events = POLLOUT }, 1, -1);
                else if (n < 0 && errno != EINTR)
                        s->cut = s->broken = true;
        }
        str_truncate(&s->outgoing, 0);
}

static void receive(struct session *s)
{
        if (s->start && s->start == s->end)
                s->start = s->end = 0;
        if (s->start > INPUT / 2) {
                size_t n = s->end - s->start;
                memmove(s->buf, s->buf + s->start, n);
                wipe(s->buf + n, s->end - n);
                s->start = 0;
                s->end = n;
        }
        if (s->end == INPUT)
                return;
        ssize_t n = read(s->in, s->buf + s->end, INPUT - s->end);
        if (n > 0)
                s->end += (size_t)n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
                s->eof = s->cut = true;
}

static void read_signals(struct session *s)
{
        struct signalfd_siginfo i;
        while (read(s->signals, &i, sizeof(i)) == sizeof(i))
                if (i.ssi_signo != SIGCHLD)
                        s->eof = s->cut = true;
        children_reap(s);
}

/* Whether the next read has room: input is not read while the buffer is full
 * of unhandled frames. */
static bool has_room(const struct session *s)
{
        return !s->eof && (s->end < INPUT || s->start > INPUT / 2 || s->start == s->end);
}

void session_turn(struct session *s, int ms)
{
        struct pollfd p[2 + 3 * CHILDREN_MAX] = { { .fd = has_room(s) ? s->in : -1,
                                                          .events = POLLIN },
                { .fd = s->signals, .events = POLLIN } };
        session_flush(s);
        size_t n = 2 + children_poll(s, p + 2);
        if (poll(p, (nfds_t)n, ms) <= 0)
                return;
        children_turn(s, p + 2, n - 2);
        if (p[1].revents)
                read_signals(s);
        if (p[0].revents)
                receive(s);
}

int session_frame(struct session *s, struct wire_frame *out)
{
        return wire_frame(s->buf + s->start, s->end - s->start, out);
}

void session_drop(struct session *s, const struct wire_frame *f)
{
        wipe(s->buf + s->start, f->whole);
        s->start += f->whole;
}

bool session_alive(struct session *s)
{
        session_turn(s, 0);
        return !s->cut;
}
