/* What carries a mark of slipway's and belongs to nothing: of this cluster, what has the name of no
 * node; of others, everything, because their files are not known here. */
#include "provider/aws/ops.h"

#define PREFIX_LEN 5 /* of identity.prefix */

/* In an order in which they can be deleted. Those without tags in their lists have the mark as
 * their name, or as their path. */
static const struct leak_row {
        const char *kind;
        enum list_id list;
        enum aws_call call;
} leak_rows[] = {
        { "instance", LIST_INSTANCES, AWS_LIST_INSTANCES },
        { "load balancer", LIST_BALANCERS, AWS_LIST_BALANCERS },
        { "target group", LIST_TARGET_GROUPS, AWS_LIST_TARGET_GROUPS },
        { "NAT gateway", LIST_NATS, AWS_LIST_NATS },
        { "interface", LIST_INTERFACES, AWS_LIST_INTERFACES },
        { "volume", LIST_VOLUMES, AWS_LIST_VOLUMES },
        { "address", LIST_ADDRESSES, AWS_LIST_ADDRESSES },
        { "security group", LIST_GROUPS, AWS_LIST_GROUPS },
        { "subnet", LIST_SUBNETS, AWS_LIST_SUBNETS },
        { "gateway", LIST_GATEWAYS, AWS_LIST_GATEWAYS },
        { "route table", LIST_TABLES, AWS_LIST_ROUTE_TABLES },
        { "VPC", LIST_VPCS, AWS_LIST_VPCS },
        { "profile", LIST_PROFILES, AWS_LIST_PROFILES },
        { "role", LIST_ROLES, AWS_LIST_ROLES },
};

static void leak_ask(struct aws_run *w, struct ask **all, size_t *n, const struct leak_row *row)
{
        struct ask *a = ask_new(w, all, n, row->call);
        if (row->list == LIST_PROFILES || row->list == LIST_ROLES)
                arg_put(&a->args, "PathPrefix", "/" AWS_MARK);
        else if (row->list != LIST_BALANCERS && row->list != LIST_TARGET_GROUPS) {
                arg_put(&a->args, "Filter.1.Name", "tag-key");
                arg_put(&a->args, "Filter.1.Value.1", TAG_MARK);
        }
}

/* "slipway-PREFIX" at the beginning of `text`, up to `end`; NULL: there is none. */
static const char *leak_mark_in(struct aws_run *w, const char *text, char end)
{
        size_t n = strlen(AWS_MARK), prefix;
        if (!text || !has_prefix(text, AWS_MARK))
                return NULL;
        prefix = strspn(text + n, "abcdefghijklmnopqrstuvwxyz0123456789");
        return prefix == PREFIX_LEN && text[n + prefix] == end
                       ? arena_printf(w->run->arena, "%.*s", (int)(n + prefix), text)
                       : NULL;
}

static const char *aws_leak_mark(struct aws_run *w, enum list_id list, const void *row)
{
        const struct aws_balancer *b = row;
        const struct aws_target_group *g = row;
        const struct aws_role *r = row;
        const struct aws_profile *p = row;
        const char *path;
        switch (list) {
        case LIST_BALANCERS:
                return leak_mark_in(w, b->name, 0);
        case LIST_TARGET_GROUPS:
                return leak_mark_in(w, g->name, 0);
        case LIST_ROLES:
        case LIST_PROFILES:
                path = list == LIST_ROLES ? r->arn : p->arn;
                path = path ? strchr(path, '/') : NULL;
                return path ? leak_mark_in(w, path + 1, '/') : NULL;
        default:
                return leak_mark_in(w, tag_of(row_tags(list, row), TAG_MARK), 0);
        }
}

/* The node that a role is of; NULL: all nodes share it. */
static const char *aws_leak_node(struct aws_run *w, const char *role)
{
        const char *slash = strchr(role, '/');
        if (!slash || !(has_prefix(role, "node/") || has_prefix(role, "volume/") ||
                              has_prefix(role, "root/")))
                return NULL;
        return arena_printf(w->run->arena, "%.*s", (int)strcspn(slash + 1, "/"), slash + 1);
}

/* What the controllers of a cluster that is no more made for its Services: its file would have to
 * be known to tell it from what is in use. */
