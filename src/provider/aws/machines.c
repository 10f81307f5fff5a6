/* What makes and removes: prepare, create, destroy, cleanup. */
#include <event2/event.h>

#include "base/clock.h"
#include "provider/aws/ops.h"
#include "provider/login.h"

/* Callers are told from the event loop, never from within the call. */
struct op {
        struct provider_run *run;
        struct aws_run *w;
        struct machine *m;
        struct error err;
        void (*say)(const char *what, int permille, void *arg);
        void (*done)(struct error *err, void *arg);
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
        bool fresh;                      /* of prepare: the bastion's machine is new */
        int64_t since;                   /* of retire */
        const struct node *const *nodes; /* of members */
        size_t node_count;
        unsigned left;
};

static void op_end(struct error *err, void *arg)
{
        struct op o = *(struct op *)arg;
        free(arg);
        if (o.m)
                o.fn(o.m, err, o.arg);
        else
                o.done(err, o.arg);
        error_release(&o.err);
}

static void op_on_failed(evutil_socket_t fd, short what, void *arg)
{
        struct op *o = arg;
        struct error err = o->err;
        o->err = (struct error){ 0 };
        op_end(err.code ? &err : NULL, o);
        error_release(&err);
}

static void op_end_soon(struct op *o)
{
        event_base_once(o->run->base, -1, EV_TIMEOUT, op_on_failed, o, &(struct timeval){ 0 });
}

/* The run's state and the session on its loop; NULL: the caller will be told. */
static struct op *op_new(struct op with)
{
        struct op *o = xmalloc(sizeof(*o));
        struct session *s;
        *o = with;
        int r = aws_of(o->run, &o->w, &o->err);
        if (r == 0 && !o->w->mark)
                r = error_set(&o->err, EINVAL, EXIT_INTERNAL, "aws: the cluster has no identity");
        if (r == 0)
                r = aws_async(o->w, &s, &o->err);
        if (r == 0) {
                o->w->loop = &o->w->async;
                return o;
        }
        op_end_soon(o);
        return NULL;
}

static void op_on_said(const char *what, int permille, void *arg)
{
        struct op *o = arg;
        if (o->say)
                o->say(what, permille, o->arg);
}

/* What could only fail after the interface is there is tried before. */
static int machine_check(struct op *o, const struct node *n)
{
        struct survey found = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        int r = images_find(o->w, &found, &o->err);
        if (r == 0 && !image_of(o->w, n->pool))
                r = error_set(&o->err, ENOENT, EXIT_PREFLIGHT, "%s",
                        found.problem_count ? found.problems[0].what : "the AMI was not found");
        return r == 0 ? provider_user_data(o->run, n, o->w->config->user_data, o->w->config->user,
                                &text, &o->err)
                      : r;
}

static void instance_start(struct op *o, const struct node *n, call_fn fn)
{
        struct pair args[] = { { "InstanceId.1", node_thing(o->w, KIND_INSTANCE, n)->id }, { 0 } };
        call_start(aws_session(o->w->async.session), &aws_calls[AWS_START_INSTANCES],
                &(struct call_args){ .args = args, .resource = n->name }, fn, o);
}

/* ---- prepare ---- */

/* Volumes of a machine that runs belong to what is repaired. */
static bool prepare_takes(const struct thing *t, const void *arg)
{
        const struct aws_run *w = arg;
        if (t->kind == KIND_VOLUME || t->kind == KIND_VOLUME_ON)
                return !machine_is_missing(w, t->node);
        return t->kind != KIND_INSTANCE || t->node == &w->bastion.node;
}

/* A second one of what was made twice, after an answer that was lost; nothing uses it. */
static const struct {
        enum list_id list;
        enum aws_call call;
        const char *param;
} spare_rows[] = {
        { LIST_INTERFACES, AWS_DELETE_INTERFACE, "NetworkInterfaceId" },
        { LIST_VOLUMES, AWS_DELETE_VOLUME, "VolumeId" },
        { LIST_ADDRESSES, AWS_RELEASE_ADDRESS, "AllocationId" },
        { LIST_GATEWAYS, AWS_DELETE_GATEWAY, "InternetGatewayId" },
        { LIST_VPCS, AWS_DELETE_VPC, "VpcId" },
};

/* A refusal is no failure: the next run tries again. */
static void prepare_drop_spares(struct aws_run *w)
{
        struct ask *all = NULL;
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_SIZE(spare_rows); i++) {
                const void *row;
                for (size_t k = 0; (row = list_row(w, spare_rows[i].list, k)); k++)
                        if (w->mark &&
                                streq(tag_of(row_tags(spare_rows[i].list, row), TAG_MARK),
                                        w->mark) &&
                                row_is_spare(w, spare_rows[i].list, row))
                                arg_put(&ask_new(w, &all, &n, spare_rows[i].call)->args,
                                        spare_rows[i].param, *(const char *const *)row);
        }
        asks_run(w, all, n);
        asks_release(all, n);
}

