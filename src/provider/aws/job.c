/* A job makes missing things: each as soon as its needs are there, otherwise all at once. What an
 * answer means is decided in verdict.c. */
#include <event2/event.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "provider/aws/job.h"

#define TOKEN_LEN 40
#define POLL_MS   1000
#define POLL_MAX  5000
#define READY_MS  (15 * 60 * 1000) /* NAT gateways and instances */
#define SEEN_MS   60000            /* what was made is in the lists at last */

/* ---- the end ---- */

static void aws_job_end(struct job *j)
{
        struct job copy = *j;
        for (size_t i = 0; !copy.err.code && i < copy.n; i++)
                if (!copy.v[i]->there)
                        error_set(&copy.err, EINVAL, EXIT_STEP,
                                "aws: %s %s waits for something that is not made",
                                kinds[copy.v[i]->kind].word, copy.v[i]->role);
        free(j->v);
        free(j);
        copy.fn(copy.err.code ? &copy.err : NULL, copy.arg);
        error_release(&copy.err);
}

void doing_fail(struct doing *d, struct error *err)
{
        struct job *j = d->job;
        if (!j->err.code) {
                j->err = *err;
                *err = (struct error){ 0 };
        }
        doing_over(d, false);
}

void doing_fail_fault(struct doing *d, const struct fault *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        fault_error(f, &err);
        doing_fail(d, &err);
}

/* The call's callback is over before another call begins. */
void doing_over(struct doing *d, bool there)
{
        struct job *j = d->job;
        d->t->there |= there;
        d->t->busy = false;
        j->running--;
        j->made += there;
        if (d->timer)
                event_free(d->timer);
        free(d);
        if (there && j->say)
                j->say("creating network, addresses and load balancer",
                        (int)(1000 * j->made / (j->missing ? j->missing : 1)), j->arg);
        job_turn(j);
}

/* ---- one call ---- */

const char *doing_resource(const struct doing *d)
{
        return d->t->node ? d->t->node->name : thing_name(d->job->w, d->t);
}

/* The same call of a later run has the same token, so that AWS makes nothing twice. A machine of
 * this name that ended makes it another one. */
static void client_token_put(struct aws_run *w, const struct thing *t, struct args *a)
{
        struct sha256 s;
        char hex[SHA256_HEX];
        const struct aws_instance *i;
        sha256_init(&s);
        for (size_t k = 0; k < a->n; k++) {
                sha256_add(&s, a->v[k].key, strlen(a->v[k].key) + 1);
                sha256_add(&s, a->v[k].value, strlen(a->v[k].value) + 1);
        }
        for (size_t k = 0; t->node && (i = list_row(w, LIST_INSTANCES, k)); k++)
                if (instance_is_dead(i) && has_prefix(tag_of(&i->tags, TAG_ROLE), "node/") &&
                        streq(tag_of(&i->tags, TAG_ROLE) + 5, t->node->name))
                        sha256_add(&s, i->id, strlen(i->id) + 1);
        sha256_add(&s, &t->generation, sizeof(t->generation));
        sha256_end(&s, hex);
        arg_put(a, "ClientToken", arena_printf(a->arena, "%.*s", TOKEN_LEN, hex));
}

static void thing_args(struct aws_run *w, const struct thing *t, struct args *a)
{
        const struct kind *k = &kinds[t->kind];
        if (k->args)
                k->args(w, t, a);
        if (k->tagged && has_prefix(k->tagged, "Tags."))
                tags_put(w, t, k->tagged, a);
        else if (k->tagged) {
                arg_put(a, "TagSpecification.1.ResourceType", k->tagged);
                tags_put(w, t, "TagSpecification.1.Tag.", a);
        }
        if (k->token)
                client_token_put(w, t, a);
}

static enum aws_call thing_call(const struct thing *t)
{
        return t->kind == KIND_ROUTE && t->generation ? AWS_REPLACE_ROUTE : kinds[t->kind].make;
}

void doing_call(struct doing *d)
{
        struct arena arena CLEANUP(arena_release) = { 0 };
        struct args a = { .arena = &arena };
        thing_args(d->job->w, d->t, &a);
        struct call_args args = arg_call(&a, doing_resource(d));
        call_start(d->job->session, &aws_calls[thing_call(d->t)], &args, doing_on_answer, d);
}

static void doing_on_timer(evutil_socket_t fd, short what, void *arg) { doing_call(arg); }

