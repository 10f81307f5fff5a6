/* Ends processes of containers and removes their mounts and cgroups. They are found in /proc and
 * /sys, because the runtime may not answer. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>

#include "agent/reset/reset.h"
#include "base/file.h"

#define GRACE_MS  5000 /* from SIGTERM to SIGKILL */
#define KILL_MS   30000
#define PROC_MAX  ((size_t)16 << 20)
#define DEPTH_MAX 64

static bool proc_read(const char *pid, const char *file, struct str *out)
{
        char *path CLEANUP(free_p) = xasprintf("/proc/%s/%s", pid, file), buf[4096];
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;
        str_truncate(out, 0);
        while (fd >= 0 && out->len < PROC_MAX && (n = read(fd, buf, sizeof(buf))) > 0)
                str_addn(out, buf, (size_t)n);
        return fd >= 0;
}

/* ---- processes ---- */

/* The machine's root cgroup in one hierarchy: that of process 1 without its scope. A machine may
 * itself run in a pod. */
static void cgroup_root(const char *line, struct str *root)
{
        size_t n = strcspn(line, "\n");
        const char *path = memchr(line, ':', n);
        path = path ? memchr(path + 1, ':', n - (size_t)(path + 1 - line)) : NULL;
        str_truncate(root, 0);
        if (!path)
                return;
        str_addn(root, path + 1, n - (size_t)(path + 1 - line));
        const char *scope = root->len ? strstr(root->data, "/init.scope") : NULL;
        if (scope)
                str_truncate(root, (size_t)(scope - root->data));
        while (root->len && root->data[root->len - 1] == '/')
                str_truncate(root, root->len - 1);
}

/* Hierarchies have the same order for every process. */
static bool in_pod(const char *of_pid, const char *of_init)
{
        struct str root CLEANUP(str_release) = { 0 };
        while (*of_pid && *of_init) {
                size_t n = strcspn(of_pid, "\n");
                const char *path = memchr(of_pid, ':', n);
                path = path ? memchr(path + 1, ':', n - (size_t)(path + 1 - of_pid)) : NULL;
                cgroup_root(of_init, &root);
                if (path && has_prefix(path + 1, str_text(&root)) &&
                        has_prefix(path + 1 + root.len, "/kubepods"))
                        return true;
                of_pid += n + (of_pid[n] == '\n');
                n = strcspn(of_init, "\n");
                of_init += n + (of_init[n] == '\n');
        }
        return false;
}

/* The shims of containerd and CRI-O; of containerd only those of the kubelet's namespace. */
static bool is_shim(const struct str *argv)
{
        const char *slash = strrchr(str_text(argv), '/'),
                   *name = slash ? slash + 1 : str_text(argv);
        if (streq(name, "conmon"))
                return true;
        if (!has_prefix(name, "containerd-shim"))
                return false;
        for (size_t i = 0; i < argv->len; i += strlen(argv->data + i) + 1)
                if (streq(argv->data + i, "k8s.io"))
                        return true;
        return false;
}

/* Signals every process of a container and, with `shims`, its shim. Returns how many there are. */
static size_t containers_signal(int sig, bool shims)
{
        struct str init CLEANUP(str_release) = { 0 }, text CLEANUP(str_release) = { 0 };
        DIR *d = opendir("/proc");
        size_t count = 0;
        proc_read("1", "cgroup", &init);
        for (struct dirent *e; d && (e = readdir(d));) {
                long pid = strtol(e->d_name, NULL, 10);
                if (pid <= 1 || pid == getpid())
                        continue;
                bool ours = proc_read(e->d_name, "cgroup", &text) &&
                            in_pod(str_text(&text), str_text(&init));
                if (!ours && shims)
                        ours = proc_read(e->d_name, "cmdline", &text) && text.len && is_shim(&text);
                if (!ours ||
                        (proc_read(e->d_name, "stat", &text) && strstr(str_text(&text), ") Z ")))
                        continue;
                count++;
                kill((pid_t)pid, sig);
        }
        if (d)
                closedir(d);
        return count;
}

