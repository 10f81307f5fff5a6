/* What the answer to a creating call means: it is there, it is looked for, it is sent again with
 * other parameters or later, or it failed. */
#include "provider/aws/job.h"

#define SETTLE_MS 60000  /* AWS does not know everywhere yet what it has made */
#define IAM_MS    120000 /* a new instance profile takes longest */
#define PAUSE_MS  1500
#define CHANGES   5 /* of the parameters of one call */

/* Long enough for what was made and is not listed yet. */
static const unsigned look_ms[] = { 0, 1000, 2000, 4000, 5000 };

static bool fault_is(const struct fault *f, const char *code)
{
        return f->code && code && streq(f->code, code);
}

/* ---- looked for ---- */

static void doing_look(struct doing *d, list_fn fn)
{
        size_t n = ARRAY_SIZE(look_ms);
        list_again(
                d->job->w, kinds[d->t->kind].list, look_ms[d->looks < n ? d->looks : n - 1], fn, d);
        d->looks++;
}

/* Its answer was lost: it is there, or nothing was made. */
static void doing_on_look(const struct fault *fault, void *arg)
{
        struct doing *d = arg;
        if (fault)
                doing_fail_fault(d, fault);
        else if (thing_find(d->job->w, d->t))
                doing_over(d, true);
        else if (d->looks < ARRAY_SIZE(look_ms))
                doing_look(d, doing_on_look);
        else
                doing_call(d);
}

/* AWS says that it is there. */
static void doing_on_there(const struct fault *fault, void *arg)
{
        struct doing *d = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (fault)
                doing_fail_fault(d, fault);
        else if (thing_find(d->job->w, d->t))
                doing_over(d, true);
        else if (d->t->kind == KIND_RULES && d->looks < CHANGES)
                doing_call(d); /* only those that are missing */
        else if (doing_age(d) < SETTLE_MS)
                doing_look(d, doing_on_there);
        else {
                error_set(&err, EEXIST, EXIT_STEP,
                        "aws: %s %s: AWS says that it exists already, but nothing of this cluster is listed",
                        kinds[d->t->kind].word, doing_resource(d));
                error_hint(&err,
                        "something else has its name or address range: remove that, or use another range");
                doing_fail(d, &err);
        }
}

/* ---- sent again with other parameters ---- */

/* Codes after which the call is another one. */
static const struct {
        enum kind_id kind;
        const char *code;
        bool generation; /* another token; else without the chosen address */
} verdict_changes[] = {
        { KIND_INSTANCE, "IdempotentInstanceTerminated", true },
        { KIND_INSTANCE, "IdempotentParameterMismatch", true },
        { KIND_INTERFACE, "IdempotentParameterMismatch", true },
        { KIND_VOLUME, "IdempotentParameterMismatch", true },
        { KIND_NAT, "IdempotentParameterMismatch", true },
        { KIND_ROUTE, "RouteAlreadyExists", true }, /* it is replaced */
        { KIND_INTERFACE, "InvalidIPAddress.InUse", false },
        { KIND_INTERFACE, "InvalidParameterValue", false },
};

static bool doing_changed(struct doing *d, const struct fault *f)
{
        struct thing *t = d->t;
        for (size_t i = 0; i < ARRAY_SIZE(verdict_changes); i++) {
                if (verdict_changes[i].kind != t->kind || !fault_is(f, verdict_changes[i].code))
                        continue;
                if (verdict_changes[i].generation && t->generation < CHANGES) {
                        t->generation++;
                        return true;
                }
                if (!verdict_changes[i].generation && t->with) {
                        t->with = NULL; /* AWS chooses the address */
                        return true;
                }
        }
        return false;
}

/* ---- later ---- */

static bool profile_is_new(const struct doing *d, const struct fault *f)
{
        return d->t->kind == KIND_INSTANCE && fault_is(f, "InvalidParameterValue") && f->cause &&
               strstr(f->cause, "nstance Profile");
}

/* Until AWS knows everywhere what was made a moment ago. */
static bool doing_not_yet(const struct doing *d, const struct fault *f)
{
        if (profile_is_new(d, f))
                return doing_age(d) < IAM_MS;
        return (f->kind == FAULT_ABSENT || fault_is(f, "IncorrectState") ||
                       fault_is(f, "InvalidInstanceID.NotReady") ||
                       fault_is(f, "IncorrectInstanceState")) &&
               doing_age(d) < SETTLE_MS;
}

static void doing_refused(struct doing *d, const struct fault *f)
{
        const struct kind *k = &kinds[d->t->kind];
        if (fault_is(f, k->done) && !k->list)
                doing_over(d, true);
        else if (fault_is(f, k->done) ||
                 (d->t->kind == KIND_INSTANCE && fault_is(f, "InvalidNetworkInterface.InUse")))
                doing_look(d, doing_on_there);
        else if (f->lost && k->twins && d->looks < ARRAY_SIZE(look_ms))
                doing_look(d, doing_on_look);
        else if (f->lost && doing_age(d) < SETTLE_MS)
                doing_again(d, PAUSE_MS);
        else if (doing_changed(d, f))
                doing_again(d, 0);
        else if (doing_not_yet(d, f))
                doing_again(d, PAUSE_MS);
        else
                doing_fail_fault(d, f);
}

/* ---- made ---- */

/* The row of what was made: its id is the first member of each. */
static int doing_read(struct doing *d, const struct call_reply *reply, struct error *err)
{
        struct aws_run *w = d->job->w;
        struct thing *t = d->t;
        const struct call_row *row = &aws_calls[kinds[t->kind].make];
        struct answers all = { 0 };
        if (!row->answer)
                return 0;
        if (row->list) {
                if (call_read_list(row, reply, &w->arena, &all, err) < 0)
                        return -err->code;
        } else {
                all = (struct answers){ 1, arena_alloc(&w->arena, row->answer->size) };
                if (call_read(row, reply, &w->arena, all.v, err) < 0)
                        return -err->code;
        }
        if (t->kind == KIND_INSTANCE)
                all = instances_flat(w, &all);
        if (!all.n || !*(const char *const *)all.v)
                return error_set(err, EPROTO, EXIT_STEP, "aws: %s %s: the answer names no id",
                        row->name, doing_resource(d));
        t->is = all.v;
        t->id = *(const char *const *)all.v;
        return 0;
}

void doing_on_answer(const struct call_reply *reply, void *arg)
{
        struct doing *d = arg;
        const struct kind *k = &kinds[d->t->kind];
        struct error err CLEANUP(error_release) = { 0 };
        if (reply->fault)
                doing_refused(d, reply->fault);
        else if (doing_read(d, reply, &err) < 0)
                doing_fail(d, &err);
        else if (k->ready && !k->ready(d->t))
                doing_wait(d);
        else
                doing_over(d, true);
}
