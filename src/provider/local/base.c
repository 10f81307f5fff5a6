/* The base root of all machines: created once for a release and a list of packages, by mmdebstrap
 * from the mirrors that apt on this computer uses. It is complete when it appears in the cache, its
 * name has a hash of what is in it, and it is never written to again. */
#include <dirent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "artifact/blob.h"
#include "base/proc.h"
#include "node/os.h"
#include "provider/local/local.h"

#define BASE_VERSION "1" /* version of the changes made to the root besides its packages */
#define LOCK_POLL_MS 500

/* In addition to what every node needs from its OS (node/os.c), so that installing that on a
 * machine changes nothing. */
static const char *const packages[] = { "systemd", "systemd-sysv", "dbus", "openssh-server", "sudo",
        "procps", "iputils-ping", "e2fsprogs", "util-linux", "haproxy", "keepalived" };

struct base_job {
        struct event_base *base;
        const char *release; /* the cluster's */
        char *path, *work;
        int lock;
        struct event *timer;
        struct str line, last; /* output of mmdebstrap */
        void (*say)(const char *what, int permille, void *arg);
        void (*fn)(struct error *err, void *arg);
        void *arg;
        bool waited;
};

static void base_packages(struct str *out)
{
        const struct os_info *os = os_info(OS_DEBIAN);
        for (size_t i = 0; i < ARRAY_SIZE(packages); i++)
                str_addf(out, "%s%s", i ? "," : "", packages[i]);
        for (size_t i = 0; i < ARRAY_SIZE(os->node) && os->node[i]; i++)
                str_addf(out, ",%s", os->node[i]);
        str_addf(out, ",%s", os->ntp_package);
}

int base_path(const char *release, char **out, struct error *err)
{
        struct str what CLEANUP(str_release) = { 0 };
        char *cache CLEANUP(free_p) = NULL, hex[SHA256_HEX];
        int r = cache_open(&cache, err);
        if (r < 0)
                return r;
        str_addf(&what, "%s %s ", BASE_VERSION, release);
        base_packages(&what);
        sha256_hex(what.data, what.len, hex);
        *out = xasprintf("%s/base-%s-%.12s", cache, release, hex);
        return 0;
}

static bool base_there(const char *path) { return access(path, F_OK) == 0; }

static void base_end(struct base_job *j, struct error *err)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        void (*fn)(struct error *, void *) = j->fn;
        void *arg = j->arg;
        if (j->work)
                disk_remove(j->work, &ignored); /* the next run removes the rest */
        if (j->timer)
                event_free(j->timer);
        close_p(&j->lock);
        str_release(&j->line);
        str_release(&j->last);
        free(j->path);
        free(j->work);
        free(j);
        fn(err, arg);
}

/* ---- the root's own files ---- */

static void remove_under(const char *root, const char *path)
{
        char *full CLEANUP(free_p) = path_join(root, path);
        struct error ignored CLEANUP(error_release) = { 0 };
        dir_remove(full, &ignored);
}

static void remove_matching(const char *root, const char *dir, const char *prefix)
{
        char *full CLEANUP(free_p) = path_join(root, dir);
        DIR *d = opendir(full);
        for (struct dirent *e; d && (e = readdir(d));)
                if (!streq(e->d_name, ".") && !streq(e->d_name, "..") &&
                        has_prefix(e->d_name, prefix))
                        remove_under(full, e->d_name);
        if (d)
                closedir(d);
}

/* Machines must not share keys or ids, nothing may refer to the mirror, and no timer of the
 * distribution may disturb a run. */
static int base_customize(const char *root, struct error *err)
{
        static const char *const gone[] = { "var/lib/dbus/machine-id", "etc/apt/sources.list",
                "etc/resolv.conf", "etc/systemd/system/timers.target.wants",
                "etc/systemd/system/getty.target.wants",
                "etc/systemd/system/multi-user.target.wants/haproxy.service",
                "etc/systemd/system/multi-user.target.wants/keepalived.service",
                "etc/systemd/system/multi-user.target.wants/e2scrub_reap.service" };
        static const struct {
                const char *path, *text;
        } files[] = { { "etc/machine-id", "" }, { "etc/hostname", "localhost\n" },
                { "etc/resolv.conf", "" } };
        for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
                remove_under(root, gone[i]);
        remove_matching(root, "etc/ssh", "ssh_host_");
        remove_matching(root, "etc/apt/sources.list.d", "");
        remove_matching(root, "var/lib/apt/lists", "");
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                char *path CLEANUP(free_p) = path_join(root, files[i].path);
                if (file_write(path, files[i].text, strlen(files[i].text), 0644, 0, NULL, err) < 0)
                        return -err->code;
        }
        return 0;
}