static size_t containers_wait(struct agent *a, int sig, bool shims, int ms)
{
        size_t left = containers_signal(sig, shims);
        for (int waited = 0; left && waited < ms && session_alive(&a->session); waited += 100) {
                session_turn(&a->session, 100);
                left = containers_signal(sig == SIGKILL ? SIGKILL : 0, shims);
        }
        return left;
}

void reset_processes(struct agent *a)
{
        size_t count = containers_signal(0, true);
        if (!count)
                return;
        containers_wait(a, SIGTERM, false, GRACE_MS);
        size_t left = containers_wait(a, SIGKILL, true, KILL_MS);
        char *text CLEANUP(free_p) =
                xasprintf("%zu of %zu processes did not end after SIGKILL", left, count);
        if (a->session.cut)
                return;
        reset_event(a, SPEC_UNIT, "containers", left ? STATE_FAILED : STATE_REMOVED,
                left ? text : NULL);
}

/* ---- mounts ---- */

/* Mounts below these are the kubelet's or the runtime's. A mount at the directory itself is the
 * host's, a disk for example. */
static const char *const below[] = { "/var/lib/kubelet/", "/var/lib/containerd/",
        "/run/containerd/", "/var/lib/containers/", "/run/crio/", "/run/netns/cni-",
        "/var/run/netns/cni-" };

static void unescape(char *s)
{
        char *to = s;
        for (; *s; s++)
                if (s[0] == '\\' && s[1] && s[2] && s[3] && strspn(s + 1, "01234567") >= 3) {
                        *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
                        s += 3;
                } else
                        *to++ = *s;
        *to = 0;
}

static bool mount_is_ours(struct agent *a, const char *path)
{
        for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
                char *dir CLEANUP(free_p) = xstrndup(below[i], strlen(below[i]) - 1);
                if (has_prefix(path, below[i]) && !reset_foreign(a, dir))
                        return true;
        }
        for (size_t i = 0; i < a->count; i++)
                if (reset_mounted(a, &a->entries[i], path))
                        return true;
        return false;
}

/* In reverse order of mounting: a mount may be inside another. */
static size_t unmount_once(struct agent *a, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct words paths CLEANUP(words_release) = { 0 };
        char *save = NULL;
        size_t done = 0;
        if (!proc_read("self", "mountinfo", &s) || !s.len)
                return 0;
        for (char *line = strtok_r(s.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char *f = line;
                for (int i = 0; f && i < 4; i++)
                        f = (f = strchr(f, ' ')) ? f + 1 : NULL;
                if (!f)
                        continue;
                f[strcspn(f, " ")] = 0;
                unescape(f);
                if (mount_is_ours(a, f))
                        words_add(&paths, f);
        }
        for (size_t i = paths.n; i-- > 0;) {
                if (umount2(paths.v[i], UMOUNT_NOFOLLOW) < 0 &&
                        umount2(paths.v[i], UMOUNT_NOFOLLOW | MNT_DETACH) < 0)
                        error_set(err, errno, EXIT_STEP, "cannot unmount %s: %s", paths.v[i],
                                strerror(errno));
                else
                        done++;
                if (has_prefix(paths.v[i], "/run/netns/cni-"))
                        unlink(paths.v[i]);
        }
        return done;
}

void reset_mounts(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        size_t count = 0, n = 1;
        /* Several mounts may be stacked at one place; and what could not be unmounted may be gone
         * with another mount, or was unmounted by a shim that was ending: only what is still there
         * at the next look has failed. */
        for (int i = 0; i < 10 && (n || err.code); i++) {
                error_release(&err);
                err = (struct error){ 0 };
                count += n = unmount_once(a, &err);
        }
        if (err.code)
                reset_event(a, SPEC_MOUNT, "mounts", STATE_FAILED, err.message);
        else if (count)
                reset_event(a, SPEC_MOUNT, "mounts", STATE_REMOVED, NULL);
}

/* ---- directories ---- */

struct filter { /* for the first level only; NULL: everything */
        bool (*goes)(const char *name, void *arg);
        void *arg;
};

static int tree_empty_at(
        int at, const char *name, dev_t device, int depth, const struct filter *filter, int *count)
{
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
        struct stat st;
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) < 0 || (device && st.st_dev != device)) {
                close(fd);
                return -EXDEV;
        }
        DIR *d = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
        if (!d) {
                close(fd);
                return -ELOOP;
        }
        for (struct dirent *e; (e = readdir(d));) {
                if (streq(e->d_name, ".") || streq(e->d_name, "..") ||
                        (filter && !filter->goes(e->d_name, filter->arg)))
                        continue;
                ++*count;
                if (unlinkat(dirfd(d), e->d_name, 0) == 0 || errno == ENOENT)
                        continue;
                int one = errno == EISDIR || errno == EPERM
                                  ? tree_empty_at(dirfd(d), e->d_name, st.st_dev, depth + 1, NULL,
                                            &(int){ 0 })
                                  : -errno;
                if (one == 0 && unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                        one = -errno;
                r = one < 0 ? one : r;
        }
        closedir(d);
        return r;
}

