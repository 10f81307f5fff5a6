/* etcd's own settings, and the policies of upgrades and healing. */
#include "config/rules.h"

#define GIB ((int64_t)1 << 30)

/* A static pod needs a kubelet beside it. */
static void etcd_run(const struct cluster *c, struct problems *p)
{
        if (c->etcd.run == ETCD_RUN_SERVICE) {
                if (c->etcd.image)
                        rule_error(p, c, "etcd.image", "leave it out, or set etcd.run: static-pod", "etcd runs as a service, and a service has no image");
                return;
        }
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                if (pool->roles & ROLE_ETCD && !(pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)))
                        problem_add(p, pool->src, "roles", "set etcd.run: service, or give the pool the role control-plane too",
                                "etcd as a static pod needs a kubelet, and the nodes of pool %s have none", pool->name ? pool->name : "");
        }
}

static void etcd(const struct cluster *c, struct problems *p)
{
        const struct etcd_options *e = &c->etcd;
        if (e->heartbeat && e->election && e->election < 5 * e->heartbeat)
                rule_error(p, c, rule_find(c, "etcd.election") ? "etcd.election" : "etcd.heartbeat",
                        arena_printf(p->arena, "set etcd.election: %" PRId64 "ms, ten heartbeats", 10 * e->heartbeat),
                        "etcd wants at least five heartbeats (%" PRId64 "ms) before an election, got %" PRId64 "ms", 5 * e->heartbeat, e->election);
        if (e->quota > 8 * GIB)
                rule_warn(p, c, "etcd.quota", "use 8GiB", "etcd is not tested above 8GiB: its members start and catch up slowly");
        else if (e->quota && e->quota < 2 * GIB)
                rule_warn(p, c, "etcd.quota", "use 2GiB to 8GiB", "etcd stops taking writes when it is full, and less than 2GiB is soon full");
        if (e->data_dir && (has_prefix(e->data_dir, "/etc") || has_prefix(e->data_dir, "/usr") || has_prefix(e->data_dir, "/run") ||
                                   has_prefix(e->data_dir, "/tmp") || streq(e->data_dir, "/")))
                rule_error(p, c, "etcd.dataDir", "use /var/lib/etcd, on a disk of its own if you like", "%s is no place for the cluster's state", e->data_dir);
        if (e->snapshots.src && !e->snapshots.keep && tree_get(e->snapshots.src, "copyTo"))
                rule_error(p, c, "etcd.snapshots.copyTo", "keep at least 1", "no snapshot is taken: keep is 0");
        const char *to = e->snapshots.copy_to, *bucket = to && has_prefix(to, "s3://") ? to + 5 : NULL;
        if (to && (bucket ? !*bucket || strchr("/?", *bucket) : to[0] != '/'))
                rule_error(p, c, "etcd.snapshots.copyTo", "use /DIRECTORY or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION",
                        "%s is neither a directory of the nodes nor an S3 URL", to);
        if (e->snapshots.copy_key_file && !bucket && !rule_spoiled(p, "etcd.snapshots"))
                rule_error(p, c, "etcd.snapshots.copyKeyFile", "set etcd.snapshots.copyTo to an S3 URL, or leave the key out",
                        "there is a key for S3, and nothing is copied there");
        else if (bucket && !e->snapshots.copy_key_file && !rule_spoiled(p, "etcd.snapshots"))
                rule_warn(p, c, "etcd.snapshots.copyTo", "set etcd.snapshots.copyKeyFile to a file that holds ID:SECRET",
                        "S3 wants a key: without copyKeyFile it has to be put on every etcd node by hand");
}

static void amount(const struct cluster *c, const char *path, const struct amount *a, struct problems *p)
{
        if (!rule_find(c, path) || rule_spoiled(p, path))
                return;
        if (a->percent && a->value > 100)
                rule_error(p, c, path, "use 100% for all of them", "there are no more than 100%% of the nodes, got %ld%%", a->value);
        else if (a->percent && a->value == 100)
                rule_warn(p, c, path, "use a smaller share, such as 20%", "all nodes at once leaves nowhere for pods to go");
}

static void policies(const struct cluster *c, struct problems *p)
{
        const struct heal *h = &c->heal;
        amount(c, "upgrade.workersAtOnce", &c->upgrade.workers_at_once, p);
        amount(c, "heal.maxAtOnce", &h->max_at_once, p);
        if (h->enabled && h->unhealthy_after && h->unhealthy_after < 60)
                rule_warn(p, c, "heal.unhealthyAfter", "use 5m",
                        "Kubernetes itself waits about a minute before it calls a silent node not Ready, so a reboot would already cost the machine");
}

void rules_etcd(struct cluster *c, struct problems *p)
{
        etcd(c, p);
        etcd_run(c, p);
        policies(c, p);
}
