/* Disks and volumes of a pool: one device, one mount, and no mount over what the system itself needs. */
#include "config/rules.h"

/* One list of both, so that a disk and a volume cannot share a mount either. */
struct mount {
        const struct tree *src;
        const char *device, *path;
};

static const char *const system_paths[] = { "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr",
        "/var", "/var/lib" };

/* The same path with one slash where there were several, and none at the end. */
static const char *plain_path(struct arena *a, const char *path)
{
        char *out = arena_strdup(a, path), *o = out;
        for (const char *s = path; *s; s++)
                if (*s != '/' || o == out || o[-1] != '/')
                        *o++ = *s;
        if (o > out + 1 && o[-1] == '/')
                o--;
        *o = 0;
        return out;
}

static void mount_point(const struct mount *m, struct problems *p)
{
        if (!m->path)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(system_paths); i++)
                if (streq(m->path, system_paths[i])) {
                        problem_add(p, m->src, "mount", "use the directory that grows, such as /var/lib/containerd, /var/lib/etcd or /var/log",
                                "a mount on %s would hide the system's own files", m->path);
                        return;
                }
        if (strstr(m->path, "/../") || has_suffix(m->path, "/..") || strstr(m->path, "/./"))
                problem_add(p, m->src, "mount", "write the path as it is", "%s is not a plain path", m->path);
        else if (has_prefix(m->path, "/dev/") || has_prefix(m->path, "/proc/") || has_prefix(m->path, "/sys/") || has_prefix(m->path, "/run/"))
                problem_add(p, m->src, "mount", "use a directory that stays, such as /var/lib/etcd",
                        "%s is on a filesystem that the kernel makes anew at each boot", m->path);
}

static void mount_pair(const struct mount *first, const struct mount *m, struct problems *p)
{
        if (first->path && m->path && streq(first->path, m->path))
                problem_add(p, m->src, "mount", "mount each disk on a directory of its own", "%s is mounted already %s", m->path,
                        rule_where(p, first->src, m->src));
        if (first->device && m->device && streq(first->device, m->device))
                problem_add(p, m->src, "device", "use another device, or one mount", "the device %s is used already %s", m->device,
                        rule_where(p, first->src, m->src));
}

static void pool_disks(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        size_t n = 0, max = pool->disks.n + pool->volumes.n;
        struct mount *m CLEANUP(free_p) = xcalloc(max, sizeof(*m));
        for (size_t i = 0; i < pool->disks.n; i++)
                m[n++] = (struct mount){ pool->disks.v[i].src, pool->disks.v[i].device, pool->disks.v[i].mount };
        for (size_t i = 0; i < pool->volumes.n; i++)
                m[n++] = (struct mount){ pool->volumes.v[i].src, pool->volumes.v[i].device, pool->volumes.v[i].mount };
        for (size_t i = 0; i < n; i++) {
                m[i].path = m[i].path && *m[i].path ? plain_path(p->arena, m[i].path) : NULL;
                m[i].device = m[i].device && *m[i].device ? plain_path(p->arena, m[i].device) : NULL;
                mount_point(&m[i], p);
                if (m[i].device && !has_prefix(m[i].device, "/dev/"))
                        problem_add(p, m[i].src, "device", "a block device is under /dev, such as /dev/sdb", "%s is not a block device", m[i].device);
                for (size_t j = 0; j < i && i < 256; j++)
                        mount_pair(&m[j], &m[i], p);
        }
        if (pool->volumes.n && (c->provider.kind == PROVIDER_SSH || c->provider.kind == PROVIDER_LOCAL))
                problem_add(p, pool->src, "volumes", c->provider.kind == PROVIDER_SSH ? "use disks for those that the machines have" : "leave them out",
                        "provider %s cannot make volumes", provider_words[c->provider.kind]);
}

void rules_disks(struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->pools.n; i++)
                if (c->pools.v[i].disks.n || c->pools.v[i].volumes.n)
                        pool_disks(c, &c->pools.v[i], p);
}
