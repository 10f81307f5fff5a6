#include "addon/service.h"
#include "base/tree.h"
#include "config/scalar.h"

#define INPUTS_VERSION "1" /* another one upgrades every release once */

static const char *service_label(const json_t *object, const char *label)
{
        return json_string_value(json_object_get(
                json_object_get(json_object_get(object, "metadata"), "labels"), label));
}

static const char *service_meta(const json_t *object, const char *field)
{
        const char *s =
                json_string_value(json_object_get(json_object_get(object, "metadata"), field));
        return s ? s : "";
}

static void inputs_add(struct sha256 *s, const char *text)
{
        sha256_add(s, text ? text : "", text ? strlen(text) + 1 : 1);
}

void service_inputs(const struct chart *c, const char *package_digest, char out[SERVICE_INPUTS])
{
        struct sha256 sum;
        char hex[SHA256_HEX];
        struct str values CLEANUP(str_wipe_release) = { 0 };
        if (c->values)
                tree_json(&values, c->values);
        sha256_init(&sum);
        inputs_add(&sum, INPUTS_VERSION);
        inputs_add(&sum, package_digest);
        inputs_add(&sum, c->name);
        inputs_add(&sum, c->namespace);
        inputs_add(&sum, c->values_text);
        for (size_t i = 0; i < c->values_texts.n; i++)
                inputs_add(&sum, c->values_texts.v[i]);
        inputs_add(&sum, str_text(&values));
        sha256_end(&sum, hex);
        memcpy(out, hex, SERVICE_INPUTS - 1);
        out[SERVICE_INPUTS - 1] = 0;
}

/* ---- releases: helm keeps each revision in a Secret, whose labels say which ---- */

static long revision_of(const json_t *secret)
{
        const char *version = service_label(secret, "version");
        char *end;
        long n = version && *version >= '1' && *version <= '9' ? strtol(version, &end, 10) : 0;
        return n > 0 && !*end ? n : 0;
}

static bool revision_is(const json_t *secret, const char *name, const char *ns)
{
        const char *its = service_label(secret, "name");
        return its && streq(its, name) && streq(service_meta(secret, "namespace"), ns) &&
               revision_of(secret);
}

static bool state_pending(const char *state)
{
        return has_prefix(state, "pending-") || streq(state, "uninstalling");
}

/* The number that slipway gave the revision; helm copies it to those that others make. */
static long revision_at(const json_t *secret)
{
        const char *at = service_label(secret, SERVICE_LABEL_REVISION);
        return at ? strtol(at, NULL, 10) : 0;
}

static bool revision_own(const json_t *secret)
{
        return revision_at(secret) == revision_of(secret);
}

/* Whether slipway's revision before the newest one failed or was cut off, and the newest one is one
 * from before that again. An upgrade by others has the label of the one that failed. */
static bool revision_went_back(const struct service *s, const json_t *newest, const json_t *secrets)
{
        long at = revision_at(newest);
        size_t i;
        const json_t *secret;
        if (!at || at >= s->revision - 1)
                return false;
        json_array_foreach(secrets, i, secret)
        {
                const char *state = service_label(secret, "status");
                if (revision_is(secret, s->name, s->ns) && revision_of(secret) == s->revision - 1)
                        return state && revision_own(secret) &&
                               (streq(state, "failed") || state_pending(state));
        }
        return false;
}

void service_revisions(struct service *s, struct arena *a, const json_t *secrets)
{
        size_t i;
        const json_t *secret, *newest = NULL;
        json_array_foreach(secrets, i, secret)
        {
                const char *state = service_label(secret, "status");
                if (!revision_is(secret, s->name, s->ns))
                        continue;
                long n = revision_of(secret);
                if (n > s->revision) {
                        s->revision = n;
                        newest = secret;
                }
                if (state && n > s->deployed &&
                        (streq(state, "deployed") || streq(state, "superseded")))
                        s->deployed = n;
        }
        if (!newest)
                return;
        const char *state = service_label(newest, "status"),
                   *had = service_label(newest, SERVICE_LABEL_INPUTS),
                   *version = service_label(newest, SERVICE_LABEL_CHART);
        s->state = arena_strdup(a, state ? state : "unknown");
        s->had = had ? arena_strdup(a, had) : NULL;
        s->went_back = had && revision_went_back(s, newest, secrets);
        s->drifted = had && !revision_own(newest) && !s->went_back;
        if (!s->version && version)
                s->version = arena_strdup(a, version);
}

void service_decide(struct service *s, struct arena *a)
{
        if (!s->revision || streq(s->state, "uninstalled")) {
                s->action = SERVICE_INSTALL;
        } else if (state_pending(s->state)) {
                s->action = SERVICE_RECOVER;
                s->note = arena_printf(a, "a run that was stopped left it %s", s->state);
        } else if (!s->had) {
                s->action = SERVICE_ADOPT;
                s->note =
                        "somebody else made the release; it is upgraded, and slipway manages it from now on";
        } else if (s->drifted) {
                s->action = SERVICE_CHANGE;
                s->note = arena_printf(a, "revision %ld was not made by slipway", s->revision);
        } else if (!streq(s->state, "deployed")) {
                s->action = SERVICE_CHANGE;
                s->note = arena_printf(a, "revision %ld is %s", s->revision, s->state);
        } else {
                s->action = streq(s->had, s->inputs) ? SERVICE_KEEP : SERVICE_CHANGE;
                if (s->went_back && s->action == SERVICE_CHANGE)
                        s->note = arena_printf(
                                a, "revision %ld failed, and was rolled back", s->revision - 1);
        }
}

static bool chart_wanted(const struct services *wanted, const char *name, const char *ns)
{
        for (size_t i = 0; i < wanted->charts.n; i++)
                if (streq(wanted->charts.v[i].name, name) &&
                        streq(wanted->charts.v[i].namespace, ns))
                        return true;
        return false;
}

/* The API says these names, and they become arguments of helm: a word, and no option. */
static bool release_word(const char *s)
{
        size_t n = strlen(s);
        return n && n <= 53 && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == 0 &&
               !strchr(".-", s[0]) && !strchr(".-", s[n - 1]);
}

size_t service_removed(const struct services *wanted, const json_t *secrets, struct arena *a,
        struct service *out, size_t room)
{
        size_t n = 0, i;
        const json_t *secret;
        json_array_foreach(secrets, i, secret)
        {
                const char *name = service_label(secret, "name"),
                           *ns = service_meta(secret, "namespace");
                bool seen = !name || !release_word(name) || name_fault(ns) ||
                            chart_wanted(wanted, name, ns) || n == room;
                for (size_t k = 0; !seen && k < n; k++)
                        seen = streq(out[k].name, name) && streq(out[k].ns, ns);
                if (seen)
                        continue;
                struct service s = { .kind = SERVICE_CHART,
                        .action = SERVICE_REMOVE,
                        .name = arena_strdup(a, name),
                        .ns = arena_strdup(a, ns) };
                service_revisions(&s, a, secrets);
                if (s.had && !streq(s.state, "uninstalled"))
                        out[n++] = s;
        }
        return n;
}
