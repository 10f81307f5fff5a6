/* Removal in the order of removal_rows: each phase lists, deletes what is there and lists again,
 * until nothing is left. What is still in use is refused, and tried again. */
#include <event2/event.h>

#include "base/clock.h"
#include "provider/aws/impl.h"

#define REMOVAL_MS \
        (15 * 60 * 1000) /* of one phase: addresses of load balancers stay for minutes \
                          */
#define ROUND_MS  1000
#define ROUND_MAX 5000
#define PHASES    4

static const struct removal_row {
        enum list_id list;
        enum aws_call call;
        const char *param;
        unsigned phase;
} removal_rows[] = {
        { LIST_RECORD, AWS_CHANGE_RECORDS, NULL, 0 },
        { LIST_INSTANCES, AWS_TERMINATE_INSTANCES, "InstanceId.1", 0 },
        { LIST_BALANCERS, AWS_DELETE_BALANCER, "LoadBalancerArn", 1 },
        { LIST_SERVICE_BALANCERS, AWS_DELETE_BALANCER, "LoadBalancerArn", 1 },
        { LIST_SERVICE_CLASSICS, AWS_DELETE_CLASSIC, "LoadBalancerName", 1 },
        { LIST_NATS, AWS_DELETE_NAT, "NatGatewayId", 1 },
        { LIST_INTERFACES, AWS_DELETE_INTERFACE, "NetworkInterfaceId", 1 },
        { LIST_VOLUMES, AWS_DELETE_VOLUME, "VolumeId", 1 },
        { LIST_TARGET_GROUPS, AWS_DELETE_TARGET_GROUP, "TargetGroupArn", 2 },
        { LIST_SERVICE_TARGETS, AWS_DELETE_TARGET_GROUP, "TargetGroupArn", 2 },
        { LIST_ADDRESSES, AWS_RELEASE_ADDRESS, "AllocationId", 2 },
        { LIST_GROUPS, AWS_DELETE_GROUP, "GroupId", 2 },
        { LIST_SERVICE_GROUPS, AWS_DELETE_GROUP, "GroupId", 2 },
        { LIST_SUBNETS, AWS_DELETE_SUBNET, "SubnetId", 2 },
        { LIST_GATEWAYS, AWS_DELETE_GATEWAY, "InternetGatewayId", 2 },
        { LIST_TABLES, AWS_DELETE_ROUTE_TABLE, "RouteTableId", 3 },
        { LIST_VPCS, AWS_DELETE_VPC, "VpcId", 3 },
        { LIST_PROFILES, AWS_DELETE_PROFILE, "InstanceProfileName", 3 },
        { LIST_ROLES, AWS_DELETE_ROLE, "RoleName", 3 },
};

