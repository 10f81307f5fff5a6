#include "base/print.h"
#include "cluster/plan/bindings.h"
#include "cluster/plan/outsiders.h"

#include <time.h>

#include "kube/wait.h"

#define RBAC   "/apis/rbac.authorization.k8s.io/v1"
#define ASK_MS 15000

/* ---- their objects ---- */

struct shelf {
        const char *kind, *path;
        /* Whether the object belongs to the user, at least in part. */
        bool (*theirs)(const json_t *object, const char *name);
        bool shared; /* it has subjects, and the user may be one of them */
        const char *word;
};

static bool subject_is(const json_t *subject, const char *name)
{
        const char *kind = json_string_value(json_object_get(subject, "kind")),
                   *of = json_string_value(json_object_get(subject, "name"));
        return kind && of && streq(kind, "User") && streq(of, name);
}

/* Bindings of auth.bindings stay as the file has them (bindings.c): the OIDC provider may use
 * the same name. */
static bool bound(const json_t *object, const char *name)
{
        const json_t *subject;
        size_t i;
        if (binding_ours(object))
                return false;
        json_array_foreach(json_object_get(object, "subjects"), i,
                subject) if (subject_is(subject, name)) return true;
        return false;
}

static bool labelled(const json_t *object, const char *name)
{
        const char *of = json_string_value(json_object_get(
                json_object_get(json_object_get(object, "metadata"), "labels"), USER_LABEL));
        return of && streq(of, name);
}

/* If approved later, the request would give the user another certificate. */
static bool requested(const json_t *object, const char *name)
{
        const char *of =
                json_string_value(json_object_get(json_object_get(object, "spec"), "username"));
        return of && streq(of, name);
}

static const struct shelf shelves[] = {
        { "ClusterRoleBinding", RBAC "/clusterrolebindings", bound, true, "ClusterRoleBinding" },
        { "RoleBinding", RBAC "/rolebindings", bound, true, "RoleBinding" },
        { "Secret", "/api/v1/secrets?labelSelector=slipway.dev%2Fuser", labelled, false, "token" },
        { "CertificateSigningRequest", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
                requested, false, "certificate request" },
};

/* The binding without the user; NULL if it has no other subject and is not slipway's own. */
static char *without(const struct shelf *s, const json_t *object, const char *name)
{
        json_t *rest = json_array(), *subject;
        size_t i;
        json_array_foreach(json_object_get(object, "subjects"), i,
                subject) if (!subject_is(subject, name)) json_array_append(rest, subject);
        char *text = NULL;
        if (json_array_size(rest) || streq(object_name(object), ADMINS_BINDING)) {
                json_t *copy = json_copy((json_t *)object);
                json_object_set(copy, "subjects", rest);
                /* items of a list have no kind */
                json_object_set_new(copy, "kind", json_string(s->kind));
                json_object_set_new(
                        copy, "apiVersion", json_string("rbac.authorization.k8s.io/v1"));
                text = json_dumps(copy, 0);
                json_decref(copy);
        }
        json_decref(rest);
        return text;
}

static void add_grant(struct site *s, size_t who, const struct shelf *shelf, const json_t *object)
{
        struct outsiders *o = s->found.outsiders;
        const char *ns = object_namespace(object), *name = object_name(object),
                   *plural = strrchr(shelf->path, '/') + 1;
        int base = (int)(plural - shelf->path - 1), n = (int)strcspn(plural, "?");
        struct grant *all = arena_array(s->arena, struct grant, o->grant_count[who] + 1);
        if (o->grant_count[who])
                memcpy(all, o->grants[who], o->grant_count[who] * sizeof(*all));
        o->grants[who] = all;
        char *rest CLEANUP(free_p) = shelf->shared ? without(shelf, object, o->v[who].name) : NULL;
        all[o->grant_count[who]++] = (struct grant){
                .what = arena_printf(s->arena, "%s %s%s%s", shelf->word, ns, *ns ? "/" : "", name),
                .path = *ns ? arena_printf(s->arena, "%.*s/namespaces/%s/%.*s/%s", base,
                                      shelf->path, ns, n, plural, name)
                            : arena_printf(
                                      s->arena, "%.*s/%.*s/%s", base, shelf->path, n, plural, name),
                .rest = rest ? arena_strdup(s->arena, rest) : NULL,
        };
}

