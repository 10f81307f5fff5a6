/* The keeper of one machine: this program, started again with a directory as its argument. Failures
 * before the machine starts go to standard error with status 1; once the machine runs, the first
 * process ends with 0 and the second stays, in a session of its own. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "provider/local/local.h"

#define REBOOT_STATUS 133 /* nspawn's exit status when the machine reboots */
/* × 100 ms: keeper_pid holds the lock for a moment, a keeper that is being killed
 * a little longer. */
#define LOCK_TRIES  100
#define MOUNT_TRIES 50 /* × 100 ms: the mount of a machine that was just killed may still exist */

/* The start time of a process distinguishes it from a later one with the same id. */
static unsigned long long start_time(pid_t pid)
{
        char path[64], text[1024];
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        const char *p = strrchr(text, ')');
        unsigned long long start = 0;
        if (p)
                sscanf(p + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &start);
        return start;
}

static void write_pid(int lock, pid_t pid)
{
        char text[64];
        int n = snprintf(text, sizeof(text), "%d %llu\n", (int)pid, start_time(pid));
        if (ftruncate(lock, 0) == 0)
                (void)!pwrite(lock, text, (size_t)n, 0);
}

pid_t keeper_pid(const char *dir)
{
        char *path CLEANUP(free_p) = path_join(dir, "lock"), text[64] = "";
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC), pid = 0;
        unsigned long long start;
        if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 ||
                pread(fd, text, sizeof(text) - 1, 0) <= 0)
                return 0;
        return sscanf(text, "%d %llu", &pid, &start) == 2 && pid > 1 && start_time(pid) == start
                       ? pid
                       : 0;
}

/* By the boot clock: the wall clock may have been changed since. */
int64_t keeper_age(const char *dir)
{
        pid_t pid = keeper_pid(dir);
        return pid ? clock_boot_ms() / 1000 -
                               (int64_t)(start_time(pid) / (unsigned long long)sysconf(_SC_CLK_TCK))
                   : INT64_MAX;
}

/* ---- nspawn ---- */

/* A colon ends a path in nspawn's --bind and in an overlay's lowerdir, a comma an option. */
static char *nspawn_escaped(const char *path)
{
        struct str s CLEANUP(str_release) = { 0 };
        for (; *path; path++) {
                if (strchr(":,\\", *path))
                        str_addc(&s, '\\');
                str_addc(&s, *path);
        }
        return str_take(&s);
}

static int mount_overlay(const struct local_machine *m, struct error *err)
{
        char *lower CLEANUP(free_p) = nspawn_escaped(m->base);
        char *options CLEANUP(free_p) = xasprintf("lowerdir=%s,upperdir=upper,workdir=work", lower);
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return error_set(err, errno, EXIT_INTERNAL, "cannot create a mount namespace: %s",
                        strerror(errno));
        if (access(m->base, F_OK) < 0) {
                error_set(err, ENOENT, EXIT_INTERNAL,
                        "the base root %s of this machine does not exist", m->base);
                return error_hint(err, "remove the machine and create it again");
        }
        int r = -1;
        for (unsigned i = 0;
                chdir(m->dir) == 0 && (r = mount("overlay", "root", "overlay", 0, options)) < 0 &&
                errno == EBUSY && i < MOUNT_TRIES;
                i++)
                pause_ms(100);
        if (r == 0)
                return 0;
        error_set(err, errno, EXIT_PREFLIGHT, "cannot mount an overlay in %s: %s", m->dir,
                strerror(errno));
        return error_hint(err,
                "keep the state directory on a disk of this computer (ext4, xfs or btrfs), not on an overlay or a network share");
}

/* The arguments are never freed. */
static const char **nspawn_argv(const struct local_machine *m)
{
        static const char *const binds[] = { "containerd", "kubelet", "etcd" };
        static const char *argv[32];
        char *dir CLEANUP(free_p) = nspawn_escaped(m->dir);
        size_t n = 0;
        argv[n++] = "systemd-nspawn";
        argv[n++] = xasprintf("--directory=%s/root", m->dir);
        argv[n++] = xasprintf("--machine=%s", m->id);
        argv[n++] = xasprintf("--hostname=%s", m->name);
        argv[n++] = xasprintf("--uuid=%s", m->uuid);
        argv[n++] = xasprintf("--network-bridge=%s", m->bridge);
        argv[n++] = "--register=no";
        argv[n++] = "--keep-unit";
        argv[n++] = "--capability=all";
        argv[n++] = "--system-call-filter=@keyring bpf @mount";
        argv[n++] = "--resolv-conf=off";
        argv[n++] = "--timezone=off";
        argv[n++] = "--link-journal=no";
        argv[n++] = "--settings=no";
        for (size_t i = 0; i < ARRAY_SIZE(binds); i++)
                argv[n++] = xasprintf("--bind=%s/%s:/var/lib/%s", dir, binds[i], binds[i]);
        if (access("/dev/kmsg", F_OK) == 0)
                argv[n++] = "--bind=/dev/kmsg";
        argv[n++] = "--boot";
        return argv;
}

/* nspawn ends with the keeper, whatever ends the keeper. */
static _Noreturn void nspawn(const char **argv, const char *cgroup, pid_t keeper)
{
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != keeper)
                _exit(1);
        int fd = cgroup ? open(cgroup, O_WRONLY | O_CLOEXEC) : -1;
        if (cgroup && (fd < 0 || write(fd, "0", 1) < 0)) {
                fprintf(stderr, "cannot enter %s: %s\n", cgroup, strerror(errno));
                _exit(1);
        }
        /* the keeper has its own lock, and nspawn's would stay behind */
        setenv("SYSTEMD_NSPAWN_LOCK", "0", 1);
        execvp(argv[0], (char *const *)argv);
        fprintf(stderr, "cannot start %s: %s\n", argv[0], strerror(errno));
        _exit(1);
}