/* ---- mmdebstrap ---- */

/* Its messages in their order, and the progress at each. */
static const struct {
        const char *remark, *what;
        int permille;
} phases[] = {
        { "running apt-get update", "reading the package lists", 50 },
        { "downloading packages", "downloading packages", 120 },
        { "extracting archives", "unpacking", 350 },
        { "installing essential", "installing the essential packages", 450 },
        { "installing remaining", "installing the other packages", 600 },
        { "cleaning package lists", "cleaning up", 950 },
};

static void base_on_line(struct base_job *j, const char *line)
{
        if (has_prefix(line, "E: ") || !has_prefix(line, "I: ")) {
                str_truncate(&j->last, 0);
                str_add(&j->last, has_prefix(line, "E: ") ? line + 3 : line);
        }
        for (size_t i = 0; j->say && i < ARRAY_SIZE(phases); i++)
                if (strstr(line, phases[i].remark))
                        j->say(phases[i].what, phases[i].permille, j->arg);
}

static void base_on_output(struct proc *p, const char *data, size_t n, void *arg)
{
        struct base_job *j = arg;
        for (size_t i = 0; i < n; i++)
                if (data[i] != '\n' && data[i] != '\r') {
                        if (j->line.len < 4096)
                                str_addc(&j->line, data[i]);
                } else if (j->line.len) {
                        base_on_line(j, j->line.data);
                        str_truncate(&j->line, 0);
                }
}

static void base_on_made(struct proc *p, int status, void *arg)
{
        struct base_job *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        char *root CLEANUP(free_p) = path_join(j->work, "root");
        int r = 0;
        if (status != 0) {
                r = error_set(&err, EIO, EXIT_INTERNAL,
                        "cannot create the base root of the machines: mmdebstrap failed with status %d%s%s",
                        status, j->last.len ? ": " : "", str_text(&j->last));
                error_hint(
                        &err, "check that `apt-get update` works on this computer, then run again");
        }
        if (r == 0)
                r = base_customize(root, &err);
        if (r == 0 && rename(root, j->path) < 0)
                r = error_set(&err, errno, EXIT_INTERNAL, "cannot rename %s to %s: %s", root,
                        j->path, strerror(errno));
        base_end(j, r < 0 ? &err : NULL);
}

/* The value of a line NAME=value or NAME="value", if this is that line. */
static void os_value(const char *line, const char *name, char **out)
{
        if (!has_prefix(line, name) || *out)
                return;
        line += strlen(name);
        line += strspn(line, "\"'");
        *out = xstrndup(line, strcspn(line, "\"'\n"));
}

static void os_release(char **id, char **codename)
{
        FILE *f CLEANUP(fclose_p) = fopen("/etc/os-release", "re");
        char line[512];
        while (f && fgets(line, sizeof(line), f)) {
                os_value(line, "ID=", id);
                os_value(line, "VERSION_CODENAME=", codename);
        }
}

static int write_sources(const struct base_job *j, const char *path, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *id CLEANUP(free_p) = NULL, *codename CLEANUP(free_p) = NULL;
        os_release(&id, &codename);
        sources_read("/", id && streq(id, "debian") ? codename : NULL, j->release, &text);
        char *main_line CLEANUP(free_p) = xasprintf(" %s main\n", j->release);
        if (!strstr(str_text(&text), main_line)) {
                error_set(err, ENOENT, EXIT_PREFLIGHT,
                        "apt on this computer has no source for Debian %s in /etc/apt/sources.list or sources.list.d",
                        j->release);
                return error_hint(err,
                        "add a line of a Debian mirror for %s there, or use provider ssh",
                        j->release);
        }
        return file_write(path, text.data, text.len, 0644, 0, NULL, err);
}

