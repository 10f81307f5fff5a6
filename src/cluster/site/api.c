/* The API client, and whether a run can still expect the API to answer. */
#include "cluster/site/site.h"

static const char *server_url(struct site *s, const struct node *n)
{
        char text[IP_TEXT + 2];
        return arena_printf(
                s->arena, "https://%s:%ld", ip_host(&n->ip[0], text), s->cluster->api.port);
}

int site_first_leaf(struct site *s, enum leaf_id id, const struct leaf **out, struct error *err)
{
        size_t i = 0;
        const struct node *first = cluster_next(s->cluster, ROLE_CONTROL_PLANE, &i);
        struct member *m = first ? site_member(s, first->name) : NULL;
        if (!m)
                return error_set(err, EINVAL, EXIT_CONFIG, "there is no control-plane node");
        *out = &m->plan.leaves.leaf[id];
        return member_leaves(m, err);
}

/* The administrator's credentials, from the file's first control-plane node. */
static int admin_target(struct site *s, struct kube_target *out, struct error *err)
{
        const struct leaf *admin = NULL;
        int r = site_first_leaf(s, LEAF_SUPER_ADMIN, &admin, err);
        *out = (struct kube_target){ .ca = s->identity.ca[CA_CLUSTER].bundle };
        if (r == 0) {
                out->cert = admin->cert;
                out->key = admin->key;
        }
        return r;
}

int site_kubeconfig(
        struct site *s, const char *server, const char *name, struct str *out, struct error *err)
{
        const struct leaf *admin = NULL;
        int r = site_first_leaf(s, LEAF_SUPER_ADMIN, &admin, err);
        if (r == 0)
                kubeconfig_text(&(struct kubeconfig){ .cluster = s->cluster->name,
                                        .user = "slipway",
                                        .server = server,
                                        .ca = s->identity.ca[CA_CLUSTER].bundle,
                                        .leaf = admin,
                                        .server_name = name },
                        out);
        return r;
}

int site_kube(struct site *s, struct error *err)
{
        const char **servers = arena_array(s->arena, const char *, s->count + 2);
        size_t n = 0, i = 0;
        struct kube_target target;
        if (s->kube)
                return 0;
        for (const struct node *c; (c = cluster_next(s->cluster, ROLE_CONTROL_PLANE, &i));)
                servers[n++] = server_url(s, c);
        int r = admin_target(s, &target, err);
        target.servers = servers;
        if (r == 0)
                r = site_tunnels(s, &target, err);
        return r < 0 ? r : kube_open(s->base, &target, &s->kube, err);
}

int site_removed_kube(struct site *s, struct error *err)
{
        const char **servers = arena_array(s->arena, const char *, s->found.removed_count + 1);
        size_t n = 0;
        struct kube_target target;
        for (size_t i = 0; i < s->found.removed_count; i++)
                if (s->found.removed[i]->seen.answers &&
                        s->found.removed[i]->node->pool->roles & ROLE_CONTROL_PLANE)
                        servers[n++] = server_url(s, s->found.removed[i]->node);
        int r = admin_target(s, &target, err);
        target.servers = servers;
        return r < 0 ? r : kube_open(s->base, &target, &s->removed_kube, err);
}

/* Counts the nodes of a role, and those of them that could not be applied. */
static void count_failed(const struct site *s, unsigned role, size_t *all, size_t *failed)
{
        *all = *failed = 0;
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (!(m->node->pool->roles & role))
                        continue;
                ++*all;
                *failed += m->run.apply && m->run.apply->state == STEP_FAILED;
        }
}

/* Without a control-plane node, or without a majority of etcd, the API cannot start: the run fails
 * now instead of waiting for it. */
void api_look(struct site *s)
{
        size_t control, etcd, no_control, no_etcd;
        if (!s->api || s->api->state != STEP_RUNNING || !s->wait)
                return;
        count_failed(s, ROLE_CONTROL_PLANE, &control, &no_control);
        count_failed(s, ROLE_ETCD, &etcd, &no_etcd);
        if (no_control < control && no_etcd <= (etcd - 1) / 2)
                return;
        kube_cancel(s->wait);
        s->wait = NULL;
        step_skipped(s->api);
}
