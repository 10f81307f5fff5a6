/* What AWS has of the cluster: one call a list, all at once, and kept for the run. */
#include <event2/event.h>

#include "provider/aws/impl.h"

#define OFF(type, field) offsetof(struct type, field)

static void list_by_mark(struct aws_run *w, struct args *a)
{
        arg_put(a, "Filter.1.Name", "tag:" TAG_MARK);
        arg_put(a, "Filter.1.Value.1", w->mark);
}

void list_by_name(struct aws_run *w, struct args *a)
{
        arg_put(a, "Filter.1.Name", "tag:" TAG_CLUSTER);
        arg_put(a, "Filter.1.Value.1", w->run->cluster->name);
}

/* The file is that of another cluster: only the mark is known. */
static void list_groups(struct aws_run *w, struct args *a)
{
        if (w->run->abandoned)
                list_by_mark(w, a);
        else
                list_by_name(w, a);
}

static void list_vpcs(struct aws_run *w, struct args *a)
{
        if (w->config->vpc.id && !w->run->abandoned)
                arg_put(a, "VpcId.1", w->config->vpc.id);
        else
                list_by_mark(w, a);
}

static void list_subnets(struct aws_run *w, struct args *a)
{
        const struct aws_vpc *v = &w->config->vpc;
        size_t n = 0;
        if (!v->id || w->run->abandoned) {
                list_by_mark(w, a);
                return;
        }
        for (size_t i = 0; i < v->subnets.n; i++)
                arg_putf(a, v->subnets.v[i], "SubnetId.%zu", ++n);
        for (size_t i = 0; i < v->public_subnets.n; i++)
                if (!strings_contain(&v->subnets, v->public_subnets.v[i]))
                        arg_putf(a, v->public_subnets.v[i], "SubnetId.%zu", ++n);
}

static void list_balancers(struct aws_run *w, struct args *a)
{
        arg_put(a, "Names.member.1", balancer_name(w));
}

static void list_everything(struct aws_run *w, struct args *a) {}

static void list_service_groups(struct aws_run *w, struct args *a)
{
        arg_put(a, "Filter.1.Name", "tag-key");
        arg_put(a, "Filter.1.Value.1", w->owner);
        arg_put(a, "Filter.1.Value.2", TAG_BALANCERS);
}

static void list_health(struct aws_run *w, struct args *a)
{
        const struct aws_target_group *g = list_row(w, LIST_TARGET_GROUPS, 0);
        arg_put(a, "TargetGroupArn", g ? g->arn : NULL);
}

static void list_profiles(struct aws_run *w, struct args *a)
{
        arg_put(a, "PathPrefix", iam_path(w));
}

static void list_zones(struct aws_run *w, struct args *a) { arg_put(a, "name", w->zone); }

static void list_record(struct aws_run *w, struct args *a)
{
        arg_put(a, "zone", dns_zone_id(w));
        arg_put(a, "name", dns_record_name(w));
        arg_put(a, "type", "A");
}

