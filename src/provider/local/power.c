/* Power of a machine: starts its keeper and waits for its sshd; kills it and removes the rest. */
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/proc.h"
#include "provider/local/local.h"

#define OFF_SECONDS     30
#define TRY_MS          100
#define CONNECT_SECONDS 1
#define BANNER_SECONDS  30

void pause_ms(unsigned ms)
{
        nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 },
                NULL);
}

/* ---- off ---- */

/* The keeper first, because it would start the machine again. */
size_t machine_kill(const char *dir)
{
        pid_t keeper = keeper_pid(dir);
        if (keeper)
                kill(keeper, SIGKILL);
        size_t n = 0;
        pid_t *pids CLEANUP(free_p) = cgroup_pids(dir, &n);
        for (size_t i = 0; i < n; i++)
                if (pids[i] != getpid())
                        kill(pids[i], SIGKILL);
        return n + (keeper != 0);
}

/* Machines are never mounted in this namespace; but if one is, removing files must not reach
 * through it. */
static void detach_mounts(const char *dir)
{
        FILE *f CLEANUP(fclose_p) = fopen("/proc/self/mountinfo", "re");
        char *line CLEANUP(free_p) = NULL, at[4096];
        size_t size = 0, n = strlen(dir);
        while (f && getline(&line, &size, f) > 0)
                if (sscanf(line, "%*d %*d %*s %*s %4095s", at) == 1 && has_prefix(at, dir) &&
                        at[n] == '/')
                        umount2(at, MNT_DETACH);
}

int machine_sweep(const char *dir, const char *id)
{
        static const char *const left[] = { "/run/systemd/nspawn/propagate/",
                "/run/systemd/nspawn/unix-export/" };
        char cable[16];
        if (!cgroup_remove(dir))
                return -EAGAIN;
        machine_link(id, cable);
        if (link_there(cable)) { /* normally it disappears with its namespace */
                struct error ignored CLEANUP(error_release) = { 0 };
                const char *const argv[] = { "ip", "link", "delete", cable, NULL };
                struct str out CLEANUP(str_release) = { 0 };
                proc_must(argv, &out, &ignored);
                if (link_there(cable))
                        return -EAGAIN;
        }
        detach_mounts(dir);
        for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
                char *path CLEANUP(free_p) = xasprintf("%s%s", left[i], id);
                rmdir(path);
        }
        return 0;
}

int machine_off(const char *dir, const char *id, struct error *err)
{
        int64_t end = clock_ms() + OFF_SECONDS * 1000;
        size_t n = 0;
        while (clock_ms() < end) {
                n = machine_kill(dir);
                if (n == 0 && machine_sweep(dir, id) == 0)
                        return 0;
                pause_ms(20);
        }
        return n ? error_set(err, EBUSY, EXIT_INTERNAL,
                           "%zu of its processes did not end after SIGKILL", n)
                 : error_set(err, EBUSY, EXIT_INTERNAL,
                           "its cgroups cannot be removed (listed in %s/cgroups)", dir);
}

/* ---- on ---- */

struct boot {
        struct event_base *base;
        char *dir;
        struct ip ip;
        int64_t end;
        struct str errors;
        struct event *timer, *answer;
        int fd;
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static void boot_drop_answer(struct boot *b)
{
        if (b->answer)
                event_free(b->answer);
        b->answer = NULL;
        close_p(&b->fd);
}

static void boot_end(struct boot *b, struct error *err)
{
        void (*fn)(struct error *, void *) = b->fn;
        void *arg = b->arg;
        boot_drop_answer(b);
        event_free(b->timer);
        str_release(&b->errors);
        free(b->dir);
        free(b);
        fn(err, arg);
}

/* The last line that is not blank, without control characters. */
static void console_last_line(const char *text, size_t len, struct str *out)
{
        while (len && (unsigned char)text[len - 1] <= ' ')
                len--;
        size_t begin = len;
        while (begin && text[begin - 1] != '\n')
                begin--;
        for (size_t i = begin; i < len && i < begin + 200; i++)
                if ((unsigned char)text[i] >= ' ')
                        str_addc(out, text[i]);
}

static void boot_failed(struct boot *b, const char *why)
{
        struct error err CLEANUP(error_release) = { 0 }, ignored CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 }, last CLEANUP(str_release) = { 0 };
        char *console CLEANUP(free_p) = path_join(b->dir, "console");
        if (file_read(console, 8 << 20, &text, &ignored) == 0)
                console_last_line(str_text(&text), text.len, &last);
        error_set(&err, EIO, EXIT_STEP, "%s%s%s", why, last.len ? ": " : "", str_text(&last));
        error_hint(&err, "check its console log: %s", console);
        boot_end(b, &err);
}

static void boot_again(struct boot *b)
{
        boot_drop_answer(b);
        event_add(b->timer, &(struct timeval){ .tv_usec = TRY_MS * 1000 });
}

