#include "base/print.h"
#include "cluster/plan/chores.h"
#include "cluster/plan/serving.h"
#include "kube/wait.h"

#define CHORES_MAX 2048 /* the next run does the rest */
#define ASK_MS     15000

void chore_add(struct site *s, struct chore c)
{
        if (!s->found.chores) {
                s->found.chores = arena_new(s->arena, struct chores);
                *s->found.chores =
                        (struct chores){ .v = arena_array(s->arena, struct chore, CHORES_MAX) };
        }
        if (s->found.chores->n < CHORES_MAX)
                s->found.chores->v[s->found.chores->n++] = c;
}

/* ---- observed ---- */

/* Renewals by machines that joined with kubeadm, for the names in the certificate that an
 * operator approved first. */
static void on_chores_requests(const struct kube_reply *reply, void *arg)
{
        struct step *step = arg;
        struct site *s = step->arg;
        struct serving *all = NULL;
        size_t n = reply->error
                           ? 0
                           : serving_read(s->arena, s->cluster, reply->body, s->found.nodes, &all);
        for (size_t i = 0; i < n; i++)
                if (!all[i].trouble && serving_known(s, &all[i]))
                        chore_add(s, serving_chore(s->arena, &all[i]));
        step_done(step, NULL);
}

static void ask_requests(struct step *step)
{
        struct site *s = step->arg;
        if (serving_any_known(s))
                kube_request(s->kube, "GET", SERVING_REQUESTS, NULL, NULL, ASK_MS,
                        on_chores_requests, step);
        else
                step_done(step, NULL);
}

/* Earlier versions of slipway made a bootstrap token that each `up` extended by a day. */
static void on_standing_token(const struct kube_reply *reply, void *arg)
{
        struct step *step = arg;
        struct site *s = step->arg;
        const char *id = s->identity.token_id;
        if (reply->status == 200)
                chore_add(s,
                        (struct chore){
                                .plan = arena_printf(s->arena,
                                        "bootstrap token %s  remove  it was made with the cluster; slipway token create makes one when a machine is to join",
                                        id),
                                .done = arena_printf(s->arena, "removed bootstrap token %s", id),
                                .method = "DELETE",
                                .path = arena_printf(s->arena,
                                        "/api/v1/namespaces/kube-system/secrets/bootstrap-token-%s",
                                        id),
                        });
        ask_requests(step);
}

void step_chores_look(struct step *step)
{
        struct site *s = step->arg;
        if (!s->identity.prefix || !s->found.api_up || !s->kube ||
                (!s->identity.token_id && !serving_any_known(s))) {
                step_unchanged(step);
                return;
        }
        char *path CLEANUP(free_p) =
                xasprintf("/api/v1/namespaces/kube-system/secrets/bootstrap-token-%s",
                        s->identity.token_id ? s->identity.token_id : "");
        if (s->identity.token_id)
                kube_request(s->kube, "GET", path, NULL, NULL, ASK_MS, on_standing_token, step);
        else
                ask_requests(step);
}

/* ---- shown ---- */

void chores_text(const struct site *s, struct str *out)
{
        for (size_t i = 0; s->found.chores && i < s->found.chores->n; i++)
                text_addf(out, "  %s\n", s->found.chores->v[i].plan);
}

json_t *chores_json(const struct site *s)
{
        json_t *all = json_array();
        for (size_t i = 0; s->found.chores && i < s->found.chores->n; i++)
                json_array_append_new(all, json_string(s->found.chores->v[i].plan));
        return all;
}

/* ---- done ---- */

struct chores_run {
        struct step *step;
        size_t next;
};

static void chores_next(struct chores_run *r);

/* 404: somebody else has removed it already. */
static void on_chore(const struct kube_reply *reply, void *arg)
{
        struct chores_run *r = arg;
        struct site *s = r->step->arg;
        const struct chore *c = &s->found.chores->v[r->next];
        struct error err CLEANUP(error_release) = { 0 };
        if (reply->error && reply->status != 404) {
                error_set(&err, EIO, EXIT_STEP, "%s: %s", c->plan, reply->error);
                error_hint(&err, "run slipway up again: it continues from here");
                step_done(r->step, &err);
                return;
        }
        step_changed(r->step, "%s", c->done);
        r->next++;
        chores_next(r);
}

static void chores_next(struct chores_run *r)
{
        struct site *s = r->step->arg;
        const struct chores *all = s->found.chores;
        for (; r->next < all->n && !all->v[r->next].method; r->next++)
                step_changed(r->step, "%s", all->v[r->next].done);
        if (r->next == all->n) {
                step_done(r->step, NULL);
                return;
        }
        const struct chore *c = &all->v[r->next];
        const char *type = c->type ? c->type : "application/json";
        kube_request(s->kube, c->method, c->path, c->body ? type : NULL, c->body, 0, on_chore, r);
}

void step_chores(struct step *step)
{
        struct chores_run *r = arena_new(((struct site *)step->arg)->arena, struct chores_run);
        *r = (struct chores_run){ .step = step };
        chores_next(r);
}
