#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "agent/child.h"
#include "base/core.h"

#define OUT_FRAME ((size_t)32 << 10) /* output of a RUN in one frame */
#define GRACE_MS  1000               /* from SIGTERM to SIGKILL */

void words_add(struct words *w, const char *word)
{
        if (w->n + 2 > w->cap) {
                w->cap = w->cap ? w->cap * 2 : 16;
                w->v = xrealloc(w->v, w->cap * sizeof(*w->v));
        }
        w->v[w->n++] = word;
        w->v[w->n] = NULL;
}

void words_release(struct words *w)
{
        free(w->v);
        *w = (struct words){ 0 };
}

/* In the new process. It ends with the agent, because nobody else would see its result. */
static _Noreturn void child_exec(const char *const *argv, int fds[3], bool keep, pid_t parent)
{
        sigset_t none;
        setpgid(0, 0);
        for (int i = 0; i < 3; i++)
                if (dup2(fds[i], i) < 0)
                        _exit(127);
        sigemptyset(&none);
        signal(SIGPIPE, SIG_DFL);
        core_as_before();
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (!keep) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent)
                        _exit(127);
        }
        execvp(argv[0], (char *const *)argv);
        dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(127);
}

static void child_close_pipes(int fds[3])
{
        for (int i = 0; i < 3; i++)
                close_p(&fds[i]);
}

struct child *child_start(struct session *s, const char *const *argv, bool keep)
{
        struct child *c = xcalloc(1, sizeof(*c));
        int theirs[3] = { -1, -1, -1 };
        *c = (struct child){ .next = s->children, .pid = -1, .keep = keep, .fd = { -1, -1, -1 } };
        s->children = c;
        for (int i = 0; i < 3; i++) {
                int p[2];
                if (pipe2(p, O_CLOEXEC) < 0) {
                        child_close_pipes(theirs);
                        goto failed;
                }
                theirs[i] = p[i != 0];
                c->fd[i] = p[i == 0];
                fcntl(c->fd[i], F_SETFL, O_NONBLOCK);
        }
        pid_t parent = getpid();
        c->pid = fork();
        if (c->pid == 0)
                child_exec(argv, theirs, keep, parent);
        child_close_pipes(theirs);
        if (c->pid > 0) {
                setpgid(c->pid, c->pid); /* in both processes: either may be the first */
                return c;
        }
failed:
        str_addf(&c->text[1], "cannot run %s: %s\n", argv[0], strerror(errno));
        c->ended = true;
        c->status = 127 << 8;
        child_close_pipes(c->fd);
        return c;
}

/* Writes its standard input, and closes it at the end. */
static void child_feed(struct child *c)
{
        if (c->fd[0] < 0)
                return;
        if (c->sent < c->input.len) {
                ssize_t n = write(c->fd[0], c->input.data + c->sent, c->input.len - c->sent);
                if (n > 0)
                        c->sent += (size_t)n;
                else if (n < 0 && errno != EAGAIN && errno != EINTR)
                        c->sent = c->input.len; /* it does not read its input */
        }
        if (c->sent == c->input.len)
                close_p(&c->fd[0]);
}

static void child_send_output(
        struct session *s, const struct child *c, int stream, const char *data, size_t n)
{
        size_t b = wire_begin(&s->outgoing, WIRE_OUT);
        wire_number(&s->outgoing, TAG_ID, c->id);
        wire_number(&s->outgoing, TAG_STREAM, (uint64_t)stream);
        wire_bytes(&s->outgoing, TAG_BYTES, data, n);
        wire_end(&s->outgoing, b);
}

static void child_text(struct child *c, struct str *text, const char *data, size_t n)
{
        bool whole = c->whole && text == &c->text[0];
        if (whole && text->len + n > c->whole) {
                c->over = true;
                return;
        }
        if (!whole && text->len > CHILD_TEXT) {
                memmove(text->data, text->data + text->len - CHILD_TEXT / 2, CHILD_TEXT / 2);
                str_truncate(text, CHILD_TEXT / 2);
        }
        str_addn(text, data, n);
}

/* Reads one piece of its output; false when there is none at the moment. */
static bool child_read(struct session *s, struct child *c, int stream)
{
        char buf[OUT_FRAME];
        ssize_t n = c->fd[stream] < 0 ? 0 : read(c->fd[stream], buf, sizeof(buf));
        if (n <= 0) {
                if (n == 0 || (errno != EAGAIN && errno != EINTR))
                        close_p(&c->fd[stream]);
                return false;
        }
        struct str *text = &c->text[stream - 1];
        if (c->run)
                child_send_output(s, c, stream, buf, (size_t)n);
        else
                child_text(c, text, buf, (size_t)n);
        return true;
}

size_t children_poll(struct session *s, struct pollfd *p)
{
        size_t n = 0;
        for (struct child *c = s->children; c && n + 3 <= 3 * CHILDREN_MAX; c = c->next)
                for (int i = 0; i < 3; i++)
                        p[n++] = (struct pollfd){ .fd = c->fd[i], .events = i ? POLLIN : POLLOUT };
        return n;
}