static const struct {
        enum aws_call call;
        void (*args)(struct aws_run *w, struct args *a);
        size_t tags, state, bound; /* where they stand in a row; 0: it has none */
        const char *gone;          /* states in which it is no longer there */
        enum list_id after;
        enum aws_call
                labels; /* has the tags of the rows; 0: they are in the list, or there are none */
} list_rows[LISTS] = {
        [LIST_VPCS] = { AWS_LIST_VPCS, list_vpcs, OFF(aws_network, tags) },
        [LIST_GATEWAYS] = { AWS_LIST_GATEWAYS, list_by_mark, OFF(aws_gateway, tags), 0,
                OFF(aws_gateway, vpc) },
        [LIST_SUBNETS] = { AWS_LIST_SUBNETS, list_subnets, OFF(aws_subnet, tags) },
        [LIST_TABLES] = { AWS_LIST_ROUTE_TABLES, list_by_mark, OFF(aws_route_table, tags) },
        [LIST_NATS] = { AWS_LIST_NATS, list_by_mark, OFF(aws_nat, tags), OFF(aws_nat, state), 0,
                " deleted deleting failed " },
        [LIST_ADDRESSES] = { AWS_LIST_ADDRESSES, list_by_mark, OFF(aws_address, tags), 0,
                OFF(aws_address, association) },
        [LIST_GROUPS] = { AWS_LIST_GROUPS, list_groups, OFF(aws_group, tags) },
        [LIST_INTERFACES] = { AWS_LIST_INTERFACES, list_by_mark, OFF(aws_interface, tags), 0,
                OFF(aws_interface, instance) },
        [LIST_VOLUMES] = { AWS_LIST_VOLUMES, list_by_mark, OFF(aws_volume, tags),
                OFF(aws_volume, state), 0, " deleted deleting error " },
        [LIST_INSTANCES] = { AWS_LIST_INSTANCES, list_by_mark, OFF(aws_instance, tags) },
        [LIST_BALANCERS] = { AWS_LIST_BALANCERS, list_balancers },
        [LIST_TARGET_GROUPS] = { AWS_LIST_TARGET_GROUPS, list_balancers },
        [LIST_HEALTH] = { AWS_LIST_HEALTH, list_health, .after = LIST_TARGET_GROUPS },
        [LIST_PROFILES] = { AWS_LIST_PROFILES, list_profiles },
        [LIST_ROLES] = { AWS_LIST_ROLES, list_profiles },
        [LIST_ZONES] = { AWS_LIST_HOSTED_ZONES, list_zones },
        [LIST_RECORD] = { AWS_GET_RECORD, list_record, .after = LIST_ZONES },
        [LIST_SERVICE_BALANCERS] = { AWS_LIST_BALANCERS, list_everything, OFF(aws_balancer, tags),
                .labels = AWS_BALANCER_TAGS },
        [LIST_SERVICE_CLASSICS] = { AWS_LIST_CLASSICS, list_everything, OFF(aws_classic, tags),
                .labels = AWS_CLASSIC_TAGS },
        [LIST_SERVICE_TARGETS] = { AWS_LIST_TARGET_GROUPS, list_everything,
                OFF(aws_target_group, tags), .labels = AWS_BALANCER_TAGS },
        [LIST_SERVICE_GROUPS] = { AWS_LIST_GROUPS, list_service_groups, OFF(aws_group, tags) },
};

bool instance_is_dead(const struct aws_instance *i)
{
        return i->state && (streq(i->state, "terminated") || streq(i->state, "shutting-down"));
}

enum aws_call list_labels(enum list_id id)
{
        return list_rows[id].labels ? list_rows[id].labels : AWS_CALLS;
}

size_t list_size(enum list_id id)
{
        return id == LIST_INSTANCES ? sizeof(struct aws_instance)
                                    : aws_calls[list_rows[id].call].answer->size;
}

const void *list_row(const struct aws_run *w, enum list_id id, size_t i)
{
        const struct answers *v = &w->lists[id].v;
        return i < v->n ? (const char *)v->v + i * list_size(id) : NULL;
}

const struct pairs *row_tags(enum list_id id, const void *row)
{
        size_t at = list_rows[id].tags;
        return at ? (const struct pairs *)(uintptr_t)((const char *)row + at) : NULL;
}

static const char *list_row_text(const void *row, size_t at)
{
        return at ? *(const char *const *)(uintptr_t)((const char *)row + at) : NULL;
}

bool row_is_gone(enum list_id id, const void *row)
{
        const char *state = list_row_text(row, list_rows[id].state);
        char *word CLEANUP(free_p) = xasprintf(" %s ", state ? state : "");
        return state && list_rows[id].gone && strstr(list_rows[id].gone, word);
}

/* ---- the best of each role ---- */

static bool vpc_in_use(const struct aws_run *w, const char *id)
{
        const struct aws_subnet *s;
        const struct aws_gateway *g;
        for (size_t i = 0; (s = list_row(w, LIST_SUBNETS, i)); i++)
                if (s->vpc && streq(s->vpc, id))
                        return true;
        for (size_t i = 0; (g = list_row(w, LIST_GATEWAYS, i)); i++)
                if (g->vpc && streq(g->vpc, id))
                        return true;
        return false;
}