/* Nothing refers to it any more, and its machine is no way to anything. */
static void prepare_end(struct op *o)
{
        if (bastion_is_left(o->w))
                removal_start(o->w, &o->w->bastion.node, op_end, o);
        else
                op_end(NULL, o);
}

static void prepare_on_made(struct error *err, void *arg)
{
        struct op *o = arg;
        if (err) {
                op_end(err, o);
                return;
        }
        /* once more, because its address may be new too */
        if (o->fresh && bastion_forget(o->w, &o->err) < 0) {
                op_end_soon(o);
                return;
        }
        nodes_address(o->w);
        cluster_balance(o->w);
        machine_fill(o->w, &o->w->bastion.machine);
        prepare_end(o);
}

static void prepare_job(struct op *o)
{
        aws_job_start(o->w, prepare_takes, o->w, op_on_said, prepare_on_made, o);
}

/* The bastion is made by the same job; what could only fail after its interface is there is tried
 * before. */
static int prepare_check(struct op *o)
{
        const struct node *n = aws_bastion_node(o->w);
        int r = login_key_make(o->run->state, &o->err);
        o->fresh = n && machine_is_missing(o->w, n);
        if (r == 0 && o->fresh)
                r = machine_check(o, n);
        return r == 0 && o->fresh ? bastion_forget(o->w, &o->err) : r;
}

static void prepare_on_started(const struct call_reply *reply, void *arg)
{
        struct op *o = arg;
        if (reply->fault) {
                fault_error(reply->fault, &o->err);
                op_end_soon(o);
                return;
        }
        node_thing(o->w, KIND_INSTANCE, &o->w->bastion.node)->there = false; /* until it runs */
        prepare_job(o);
}

void aws_prepare(struct provider_run *run, void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct op *o = op_new((struct op){ .run = run, .say = say, .done = fn, .arg = arg });
        if (!o)
                return;
        if (prepare_check(o) < 0) {
                op_end_soon(o);
                return;
        }
        prepare_drop_spares(o->w);
        if (o->w->bastion.wanted && o->w->bastion.machine.state == MACHINE_STOPPED)
                instance_start(o, &o->w->bastion.node, prepare_on_started);
        else
                prepare_job(o);
}

/* ---- one machine ---- */

static bool create_takes(const struct thing *t, const void *arg) { return t->node == arg; }

static void create_on_made(struct error *err, void *arg)
{
        struct op *o = arg;
        if (!err)
                machine_fill(o->w, o->m);
        op_end(err, o);
}

static int create_check(struct op *o)
{
        int r = machine_check(o, o->m->node);
        return r == 0 ? login_forget(o->run, o->m->target.host, &o->err) : r;
}

static void create_on_started(const struct call_reply *reply, void *arg)
{
        struct op *o = arg;
        struct thing *t = node_thing(o->w, KIND_INSTANCE, o->m->node);
        if (reply->fault) {
                fault_error(reply->fault, &o->err);
                op_end_soon(o);
                return;
        }
        t->there = false; /* until it runs */
        aws_job_start(o->w, create_takes, o->m->node, NULL, create_on_made, o);
}

void aws_create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        struct op *o = op_new((struct op){ .run = run, .m = m, .fn = fn, .arg = arg });
        if (!o)
                return;
        const struct thing *t = node_thing(o->w, KIND_INSTANCE, m->node);
        if (t->id && m->state == MACHINE_STOPPED)
                instance_start(o, m->node, create_on_started);
        else if (!t->there && create_check(o) < 0)
                op_end_soon(o);
        else
                aws_job_start(o->w, create_takes, m->node, NULL, create_on_made, o);
}

static void destroy_on_gone(struct error *err, void *arg)
{
        struct op *o = arg;
        const struct node *n = o->m->node;
        for (size_t i = 0; !err && i < o->w->count; i++) {
                struct thing *t = o->w->things[i];
                if (t->node && streq(t->node->name, n->name)) {
                        t->there = false;
                        t->id = NULL;
                        t->is = NULL;
                }
        }
        if (!err)
                o->m->state = MACHINE_ABSENT;
        op_end(err, o);
}

void aws_destroy(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        struct op *o = op_new((struct op){ .run = run, .m = m, .fn = fn, .arg = arg });
        if (o)
                removal_start(o->w, m->node, destroy_on_gone, o);
}

/* ---- a machine that is made anew ---- */

#define RETIRE_MS      (15 * 60 * 1000)
#define RETIRE_POLL_MS 2000

static void retire_forget(struct op *o)
{
        for (size_t i = 0; i < o->w->count; i++) {
                struct thing *t = o->w->things[i];
                if (t->node == o->m->node &&
                        (t->kind == KIND_INSTANCE || t->kind == KIND_VOLUME_ON)) {
                        t->there = false;
                        t->id = NULL;
                        t->is = NULL;
                }
        }
        o->m->state = MACHINE_ABSENT;
        o->m->provider_id = o->m->outdated = NULL;
}

static void retire_on_list(const struct fault *fault, void *arg);

static void retire_wait(struct op *o, unsigned ms)
{
        list_again(o->w, LIST_INSTANCES, ms, retire_on_list, o);
}