static const struct {
        const char *kind;
        enum list_id list;
} leak_services[] = {
        { "load balancer", LIST_SERVICE_BALANCERS },
        { "load balancer", LIST_SERVICE_CLASSICS },
        { "target group", LIST_SERVICE_TARGETS },
        { "security group", LIST_SERVICE_GROUPS },
};

static void leaks_services(struct aws_run *w, struct leaks *out)
{
        const void *row;
        for (size_t i = 0; i < ARRAY_SIZE(leak_services); i++)
                for (size_t k = 0; (row = list_row(w, leak_services[i].list, k)); k++)
                        out->v[out->n++] = (struct leak){ .kind = leak_services[i].kind,
                                .id = arena_strdup(w->run->arena, *(const char *const *)row),
                                .name = "of a Service",
                                .prefix = w->mark + strlen(AWS_MARK),
                                .ours = true };
}

static bool leak_is_gone(enum list_id list, const void *row)
{
        return row_is_gone(list, row) || (list == LIST_INSTANCES && instance_is_dead(row));
}

static bool leak_is_used(const struct aws_run *w, const char *node)
{
        return cluster_node(w->run->cluster, node) ||
               (aws_bastion_node(w) && streq(node, AWS_BASTION));
}

static void leak_add(
        struct aws_run *w, const struct leak_row *row, const void *one, struct leaks *out)
{
        const struct provider_run *run = w->run;
        const char *mark = leak_is_gone(row->list, one) ? NULL : aws_leak_mark(w, row->list, one);
        const char *role = mark ? tag_of(row_tags(row->list, one), TAG_ROLE) : "";
        const char *node = aws_leak_node(w, role);
        bool ours = mark && w->mark && streq(mark, w->mark);
        if (!mark || (ours && !run->abandoned && (!node || leak_is_used(w, node))))
                return;
        out->v[out->n++] = (struct leak){ .kind = row->kind,
                .id = arena_strdup(run->arena, *(const char *const *)one),
                .name = node    ? node
                        : *role ? arena_strdup(run->arena, role)
                                : NULL,
                .prefix = mark + strlen(AWS_MARK),
                .ours = ours };
}

static void leaks_read(struct aws_run *w, struct ask *all, struct leaks *out)
{
        size_t most = 0;
        for (size_t i = 0; i < ARRAY_SIZE(leak_rows); i++) {
                if (leak_rows[i].list == LIST_INSTANCES)
                        all[i].rows = instances_flat(w, &all[i].rows);
                most += all[i].rows.n;
        }
        for (size_t i = 0; i < ARRAY_SIZE(leak_services); i++)
                most += w->lists[leak_services[i].list].v.n;
        *out = (struct leaks){ .v = arena_array(w->run->arena, struct leak, most + 1) };
        for (size_t i = 0; i < ARRAY_SIZE(leak_rows); i++)
                for (size_t k = 0; k < all[i].rows.n; k++)
                        leak_add(w, &leak_rows[i],
                                (const char *)all[i].rows.v + k * list_size(leak_rows[i].list),
                                out);
        leaks_services(w, out);
}

int aws_leaks(struct provider_run *run, struct leaks *out, struct error *err)
{
        struct aws_run *w;
        struct ask *all = NULL;
        size_t n = 0;
        int r = aws_of(run, &w, err);
        if (r == 0 && run->abandoned)
                r = services_ask(w, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(leak_rows); i++)
                leak_ask(w, &all, &n, &leak_rows[i]);
        asks_run(w, all, n);
        for (size_t i = 0; r == 0 && i < n; i++)
                if (all[i].fault.kind)
                        r = fault_error(&all[i].fault, err);
        if (r == 0)
                leaks_read(w, all, out);
        asks_release(all, n);
        return r;
}

/* ---- deleting ---- */

/* One of those that aws_leaks listed as ours: everything of its node goes together, because an
 * interface is in use until its instance has ended. */
int aws_leak_delete(struct provider_run *run, const struct leak *l, struct error *err)
{
        struct aws_run *w;
        const struct node node = { .name = l->name };
        int r = aws_of(run, &w, err);
        if (r < 0 || !l->ours || !l->name || leak_is_used(w, l->name) ||
                strings_contain(&w->deleted, l->name))
                return r;
        strings_add(&w->arena, &w->deleted, l->name);
        return removal_run(w, &node, err);
}
