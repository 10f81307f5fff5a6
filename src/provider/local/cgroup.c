/* The machines' cgroups. Each machine has its own, and nspawn, started in them, makes them the
 * roots of the machine's cgroup namespace: two machines in one cgroup would share /kubepods and
 * delete each other's pods.
 *
 *   v1   a child of the caller's own cgroup in every hierarchy, for the keeper and the machine
 *   v2   a child of the caller's own cgroup, or of the nearest parent that can enable its
 *        controllers for children; in it `keeper` and `machine`, because only a cgroup without
 *        processes can have children with controllers. Under systemd it is the delegated scope
 *        that the keeper was started in.
 *
 * Their paths are written to the machine's directory before they are created, so that any later run
 * finds them. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "provider/local/local.h"

#define PATHS_MAX 32
#define PERIOD_US 100000

struct hierarchy {
        bool v2;
        char controllers[128]; /* as in /proc/self/cgroup, also "name=systemd" */
        char *dir;             /* directory of our own cgroup */
};

struct hierarchies {
        size_t n, v1;
        struct hierarchy v[PATHS_MAX];
};

static void hierarchies_release(struct hierarchies *h)
{
        for (size_t i = 0; i < h->n; i++)
                free(h->v[i].dir);
}

static int cgroup_write(const char *dir, const char *file, const char *text)
{
        char *path CLEANUP(free_p) = path_join(dir, file);
        int fd CLEANUP(close_p) = open(path, O_WRONLY | O_CLOEXEC);
        return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static bool cgroup_read(const char *dir, const char *file, char *buf, size_t size)
{
        char *path CLEANUP(free_p) = path_join(dir, file);
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
        buf[n > 0 ? n : 0] = 0;
        return n >= 0;
}

/* ---- our own cgroups ---- */

static bool has_word(const char *list, const char *w)
{
        size_t n = strlen(w);
        for (const char *p = list; (p = strstr(p, w)); p += n)
                if ((p == list || p[-1] == ',') &&
                        (!p[n] || p[n] == ',' || isspace((unsigned char)p[n])))
                        return true;
        return false;
}

/* The directory of our cgroup `path`, if this line of mountinfo mounts the hierarchy; else NULL. */
static char *cgroup_mounted(const char *line, const struct hierarchy *h, const char *path)
{
        char root[1024], at[1024], type[32], options[512];
        const char *dash = strstr(line, " - ");
        if (!dash || sscanf(line, "%*d %*d %*s %1023s %1023s", root, at) != 2 ||
                sscanf(dash, " - %31s %*s %511s", type, options) != 2)
                return NULL;
        if (!streq(type, h->v2 ? "cgroup2" : "cgroup") ||
                (!h->v2 && !has_word(options, h->controllers)))
                return NULL;
        /* in a container: the mount begins further down */
        if (!streq(root, "/") && has_prefix(path, root))
                path += strlen(root);
        char *dir = xasprintf("%s%s", at, streq(path, "/") ? "" : path);
        struct stat st;
        if (stat(dir, &st) == 0)
                return dir;
        free(dir);
        return NULL;
}

static char *cgroup_own_dir(const struct hierarchy *h, const char *path)
{
        FILE *f CLEANUP(fclose_p) = fopen("/proc/self/mountinfo", "re");
        char *line CLEANUP(free_p) = NULL, *dir = NULL;
        size_t size = 0;
        while (!dir && f && getline(&line, &size, f) > 0)
                dir = cgroup_mounted(line, h, path);
        return dir;
}

/* Each line of /proc/self/cgroup is ID:CONTROLLERS:PATH. */
static void hierarchies_find(struct hierarchies *out)
{
        FILE *f CLEANUP(fclose_p) = fopen("/proc/self/cgroup", "re");
        char *line CLEANUP(free_p) = NULL;
        size_t size = 0;
        while (f && out->n < PATHS_MAX && getline(&line, &size, f) > 0) {
                line[strcspn(line, "\n")] = 0;
                char *next = line, *id = strsep(&next, ":"), *controllers = strsep(&next, ":");
                if (!next)
                        continue;
                struct hierarchy *h = &out->v[out->n];
                h->v2 = streq(id, "0") && !*controllers;
                snprintf(h->controllers, sizeof(h->controllers), "%s", controllers);
                h->dir = cgroup_own_dir(h, next);
                if (!h->dir)
                        continue;
                out->n++;
                out->v1 += !h->v2 && !has_prefix(h->controllers, "name=");
        }
}

bool cgroup_v1(void)
{
        struct hierarchies h CLEANUP(hierarchies_release) = { 0 };
        hierarchies_find(&h);
        return h.v1 > 0;
}

/* ---- creating them ---- */

static int cgroup_make(const char *dir, struct error *err)
{
        if (mkdir(dir, 0755) == 0 || errno == EEXIST)
                return 0;
        error_set(err, errno, EXIT_PREFLIGHT, "cannot create the cgroup %s: %s", dir,
                strerror(errno));
        return error_hint(err,
                "machines need cgroups of their own: run on a computer or in a container that may create them");
}

static int cgroup_set(const char *dir, const char *file, const char *text, struct error *err)
{
        int r = cgroup_write(dir, file, text);
        return r < 0 ? error_set(err, -r, EXIT_INTERNAL, "cannot write %s to %s/%s: %s", text, dir,
                               file, strerror(-r))
                     : 0;
}

static bool in_scope(void) { return access("/run/systemd/system", F_OK) == 0; }

/* The files have different names in v1 and v2. */
static int cgroup_limit(const struct local_machine *m, const struct hierarchy *h, const char *dir,
        struct error *err)
{
        char text[64];
        if (m->memory && (h->v2 || has_word(h->controllers, "memory"))) {
                snprintf(text, sizeof(text), "%" PRId64, m->memory);
                if (cgroup_set(dir, h->v2 ? "memory.max" : "memory.limit_in_bytes", text, err) < 0)
                        return -err->code;
        }
        if (m->cpus && (h->v2 || has_word(h->controllers, "cpu"))) {
                snprintf(text, sizeof(text), h->v2 ? "%ld %d" : "%ld", m->cpus * PERIOD_US,
                        PERIOD_US);
                if (!h->v2 && cgroup_set(dir, "cpu.cfs_period_us", "100000", err) < 0)
                        return -err->code;
                return cgroup_set(dir, h->v2 ? "cpu.max" : "cpu.cfs_quota_us", text, err);
        }
        return 0;
}

/* The CPU weight among the machines. Under systemd it is a property of the scope. */
static int cgroup_weigh(const struct local_machine *m, const struct hierarchy *h, const char *dir,
        struct error *err)
{
        char text[32];
        if (m->weight <= 1 || in_scope() || (!h->v2 && !has_word(h->controllers, "cpu")))
                return 0;
        snprintf(text, sizeof(text), "%ld", m->weight * (h->v2 ? 100 : 1024));
        return cgroup_set(dir, h->v2 ? "cpu.weight" : "cpu.shares", text, err);
}

/* A new cpuset has no processors and accepts no process until it got its parent's. */
static void cpuset_inherit(const char *parent, const char *dir)
{
        static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };
        char text[4096];
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (cgroup_read(parent, files[i], text, sizeof(text)))
                        cgroup_write(dir, files[i], text);
        cgroup_write(dir, "cgroup.clone_children", "1");
}