/* As the first process of its namespace the keeper gets orphans too. */
static pid_t keeper_reap(pid_t child, int *status)
{
        pid_t gone;
        int how;
        while ((gone = waitpid(-1, &how, WNOHANG)) > 0)
                if (gone == child) {
                        *status = how;
                        return child;
                }
        return 0;
}

/* Runs until the machine is off. SIGTERM halts it; a reboot starts it again. */
static void keeper_run(const struct local_machine *m, const char *inner, const sigset_t *set)
{
        const char **argv = nspawn_argv(m);
        char *cgroup CLEANUP(free_p) = inner ? path_join(inner, "cgroup.procs") : NULL;
        bool again = true;
        for (unsigned i = 0; again; i++) {
                struct error err CLEANUP(error_release) = { 0 };
                if (i && cgroup_again(m, inner, &err) < 0)
                        fprintf(stderr, "%s\n", err.message);
                pid_t keeper = getpid(), child = fork(), gone = 0;
                int status = 0;
                if (child == 0)
                        nspawn(argv, cgroup, keeper);
                again = child > 0;
                while (child > 0 && gone != child) {
                        if (sigwaitinfo(set, NULL) == SIGTERM) {
                                again = false;
                                kill(child, SIGTERM);
                        }
                        gone = keeper_reap(child, &status);
                }
                again = again && WIFEXITED(status) && WEXITSTATUS(status) == REBOOT_STATUS;
        }
}

/* ---- becoming the keeper ---- */

/* The lock is held until the last copy of the descriptor is closed; nspawn gets none. 1: another
 * keeper holds it. */
static int take_lock(const char *dir, int *out, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(dir, "lock");
        int fd CLEANUP(close_p) = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        struct stat ours, there;
        if (fd < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot open %s: %s", path, strerror(errno));
        for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
                if (i == LOCK_TRIES)
                        return 1;
                pause_ms(100);
        }
        if (fstat(fd, &ours) < 0 || stat(path, &there) < 0 || ours.st_ino != there.st_ino)
                return error_set(err, ENOENT, EXIT_INTERNAL,
                        "the machine was removed while it was starting");
        write_pid(fd, getpid());
        *out = fd;
        fd = -1;
        return 0;
}

static int to_console(const char *dir, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(dir, "console");
        int in CLEANUP(close_p) = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int out CLEANUP(close_p) =
                open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
        if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot open %s: %s", path, strerror(errno));
        return 0;
}

/* In the second process; the first is told when it may end. The second is the first of a PID
 * namespace: when it is killed, the kernel kills all that it started, also the machine's init,
 * which nspawn alone would leave behind. */
static void keeper_detached(const struct local_machine *m, const char *inner, int ready)
{
        struct error err CLEANUP(error_release) = { 0 };
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGCHLD);
        sigprocmask(SIG_BLOCK, &set, NULL);
        setsid();
        if (unshare(CLONE_NEWNS) < 0 ||
                mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
                fprintf(stderr, "cannot mount /proc for the machine: %s\n", strerror(errno));
        else if (to_console(m->dir, &err) == 0) {
                (void)!write(ready, "", 1);
                close(ready);
                keeper_run(m, inner, &set);
        }
        _exit(0);
}

/* The first process writes the id of the second, which does not know its id
 * outside its namespace. */
static int keeper_detach(
        const struct local_machine *m, const char *inner, int lock, struct error *err)
{
        int ready[2];
        char byte;
        if (pipe2(ready, O_CLOEXEC) < 0 || unshare(CLONE_NEWPID) < 0)
                return error_set(err, errno, EXIT_INTERNAL,
                        "cannot create a pipe and a PID namespace: %s", strerror(errno));
        pid_t pid = fork();
        if (pid == 0)
                keeper_detached(m, inner, ready[1]);
        close(ready[1]);
        ssize_t n = pid < 0 ? -1 : read(ready[0], &byte, 1);
        close(ready[0]);
        if (n != 1)
                return error_set(
                        err, EIO, EXIT_INTERNAL, "the keeper of %s did not start", m->name);
        write_pid(lock, pid);
        return 0;
}

static int keeper_main(const char *dir, struct error *err)
{
        struct local_machine m CLEANUP(machine_release) = { 0 };
        char *inner CLEANUP(free_p) = NULL;
        int lock CLEANUP(close_p) = -1, r = machine_read(dir, &m, err);
        if (r == 0)
                return error_set(err, ENOENT, EXIT_INTERNAL, "%s has no machine.json", dir);
        if (r > 0)
                r = take_lock(dir, &lock, err);
        if (r != 0)
                return r < 0 ? r : 0;
        prctl(PR_SET_NAME, "slipway-keeper");
        r = cgroup_enter(&m, &inner, err);
        if (r == 0)
                r = mount_overlay(&m, err);
        return r == 0 ? keeper_detach(&m, inner, lock, err) : r;
}

bool provider_keeper(int argc, char **argv, int *status)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (argc != 3 || !streq(argv[1], KEEPER_VERB))
                return false;
        *status = 0;
        if (keeper_main(argv[2], &err) < 0) {
                fprintf(stderr, "%s%s%s\n", err.message, err.hint ? "\t" : "",
                        err.hint ? err.hint : "");
                *status = 1;
        }
        return true;
}
