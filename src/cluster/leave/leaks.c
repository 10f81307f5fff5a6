#include "cluster/leave/leaks.h"

/* A removed node is no leak as long as the record has it: up removes it with its data. What the
 * provider says about nodes of the file stands. */
static bool leak_recorded(const struct site *s, const struct leak *l)
{
        return l->ours && !s->provider.abandoned && l->name && !cluster_node(s->cluster, l->name) &&
               records_find(&s->found.record, l->name);
}

/* The run's own prefix gives way to that of a cluster whose state directory is lost. */
static int leaks_prefix(struct site *s, const char *p, struct error *err)
{
        if (strlen(p) != 5 || strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789") != 5)
                return error_set(err, EINVAL, EXIT_USAGE,
                        "--prefix: '%s' is not five lower-case letters and digits", p);
        if (s->identity.prefix && streq(s->identity.prefix, p)) {
                error_set(err, EINVAL, EXIT_USAGE, "--prefix: %s is this cluster's own", p);
                return error_hint(err, "'slipway down' deletes this cluster");
        }
        if (s->ops->close)
                s->ops->close(&s->provider);
        s->provider.prefix = p;
        s->provider.abandoned = true;
        return s->ops->list(&s->provider, s->machines, err);
}

int leaks_find(struct site *s, const char *prefix, struct leaks *out, struct error *err)
{
        struct leaks all = { 0 };
        *out = (struct leaks){ 0 };
        if (!s->ops->leaks) {
                error_set(err, ENOTSUP, EXIT_USAGE,
                        "provider %s creates nothing in a cloud that could be left over",
                        s->ops->name);
                return error_hint(err, "leaks is for the providers openstack and aws");
        }
        int r = prefix ? leaks_prefix(s, prefix, err) : 0;
        if (r == 0)
                r = s->ops->leaks(&s->provider, &all, err);
        if (r < 0)
                return r;
        out->v = arena_array(s->arena, struct leak, all.n + 1);
        for (size_t i = 0; i < all.n; i++)
                if (!leak_recorded(s, &all.v[i]) && (all.v[i].ours || !s->provider.abandoned))
                        out->v[out->n++] = all.v[i];
        return 0;
}

int leaks_delete(struct site *s, const struct leaks *all, struct error *err)
{
        int r = 0;
        if (s->provider.abandoned)
                return s->ops->cleanup(&s->provider, err);
        for (size_t i = 0; r == 0 && i < all->n; i++)
                if (all->v[i].ours)
                        r = s->ops->leak_delete(&s->provider, &all->v[i], err);
        return r;
}