void doing_again(struct doing *d, unsigned ms)
{
        if (!d->timer)
                d->timer = evtimer_new(d->job->w->run->base, doing_on_timer, d);
        event_add(d->timer, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
}

int64_t doing_age(const struct doing *d) { return clock_ms() - d->since; }

/* ---- until it is ready ---- */

static const struct aws_instance *instance_row(struct aws_run *w, const char *id)
{
        const struct aws_instance *i;
        for (size_t k = 0; (i = list_row(w, LIST_INSTANCES, k)); k++)
                if (streq(i->id, id))
                        return i;
        return NULL;
}

/* Without a machine on which anything can be read, this is all that is known. */
static bool doing_ended(struct doing *d)
{
        const struct aws_instance *i =
                d->t->kind == KIND_INSTANCE && d->t->id ? instance_row(d->job->w, d->t->id) : NULL;
        struct error err CLEANUP(error_release) = { 0 };
        if (!i || !instance_is_dead(i))
                return false;
        error_set(&err, EREMOTEIO, EXIT_STEP, "ec2: instance %s of %s ended before it ran: %s",
                i->id, doing_resource(d), i->reason ? i->reason : "AWS gave no reason");
        doing_fail(d, &err);
        return true;
}

static void doing_late(struct doing *d, const char *what)
{
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, ETIMEDOUT, EXIT_STEP, "aws: %s %s %s %s", kinds[d->t->kind].word,
                d->t->id ? d->t->id : "", d->t->node ? d->t->node->name : d->t->role, what);
        error_hint(&err, "run the command again: it continues where this run ended");
        doing_fail(d, &err);
}

static void doing_on_poll(const struct fault *fault, void *arg)
{
        struct doing *d = arg;
        const struct kind *k = &kinds[d->t->kind];
        if (fault) {
                doing_fail_fault(d, fault);
                return;
        }
        if (doing_ended(d))
                return;
        bool seen = thing_find(d->job->w, d->t);
        if (seen && k->ready(d->t))
                doing_over(d, true);
        else if (!seen && doing_age(d) > SEEN_MS)
                doing_late(d, "was made, and is not in AWS's list");
        else if (doing_age(d) > READY_MS)
                doing_late(d, "is not ready");
        else
                doing_wait(d);
}

void doing_wait(struct doing *d)
{
        unsigned ms = d->polls < 3 ? POLL_MS : d->polls < 8 ? 2 * POLL_MS : POLL_MAX;
        d->polls++;
        list_again(d->job->w, kinds[d->t->kind].list, ms, doing_on_poll, d);
}

/* ---- the order ---- */

static bool thing_can_begin(const struct thing *t)
{
        for (size_t i = 0; i < t->need_count; i++)
                if (!t->needs[i]->there)
                        return false;
        return !t->there && !t->busy;
}

static void thing_begin(struct job *j, struct thing *t)
{
        struct doing *d = xcalloc(1, sizeof(*d));
        *d = (struct doing){ .job = j, .t = t, .since = clock_ms() };
        t->busy = true;
        j->running++;
        if (kinds[t->kind].ready && t->id)
                doing_wait(d); /* made by a run before this one */
        else
                doing_call(d);
}

/* After a failure nothing more begins, and what was begun ends. */
void job_turn(struct job *j)
{
        for (size_t i = 0; !j->err.code && i < j->n; i++)
                if (thing_can_begin(j->v[i]))
                        thing_begin(j, j->v[i]);
        if (!j->running)
                aws_job_end(j);
}

static void job_on_start(evutil_socket_t fd, short what, void *arg)
{
        struct job *j = arg;
        if (aws_async(j->w, &j->session, &j->err) == 0)
                things_find(j->w);
        for (size_t i = 0; i < j->n; i++) {
                struct thing *t = j->v[i];
                t->there &= !(kinds[t->kind].ready && !t->given && !kinds[t->kind].ready(t));
                j->missing += !t->there;
        }
        job_turn(j);
}

void aws_job_start(struct aws_run *w, job_takes takes, const void *takes_arg,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct job *j = xcalloc(1, sizeof(*j));
        *j = (struct job){ .w = w, .say = say, .fn = fn, .arg = arg };
        j->v = xcalloc(w->count + 1, sizeof(struct thing *));
        for (size_t i = 0; i < w->count; i++)
                if (takes(w->things[i], takes_arg))
                        j->v[j->n++] = w->things[i];
        event_base_once(w->run->base, -1, EV_TIMEOUT, job_on_start, j, &(struct timeval){ 0 });
}