static int enter_v1(const struct local_machine *m, const struct hierarchies *h, char *const *dirs,
        struct error *err)
{
        for (size_t i = 0; i < h->n; i++) {
                if (cgroup_make(dirs[i], err) < 0)
                        return -err->code;
                if (has_word(h->v[i].controllers, "cpuset"))
                        cpuset_inherit(h->v[i].dir, dirs[i]);
                if ((!h->v[i].v2 && (cgroup_limit(m, &h->v[i], dirs[i], err) < 0 ||
                                            cgroup_weigh(m, &h->v[i], dirs[i], err) < 0)) ||
                        cgroup_set(dirs[i], "cgroup.procs", "0", err) < 0)
                        return -err->code;
        }
        return 0;
}

/* Enables every controller for the children; fails where processes are in the cgroup. */
static int cgroup_delegate(const char *dir)
{
        char have[512], one[128];
        if (!cgroup_read(dir, "cgroup.controllers", have, sizeof(have)))
                return -errno;
        char *next = have;
        int r = 0;
        for (char *c; next && (c = strsep(&next, " \n"));)
                if (*c) {
                        snprintf(one, sizeof(one), "+%s", c);
                        int w = cgroup_write(dir, "cgroup.subtree_control", one);
                        /* a kubelet can do without the others */
                        if (w < 0 && (streq(c, "memory") || streq(c, "cpu") || streq(c, "pids")))
                                r = w;
                }
        return r;
}

