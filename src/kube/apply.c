/* Server-side apply of many documents: phase after phase, all of a phase at once, each retried for
 * a while after temporary errors. */
#include <event2/event.h>

#include "kube/apply.h"
#include "kube/documents.h"

#define FIRST_PAUSE   100
#define LAST_PAUSE    1000
#define MAX_SENTENCES 5

static void document_release(struct document *d)
{
        request_destroy(d->request);
        if (d->timer)
                event_free(d->timer);
        free(d->label);
        json_decref(d->object);
}

static void apply_destroy(struct kube_call *c)
{
        struct apply *a = (struct apply *)c;
        call_unlink(c);
        for (size_t i = 0; i < a->count; i++)
                document_release(&a->documents[i]);
        free(a->documents);
        json_decref(a->crds);
        json_decref(a->answers);
        event_free(a->timer);
        str_release(&a->errors);
        free(a);
}

static void kube_apply_finish(struct apply *a)
{
        void (*fn)(const char *error, void *arg) = a->fn;
        void (*told)(json_t * objects, const char *error, void *arg) = a->told;
        void *arg = a->arg;
        json_auto_t *answers = json_incref(a->answers);
        if (a->failed > MAX_SENTENCES)
                str_addf(&a->errors, "; and %u more", a->failed - MAX_SENTENCES);
        char *error CLEANUP(free_p) = a->failed ? str_take(&a->errors) : NULL;
        apply_destroy(&a->call);
        if (told)
                told(error ? NULL : answers, error, arg);
        else
                fn(error, arg);
}

/* Starts the next phase with documents; none after a failure. */
static void kube_apply_next_phase(struct apply *a)
{
        while (!a->left && !a->failed && a->phase < PHASES) {
                unsigned phase = a->verb == KUBE_DELETE ? PHASES - 1 - a->phase : a->phase;
                a->phase++;
                for (size_t i = 0; i < a->count; i++)
                        a->left += kind_phase(a->documents[i].kind) == phase;
                for (size_t i = 0; i < a->count; i++)
                        if (kind_phase(a->documents[i].kind) == phase)
                                document_go(&a->documents[i]);
        }
        if (!a->left)
                kube_apply_finish(a);
}

void document_done(struct document *d)
{
        struct apply *a = d->apply;
        if (!--a->left)
                event_after(a->timer, 0);
}

void document_failed(struct document *d, const char *why)
{
        struct apply *a = d->apply;
        char *safe CLEANUP(free_p) = document_without_secrets(d, why);
        if (a->failed++ < MAX_SENTENCES)
                str_addf(&a->errors, "%s%s: %s", a->errors.len ? "; " : "", d->label, safe);
        document_done(d);
}

void document_again(struct document *d, unsigned at_least)
{
        unsigned pause = d->pause ? d->pause : FIRST_PAUSE;
        d->pause = pause * 2 < LAST_PAUSE ? pause * 2 : LAST_PAUSE;
        event_after(d->timer, pause > at_least ? pause : at_least);
}

static void document_on_timer(evutil_socket_t fd, short what, void *arg) { document_go(arg); }

static void kube_apply_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct apply *a = arg;
        struct kube *k = a->call.k;
        kube_enter(k);
        kube_apply_next_phase(a);
        kube_leave(k);
}

static void document_init(struct document *d, struct apply *a, json_t *object)
{
        const json_t *metadata = json_object_get(object, "metadata");
        *d = (struct document){ .apply = a, .object = json_incref(object) };
        d->api_version = json_string_value(json_object_get(object, "apiVersion"));
        d->kind = json_string_value(json_object_get(object, "kind"));
        d->name = json_string_value(json_object_get(metadata, "name"));
        d->ns = json_string_value(json_object_get(metadata, "namespace"));
        d->label = d->ns ? xasprintf("%s %s/%s", d->kind, d->ns, d->name)
                         : xasprintf("%s %s", d->kind, d->name);
        d->timer = evtimer_new(a->call.k->base, document_on_timer, d);
        if (!d->timer)
                abort();
        if (streq(d->kind, "CustomResourceDefinition"))
                json_array_append(a->crds, object);
}

void kube_apply(
        struct kube *k, const char *documents, void (*fn)(const char *error, void *arg), void *arg)
{
        kube_objects(k, KUBE_APPLY, documents, fn, arg);
}

static struct apply *kube_apply_new(
        struct kube *k, enum kube_verb verb, const char *documents, void *arg)
{
        struct apply *a = xcalloc(1, sizeof(*a));
        struct error err CLEANUP(error_release) = { 0 };
        json_auto_t *objects = NULL;
        json_t *object;
        size_t i;
        a->call = (struct kube_call){ .k = k, .destroy = apply_destroy };
        a->verb = verb;
        a->arg = arg;
        a->crds = json_array();
        a->timer = evtimer_new(k->base, kube_apply_on_timer, a);
        if (!a->timer)
                abort();
        if (documents_read(documents, &objects, &err) < 0) {
                str_add(&a->errors, err.message);
                a->failed = 1;
        }
        a->documents = xcalloc(json_array_size(objects) + 1, sizeof(*a->documents));
        json_array_foreach(objects, i, object) document_init(&a->documents[a->count++], a, object);
        call_link(k, &a->call);
        event_after(a->timer, 0); /* fn is called from the loop, never from here */
        return a;
}

void kube_objects(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(const char *error, void *arg), void *arg)
{
        kube_apply_new(k, verb, documents, arg)->fn = fn;
}

void kube_answers(struct kube *k, enum kube_verb verb, const char *documents,
        void (*fn)(json_t *objects, const char *error, void *arg), void *arg)
{
        struct apply *a = kube_apply_new(k, verb, documents, arg);
        a->told = fn;
        a->answers = json_array();
        for (size_t i = 0; i < a->count; i++)
                json_array_append_new(a->answers, json_null());
}