static bool row_in_use(const struct aws_run *w, enum list_id id, const void *row)
{
        const struct aws_volume *v = row;
        if (id == LIST_VPCS)
                return vpc_in_use(w, list_row_text(row, 0) ? *(const char *const *)row : "");
        if (id == LIST_VOLUMES)
                return v->attachments.n > 0;
        return list_row_text(row, list_rows[id].bound) != NULL;
}

struct rank {
        const char *id;
        const void *row;
        bool used, dead;
};

static int rank_compare(const void *a, const void *b)
{
        const struct rank *x = a, *y = b;
        if (x->dead != y->dead)
                return x->dead ? 1 : -1;
        if (x->used != y->used)
                return x->used ? -1 : 1;
        return strcmp(x->id, y->id);
}

void list_index(struct aws_run *w, enum list_id id)
{
        struct list *l = &w->lists[id];
        size_t n = 0;
        struct rank *ranks CLEANUP(free_p) = xcalloc(l->v.n + 1, sizeof(*ranks));
        const void *row;
        index_clear(&l->by_role);
        for (size_t i = 0; (row = list_row(w, id, i)); i++)
                if (w->mark && streq(tag_of(row_tags(id, row), TAG_MARK), w->mark))
                        ranks[n++] = (struct rank){ *(const char *const *)row, row,
                                row_in_use(w, id, row),
                                id == LIST_INSTANCES && instance_is_dead(row) };
        qsort(ranks, n, sizeof(*ranks), rank_compare);
        for (size_t i = 0; i < n; i++)
                if (!ranks[i].dead)
                        index_put(&l->by_role, tag_of(row_tags(id, ranks[i].row), TAG_ROLE),
                                (void *)(uintptr_t)ranks[i].row);
}

bool row_is_spare(struct aws_run *w, enum list_id id, const void *row)
{
        const char *role = tag_of(row_tags(id, row), TAG_ROLE);
        const void *best = index_get(&w->lists[id].by_role, role);
        return best && best != row && !row_in_use(w, id, row);
}

/* ---- asking ---- */

/* A list by mark has nothing before there is a mark. */
static bool list_wanted(const struct aws_run *w, enum list_id id)
{
        const struct provider_aws *c = w->config;
        bool balancer = c->load_balancer != AWS_LB_NONE;
        if (list_of_services(id))
                return false;
        switch (id) {
        case LIST_NONE:
        case LIST_ROLES:
                return false;
        case LIST_VPCS:
        case LIST_SUBNETS:
                return c->vpc.id || w->mark;
        case LIST_GATEWAYS:
        case LIST_TABLES:
        case LIST_NATS:
                return !c->vpc.id && w->mark;
        case LIST_BALANCERS:
        case LIST_TARGET_GROUPS:
                return balancer && w->mark;
        case LIST_HEALTH:
                return list_row(w, LIST_TARGET_GROUPS, 0) != NULL;
        case LIST_PROFILES:
                return w->mark && iam_is_managed(w);
        case LIST_ZONES:
                return w->zone != NULL;
        case LIST_RECORD:
                return w->mark && dns_zone_id(w);
        default:
                return w->mark != NULL;
        }
}

/* Also what the file no longer asks for. */
bool list_wanted_to_remove(const struct aws_run *w, enum list_id id)
{
        if (list_of_services(id))
                return true;
        switch (id) {
        case LIST_BALANCERS:
        case LIST_TARGET_GROUPS:
        case LIST_PROFILES:
        case LIST_ROLES:
        case LIST_NATS:
        case LIST_GATEWAYS:
        case LIST_TABLES:
                return true;
        case LIST_VPCS:
        case LIST_SUBNETS:
                return !w->config->vpc.id || w->run->abandoned;
        default:
                return list_wanted(w, id);
        }
}

void list_keep_services(struct aws_run *w, enum list_id id)
{
        struct answers *v = &w->lists[id].v;
        size_t size = list_size(id), n = 0;
        char *all = v->v;
        for (size_t i = 0; i < v->n; i++)
                if (tags_of_service(w, row_tags(id, all + i * size)))
                        memmove(all + n++ * size, all + i * size, size);
        v->n = n;
}