int tree_empty(
        const char *full, bool (*goes)(const char *name, void *arg), void *arg, struct error *err)
{
        struct filter filter = { goes, arg };
        int count = 0, r = tree_empty_at(AT_FDCWD, full, 0, 0, &filter, &count);
        if (r == -ENOTDIR || r == -ELOOP) /* a link or a file of that name is left alone */
                return 0;
        if (r == -EXDEV || r == -EBUSY)
                return error_set(err, -r, EXIT_STEP, "a mount in it cannot be unmounted");
        return r < 0 ? error_set(err, -r, EXIT_STEP, "cannot remove its contents: %s", strerror(-r))
                     : count;
}

/* ---- cgroups ---- */

static void remove_cgroup(int at, const char *name, int depth)
{
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *d = fd >= 0 && depth < DEPTH_MAX ? fdopendir(fd) : NULL;
        for (struct dirent *e; d && (e = readdir(d));)
                if (e->d_type == DT_DIR && e->d_name[0] != '.')
                        remove_cgroup(dirfd(d), e->d_name, depth + 1);
        if (d)
                closedir(d);
        else
                close_p(&fd);
        unlinkat(at, name, AT_REMOVEDIR);
}

static void remove_cgroups(const char *hierarchy)
{
        static const char *const names[] = { "kubepods", "kubepods.slice", "kubelet",
                "kubelet.slice" };
        int fd CLEANUP(close_p) = open(hierarchy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(names); i++)
                remove_cgroup(fd, names[i], 0);
}

/* systemd removes the slices of its own cgroup driver. */
void reset_cgroups(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (access("/run/systemd/transient/kubepods.slice", F_OK) == 0 ||
                access("/sys/fs/cgroup/kubepods.slice", F_OK) == 0 ||
                access("/sys/fs/cgroup/systemd/kubepods.slice", F_OK) == 0)
                tool(&a->session, WORDS("systemctl", "--quiet", "stop", "kubepods.slice"), 60, NULL,
                        &err);
        DIR *d = opendir("/sys/fs/cgroup");
        remove_cgroups("/sys/fs/cgroup");
        /* v1: one directory per hierarchy */
        for (struct dirent *e; d && (e = readdir(d));)
                if (e->d_type == DT_DIR && e->d_name[0] != '.') {
                        char *path CLEANUP(free_p) = path_join("/sys/fs/cgroup", e->d_name);
                        remove_cgroups(path);
                }
        if (d)
                closedir(d);
}