/* Reads all shelves, then calls `then`. */
struct looking {
        struct site *site;
        struct step *step;
        void (*then)(struct looking *l);
        size_t next; /* index of the shelf */
        size_t who, grant;
};

static void outsiders_look_next(struct looking *l);

static void on_shelf(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        struct outsiders *o = l->site->found.outsiders;
        const struct shelf *shelf = &shelves[l->next++];
        const json_t *object;
        size_t i;
        if (reply->error)
                o->trouble = arena_strdup(l->site->arena, reply->error);
        json_array_foreach(json_object_get(reply->body, "items"), i,
                object) for (size_t who = 0; !reply->error && who < o->n;
                             who++) if (shelf->theirs(object, o->v[who].name))
                add_grant(l->site, who, shelf, object);
        outsiders_look_next(l);
}

static void outsiders_look_next(struct looking *l)
{
        if (l->next == ARRAY_SIZE(shelves) || l->site->found.outsiders->trouble)
                l->then(l);
        else
                kube_request(l->site->kube, "GET", shelves[l->next].path, NULL, NULL, ASK_MS,
                        on_shelf, l);
}

static void look_begin(struct step *step, void (*then)(struct looking *l))
{
        struct site *s = step->arg;
        struct looking *l = arena_new(s->arena, struct looking);
        *l = (struct looking){ .site = s, .step = step, .then = then };
        s->found.outsiders->trouble = NULL;
        s->found.outsiders->grants = arena_array(s->arena, struct grant *, s->found.outsiders->n);
        s->found.outsiders->grant_count = arena_array(s->arena, size_t, s->found.outsiders->n);
        memset(s->found.outsiders->grant_count, 0, s->found.outsiders->n * sizeof(size_t));
        outsiders_look_next(l);
}

/* ---- before the plan ---- */

static void looked(struct looking *l) { step_done(l->step, NULL); }

void step_outsiders(struct step *step)
{
        struct site *s = step->arg;
        struct outsiders *o = arena_new(s->arena, struct outsiders);
        *o = (struct outsiders){ 0 };
        o->n = s->identity.prefix ? identity_outsiders(&s->identity, s->cluster, s->arena, &o->v)
                                  : 0;
        s->found.outsiders = o->n ? o : NULL;
        /* if the API is replaced, the new one is queried when access is revoked */
        if (o->n && s->found.api_up && s->kube)
                look_begin(step, looked);
        else
                step_unchanged(step);
}

/* ---- the plan ---- */

static const char *days_left(const struct outsider *p, time_t now, char out[64])
{
        long long left = (long long)p->until - (long long)now;
        long long n = left >= 172800 ? left / 86400 : left >= 7200 ? left / 3600 : left / 60;
        const char *unit = left >= 172800 ? "days" : left >= 7200 ? "hours" : "minutes";
        char when[32];
        struct tm tm;
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime_r(&p->until, &tm));
        snprintf(out, 64, "%s (%lld %s)", when, n, unit);
        return out;
}

/* The file still binds the name: a removed user keeps these rights until
 * the certificate expires. */
static bool bound_in_file(const struct site *s, const char *name)
{
        const struct bindings *all = &s->cluster->auth.bindings;
        for (size_t i = 0; i < all->n; i++)
                if (all->v[i].user && streq(all->v[i].user, name))
                        return true;
        return false;
}

static void life_text(const struct outsider *p, bool in_file, struct str *out)
{
        time_t now = time(NULL);
        char left[64];
        if (p->until <= now) {
                str_add(out, "      the certificate has expired: no access remains\n");
                return;
        }
        text_addf(out, "      the certificate cannot be revoked and is valid until %s",
                days_left(p, now, left));
        for (size_t i = 0; i < p->groups.n; i++)
                text_addf(out, "%s%s",
                        i                 ? ", "
                        : p->groups.n > 1 ? ": until then it has the rights of its groups "
                                          : ": until then it has the rights of its group ",
                        p->groups.v[i]);
        text_addf(out,
                "%s\n      to invalidate it now: slipway certs rotate-ca cluster; to limit this in future: a short auth.users[].lifetime\n",
                p->groups.n || in_file ? "" : ", but nothing is bound to it any more");
        if (in_file)
                str_add(out,
                        "      auth.bindings still gives this name rights: remove it there too, unless it is also a user of the provider\n");
}

