/* etcd's own settings, and the policies of upgrades and healing. */
#include "config/rules/rules.h"

#define GIB ((int64_t)1 << 30)

/* A static pod needs a kubelet beside it. */
static void etcd_run(const struct cluster *c, struct problems *p)
{
        if (c->etcd.run == ETCD_RUN_SERVICE) {
                if (c->etcd.image)
                        rule_error(p, c, "etcd.image", "leave it out, or set etcd.run: static-pod",
                                "etcd runs as a systemd service, which has no image");
                return;
        }
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                if (pool->roles & ROLE_ETCD && !(pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)))
                        problem_add(p, pool->src, "roles",
                                "set etcd.run: service, or give the pool the role control-plane too",
                                "etcd as a static pod needs a kubelet, but the nodes of pool %s have none",
                                pool->name ? pool->name : "");
        }
}

static void etcd_settings(const struct cluster *c, struct problems *p)
{
        const struct etcd_options *e = &c->etcd;
        if (e->heartbeat && e->election && e->election < 5 * e->heartbeat)
                rule_error(p, c, rule_find(c, "etcd.election") ? "etcd.election" : "etcd.heartbeat",
                        arena_printf(p->arena, "set etcd.election: %" PRId64 "ms, ten heartbeats",
                                10 * e->heartbeat),
                        "the election timeout must be at least five heartbeats (%" PRId64
                        "ms), got %" PRId64 "ms",
                        5 * e->heartbeat, e->election);
        if (e->quota > 8 * GIB)
                rule_warn(p, c, "etcd.quota", "use 8GiB",
                        "etcd is not tested above 8GiB: its members start and catch up slowly");
        else if (e->quota && e->quota < 2 * GIB)
                rule_warn(p, c, "etcd.quota", "use 2GiB to 8GiB",
                        "etcd refuses writes when its quota is used up, and less than 2GiB is used up quickly");
        if (e->snapshots.src && !e->snapshots.keep && tree_get(e->snapshots.src, "copyTo"))
                rule_error(p, c, "etcd.snapshots.copyTo", "set keep to at least 1",
                        "no snapshot is taken, because keep is 0");
        const char *to = e->snapshots.copy_to,
                   *bucket = to && has_prefix(to, "s3://") ? to + 5 : NULL;
        if (to && (bucket ? !*bucket || strchr("/?", *bucket) : to[0] != '/'))
                rule_error(p, c, "etcd.snapshots.copyTo",
                        "use /DIRECTORY or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION",
                        "%s is neither a directory of the nodes nor an S3 URL", to);
        if (e->snapshots.copy_key_file && !bucket && !rule_spoiled(p, "etcd.snapshots"))
                rule_error(p, c, "etcd.snapshots.copyKeyFile",
                        "set etcd.snapshots.copyTo to an S3 URL, or leave the key out",
                        "there is an S3 key, but snapshots are not copied to S3");
        else if (bucket && !e->snapshots.copy_key_file && !rule_spoiled(p, "etcd.snapshots"))
                rule_warn(p, c, "etcd.snapshots.copyTo",
                        "set etcd.snapshots.copyKeyFile to a file that holds ID:SECRET",
                        "S3 needs a key: without copyKeyFile you must install it on every etcd node yourself");
}

static void amount(
        const struct cluster *c, const char *path, const struct amount *a, struct problems *p)
{
        if (!rule_find(c, path) || rule_spoiled(p, path))
                return;
        if (a->percent && a->value > 100)
                rule_error(p, c, path, "use 100% for all of them",
                        "at most 100%% of the nodes is possible, got %ld%%", a->value);
        else if (a->percent && a->value == 100)
                rule_warn(p, c, path, "use a smaller percentage, such as 20%",
                        "if all nodes are drained at the same time, their pods cannot run anywhere");
}

static void policies(const struct cluster *c, struct problems *p)
{
        const struct heal *h = &c->heal;
        amount(c, "upgrade.workersAtOnce", &c->upgrade.workers_at_once, p);
        amount(c, "heal.maxAtOnce", &h->max_at_once, p);
        if (h->enabled && h->unhealthy_after && h->unhealthy_after < 60)
                rule_warn(p, c, "heal.unhealthyAfter", "use 5m",
                        "Kubernetes itself waits about a minute before it marks a node NotReady, so a reboot could cause the machine's replacement");
}

void rules_etcd(struct cluster *c, struct problems *p)
{
        etcd_settings(c, p);
        etcd_run(c, p);
        policies(c, p);
}