/* Its interface is free when it is terminated, and its volumes too. */
static void retire_on_list(const struct fault *fault, void *arg)
{
        struct op *o = arg;
        const struct aws_instance *i;
        const char *id = node_thing(o->w, KIND_INSTANCE, o->m->node)->id;
        bool there = false;
        for (size_t k = 0; !fault && (i = list_row(o->w, LIST_INSTANCES, k)); k++)
                there |= id && streq(i->id, id) && !(i->state && streq(i->state, "terminated"));
        if (there && clock_ms() - o->since < RETIRE_MS) {
                retire_wait(o, RETIRE_POLL_MS);
                return;
        }
        if (fault)
                fault_error(fault, &o->err);
        else if (there)
                error_set(&o->err, ETIMEDOUT, EXIT_STEP, "aws: instance %s of %s does not end", id,
                        o->m->node->name);
        else
                retire_forget(o);
        op_end_soon(o);
}

static void retire_on_ended(const struct call_reply *reply, void *arg)
{
        struct op *o = arg;
        const struct fault *f = reply->fault;
        if (f && f->kind != FAULT_ABSENT && !f->lost) {
                fault_error(f, &o->err);
                op_end_soon(o);
        } else
                retire_wait(o, 0);
}

void aws_retire(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        struct op *o = op_new((struct op){ .run = run, .m = m, .fn = fn, .arg = arg });
        if (!o)
                return;
        const struct thing *t = node_thing(o->w, KIND_INSTANCE, m->node);
        struct pair args[] = { { "InstanceId.1", t->id }, { 0 } };
        o->since = clock_ms();
        if (!t->id) {
                retire_forget(o);
                op_end_soon(o);
        } else
                call_start(aws_session(o->w->async.session), &aws_calls[AWS_TERMINATE_INSTANCES],
                        &(struct call_args){ .args = args, .resource = m->node->name },
                        retire_on_ended, o);
}

/* ---- the balancer ---- */

static void members_on_set(const struct call_reply *reply, void *arg)
{
        struct op *o = arg;
        if (reply->fault && !o->err.code)
                fault_error(reply->fault, &o->err);
        if (!--o->left)
                op_end_soon(o);
}

static bool members_have(const struct node *const *nodes, size_t n, const char *address)
{
        char ip[IP_TEXT];
        for (size_t i = 0; i < n; i++)
                if (address && streq(ip_format(&nodes[i]->ip[0], ip), address))
                        return true;
        return false;
}

/* One call with the targets of `a`; none if there are none. */
static void members_call(
        struct op *o, enum aws_call call, const struct aws_target_group *g, struct args *a)
{
        if (!a->n)
                return;
        arg_put(a, "TargetGroupArn", g->arn);
        struct call_args args = arg_call(a, NULL);
        o->left++;
        call_start(aws_session(o->w->async.session), &aws_calls[call], &args, members_on_set, o);
}

/* The list is new. */
static void members_on_list(const struct fault *fault, void *arg)
{
        struct op *o = arg;
        const struct aws_target_group *g = list_row(o->w, LIST_TARGET_GROUPS, 0);
        const struct aws_health *h;
        struct args out = { .arena = &o->w->arena }, in = { .arena = &o->w->arena };
        size_t outs = 0, ins = 0;
        char ip[IP_TEXT];
        if (fault)
                fault_error(fault, &o->err);
        for (size_t i = 0; !fault && (h = list_row(o->w, LIST_HEALTH, i)); i++)
                if (!members_have(o->nodes, o->node_count, h->target) &&
                        !(h->state && streq(h->state, "draining")))
                        arg_putf(&out, h->target, "Targets.member.%zu.Id", ++outs);
        for (size_t i = 0; !fault && i < o->node_count; i++)
                if (!target_is_there(o->w, ip_format(&o->nodes[i]->ip[0], ip)))
                        arg_putf(&in, arena_strdup(&o->w->arena, ip), "Targets.member.%zu.Id",
                                ++ins);
        members_call(o, AWS_DEREGISTER_TARGETS, g, &out);
        members_call(o, AWS_REGISTER_TARGETS, g, &in);
        if (!o->left)
                op_end_soon(o);
}

void aws_members(struct provider_run *run, const struct node *const *nodes, size_t n,
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct op *o = op_new(
                (struct op){ .run = run, .nodes = nodes, .node_count = n, .done = fn, .arg = arg });
        if (o && list_row(o->w, LIST_TARGET_GROUPS, 0))
                list_again(o->w, LIST_HEALTH, 0, members_on_list, o);
        else if (o)
                op_end_soon(o);
}

/* ---- the end of a cluster ---- */

int aws_cleanup(struct provider_run *run, struct error *err)
{
        struct aws_run *w;
        aws_close(run);
        int r = run->prefix ? aws_of(run, &w, err) : 0;
        if (r < 0 || !run->prefix)
                return r;
        r = removal_run(w, NULL, err);
        if (r == 0)
                r = removal_proof(w, err);
        return r < 0 ? r : login_remove(run, err);
}
