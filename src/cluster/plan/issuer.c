#include "cluster/plan/issuer.h"
#include "addon/service.h"
#include "artifact/http.h"
#include "base/print.h"

#define DOCUMENT_MAX ((int64_t)1 << 20)
#define SECONDS      10
#define NAME_SHOWN   200
#define WELL_KNOWN   "/.well-known/openid-configuration"

/* ---- the document ---- */

/* The first requested scope that the provider does not list. A provider that lists no scopes
 * may support any. */
static const char *scope_missing(const struct oidc *o, const json_t *listed)
{
        for (size_t i = 0; json_array_size(listed) && i < o->scopes.n; i++) {
                const json_t *one;
                size_t k;
                bool found = false;
                json_array_foreach(listed, k, one) found |=
                        json_is_string(one) && streq(json_string_value(one), o->scopes.v[i]);
                if (!found)
                        return o->scopes.v[i];
        }
        return NULL;
}

static bool issuer_judge(const struct oidc *o, const json_t *document, struct str *out)
{
        const char *issuer = json_string_value(json_object_get(document, "issuer")),
                   *keys = json_string_value(json_object_get(document, "jwks_uri")),
                   *scope = scope_missing(o, json_object_get(document, "scopes_supported"));
        if (!issuer)
                text_addf(out, "its discovery document has no issuer");
        else if (!streq(issuer, o->issuer))
                text_addf(out,
                        "its issuer is \"%.*s\": API servers accept no token of it; set auth.oidc.issuer to exactly that",
                        NAME_SHOWN, issuer);
        else if (!keys || !has_prefix(keys, "https://"))
                text_addf(out,
                        "its discovery document has no https jwks_uri, where API servers get its keys");
        else if (scope)
                text_addf(out,
                        "it does not list the scope %s, and may refuse logins that ask for it: see auth.oidc.scopes",
                        scope);
        else
                return false;
        return true;
}

bool issuer_fault(const struct oidc *o, const char *text, size_t n, struct str *out)
{
        json_t *document = json_loadb(text, n, 0, NULL);
        bool bad = !json_is_object(document);
        if (bad)
                str_add(out, "its discovery document is not a JSON object");
        else
                bad = issuer_judge(o, document, out);
        json_decref(document);
        return bad;
}

/* ---- the request ---- */

struct issuer_asking {
        const struct site *site;
        void (*fn)(const char *why, void *arg);
        void *arg;
};

static void on_issuer(struct transfer *t, void *arg)
{
        struct issuer_asking *q = arg;
        struct str why CLEANUP(str_release) = { 0 };
        const struct str *body = transfer_body(t);
        bool bad = true;
        if (transfer_end(t) != TRANSFER_OK)
                text_addf(&why,
                        "its discovery document cannot be read from this computer: %s; people can log in only if API servers and people reach it",
                        transfer_why(t));
        else
                bad = issuer_fault(
                        &q->site->cluster->auth.oidc, body->len ? body->data : "", body->len, &why);
        q->fn(bad ? str_text(&why) : NULL, q->arg);
}

void issuer_ask(struct site *s, void (*fn)(const char *why, void *arg), void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct transfer *t;
        const char *issuer = s->cluster->auth.oidc.issuer;
        struct issuer_asking *q = arena_new(s->arena, struct issuer_asking);
        *q = (struct issuer_asking){ .site = s, .fn = fn, .arg = arg };
        size_t n = strlen(issuer);
        /* as the API server does */
        while (n && issuer[n - 1] == '/')
                n--;
        struct transfer_spec spec = { .fd = -1,
                .url = arena_printf(s->arena, "%.*s" WELL_KNOWN, (int)n, issuer),
                .max = DOCUMENT_MAX,
                .ca = identity_oidc_ca(&s->identity, s->cluster),
                .seconds = SECONDS,
                .on_done = on_issuer,
                .arg = q };
        if ((!s->http && http_new(s->base, &s->http, &err) < 0) ||
                transfer_start(s->http, &spec, &t, &err) < 0)
                fn(err.message, arg);
}

static void on_issuer_step(const char *why, void *arg)
{
        struct step *step = arg;
        struct site *s = step->arg;
        if (why)
                s->found.warning = arena_printf(s->arena, "the provider of auth.oidc, %s: %s",
                        s->cluster->auth.oidc.issuer, why);
        step_done(step, NULL);
}

/* The provider of services.dex that this run installs is not there yet. */
static bool issuer_comes(const struct site *s)
{
        const struct services_found *f = s->found.services;
        bool there = false;
        for (size_t i = 0; f && !f->blind && i < f->n; i++)
                there |= f->v[i].kind == SERVICE_BUILTIN && f->v[i].action != SERVICE_INSTALL;
        return s->cluster->services.dex.host && !there;
}

void step_issuer(struct step *step)
{
        if (issuer_comes(step->arg))
                step_unchanged(step);
        else
                issuer_ask(step->arg, on_issuer_step, step);
}