static void boot_on_banner(int fd, short what, void *arg)
{
        struct boot *b = arg;
        char banner[4];
        if (what & EV_READ && recv(fd, banner, sizeof(banner), 0) == sizeof(banner) &&
                memcmp(banner, "SSH-", 4) == 0)
                boot_end(b, NULL);
        else
                boot_again(b);
}

/* Connected: sshd gets time for its banner, which it needs on a busy computer. */
static void boot_on_connected(int fd, short what, void *arg)
{
        struct boot *b = arg;
        int code = ETIMEDOUT;
        socklen_t n = sizeof(code);
        if (!(what & EV_WRITE) || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0 || code) {
                boot_again(b);
                return;
        }
        event_free(b->answer);
        b->answer = event_new(b->base, fd, EV_READ, boot_on_banner, b);
        event_add(b->answer, &(struct timeval){ .tv_sec = BANNER_SECONDS });
}

static int boot_connect(struct boot *b)
{
        struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(22) };
        struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(22) };
        bool v4 = b->ip.family == 4;
        memcpy(v4 ? (void *)&a4.sin_addr : (void *)&a6.sin6_addr, b->ip.b, v4 ? 4 : 16);
        b->fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (b->fd < 0 ||
                (connect(b->fd, v4 ? (void *)&a4 : (void *)&a6, v4 ? sizeof(a4) : sizeof(a6)) < 0 &&
                        errno != EINPROGRESS))
                return -errno;
        b->answer = event_new(b->base, b->fd, EV_WRITE, boot_on_connected, b);
        return event_add(b->answer, &(struct timeval){ .tv_sec = CONNECT_SECONDS });
}

static void boot_on_timer(int fd, short what, void *arg)
{
        struct boot *b = arg;
        if (!keeper_pid(b->dir))
                boot_failed(b, "the machine stopped before its sshd answered");
        else if (clock_ms() > b->end)
                boot_failed(b, "its sshd did not answer within 180 s");
        else if (boot_connect(b) < 0)
                boot_again(b);
}

static void on_keeper_said(struct proc *p, const char *data, size_t n, void *arg)
{
        struct boot *b = arg;
        if (b->errors.len < 64 << 10)
                str_addn(&b->errors, data, n);
}

/* A keeper that failed printed its error, and its hint after a tab. */
static void on_keeper_exit(struct proc *p, int status, void *arg)
{
        struct boot *b = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (status == 0) {
                event_active(b->timer, EV_TIMEOUT, 0);
                return;
        }
        char *text CLEANUP(free_p) = str_take(&b->errors), *last = text;
        text[strlen(text) - (has_suffix(text, "\n") ? 1 : 0)] = 0;
        for (char *nl; (nl = strchr(last, '\n'));)
                last = nl + 1;
        char *hint = strchr(last, '\t');
        if (hint)
                *hint++ = 0;
        error_set(&err, EIO, EXIT_STEP, "%s", *last ? last : "its keeper could not be started");
        if (hint)
                error_hint(&err, "%s", hint);
        boot_end(b, &err);
}

/* This program, even when its file has been replaced. */
static char *own_program(void)
{
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        path[n > 0 ? n : 0] = 0;
        return n > 0 && access(path, X_OK) == 0 ? xstrdup(path)
                                                : xasprintf("/proc/%d/exe", (int)getpid());
}

/* Under systemd, a process that outlives its session needs its own scope, and only a delegated
 * scope may have child cgroups. */
static int start_keeper(struct boot *b, const struct local_machine *m, struct error *err)
{
        static unsigned count;
        char *exe CLEANUP(free_p) = own_program(),
                  *unit CLEANUP(free_p) =
                          xasprintf("--unit=slipway-%s-%d-%u", m->id, (int)getpid(), ++count);
        char *weight CLEANUP(free_p) = xasprintf("--property=CPUWeight=%ld", m->weight * 100);
        const char *const plain[] = { exe, KEEPER_VERB, b->dir, NULL };
        const char *const scoped[] = { "systemd-run", "--scope", "--quiet", "--collect",
                "--property=Delegate=yes", weight, unit, exe, KEEPER_VERB, b->dir, NULL };
        bool systemd = access("/run/systemd/system", F_OK) == 0;
        struct proc_spec spec = { .argv = systemd ? scoped : plain,
                .on_err = on_keeper_said,
                .on_exit = on_keeper_exit,
                .arg = b };
        struct proc *p;
        int r = proc_start(b->base, &spec, &p, err);
        if (r == 0)
                proc_end_input(p);
        return r;
}

void machine_boot(struct event_base *base, const struct local_machine *m,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct boot *b = xcalloc(1, sizeof(*b));
        *b = (struct boot){ .base = base,
                .dir = xstrdup(m->dir),
                .end = clock_ms() + BOOT_SECONDS * 1000,
                .fd = -1,
                .fn = fn,
                .arg = arg };
        b->timer = evtimer_new(base, boot_on_timer, b);
        ip_parse(m->address, &b->ip);
        if (keeper_pid(m->dir))
                event_active(b->timer, EV_TIMEOUT, 0);
        else if (start_keeper(b, m, &err) < 0)
                boot_end(b, &err);
}
