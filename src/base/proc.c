#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/core.h"
#include "base/proc.h"

struct proc {
        pid_t pid;
        struct event_base *base;
        struct proc_spec spec;
        int in;
        struct event *write_event, *read_event[2], *exit_event;
        struct str queue; /* bytes for its input from `sent` on */
        size_t sent;
        bool end_input, exited;
        int status;
};

#define REAP_MS 20

/* -1: kernels before 5.3 have none, and filters of containers may forbid it (EPERM). */
static int pidfd_of(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

/* Between fork and exec only what is safe there. A failure to exec is told through `report`. */
static _Noreturn void child_main(
        const struct proc_spec *spec, char **env, int in, int out, int errors, int report)
{
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed run leaves no build or download running */
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        core_as_before();
        if (spec->file_max)
                setrlimit(RLIMIT_FSIZE, &(struct rlimit){ .rlim_cur = (rlim_t)spec->file_max,
                                                .rlim_max = (rlim_t)spec->file_max });
        if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0 ||
                (spec->dir && chdir(spec->dir) < 0))
                goto failed;
        execvpe(spec->argv[0], (char *const *)spec->argv, env);
failed:;
        int code = errno;
        (void)!write(report, &code, sizeof(code));
        _exit(127);
}

/* This process's environment with the additions first, so that they take precedence. */
static char **make_env(const char *const *add)
{
        extern char **environ;
        size_t n = 0, m = 0;
        while (environ && environ[n])
                n++;
        while (add && add[m])
                m++;
        char **env = xcalloc(n + m + 1, sizeof(*env)), **p = env;
        for (size_t i = 0; i < m; i++)
                *p++ = (char *)add[i];
        for (size_t i = 0; i < n; i++) {
                bool replaced = false;
                for (size_t j = 0; j < m && !replaced; j++)
                        replaced = strncmp(environ[i], add[j], strcspn(add[j], "=") + 1) == 0;
                if (!replaced)
                        *p++ = environ[i];
        }
        return env;
}

static void close_pair(int fd[2])
{
        close_p(&fd[0]);
        close_p(&fd[1]);
}

/* Starts the child; on success in[1], out[0] and errors[0] are ours. */
static int spawn(const struct proc_spec *spec, int in[2], int out[2], int errors[2], pid_t *pid,
        struct error *err)
{
        int report[2] = { -1, -1 };
        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0 ||
                pipe2(report, O_CLOEXEC) < 0) {
                close_pair(report);
                return error_set(err, errno, EXIT_INTERNAL, "cannot start %s: %s", spec->argv[0],
                        strerror(errno));
        }
        char **env CLEANUP(free_p) = make_env(spec->env);
        *pid = fork();
        if (*pid == 0)
                child_main(spec, env, in[0], out[1], errors[1], report[1]);
        int code = *pid < 0 ? errno : 0;
        close_p(&in[0]);
        close_p(&out[1]);
        close_p(&errors[1]);
        close_p(&report[1]);
        if (!code && read(report[0], &code, sizeof(code)) == sizeof(code))
                waitpid(*pid, NULL, 0);
        close_p(&report[0]);
        if (!code)
                return 0;
        error_set(err, code, EXIT_INTERNAL, "cannot start %s: %s", spec->argv[0], strerror(code));
        return code == ENOENT
                       ? error_hint(err, "install the program that provides %s", spec->argv[0])
                       : -code;
}

static void drop_event(struct event **e)
{
        if (*e) {
                int fd = event_get_fd(*e);
                event_free(*e);
                if (fd >= 0)
                        close(fd);
        }
        *e = NULL;
}

/* The end is reported when the process has ended and all its output has been read. */
static void maybe_exited(struct proc *p)
{
        if (!p->exited || p->read_event[0] || p->read_event[1])
                return;
        struct proc_spec spec = p->spec;
        int status = p->status;
        if (spec.on_exit)
                spec.on_exit(p, status, spec.arg);
        p->pid = 0; /* reaped: proc_free must not kill another process */
        proc_free(p);
}

static void on_readable(int fd, short what, void *arg)
{
        struct proc *p = arg;
        int which = p->read_event[0] && event_get_fd(p->read_event[0]) == fd ? 0 : 1;
        char buf[64 << 10];
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                drop_event(&p->read_event[which]);
                maybe_exited(p);
                return;
        }
        void (*deliver)(struct proc *, const char *, size_t, void *) =
                which ? p->spec.on_err : p->spec.on_out;
        if (deliver)
                deliver(p, buf, (size_t)n, p->spec.arg);
}

void proc_errors(struct proc *p)
{
        char buf[16 << 10];
        ssize_t n = 0;
        while (p->read_event[1] &&
                ((n = read(event_get_fd(p->read_event[1]), buf, sizeof(buf))) > 0 ||
                        (n < 0 && errno == EINTR)))
                if (n > 0 && p->spec.on_err)
                        p->spec.on_err(p, buf, (size_t)n, p->spec.arg);
}

static void on_writable(int fd, short what, void *arg)
{
        struct proc *p = arg;
        while (p->sent < p->queue.len) {
                ssize_t n = write(fd, p->queue.data + p->sent, p->queue.len - p->sent);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n < 0) { /* it no longer reads: its exit will tell why */
                        drop_event(&p->write_event);
                        p->in = -1;
                        return;
                }
                p->sent += (size_t)n;
        }
        str_truncate(&p->queue, 0);
        p->sent = 0;
        event_del(p->write_event);
        if (p->end_input) {
                drop_event(&p->write_event);
                p->in = -1;
        } else if (p->spec.on_drain) {
                p->spec.on_drain(p, p->spec.arg);
        }
}

