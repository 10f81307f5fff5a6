/* The provider's state of one run: sessions, lists and things. */
#include <event2/event.h>

#include "provider/aws/impl.h"

static int loop_open(
        struct aws_run *w, struct aws_loop *l, struct event_base *base, struct error *err)
{
        struct aws_options o = { .profile = w->config->profile, .region = w->config->region };
        l->base = base;
        int r = cloud_open(base, NULL, &l->cloud, err);
        return r == 0 ? aws_open(l->cloud, &o, &l->session, err) : r;
}

static void loop_close(struct aws_loop *l)
{
        aws_free(l->session);
        cloud_free(l->cloud);
        *l = (struct aws_loop){ 0 };
}

int aws_async(struct aws_run *w, struct session **out, struct error *err)
{
        int r = w->async.session ? 0 : loop_open(w, &w->async, w->run->base, err);
        if (r == 0)
                *out = aws_session(w->async.session);
        return r;
}

void aws_close(struct provider_run *run)
{
        struct aws_run *w = run->own;
        if (!w)
                return;
        lists_release(w);
        loop_close(&w->async);
        loop_close(&w->sync);
        if (w->own_base)
                event_base_free(w->own_base);
        index_release(&w->by_role);
        arena_release(&w->arena);
        free(w);
        run->own = NULL;
}

static int aws_run_open(struct provider_run *run, struct error *err)
{
        struct aws_run *w = run->own = xcalloc(1, sizeof(*w));
        *w = (struct aws_run){ .run = run, .config = &run->cluster->provider.aws };
        w->zone = w->config->dns.zone && *w->config->dns.zone ? w->config->dns.zone : NULL;
        if (run->prefix) {
                w->mark = arena_printf(&w->arena, AWS_MARK "%s", run->prefix);
                w->full = arena_printf(&w->arena, "%s-%s", run->cluster->name, run->prefix);
                w->owner = arena_printf(&w->arena, TAG_OWNER "%s", w->full);
        }
        aws_bastion_begin(w);
        w->own_base = event_base_new();
        if (!w->own_base)
                return error_set(err, ENOMEM, EXIT_INTERNAL, "cannot start the event loop");
        int r = loop_open(w, &w->sync, w->own_base, err);
        if (r == 0)
                r = lists_ask(w, err);
        if (r == 0)
                r = things_build(w, err);
        if (r < 0)
                aws_close(run);
        return r;
}

int aws_of(struct provider_run *run, struct aws_run **out, struct error *err)
{
        int r = run->own ? 0 : aws_run_open(run, err);
        *out = run->own;
        return r;
}

/* ---- several questions at once ---- */

struct ask *ask_new(struct aws_run *w, struct ask **all, size_t *n, enum aws_call call)
{
        *all = xrealloc(*all, (*n + 1) * sizeof(**all));
        struct ask *a = &(*all)[(*n)++];
        *a = (struct ask){ .call = call, .args = { .arena = &w->arena } };
        return a;
}

struct asking {
        struct ask *ask;
        struct aws_run *w;
        unsigned *left;
};

static void ask_on_answer(const struct call_reply *reply, void *arg)
{
        struct asking x = *(struct asking *)arg;
        struct error err CLEANUP(error_release) = { 0 };
        const struct call_row *row = &aws_calls[x.ask->call];
        free(arg);
        --*x.left;
        if (reply->fault) {
                x.ask->fault = (struct fault){ .kind = reply->fault->kind,
                        .status = reply->fault->status,
                        .code = reply->fault->code ? xstrdup(reply->fault->code) : NULL,
                        .cause = reply->fault->cause ? xstrdup(reply->fault->cause) : NULL,
                        .service = xstrdup(reply->fault->service),
                        .call = xstrdup(reply->fault->call) };
                return;
        }
        x.ask->answer = json_incref((json_t *)(reply->list ? reply->list : reply->body));
        if (reply->list && call_read_list(row, reply, &x.w->arena, &x.ask->rows, &err) < 0)
                x.ask->fault = (struct fault){ .kind = FAULT_ANSWER,
                        .service = xstrdup("aws"),
                        .call = xstrdup(row->name),
                        .cause = xstrdup(err.message) };
}

void asks_run(struct aws_run *w, struct ask *all, size_t n)
{
        unsigned left = 0;
        for (size_t i = 0; i < n; i++) {
                struct asking *x = xmalloc(sizeof(*x));
                struct call_args args = arg_call(&all[i].args, NULL);
                *x = (struct asking){ &all[i], w, &left };
                left++;
                call_start(aws_session(w->sync.session), &aws_calls[all[i].call], &args,
                        ask_on_answer, x);
        }
        while (left)
                if (event_base_loop(w->sync.base, EVLOOP_ONCE) != 0)
                        break;
}

void asks_release(struct ask *all, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                json_decref(all[i].answer);
                json_decref(all[i].args.body);
                fault_release(&all[i].fault);
        }
        free(all);
}