bool list_has(const struct aws_run *w, enum list_id id, const char *which)
{
        const void *row;
        for (size_t i = 0; (row = list_row(w, id, i)); i++)
                if (streq(*(const char *const *)row, which))
                        return true;
        return false;
}

/* These have no tags in their lists, but a name or path with the mark. A service that ignores what
 * was asked for answers with everything, and what is not ours must not be removed. */
static bool row_is_asked(const struct aws_run *w, enum list_id id, const void *row)
{
        const struct aws_balancer *b = row;
        const struct aws_target_group *g = row;
        const struct aws_role *r = row;
        const struct aws_profile *p = row;
        switch (id) {
        case LIST_BALANCERS:
                return b->name && streq(b->name, balancer_name(w));
        case LIST_TARGET_GROUPS:
                return g->name && streq(g->name, balancer_name(w));
        case LIST_ROLES:
                return r->arn && strstr(r->arn, iam_path(w));
        case LIST_PROFILES:
                return p->arn && strstr(p->arn, iam_path(w));
        default:
                return true;
        }
}

int list_take(struct aws_run *w, enum list_id id, const struct call_reply *reply, struct error *err)
{
        struct list *l = &w->lists[id];
        struct answers all = { 0 };
        const struct call_row *row = &aws_calls[list_rows[id].call];
        int r = reply->fault ? 0 : call_read_list(row, reply, &w->arena, &all, err);
        size_t size = list_size(id), n = 0;
        if (r < 0)
                return r;
        if (id == LIST_INSTANCES)
                all = instances_flat(w, &all);
        for (size_t i = 0; i < all.n; i++)
                if (!row_is_gone(id, (char *)all.v + i * size) &&
                        row_is_asked(w, id, (char *)all.v + i * size))
                        memmove((char *)all.v + n++ * size, (char *)all.v + i * size, size);
        l->v = (struct answers){ n, all.v };
        l->asked = true;
        return 0;
}

/* What is listed by its name or id is absent with a fault. */
bool list_absent(const struct call_reply *reply)
{
        return reply->fault && reply->fault->kind == FAULT_ABSENT;
}

struct call *list_call(struct aws_run *w, struct session *s, enum list_id id, call_fn fn, void *arg)
{
        struct args a = { .arena = &w->arena };
        list_rows[id].args(w, &a);
        struct call_args args = arg_call(&a, NULL);
        return call_start(s, &aws_calls[list_rows[id].call], &args, fn, arg);
}

struct round {
        struct aws_run *w;
        enum list_id id;
        unsigned *left;
        struct error *err;
};

static void round_on_list(const struct call_reply *reply, void *arg)
{
        struct round r = *(struct round *)arg;
        struct error err CLEANUP(error_release) = { 0 };
        free(arg);
        --*r.left;
        if (reply->fault && !list_absent(reply))
                fault_error(reply->fault, &err);
        else
                list_take(r.w, r.id, reply, &err);
        if (err.code && !r.err->code) {
                *r.err = err;
                err = (struct error){ 0 };
        }
}

static int lists_round(struct aws_run *w, bool second, struct error *err)
{
        unsigned left = 0;
        for (enum list_id id = 1; id < LISTS; id++) {
                if (!list_rows[id].after == second || !list_wanted(w, id))
                        continue;
                struct round *r = xmalloc(sizeof(*r));
                *r = (struct round){ w, id, &left, err };
                left++;
                list_call(w, aws_session(w->sync.session), id, round_on_list, r);
        }
        while (left)
                if (event_base_loop(w->sync.base, EVLOOP_ONCE) != 0)
                        break;
        return -err->code;
}

int lists_ask(struct aws_run *w, struct error *err)
{
        int r = lists_round(w, false, err);
        if (r == 0)
                r = lists_round(w, true, err);
        for (enum list_id id = 1; r == 0 && id < LISTS; id++)
                list_index(w, id);
        return r;
}