static bool has_controllers(const char *dir)
{
        char have[512];
        return cgroup_read(dir, "cgroup.controllers", have, sizeof(have)) &&
               strstr(have, "memory") && strstr(have, "cpu");
}

/* The machine's cgroup on v2, malloc'd. Under systemd it is our own scope. */
static char *place_v2(const struct local_machine *m, const struct hierarchy *h)
{
        if (in_scope())
                return xstrdup(h->dir);
        char *at CLEANUP(free_p) = xstrdup(h->dir);
        while (!has_controllers(at) || cgroup_delegate(at) < 0) {
                char *slash = strrchr(at, '/');
                char *up CLEANUP(free_p) = xstrndup(at, (size_t)(slash - at));
                char *probe CLEANUP(free_p) = path_join(up, "cgroup.controllers");
                if (!*up || access(probe, F_OK) < 0)
                        return NULL;
                *slash = 0;
        }
        return xasprintf("%s/slipway.%s", at, m->id);
}

static int enter_v2(const struct local_machine *m, const struct hierarchy *h, const char *dir,
        char **inner, struct error *err)
{
        char *keeper CLEANUP(free_p) = path_join(dir, "keeper"),
                     *machine CLEANUP(free_p) = path_join(dir, "machine");
        if (cgroup_make(dir, err) < 0 || cgroup_make(keeper, err) < 0 ||
                cgroup_make(machine, err) < 0 || cgroup_set(keeper, "cgroup.procs", "0", err) < 0)
                return -err->code;
        int r = cgroup_delegate(dir);
        if (r < 0)
                return error_set(err, -r, EXIT_PREFLIGHT,
                        "cannot enable the controllers of the cgroup %s for its children: %s", dir,
                        strerror(-r));
        if (cgroup_limit(m, h, machine, err) < 0 || cgroup_weigh(m, h, dir, err) < 0)
                return -err->code;
        *inner = TAKE(machine);
        return 0;
}

static int cgroup_record(const char *dir, char *const *paths, size_t n, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *file CLEANUP(free_p) = path_join(dir, "cgroups");
        for (size_t i = 0; i < n; i++)
                str_addf(&text, "%s\n", paths[i]);
        return file_write(file, str_text(&text), text.len, 0644, 0, NULL, err);
}

int cgroup_enter(const struct local_machine *m, char **inner, struct error *err)
{
        struct hierarchies h CLEANUP(hierarchies_release) = { 0 };
        char *dirs[PATHS_MAX] = { 0 };
        size_t n = 0;
        int r = 0;
        *inner = NULL;
        hierarchies_find(&h);
        if (!h.n)
                return error_set(err, ENOENT, EXIT_PREFLIGHT,
                        "no cgroup file system is mounted on this computer, and machines need one");
        if (h.v1)
                for (n = 0; n < h.n; n++)
                        dirs[n] = xasprintf("%s/slipway.%s", h.v[n].dir, m->id);
        else if ((dirs[0] = place_v2(m, &h.v[0])))
                n = 1;
        else {
                error_set(err, EBUSY, EXIT_PREFLIGHT,
                        "no parent cgroup of this process can enable its controllers for a machine");
                error_hint(err,
                        "run it in a cgroup that may have children: in a systemd session, or in a container with its own cgroup namespace and an empty "
                        "root cgroup");
                r = -err->code;
        }
        if (r == 0)
                r = cgroup_record(m->dir, dirs, n, err);
        if (r == 0)
                r = h.v1 ? enter_v1(m, &h, dirs, err) : enter_v2(m, &h.v[0], dirs[0], inner, err);
        for (size_t i = 0; i < n; i++)
                free(dirs[i]);
        return r;
}

