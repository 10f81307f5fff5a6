/* Disks and volumes of a pool: one device, one mount, and no mount over what the
 * system itself needs. */
#include "base/paths.h"
#include "config/rules/rules.h"

/* One list of both, so that a disk and a volume cannot share a mount either. */
struct mount {
        const struct tree *src;
        const char *device, *path;
};

static const char *plain_path(struct arena *a, const char *path)
{
        char *clean CLEANUP(free_p) = path_clean(path);
        return arena_strdup(a, clean);
}

static void mount_point(const struct mount *m, struct problems *p)
{
        static const char hint[] =
                "use a directory that holds nothing else, such as /var/lib/containerd, /var/lib/etcd or /srv/data";
        const char *of,
                *why = m->path && *m->path == '/' ? path_refused(m->path, PATH_MOUNT, &of) : NULL;
        if (why && of)
                problem_add(p, m->src, "mount", hint, "%s is in %s: %s", m->path, of, why);
        else if (why)
                problem_add(p, m->src, "mount", hint,
                        "%s %s: a mount there would hide its contents", m->path, why);
}

static void mount_pair(const struct mount *first, const struct mount *m, struct problems *p)
{
        if (first->path && m->path && streq(first->path, m->path))
                problem_add(p, m->src, "mount", "mount each disk on its own directory",
                        "%s is already used as a mount point %s", m->path,
                        rule_where(p, first->src, m->src));
        if (first->device && m->device && streq(first->device, m->device))
                problem_add(p, m->src, "device", "use another device, or one mount",
                        "the device %s is already used %s", m->device,
                        rule_where(p, first->src, m->src));
}

static void pool_disks(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        size_t n = 0, max = pool->disks.n + pool->volumes.n;
        struct mount *m CLEANUP(free_p) = xcalloc(max, sizeof(*m));
        for (size_t i = 0; i < pool->disks.n; i++)
                m[n++] = (struct mount){ pool->disks.v[i].src, pool->disks.v[i].device,
                        pool->disks.v[i].mount };
        for (size_t i = 0; i < pool->volumes.n; i++)
                m[n++] = (struct mount){ pool->volumes.v[i].src, pool->volumes.v[i].device,
                        pool->volumes.v[i].mount };
        for (size_t i = 0; i < n; i++) {
                m[i].path = m[i].path && *m[i].path ? plain_path(p->arena, m[i].path) : NULL;
                m[i].device =
                        m[i].device && *m[i].device ? plain_path(p->arena, m[i].device) : NULL;
                mount_point(&m[i], p);
                if (m[i].device && !has_prefix(m[i].device, "/dev/"))
                        problem_add(p, m[i].src, "device",
                                "a block device is under /dev, such as /dev/sdb",
                                "%s is not a block device", m[i].device);
                for (size_t j = 0; j < i && i < 256; j++)
                        mount_pair(&m[j], &m[i], p);
        }
        if (pool->volumes.n &&
                (provider_has_hosts(&c->provider) || c->provider.kind == PROVIDER_LOCAL))
                problem_add(p, pool->src, "volumes",
                        provider_has_hosts(&c->provider)
                                ? "use disks for the ones that the machines have"
                                : "leave them out",
                        "provider %s cannot create volumes", provider_words[c->provider.kind]);
}

void rules_disks(struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->pools.n; i++)
                if (c->pools.v[i].disks.n || c->pools.v[i].volumes.n)
                        pool_disks(c, &c->pools.v[i], p);
}
