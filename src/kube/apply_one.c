#include "kube/apply.h"

/* For temporary errors: an API server that restarts, a webhook that starts. */
#define PATIENCE 30000
/* For an unknown kind: its definition may have been applied a moment ago. */
#define UNKNOWN_PATIENCE 10000
#define SHORT_SECRET     4

static bool document_patient(const struct document *d, int64_t patience)
{
        return clock_ms() - d->since < patience;
}

/* Status 500 may also mean an invalid object; these messages are temporary errors. */
static bool passing_words(const char *message)
{
        static const char *const words[] = { "etcdserver", "failed calling webhook", "timeout",
                "timed out", "connection refused", "context deadline", "leader changed",
                "context canceled", "unavailable" };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcasestr(message, words[i]))
                        return true;
        return false;
}

/* A Pod is refused until the controller has created the namespace's service account. */
static bool waits_for_account(const char *message)
{
        return strstr(message, "error looking up service account") != NULL;
}

/* 404 because the resource, not the object, is unknown. */
static bool no_resource(const struct kube_reply *reply)
{
        return reply->status == 404 &&
               !json_object_get(json_object_get(reply->body, "details"), "name");
}

static bool document_may_pass(const struct document *d, const struct answer *a)
{
        const struct kube_reply *r = &a->reply;
        switch (r->status) {
        case 0:
                return a->again;
        case 409:
        case 429:
        case 503:
        case 504:
                return true;
        case 403:
                return waits_for_account(r->error);
        case 404:
                return !d->built_in && no_resource(r); /* its CRD exists but is not served yet */
        case 500:
                return passing_words(r->error);
        default:
                return false;
        }
}

static void document_unknown_kind(struct document *d)
{
        char *why CLEANUP(free_p) = xasprintf(
                "the API has no kind %s in %s: apply its CustomResourceDefinition first, or correct apiVersion",
                d->kind, d->api_version);
        document_failed(d, why);
}

/* What does not exist yet cannot be checked and need not be deleted. A duplicate name in a list is
 * an error only for server-side apply; other clients may send it. */
static bool document_excused(const struct document *d, const struct kube_reply *reply)
{
        if (d->apply->verb == KUBE_CHECK && strstr(reply->error, "duplicate entries for key"))
                return true;
        return reply->status == 404 &&
               (d->apply->verb == KUBE_DELETE || d->apply->verb == KUBE_GET ||
                       (d->apply->verb == KUBE_CHECK &&
                               (no_resource(reply) || strstr(reply->error, "namespaces \""))));
}

static void document_on_applied(const struct kube_reply *reply, void *arg)
{
        struct document *d = arg;
        const struct answer *a = (const struct answer *)reply;
        d->request = NULL;
        if (!reply->error && d->apply->answers && json_is_object(reply->body))
                json_array_set(d->apply->answers, (size_t)(d - d->apply->documents), reply->body);
        if (!reply->error || document_excused(d, reply))
                document_done(d);
        else if (document_may_pass(d, a) && document_patient(d, PATIENCE))
                document_again(d, a->retry_after);
        else if (no_resource(reply))
                document_unknown_kind(d);
        else
                document_failed(d, reply->error);
}

static void document_send(struct document *d, struct kind kind)
{
        static const struct {
                const char *method, *query;
        } verbs[] = { [KUBE_APPLY] = { "PATCH", "?fieldManager=slipway&force=true" },
                [KUBE_CHECK] = { "PATCH", "?fieldManager=slipway&force=true&dryRun=All" },
                [KUBE_DELETE] = { "DELETE", "?propagationPolicy=Background" },
                [KUBE_GET] = { "GET", "" } };
        struct str path CLEANUP(str_release) = { 0 };
        enum kube_verb verb = d->apply->verb;
        kind_path(&path, d->api_version, kind, d->ns, d->name);
        str_add(&path, verbs[verb].query);
        d->request = request_new(
                d->apply->call.k, verbs[verb].method, str_text(&path), document_on_applied, d);
        if (verb == KUBE_APPLY || verb == KUBE_CHECK) {
                d->request->type = xstrdup("application/apply-patch+yaml");
                d->request->body = json_dumps(d->object, JSON_COMPACT);
                if (!d->request->body)
                        abort();
        }
        request_start(d->request);
}

static struct kind document_kind(struct document *d)
{
        struct kind kind = kind_built_in(d->api_version, d->kind);
        d->built_in = kind.plural;
        if (!kind.plural)
                kind = kind_of_crds(d->apply->crds, d->api_version, d->kind);
        if (!kind.plural)
                kind = kind_of_list(
                        json_object_get(d->apply->call.k->discovered, d->api_version), d->kind);
        return kind;
}

static void document_on_discovered(const struct kube_reply *reply, void *arg)
{
        struct document *d = arg;
        const struct answer *a = (const struct answer *)reply;
        d->request = NULL;
        if (reply->status == 200 && reply->body)
                json_object_set(d->apply->call.k->discovered, d->api_version, reply->body);
        struct kind kind = document_kind(d);
        if (kind.plural)
                document_send(d, kind);
        else if (d->apply->verb != KUBE_APPLY && (!reply->error || reply->status == 404))
                document_done(d);
        else if (document_patient(
                         d, reply->status == 404 || !reply->error ? UNKNOWN_PATIENCE : PATIENCE) &&
                 (!reply->error || reply->status == 404 || document_may_pass(d, a)))
                document_again(d, a->retry_after);
        else if (!reply->error || reply->status == 404)
                document_unknown_kind(d);
        else
                document_failed(d, reply->error);
}

void document_go(struct document *d)
{
        struct kind kind = document_kind(d);
        struct str path CLEANUP(str_release) = { 0 };
        if (!d->since)
                d->since = clock_ms();
        if (kind.plural) {
                document_send(d, kind);
                return;
        }
        kind_root(&path, d->api_version);
        d->request =
                request_new(d->apply->call.k, "GET", str_text(&path), document_on_discovered, d);
        request_start(d->request);
}

static void secret_hide(struct str *s, const char *secret)
{
        size_t n = strlen(secret);
        struct str out = { 0 };
        const char *p = str_text(s), *hit;
        if (n < SHORT_SECRET || !strstr(p, secret))
                return;
        for (; (hit = strstr(p, secret)); p = hit + n) {
                str_addn(&out, p, (size_t)(hit - p));
                str_add(&out, "(hidden)");
        }
        str_add(&out, p);
        str_wipe_release(s);
        *s = out;
}

/* The API's errors quote values that it cannot parse, also those of a Secret. Numbers and lists are
 * quoted in a form that cannot be searched for, so the message is cut after the field. */
char *document_without_secrets(const struct document *d, const char *why)
{
        static const char *const fields[] = { "data", "stringData" };
        struct str s = { 0 };
        const char *key, *got = streq(d->kind, "Secret") ? strstr(why, ", got ") : NULL;
        str_addn(&s, why, got ? (size_t)(got - why) : strlen(why));
        for (size_t i = 0; streq(d->kind, "Secret") && i < ARRAY_SIZE(fields); i++) {
                json_t *v;
                json_object_foreach(json_object_get(d->object, fields[i]), key,
                        v) if (json_is_string(v)) secret_hide(&s, json_string_value(v));
        }
        return str_take(&s);
}