static void on_gone(int fd, short what, void *arg)
{
        struct proc *p = arg;
        int status;
        if (waitpid(p->pid, &status, WNOHANG) != p->pid)
                return;
        p->exited = true;
        p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        drop_event(&p->exit_event);
        maybe_exited(p);
}

int proc_start(
        struct event_base *base, const struct proc_spec *spec, struct proc **out, struct error *err)
{
        int in[2] = { -1, -1 }, output[2] = { -1, -1 }, errors[2] = { -1, -1 };
        pid_t pid = -1;
        if (spawn(spec, in, output, errors, &pid, err) < 0) {
                close_pair(in);
                close_pair(output);
                close_pair(errors);
                return -err->code;
        }
        struct proc *p = xcalloc(1, sizeof(*p));
        *p = (struct proc){ .pid = pid, .base = base, .spec = *spec, .in = in[1] };
        int fds[] = { in[1], output[0], errors[0] };
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                fcntl(fds[i], F_SETFL, O_NONBLOCK);
        p->write_event = event_new(base, in[1], EV_WRITE | EV_PERSIST, on_writable, p);
        p->read_event[0] = event_new(base, output[0], EV_READ | EV_PERSIST, on_readable, p);
        p->read_event[1] = event_new(base, errors[0], EV_READ | EV_PERSIST, on_readable, p);
        int pidfd = pidfd_of(pid);
        p->exit_event =
                event_new(base, pidfd, pidfd < 0 ? EV_PERSIST : EV_READ | EV_PERSIST, on_gone, p);
        event_add(p->read_event[0], NULL);
        event_add(p->read_event[1], NULL);
        /* without one it is asked for again and again */
        event_add(p->exit_event, pidfd < 0 ? &(struct timeval){ .tv_usec = REAP_MS * 1000 } : NULL);
        *out = p;
        return 0;
}

void proc_write(struct proc *p, const void *data, size_t n)
{
        if (p->in < 0 || p->end_input)
                return;
        if (p->sent && p->sent == p->queue.len) {
                str_truncate(&p->queue, 0);
                p->sent = 0;
        }
        str_addn(&p->queue, data, n);
        event_add(p->write_event, NULL);
}

size_t proc_queued(const struct proc *p) { return p->queue.len - p->sent; }

void proc_end_input(struct proc *p)
{
        p->end_input = true;
        if (p->write_event)
                event_add(p->write_event, NULL);
}

void proc_kill(struct proc *p, int signal)
{
        if (p->pid > 0 && !p->exited)
                kill(-p->pid, signal);
}

void proc_free(struct proc *p)
{
        if (!p)
                return;
        if (p->pid > 0 && !p->exited) {
                kill(-p->pid, SIGKILL);
                waitpid(p->pid, NULL, 0);
        }
        drop_event(&p->write_event);
        drop_event(&p->read_event[0]);
        drop_event(&p->read_event[1]);
        drop_event(&p->exit_event);
        str_wipe_release(&p->queue);
        free(p);
}

/* ---- in the foreground ---- */

struct capture {
        struct str *out, *errors;
        size_t max;
        int *status;
        struct event_base *base;
};

static void proc_keep(struct str *s, size_t max, const char *data, size_t n)
{
        if (s && s->len < max)
                str_addn(s, data, n < max - s->len ? n : max - s->len);
}

static void capture_out(struct proc *p, const char *data, size_t n, void *arg)
{
        struct capture *c = arg;
        proc_keep(c->out, c->max, data, n);
}

static void capture_err(struct proc *p, const char *data, size_t n, void *arg)
{
        struct capture *c = arg;
        proc_keep(c->errors, c->max, data, n);
}

static void capture_exit(struct proc *p, int status, void *arg)
{
        struct capture *c = arg;
        *c->status = status;
        event_base_loopbreak(c->base);
}

int proc_run(const char *const *argv, const void *input, size_t n, size_t max, struct str *out,
        struct str *errors, int *status, struct error *err)
{
        struct event_base *base = event_base_new();
        if (!base)
                return error_set(
                        err, ENOMEM, EXIT_INTERNAL, "cannot start %s: no event loop", argv[0]);
        struct capture c = { out, errors, max, status, base };
        struct proc_spec spec = { .argv = argv,
                .on_out = capture_out,
                .on_err = capture_err,
                .on_exit = capture_exit,
                .arg = &c };
        struct proc *p;
        int r = proc_start(base, &spec, &p, err);
        if (r == 0) {
                if (n)
                        proc_write(p, input, n);
                proc_end_input(p);
                event_base_dispatch(base);
        }
        event_base_free(base);
        return r;
}

int proc_must(const char *const *argv, struct str *out, struct error *err)
{
        struct str errors CLEANUP(str_release) = { 0 };
        int status;
        int r = proc_run(argv, NULL, 0, 64 << 20, out, &errors, &status, err);
        if (r < 0 || status == 0)
                return r;
        char *line CLEANUP(free_p) = str_last_line(&errors);
        return error_set(err, EIO, EXIT_INTERNAL, "%s failed with status %d%s%s", argv[0], status,
                *line ? ": " : "", line);
}
