/* Paths on the nodes that the file gives to a program of the cluster: one rule for all of them.
 * Such a directory is written to, gets a mode, and is emptied by `reset`: so it is a directory of
 * its own, no other's and not the system's. */
#include "base/paths.h"
#include "config/rules/rules.h"

static const struct {
        const char *path, *hint;
        enum path_use use;
        size_t at;
        bool file; /* the path is a file's: its directory is meant */
} path_rules[] = {
        { "etcd.dataDir", "use /var/lib/etcd, or another dedicated directory, such as /srv/etcd",
                PATH_ETCD, offsetof(struct cluster, etcd.data_dir), false },
        { "runtime.dataDir", "use a dedicated directory, such as /srv/containers, or leave it out",
                PATH_RUNTIME, offsetof(struct cluster, runtime.data_dir), false },
        { "audit.path",
                "use a file in a dedicated directory, such as /var/log/kubernetes/audit/audit.log",
                PATH_AUDIT, offsetof(struct cluster, audit.path), true },
        { "etcd.snapshots.copyTo", "use a dedicated directory, such as /srv/backups", PATH_COPY,
                offsetof(struct cluster, etcd.snapshots.copy_to), false },
};

/* The directory that the row's option names, NULL when there is none. */
static const char *path_dir(const struct cluster *c, size_t row, struct problems *p)
{
        const char *value;
        memcpy(&value, (const char *)c + path_rules[row].at, sizeof(value));
        if (!value || *value != '/' || rule_spoiled(p, path_rules[row].path))
                return NULL;
        char *clean CLEANUP(free_p) = path_clean(value);
        char *slash = path_rules[row].file ? strrchr(clean, '/') : NULL;
        if (slash)
                slash[slash == clean] = 0;
        return arena_strdup(p->arena, clean);
}

static bool path_allowed(const struct cluster *c, size_t row, const char *dir, struct problems *p)
{
        const char *of, *why = path_refused(dir, path_rules[row].use, &of);
        if (why && of)
                rule_error(p, c, path_rules[row].path, path_rules[row].hint, "%s %s %s: %s", dir,
                        path_within(of, dir) && !streq(of, dir) ? "is in" : "overlaps", of, why);
        else if (why)
                rule_error(p, c, path_rules[row].path, path_rules[row].hint, "%s %s", dir, why);
        return !why;
}

void rules_paths(struct cluster *c, struct problems *p)
{
        const char *dirs[ARRAY_SIZE(path_rules)] = { NULL };
        for (size_t i = 0; i < ARRAY_SIZE(path_rules); i++) {
                dirs[i] = path_dir(c, i, p);
                if (!dirs[i] || !path_allowed(c, i, dirs[i], p)) {
                        dirs[i] = NULL;
                        continue;
                }
                for (size_t k = 0; k < i; k++)
                        if (dirs[k] &&
                                (path_within(dirs[k], dirs[i]) || path_within(dirs[i], dirs[k])))
                                rule_error(p, c, path_rules[i].path, path_rules[i].hint,
                                        "%s overlaps %s of %s", dirs[i], dirs[k],
                                        path_rules[k].path);
        }
}