/* ---- finding them again ---- */

/* Calls fn with each recorded cgroup. */
static void each_recorded(const char *dir, void (*fn)(const char *cgroup, void *arg), void *arg)
{
        char *file CLEANUP(free_p) = path_join(dir, "cgroups");
        struct str text CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        if (file_read(file, 64 << 10, &text, &ignored) < 0)
                return;
        char *next = text.data;
        for (char *line; next && (line = strsep(&next, "\n"));)
                if (*line)
                        fn(line, arg);
}

/* Calls fn with the cgroup's children first, then with itself. */
static void each_below(const char *dir, void (*fn)(const char *cgroup, void *arg), void *arg)
{
        DIR *d = opendir(dir);
        if (!d)
                return;
        for (struct dirent *e; (e = readdir(d));)
                if (e->d_type == DT_DIR && !streq(e->d_name, ".") && !streq(e->d_name, "..")) {
                        char *child CLEANUP(free_p) = path_join(dir, e->d_name);
                        each_below(child, fn, arg);
                }
        closedir(d);
        fn(dir, arg);
}

struct pids {
        size_t n, cap;
        pid_t *v;
};

/* A zombie stays in /proc until its parent waits for it. */
static bool is_zombie(pid_t pid)
{
        char path[64], text[512];
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        if (!cgroup_read(path, "stat", text, sizeof(text)))
                return true;
        const char *p = strrchr(text, ')');
        return p && (p[2] == 'Z' || p[2] == 'X');
}

static void add_pids(const char *cgroup, void *arg)
{
        struct pids *p = arg;
        char *path CLEANUP(free_p) = path_join(cgroup, "cgroup.procs");
        FILE *f CLEANUP(fclose_p) = fopen(path, "re");
        for (int pid; f && fscanf(f, "%d", &pid) == 1;) {
                bool known = pid <= 0 || is_zombie(pid);
                for (size_t i = 0; i < p->n && !known; i++)
                        known = p->v[i] == pid;
                if (known)
                        continue;
                if (p->n == p->cap)
                        p->v = xrealloc(p->v, (p->cap = p->cap ? p->cap * 2 : 64) * sizeof(*p->v));
                p->v[p->n++] = pid;
        }
}

static void add_pids_below(const char *cgroup, void *arg) { each_below(cgroup, add_pids, arg); }

pid_t *cgroup_pids(const char *dir, size_t *count)
{
        struct pids p = { 0 };
        each_recorded(dir, add_pids_below, &p);
        *count = p.n;
        return p.v;
}

static void cgroup_remove_one(const char *cgroup, void *arg)
{
        if (rmdir(cgroup) < 0 && errno != ENOENT)
                *(bool *)arg = false;
}

static void cgroup_remove_below(const char *cgroup, void *arg)
{
        each_below(cgroup, cgroup_remove_one, arg);
}

bool cgroup_remove(const char *dir)
{
        bool all = true;
        each_recorded(dir, cgroup_remove_below, &all);
        return all;
}

/* The keeper's own cgroups stay as they are. nspawn does not start in a cgroup that still has
 * children with controllers. */
int cgroup_again(const struct local_machine *m, const char *inner, struct error *err)
{
        const struct hierarchy v2 = { .v2 = true };
        bool ignored = true;
        each_recorded(m->dir, cgroup_remove_below, &ignored);
        return inner && (cgroup_make(inner, err) < 0 || cgroup_limit(m, &v2, inner, err) < 0)
                       ? -err->code
                       : 0;
}