struct removal {
        struct aws_run *w;
        const struct node *node; /* NULL: all */
        unsigned phase, rounds, pending, found;
        int64_t until;
        struct error err; /* of what cannot be removed */
        struct event *timer;
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

/* ---- what belongs to it ---- */

static bool role_is_of(const char *role, const struct node *n)
{
        size_t len = strlen(n->name);
        if (has_prefix(role, "node/") || has_prefix(role, "root/"))
                return streq(role + 5, n->name);
        if (has_prefix(role, "volume/"))
                return strncmp(role + 7, n->name, len) == 0 && role[7 + len] == '/';
        return false;
}

/* The record is ours when it leads to our load balancer, or only to our addresses. */
static bool record_is_ours(struct aws_run *w)
{
        const struct aws_record *r = record_row(w);
        const struct aws_value *v = r ? r->values.v : NULL;
        const struct aws_interface *e;
        char *name CLEANUP(free_p) = xasprintf("%s-", w->mark);
        if (!r || r->alias)
                return r && strstr(r->alias, name);
        for (size_t i = 0; i < r->values.n; i++) {
                bool ours = false;
                for (size_t k = 0; (e = list_row(w, LIST_INTERFACES, k)); k++)
                        ours |= streq(tag_of(&e->tags, TAG_MARK), w->mark) && e->address &&
                                v[i].value && streq(e->address, v[i].value);
                if (!ours)
                        return false;
        }
        return r->values.n > 0;
}

/* By prepare, which has taken its group out of the rules of the nodes' group: it goes too. */
static bool removal_of_bastion(const struct removal *x) { return x->node == &x->w->bastion.node; }

static bool removal_takes(const struct removal *x, enum list_id list, const void *row)
{
        const struct pairs *tags = row_tags(list, row);
        const struct aws_instance *i = row;
        if (list_of_services(list))
                return !x->node && tags_of_service(x->w, tags);
        if (list == LIST_INSTANCES && i->state && streq(i->state, "terminated"))
                return false;
        if (!tags) /* found by a name or path that has the mark */
                return !x->node && (list != LIST_RECORD || record_is_ours(x->w));
        if (!streq(tag_of(tags, TAG_MARK), x->w->mark))
                return false;
        /* it goes with its instance */
        if (list == LIST_VOLUMES && has_prefix(tag_of(tags, TAG_ROLE), "root/") && !x->rounds &&
                ((const struct aws_volume *)row)->attachments.n)
                return false;
        return !x->node || role_is_of(tag_of(tags, TAG_ROLE), x->node) ||
               (removal_of_bastion(x) && streq(tag_of(tags, TAG_ROLE), AWS_BASTION));
}

/* ---- one call ---- */

static enum aws_call removal_pick(
        struct removal *x, const struct removal_row *r, const void *row, struct args *a)
{
        const struct aws_gateway *g = row;
        const struct aws_profile *p = row;
        const char *id = *(const char *const *)row;
        if (r->list == LIST_RECORD) {
                removal_record(x->w, a);
                return r->call;
        }
        if (r->list == LIST_VPCS && !x->rounds && removal_zone_vpc(x->w, id, a))
                return AWS_DISASSOCIATE_ZONE;
        arg_put(a, r->param, id);
        if (r->list == LIST_GATEWAYS && g->vpc) {
                arg_put(a, "VpcId", g->vpc);
                return AWS_DETACH_GATEWAY;
        }
        if (r->list == LIST_PROFILES && p->roles.n) {
                arg_put(a, "RoleName", *(const char *const *)p->roles.v);
                return AWS_REMOVE_ROLE;
        }
        if (r->list == LIST_ROLES && x->rounds % 2 == 0) {
                arg_put(a, "PolicyName", "slipway");
                return AWS_DELETE_ROLE_POLICY;
        }
        return r->call;
}

/* Refusals of what is in use end by themselves; others are told at the end. */
static bool refusal_ends(const struct fault *f)
{
        static const char *const codes[] = { "DependencyViolation", "InvalidIPAddress.InUse",
                "InvalidNetworkInterface.InUse", "InvalidParameterValue", "VolumeInUse",
                "ResourceInUse", "OperationNotPermitted", "IncorrectState", "DeleteConflict",
                "Gateway.NotAttached", "InvalidGroup.InUse", "AuthFailure", "LastVPCAssociation",
                "VPCAssociationNotFound" };
        for (size_t i = 0; f->code && i < ARRAY_SIZE(codes); i++)
                if (streq(f->code, codes[i]))
                        return true;
        return f->kind == FAULT_ABSENT || f->kind == FAULT_CONFLICT ||
               f->kind == FAULT_UNREACHABLE || f->kind == FAULT_SERVER ||
               f->kind == FAULT_THROTTLED || f->lost;
}

static void removal_next(struct removal *x);

static void removal_on_gone(const struct call_reply *reply, void *arg)
{
        struct removal *x = arg;
        if (reply->fault && !refusal_ends(reply->fault) && !x->err.code)
                fault_error(reply->fault, &x->err);
        if (!--x->pending)
                removal_next(x);
}

static void removal_call(struct removal *x, enum aws_call call, struct args *a, const char *id)
{
        struct call_args args = arg_call(a, id);
        x->pending++;
        call_start(aws_session(x->w->loop->session), &aws_calls[call], &args, removal_on_gone, x);
}

/* True: the table is in use, and its associations were asked to go. */
static bool removal_unlink(struct removal *x, const struct aws_route_table *t, struct arena *arena)
{
        const struct aws_association *on = t->associations.v;
        bool any = false;
        for (size_t i = 0; i < t->associations.n; i++) {
                struct args a = { .arena = arena };
                if (on[i].main)
                        continue;
                arg_put(&a, "AssociationId", on[i].id);
                removal_call(x, AWS_DISASSOCIATE_ROUTES, &a, t->id);
                any = true;
        }
        return any;
}

static void removal_delete(struct removal *x, const struct removal_row *r, const void *row)
{
        struct arena arena CLEANUP(arena_release) = { 0 };
        struct args a = { .arena = &arena };
        if (r->list == LIST_TABLES && removal_unlink(x, row, &arena))
                return;
        enum aws_call call = removal_pick(x, r, row, &a);
        removal_call(x, call, &a, *(const char *const *)row);
}

/* ---- rounds and phases ---- */

static void removal_end(struct removal *x)
{
        struct removal copy = *x;
        if (x->timer)
                event_free(x->timer);
        free(x);
        copy.fn(copy.err.code ? &copy.err : NULL, copy.arg);
        error_release(&copy.err);
}

static void removal_late(struct removal *x, struct str *ids)
{
        if (!x->err.code)
                error_set(&x->err, ETIMEDOUT, EXIT_STEP, "aws: still in use after %d minutes:%s",
                        REMOVAL_MS / 60000, str_text(ids));
        error_hint(&x->err, "find out what uses them, and run the command again");
}

/* All lists of the phase are new. A failure ends a removal after its phase. */
static void removal_act(struct removal *x)
{
        struct str ids CLEANUP(str_release) = { 0 };
        bool late = clock_ms() > x->until, failed = x->err.code != 0;
        x->found = 0;
        x->pending++; /* until all were started */
        for (size_t i = 0; i < ARRAY_SIZE(removal_rows); i++) {
                const struct removal_row *r = &removal_rows[i];
                const void *row;
                for (size_t k = 0; r->phase == x->phase && (row = list_row(x->w, r->list, k));
                        k++) {
                        if (!removal_takes(x, r->list, row))
                                continue;
                        x->found++;
                        str_addf(&ids, " %s", *(const char *const *)row);
                        if (!late && !failed)
                                removal_delete(x, r, row);
                }
        }
        if (x->found && late)
                removal_late(x, &ids);
        if (!--x->pending)
                removal_next(x);
}

static void removal_on_list(const struct fault *fault, void *arg)
{
        struct removal *x = arg;
        if (fault && !x->err.code)
                fault_error(fault, &x->err);
        if (!--x->pending)
                removal_act(x);
}

static bool removal_lists(const struct removal *x, enum list_id id)
{
        bool shared = id != LIST_INSTANCES && id != LIST_INTERFACES && id != LIST_VOLUMES &&
                      id != LIST_ADDRESSES && !(id == LIST_GROUPS && removal_of_bastion(x));
        return !(x->node && shared) && list_wanted_to_remove(x->w, id);
}

static void removal_round(struct removal *x)
{
        unsigned ms = !x->rounds ? 0 : x->rounds < 5 ? ROUND_MS : ROUND_MAX;
        x->pending++;
        for (size_t i = 0; i < ARRAY_SIZE(removal_rows); i++)
                if (removal_rows[i].phase == x->phase && removal_lists(x, removal_rows[i].list)) {
                        x->pending++;
                        list_again(x->w, removal_rows[i].list, ms, removal_on_list, x);
                }
        if (!--x->pending)
                removal_act(x);
}

/* After what was found was asked to go. */
static void removal_next(struct removal *x)
{
        if (x->found && !x->err.code) {
                x->rounds++;
                removal_round(x);
                return;
        }
        if (x->err.code || ++x->phase == PHASES) {
                removal_end(x);
                return;
        }
        x->rounds = 0;
        x->until = clock_ms() + REMOVAL_MS;
        removal_round(x);
}

static void removal_on_start(evutil_socket_t fd, short what, void *arg) { removal_round(arg); }

void removal_start(struct aws_run *w, const struct node *n,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct removal *x = xcalloc(1, sizeof(*x));
        *x = (struct removal){
                .w = w, .node = n, .fn = fn, .arg = arg, .until = clock_ms() + REMOVAL_MS
        };
        event_base_once(w->loop->base, -1, EV_TIMEOUT, removal_on_start, x, &(struct timeval){ 0 });
}

struct ending {
        bool over;
        struct error *err;
};

static void removal_on_end(struct error *err, void *arg)
{
        struct ending *e = arg;
        e->over = true;
        if (err) {
                *e->err = *err;
                *err = (struct error){ 0 };
        }
}

int removal_run(struct aws_run *w, const struct node *n, struct error *err)
{
        struct ending e = { .err = err };
        w->loop = &w->sync;
        removal_start(w, n, removal_on_end, &e);
        while (!e.over && event_base_loop(w->sync.base, EVLOOP_ONCE) == 0)
                ;
        return -err->code;
}