static void child_forget(struct session *s, struct child *c)
{
        for (struct child **p = &s->children; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        child_close_pipes(c->fd);
        str_wipe_release(&c->input);
        str_release(&c->text[0]);
        str_release(&c->text[1]);
        free(c);
}

static uint64_t child_exit_value(int status)
{
        return WIFSIGNALED(status) ? 128u + (unsigned)WTERMSIG(status)
                                   : (unsigned)WEXITSTATUS(status);
}

/* A RUN ends with its program: other processes that hold its pipes open are not waited for. */
static void child_send_exit(struct session *s, struct child *c)
{
        size_t b = wire_begin(&s->outgoing, WIRE_EXIT);
        wire_number(&s->outgoing, TAG_ID, c->id);
        wire_number(&s->outgoing, TAG_STATUS, child_exit_value(c->status));
        wire_end(&s->outgoing, b);
        child_forget(s, c);
}

void children_turn(struct session *s, const struct pollfd *p, size_t n)
{
        size_t i = 0;
        for (struct child *c = s->children; c && i + 3 <= n; c = c->next, i += 3) {
                if (p[i].revents && c->fd[0] == p[i].fd)
                        child_feed(c);
                for (int k = 1; k < 3; k++)
                        if (p[i + (size_t)k].revents && c->fd[k] == p[i + (size_t)k].fd)
                                child_read(s, c, k);
        }
}

void children_reap(struct session *s)
{
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
                for (struct child *c = s->children, *next; c; c = next) {
                        next = c->next;
                        if (c->pid != pid || c->ended)
                                continue;
                        c->ended = true;
                        c->status = status;
                        for (int k = 1; k < 3; k++)
                                while (child_read(s, c, k) && !s->broken)
                                        session_flush(s);
                        child_close_pipes(c->fd);
                        if (c->run)
                                child_send_exit(s, c);
                }
}

static void child_signal_group(const struct child *c, int sig)
{
        if (!c->ended && c->pid > 0)
                kill(-c->pid, sig);
}

void child_free(struct session *s, struct child *c)
{
        if (!c)
                return;
        if (!c->ended) {
                child_signal_group(c, SIGKILL);
                waitpid(c->pid, NULL, 0);
        }
        child_forget(s, c);
}

void children_end(struct session *s)
{
        for (struct child *c = s->children; c; c = c->next)
                if (!c->keep)
                        child_signal_group(c, SIGTERM);
        for (int64_t until = clock_ms() + GRACE_MS; s->children && clock_ms() < until;) {
                bool running = false;
                for (struct child *c = s->children; c; c = c->next)
                        running |= !c->ended && !c->keep;
                if (!running)
                        break;
                session_turn(s, 50);
        }
        while (s->children) {
                if (s->children->keep && !s->children->ended)
                        child_wait(s, s->children, -1, &(struct error){ 0 });
                child_free(s, s->children);
        }
}

static int child_failed(const struct child *c, struct error *err)
{
        char *line CLEANUP(free_p) = str_last_line(&c->text[c->text[1].len ? 1 : 0]);
        if (WIFSIGNALED(c->status))
                return error_set(err, EIO, EXIT_STEP, "killed by signal %d%s%.500s",
                        WTERMSIG(c->status), *line ? ": " : "", line);
        if (*line)
                return error_set(err, EIO, EXIT_STEP, "%.500s", line);
        return error_set(err, EIO, EXIT_STEP, "exit status %d", WEXITSTATUS(c->status));
}

int child_wait(struct session *s, struct child *c, int seconds, struct error *err)
{
        int64_t until = clock_ms() + (int64_t)seconds * 1000;
        while (!c->ended) {
                int64_t left = until - clock_ms();
                if (s->cut && !c->keep)
                        return error_set(
                                err, ECANCELED, EXIT_UNREACHABLE, "the connection was cut");
                if (seconds >= 0 && left <= 0)
                        return error_set(
                                err, ETIMEDOUT, EXIT_STEP, "not finished after %d s", seconds);
                session_turn(s, seconds < 0 ? -1 : left > 1000 ? 1000 : (int)left);
        }
        if (c->over)
                return error_set(err, EFBIG, EXIT_STEP,
                        "it printed more than %zu MB: the output is incomplete", c->whole >> 20);
        return c->status ? child_failed(c, err) : 0;
}

int tool(
        struct session *s, const char *const *argv, int seconds, struct str *out, struct error *err)
{
        struct child *c = child_start(s, argv, false);
        c->whole = out ? CHILD_WHOLE : 0;
        int r = child_wait(s, c, seconds, err);
        if (out)
                str_addn(out, str_text(&c->text[0]), c->text[0].len);
        child_free(s, c);
        return r < 0 ? error_wrap(err, "%s", argv[0]) : 0;
}

int session_run(struct session *s, const struct wire_frame *f, struct error *err)
{
        struct words w CLEANUP(words_release) = { 0 };
        struct str args CLEANUP(str_wipe_release) = { 0 };
        struct wire_field v;
        size_t running = 0;
        for (struct child *c = s->children; c; c = c->next, running++)
                if (c->run && c->id == wire_value(f, TAG_ID, 0))
                        return error_set(err, EPROTO, EXIT_STEP, "two RUN orders have the same id");
        for (size_t at = 0; wire_field(f, &at, &v) > 0;)
                if (v.tag == TAG_ARG) {
                        if (memchr(v.data, 0, v.len))
                                return error_set(err, EPROTO, EXIT_STEP,
                                        "an argument of a RUN order contains a NUL byte");
                        str_addn(&args, v.data, v.len);
                        str_addc(&args, 0);
                }
        for (size_t at = 0; at < args.len; at += strlen(args.data + at) + 1)
                words_add(&w, args.data + at);
        if (!w.n || running + 8 > CHILDREN_MAX) /* some are reserved for the agent's own programs */
                return error_set(err, EPROTO, EXIT_STEP,
                        w.n ? "too many programs run at once" : "a RUN order has no program");
        struct child *c = child_start(s, w.v, false);
        c->run = true;
        c->id = wire_value(f, TAG_ID, 0);
        if (wire_find(f, TAG_INPUT, &v))
                str_addn(&c->input, v.data, v.len);
        if (c->ended) {
                child_send_output(s, c, 2, str_text(&c->text[1]), c->text[1].len);
                child_send_exit(s, c);
        }
        return 0;
}
