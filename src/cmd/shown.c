/* Shows another program's output: escaped line by line on a terminal, unchanged in a
 * pipe or file. */
#include <poll.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "base/core.h"
#include "base/utf8.h"
#include "cmd/reach.h"

#define LINE_LONGEST ((size_t)64 << 10) /* longer lines are truncated */

struct shown { /* one output stream */
        FILE *to;
        int from; /* read end of the pipe; -1: not a terminal */
        struct str line;
};

static void shown_add(struct shown *s, const char *data, size_t n)
{
        str_addn(&s->line, data, n);
        const char *end = memrchr(s->line.data, '\n', s->line.len);
        size_t whole = end                          ? (size_t)(end - s->line.data) + 1
                       : s->line.len > LINE_LONGEST ? s->line.len
                                                    : 0;
        struct str text CLEANUP(str_release) = { 0 };
        text_lines_harmless(&text, s->line.data, whole);
        print_bytes(s->to, text.data, text.len);
        fflush(s->to);
        memmove(s->line.data, s->line.data + whole, s->line.len - whole);
        str_truncate(&s->line, s->line.len - whole);
}

static void shown_end(struct shown *s)
{
        struct str text CLEANUP(str_release) = { 0 };
        text_lines_harmless(&text, str_text(&s->line), s->line.len);
        print_bytes(s->to, str_text(&text), text.len);
        str_release(&s->line);
        close_p(&s->from);
}

static void shown_read(struct shown *s)
{
        char buf[16 << 10];
        ssize_t n = read(s->from, buf, sizeof(buf));
        if (n > 0)
                shown_add(s, buf, (size_t)n);
        else if (n == 0 || errno != EINTR)
                shown_end(s);
}

static _Noreturn void shown_child(const char *const *argv, const int to[2])
{
        struct error err = { 0 };
        for (int i = 0; i < 2; i++)
                if (to[i] >= 0)
                        dup2(to[i], i + 1);
        reach_exec(argv, &err);
        print_err("slipway: %s\n", err.message);
        fflush(stderr);
        _exit(EXIT_INTERNAL);
}

int reach_show(const char *const *argv, struct error *err)
{
        struct shown out[2] = { { .to = stdout, .from = -1 }, { .to = stderr, .from = -1 } };
        int to[2] = { -1, -1 }, pipes[2], status = 0;
        if (!isatty(STDOUT_FILENO) && !isatty(STDERR_FILENO))
                return reach_exec(argv, err);
        for (int i = 0; i < 2; i++) {
                if (!isatty(i + 1))
                        continue;
                if (pipe2(pipes, O_CLOEXEC) < 0)
                        return error_set(err, errno, EXIT_INTERNAL, "cannot make a pipe: %s",
                                strerror(errno));
                out[i].from = pipes[0];
                to[i] = pipes[1];
        }
        fflush(stdout);
        pid_t pid = fork();
        if (pid < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot start %s: %s", argv[0], strerror(errno));
        if (pid == 0)
                shown_child(argv, to);
        close_p(&to[0]);
        close_p(&to[1]);
        while (out[0].from >= 0 || out[1].from >= 0) {
                struct pollfd p[2] = { { .fd = out[0].from, .events = POLLIN },
                        { .fd = out[1].from, .events = POLLIN } };
                if (poll(p, 2, -1) < 0 && errno != EINTR)
                        break;
                for (int i = 0; i < 2; i++)
                        if (out[i].from >= 0 && p[i].revents)
                                shown_read(&out[i]);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
