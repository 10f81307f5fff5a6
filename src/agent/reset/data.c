/* The data of the cluster's programs, and what of it a reset removes: known names only, and never
 * what existed before the first run. */
#include <dirent.h>
#include <fnmatch.h>

#include "agent/reset/reset.h"
#include "base/file.h"
#include "base/paths.h"

#define LAY_MAX 4096 /* names of one directory; with more, nothing in it is removed */

/* Names that a program creates in its data directory. Anything else there is not its own
 * (lost+found of a disk, for example). */
static const struct made {
        const char *of;
        enum path_use use;
        const char *names[20];
} made[] = {
        { "etcd", PATH_ETCD,
                { "member", "before-restore", ".restoring", ".restored", ".recovering" } },
        { "runtime", PATH_RUNTIME,
                { "io.containerd.*", "tmpmounts", "overlay", "overlay-*", "vfs", "vfs-*", "libpod",
                        "mounts", "tmp", "cache", "secrets", "networks", "artifacts", "sigstore",
                        "storage.lock", "userns.lock", "defaultNetworkBackend", "db.sql" } },
        { "audit", PATH_AUDIT, { NULL } }, /* the log files: the entry has their name */
};

/* Default data directories. Those that existed before the first run stay as directories. `of`: "*"
 * means everything in it; NULL: everything, if the agent created the directory. */
static const struct place {
        const char *path, *of;
} places[] = {
        { "/var/lib/kubelet", "*" },
        { "/var/lib/containerd", "runtime" },
        { "/var/lib/etcd", "etcd" },
        { "/var/lib/cni", "*" },
        { "/var/lib/kube-proxy", "*" },
        { "/var/lib/calico", "*" },
        { "/var/lib/containers", "*" },
        { "/var/lib/crio", "*" },
        { "/run/containerd", "*" },
        { "/run/crio", "*" },
        { "/run/flannel", "*" },
        { "/run/calico", "*" },
        { "/run/cilium", "*" },
        { "/var/log/pods", "*" },
        { "/var/log/containers", "*" },
        { "/etc/kubernetes", "*" },
        { "/etc/cni/net.d", NULL },
        { "/etc/cni", NULL },
        { "/opt/cni/bin", NULL },
        { "/opt/cni", NULL },
        { "/etc/containerd", NULL },
        { "/etc/slipway", NULL },
        { "/opt/slipway", NULL },
        { "/opt/containerd", NULL },
        { "/usr/libexec/kubernetes", NULL },
        { "/run/nri", NULL },
        { "/run/netns", NULL },
};

static const struct made *made_find(const char *of)
{
        for (size_t i = 0; of && i < ARRAY_SIZE(made); i++)
                if (streq(made[i].of, of))
                        return &made[i];
        return NULL;
}

/* audit.log, and what it becomes when it is rotated: audit-2026-01-02T03-04-05.678.log, .gz */
static bool is_log(const char *log, const char *name)
{
        const char *dot = strrchr(log, '.');
        size_t n = dot ? (size_t)(dot - log) : strlen(log), len = strlen(name);
        const char *end = dot ? dot : "";
        if (streq(log, name))
                return true;
        if (len > 3 && has_suffix(name, ".gz"))
                len -= 3;
        return strncmp(log, name, n) == 0 && name[n] == '-' && len > n + strlen(end) &&
               strncmp(name + len - strlen(end), end, strlen(end)) == 0;
}

static bool made_by(const char *of, const char *log, const char *name)
{
        const struct made *m = made_find(of);
        if (of && streq(of, "*"))
                return true;
        if (m && streq(of, "audit"))
                return log && is_log(log, name);
        for (size_t i = 0; m && i < ARRAY_SIZE(m->names) && m->names[i]; i++)
                if (fnmatch(m->names[i], name, 0) == 0)
                        return true;
        return false;
}

/* ---- what existed before ---- */

static void lay_keep(struct agent *a, const char *path, const char *of)
{
        char *full CLEANUP(free_p) = agent_path(a, path);
        DIR *d = opendir(full);
        size_t n = 0;
        for (struct dirent *e; d && (e = readdir(d));) {
                bool known = of ? made_by(of, NULL, e->d_name)
                                : made_by("etcd", NULL, e->d_name) ||
                                             made_by("runtime", NULL, e->d_name);
                if (!known || streq(e->d_name, ".") || streq(e->d_name, "..") ||
                        strpbrk(e->d_name, "\t\n"))
                        continue;
                char *key CLEANUP(free_p) = path_join(path, ++n > LAY_MAX ? "*" : e->d_name);
                before_value(a, "lay", key, "-");
                if (n > LAY_MAX)
                        break;
        }
        if (d)
                closedir(d);
}