/* How apt on this computer reaches its mirrors: proxies, certificates, validity checks. */
static void apt_options(struct arena *a, const char **argv, size_t *n, size_t max)
{
        static const char *const names[] = {
                "Acquire::http::", "Acquire::https::", "Acquire::Check-Valid-Until"
        };
        struct str out CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        const char *const dump[] = { "apt-config", "dump", NULL };
        if (proc_must(dump, &out, &ignored) < 0)
                return;
        char *next = out.data;
        for (char *line; next && *n < max && (line = strsep(&next, "\n"));)
                for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                        if (has_prefix(line, names[i]) && !has_suffix(line, "\"\";")) {
                                argv[(*n)++] = arena_printf(a, "--aptopt=%s", line);
                                break;
                        }
}

/* mmdebstrap inherits the lock: if this program is killed, the next run waits until mmdebstrap has
 * ended too. Its mounts are in a namespace of their own and end with it. */
static int base_start(struct base_job *j, struct error *err)
{
        struct str names CLEANUP(str_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        char *list CLEANUP(free_p) = path_join(j->work, "sources.list"),
                   *root CLEANUP(free_p) = path_join(j->work, "root");
        const char *argv[64] = { "unshare", "--mount", "mmdebstrap", "--mode=root",
                "--variant=minbase", "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                "--dpkgopt=path-exclude=/usr/share/locale/*" };
        size_t n = 8;
        if (write_sources(j, list, err) < 0)
                return -err->code;
        base_packages(&names);
        argv[n++] = arena_printf(&a, "--include=%s", names.data);
        apt_options(&a, argv, &n, 48);
        argv[n++] = j->release;
        argv[n++] = root;
        argv[n++] = list;
        struct proc_spec spec = { .argv = argv,
                .on_out = base_on_output,
                .on_err = base_on_output,
                .on_exit = base_on_made,
                .arg = j };
        struct proc *p;
        fcntl(j->lock, F_SETFD, 0);
        int r = proc_start(j->base, &spec, &p, err);
        fcntl(j->lock, F_SETFD, FD_CLOEXEC);
        if (r == 0)
                proc_end_input(p);
        return r;
}

/* ---- one run creates it, others wait ---- */

static int base_begin(struct base_job *j, struct error *err)
{
        j->work = xasprintf("%s.new", j->path);
        int r = local_able(true, err);
        if (r == 0)
                r = disk_remove(j->work, err); /* left by a killed run: we hold the lock */
        if (r == 0)
                r = dir_make(j->work, 0755, err);
        if (r == 0 && j->say)
                j->say("creating the base root of the machines", 0, j->arg);
        return r == 0 ? base_start(j, err) : r;
}

static void base_try_lock(int fd, short what, void *arg)
{
        struct base_job *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (flock(j->lock, LOCK_EX | LOCK_NB) < 0) {
                if (!j->waited && j->say)
                        j->say("waiting for another run that creates the base root", -1, j->arg);
                j->waited = true;
                event_add(j->timer, &(struct timeval){ .tv_usec = LOCK_POLL_MS * 1000 });
                return;
        }
        if (base_there(j->path))
                base_end(j, NULL);
        else if (base_begin(j, &err) < 0)
                base_end(j, &err);
}

/* The systemd of releases after Debian 12 does not start on cgroup v1. */
static int release_fits(const char *release, struct error *err)
{
        static const char *const old[] = { "bullseye", "bookworm" };
        for (size_t i = 0; i < ARRAY_SIZE(old); i++)
                if (streq(release, old[i]))
                        return 0;
        if (!cgroup_v1())
                return 0;
        error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                "Debian %s does not boot on this computer: its systemd needs cgroup v2, but this computer has v1",
                release);
        return error_hint(err, "set provider.local.release to bookworm");
}

void base_make(struct event_base *base, const char *release,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct base_job *j = xcalloc(1, sizeof(*j));
        *j = (struct base_job){
                .base = base, .release = release, .lock = -1, .say = say, .fn = fn, .arg = arg
        };
        if (release_fits(release, &err) < 0 || base_path(release, &j->path, &err) < 0) {
                base_end(j, &err);
                return;
        }
        if (base_there(j->path)) {
                base_end(j, NULL);
                return;
        }
        char *lock CLEANUP(free_p) = xasprintf("%s.lock", j->path);
        j->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (j->lock < 0) {
                error_set(&err, errno, EXIT_INTERNAL, "cannot open the lock %s: %s", lock,
                        strerror(errno));
                base_end(j, &err);
                return;
        }
        j->timer = evtimer_new(base, base_try_lock, j);
        event_active(j->timer, EV_TIMEOUT, 0);
}