void outsiders_text(const struct site *s, struct str *out)
{
        const struct outsiders *o = s->found.outsiders;
        for (size_t i = 0; o && i < o->n; i++) {
                size_t n = o->grants ? o->grant_count[i] : 0;
                bool in_file = bound_in_file(s, o->v[i].name);
                text_addf(out, "  user %s  revoke access  no longer in auth.users: ", o->v[i].name);
                if (!o->grants || o->trouble)
                        text_addf(out,
                                "its bindings and tokens are removed when the API answers%s%s",
                                o->trouble ? ": " : "", o->trouble ? o->trouble : "");
                else if (!n)
                        text_addf(out, "the name has no bindings%s and no tokens",
                                in_file ? " except those of auth.bindings" : "");
                else
                        text_addf(out, "%zu binding%s or token%s removed at once", n,
                                n == 1 ? "" : "s", n == 1 ? " is" : "s are");
                str_addc(out, '\n');
                for (size_t k = 0; k < n; k++)
                        text_addf(out, "      %-8s %s\n", o->grants[i][k].rest ? "leave" : "remove",
                                o->grants[i][k].what);
                life_text(&o->v[i], in_file, out);
        }
}

json_t *outsiders_json(const struct site *s)
{
        const struct outsiders *o = s->found.outsiders;
        json_t *all = json_array();
        for (size_t i = 0; o && i < o->n; i++) {
                json_t *grants = json_array(), *groups = json_array();
                char when[32];
                struct tm tm;
                for (size_t k = 0; o->grants && k < o->grant_count[i]; k++)
                        json_array_append_new(grants, json_string(o->grants[i][k].what));
                for (size_t k = 0; k < o->v[i].groups.n; k++)
                        json_array_append_new(groups, json_string(o->v[i].groups.v[k]));
                strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&o->v[i].until, &tm));
                json_array_append_new(
                        all, json_pack("{s:s, s:o, s:o, s:s}", "user", o->v[i].name, "removes",
                                     grants, "groups", groups, "certificateUntil", when));
        }
        return all;
}

/* ---- done ---- */

static void remove_next(struct looking *l);

static void outsiders_failed(struct looking *l, const char *what, const char *why)
{
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, EIO, EXIT_STEP, "the access of user %s cannot be revoked yet: %s: %s",
                l->site->found.outsiders->v[l->who].name, what, why);
        error_hint(&err, "run slipway up again: it continues from here");
        step_done(l->step, &err);
}

/* 404: somebody else has removed it already. */
static void on_outsiders_removed(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        struct outsiders *o = l->site->found.outsiders;
        const struct grant *g = &o->grants[l->who][l->grant];
        if (reply->error && reply->status != 404) {
                outsiders_failed(l, g->what, reply->error);
                return;
        }
        step_changed(l->step, "%s: %s %s", o->v[l->who].name, g->rest ? "no longer in" : "removed",
                g->what);
        l->grant++;
        remove_next(l);
}

static void remove_next(struct looking *l)
{
        struct site *s = l->site;
        struct outsiders *o = s->found.outsiders;
        for (; l->who < o->n; l->who++, l->grant = 0) {
                struct error err CLEANUP(error_release) = { 0 };
                if (l->grant < o->grant_count[l->who]) {
                        const struct grant *g = &o->grants[l->who][l->grant];
                        kube_request(s->kube, g->rest ? "PUT" : "DELETE", g->path,
                                g->rest ? "application/json" : NULL, g->rest, 0,
                                on_outsiders_removed, l);
                        return;
                }
                if (identity_shut_out(&s->identity, &o->v[l->who], &err) < 0) {
                        step_done(l->step, &err);
                        return;
                }
        }
        step_done(l->step, NULL);
}

static void ready_to_remove(struct looking *l)
{
        if (l->site->found.outsiders->trouble)
                outsiders_failed(
                        l, "what they have is not known", l->site->found.outsiders->trouble);
        else
                remove_next(l);
}

void step_shut_out(struct step *step) { look_begin(step, ready_to_remove); }