void places_keep(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct stat st;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                char *full CLEANUP(free_p) = agent_path(a, places[i].path);
                if (lstat(full, &st) < 0 || S_ISDIR(st.st_mode)) /* no file is copied */
                        before_keep(a, places[i].path, &err);
                if (places[i].of)
                        lay_keep(a, places[i].path, places[i].of);
        }
}

void place_keep(struct agent *a, const char *path)
{
        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (streq(places[i].path, path))
                        return;
        lay_keep(a, path, NULL);
}

void places_restore(struct agent *a)
{
        /* restores modes; removes those that the agent created, now empty */
        for (size_t i = ARRAY_SIZE(places); i-- > 0;) {
                struct error ignored CLEANUP(error_release) = { 0 };
                if (before_is(a, "dir", places[i].path) || before_is(a, "absent", places[i].path))
                        before_restore(a, places[i].path, &ignored);
        }
}

static bool was_absent(struct agent *a, const char *path)
{
        return before_is(a, "absent", path) || before_is(a, "made", path);
}

/* In an adopted cluster, what existed before belongs to that cluster too. */
static bool lay_before(struct agent *a, const char *path, const char *name)
{
        char *one CLEANUP(free_p) = path_join(path, name),
                  *all CLEANUP(free_p) = path_join(path, "*");
        return !before_unit_was(a, "kubelet.service", "active") &&
               (before_is(a, "lay", one) || before_is(a, "lay", all));
}

/* ---- removal ---- */

struct emptying {
        struct agent *a;
        const char *path, *of, *log;
};

static bool data_goes(const char *name, void *arg)
{
        const struct emptying *e = arg;
        return made_by(e->of, e->log, name) && !lay_before(e->a, e->path, name);
}

static void data_empty(struct agent *a, const char *path, const char *of, const char *log)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *full CLEANUP(free_p) = agent_path(a, path);
        int n = tree_empty(full, data_goes, &(struct emptying){ a, path, of, log }, &err);
        if (n < 0)
                reset_event(a, SPEC_DIR, path, STATE_FAILED, err.message);
        else if (n > 0)
                reset_event(a, SPEC_DIR, path, STATE_REMOVED, "the cluster's data in it");
}

void reset_data(struct agent *a)
{
        for (size_t i = 0; i < ARRAY_SIZE(places) && session_alive(&a->session); i++)
                if (places[i].of ? !reset_foreign(a, places[i].path)
                                 : was_absent(a, places[i].path))
                        data_empty(a, places[i].path, places[i].of ? places[i].of : "*", NULL);
        /* directories that cluster.yaml names; ONCE: only if the agent created them */
        for (size_t i = 0; i < a->count && session_alive(&a->session); i++) {
                const struct entry *e = &a->entries[i];
                if (e->kind == SPEC_DIR && made_find(e->name) &&
                        (!(e->flags & SPEC_ONCE) || was_absent(a, e->path)))
                        data_empty(a, e->path, e->name, e->target);
        }
}

/* Whether the mount is inside something that a reset removes for this entry. */
bool reset_mounted(struct agent *a, const struct entry *e, const char *mount)
{
        size_t n = strlen(e->path);
        if (e->kind != SPEC_DIR || !made_find(e->name) || strncmp(e->path, mount, n) ||
                mount[n] != '/')
                return false;
        char *name CLEANUP(free_p) = xstrndup(mount + n + 1, strcspn(mount + n + 1, "/"));
        return data_goes(name, &(struct emptying){ a, e->path, e->name, e->target });
}

/* A runtime that was active before the first run belongs to the host, with its data. */
bool reset_foreign(struct agent *a, const char *path)
{
        static const char *const of[][2] = { { "/var/lib/containerd", "containerd.service" },
                { "/run/containerd", "containerd.service" },
                { "/var/lib/containers", "crio.service" }, { "/var/lib/crio", "crio.service" },
                { "/run/crio", "crio.service" } };
        for (size_t i = 0; i < ARRAY_SIZE(of); i++)
                if (streq(path, of[i][0]))
                        return !record_find(&a->record, SPEC_UNIT, of[i][1]) ||
                               before_unit_was(a, of[i][1], "active");
        return false;
}

/* The operator has checked cluster.yaml; the agent checks the same rule again before
 * it removes anything. */
int reset_allowed(struct agent *a, struct error *err)
{
        for (size_t i = 0; i < a->count; i++) {
                const struct entry *e = &a->entries[i];
                const struct made *m = made_find(e->name);
                const char *of, *why = e->kind != SPEC_DIR ? NULL
                                       : m                 ? path_refused(e->path, m->use, &of)
                                                           : "belongs to no known program";
                if (why) {
                        error_set(err, EPERM, EXIT_STEP, "the reset names %s, which %s%s", e->path,
                                m && of ? "may not be emptied: " : "", why);
                        return error_hint(err,
                                "nothing was removed; set the option in cluster.yaml to a directory that only this program uses");
                }
        }
        return 0;
}
