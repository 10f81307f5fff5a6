/* Keeps up with a collection: a list, then a stream of changes from its resourceVersion,
 * repeatedly. Known objects are remembered by name, so that after a second list (410: the
 * resourceVersion expired) the missed changes are reported. */
#include <event2/event.h>

#include "kube/call.h"

#define PAGE 500
/* A million objects: stops following a server that always has another page. */
#define PAGES_MAX      2000
#define STREAM_SECONDS 300 /* the server ends the stream then; the next continues there */
#define FIRST_DELAY    100
#define LAST_DELAY     2000

struct watch {
        struct kube_call call;
        char *path, *query;
        void (*fn)(const char *type, json_t *object, void *arg);
        void *arg;
        struct event *wake; /* lines have arrived, or the next request is due */
        struct request *request;
        struct str lines;
        json_t *known;  /* "namespace/name" → {metadata} */
        json_t *listed; /* items of the list so far */
        char *page;     /* the API's continue token */
        unsigned pages; /* number of pages so far */
        char *version;  /* resourceVersion to continue from; NULL: list */
        bool synced, ended;
        char *failed; /* why the stream ended; NULL: normally */
        int failed_code;
        unsigned failures; /* in a row */
        bool *gone;        /* set when the innermost callback ended the watch */
};

static void watch_destroy(struct kube_call *c)
{
        struct watch *w = (struct watch *)c;
        if (w->gone)
                *w->gone = true;
        call_unlink(c);
        request_destroy(w->request);
        event_free(w->wake);
        str_release(&w->lines);
        json_decref(w->known);
        json_decref(w->listed);
        free(w->path);
        free(w->query);
        free(w->page);
        free(w->version);
        free(w->failed);
        free(w);
}

/* False when the callback ended the watch: w is freed. */
static bool watch_emit(struct watch *w, const char *type, json_t *object)
{
        bool gone = false, *outer = w->gone;
        w->gone = &gone;
        w->fn(type, object, w->arg);
        if (gone) {
                if (outer)
                        *outer = true;
                return false;
        }
        w->gone = outer;
        return true;
}

static const char *watch_text(const json_t *metadata, const char *field)
{
        const char *s = json_string_value(json_object_get(metadata, field));
        return s ? s : "";
}

static void watch_set_version(struct watch *w, const json_t *object)
{
        const char *version = watch_text(json_object_get(object, "metadata"), "resourceVersion");
        if (!*version)
                return;
        free(w->version);
        w->version = xstrdup(version);
}

static char *watch_key(const json_t *object)
{
        const json_t *m = json_object_get(object, "metadata");
        return xasprintf("%s/%s", watch_text(m, "namespace"), watch_text(m, "name"));
}

static void watch_remember(json_t *known, const char *key, const json_t *object)
{
        static const char *const kept[] = { "name", "namespace", "uid", "resourceVersion" };
        const json_t *m = json_object_get(object, "metadata");
        json_t *short_one = json_object();
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                if (json_object_get(m, kept[i]))
                        json_object_set(short_one, kept[i], json_object_get(m, kept[i]));
        json_object_set_new(known, key, json_pack("{s:o}", "metadata", short_one));
}

static bool watch_same(const json_t *a, const json_t *b, const char *field)
{
        return streq(watch_text(json_object_get(a, "metadata"), field),
                watch_text(json_object_get(b, "metadata"), field));
}

/* Reports one object of a list, compared with what was known of it. */
static bool watch_tell_item(struct watch *w, json_t *before, json_t *item)
{
        if (!before)
                return watch_emit(w, "ADDED", item);
        if (!watch_same(before, item, "uid"))
                return watch_emit(w, "DELETED", before) && watch_emit(w, "ADDED", item);
        return watch_same(before, item, "resourceVersion") || watch_emit(w, "MODIFIED", item);
}

static bool watch_tell_list(struct watch *w, json_t *items)
{
        json_auto_t *before = TAKE(w->known);
        json_t *now = w->known = json_object(), *item;
        size_t i;
        const char *name;
        json_array_foreach(items, i, item)
        {
                char *key CLEANUP(free_p) = watch_key(item);
                json_auto_t *old = json_incref(json_object_get(before, key));
                watch_remember(now, key, item);
                json_object_del(before, key);
                if (!watch_tell_item(w, old, item))
                        return false;
        }
        json_object_foreach(before, name, item) if (!watch_emit(w, "DELETED", item)) return false;
        return true;
}

static void watch_begin(struct watch *w);

/* Schedules the next request; the delay grows with failures. */
static void watch_again(struct watch *w)
{
        unsigned delay = 0;
        if (w->failures)
                delay = w->failures > 5 ? LAST_DELAY : FIRST_DELAY << (w->failures - 1);
        event_after(w->wake, delay < LAST_DELAY ? delay : LAST_DELAY);
}

static void watch_forget_place(struct watch *w)
{
        free(w->version);
        free(w->page);
        w->version = w->page = NULL;
        w->pages = 0;
        json_array_clear(w->listed);
}

/* Reports the failure and tries again. An expired resourceVersion is no failure: lists
 * from the start. */
static void watch_failure(struct watch *w, int code, const char *why)
{
        w->failures++;
        if (code == 410) {
                watch_forget_place(w);
        } else {
                json_auto_t *status = json_pack("{s:s, s:s, s:s, s:i}", "apiVersion", "v1", "kind",
                        "Status", "message", why, "code", code);
                if (!watch_emit(w, "ERROR", status))
                        return;
        }
        watch_again(w);
}

/* Items of a list lack kind and apiVersion; those of the stream have them. */
static void watch_name_items(const json_t *list, json_t *items)
{
        const char *kind = watch_text(list, "kind");
        json_t *item;
        size_t i, n = strlen(kind);
        if (!has_suffix(kind, "List"))
                return;
        json_array_foreach(items, i, item)
        {
                json_object_set_new(item, "kind", json_stringn(kind, n - 4));
                json_object_set(item, "apiVersion", json_object_get(list, "apiVersion"));
        }
}

static void watch_on_list(const struct kube_reply *reply, void *arg)
{
        struct watch *w = arg;
        json_t *items = json_object_get(reply->body, "items");
        w->request = NULL;
        if (reply->error || !json_is_array(items)) {
                watch_forget_place(w); /* a list is a snapshot: start it again */
                watch_failure(w, reply->status,
                        reply->error ? reply->error : "the API's answer to a list is not a list");
                return;
        }
        const char *page = watch_text(json_object_get(reply->body, "metadata"), "continue");
        watch_name_items(reply->body, items);
        json_array_extend(w->listed, items);
        free(w->page);
        w->page = *page ? xstrdup(page) : NULL;
        w->pages = w->page ? w->pages + 1 : 0;
        if (w->pages > PAGES_MAX) {
                watch_forget_place(w);
                watch_failure(w, reply->status, "the list does not end");
                return;
        }
        if (w->page) {
                watch_begin(w);
                return;
        }
        json_auto_t *all = TAKE(w->listed);
        w->listed = json_array();
        watch_set_version(w, reply->body);
        if (!watch_tell_list(w, all))
                return;
        bool first = !w->synced;
        w->synced = true;
        w->failures = 0;
        if (first && !watch_emit(w, "SYNCED", NULL))
                return;
        watch_begin(w);
}

static bool watch_on_bytes(const char *data, size_t n, void *arg)
{
        struct watch *w = arg;
        if (n > MAX_BODY - w->lines.len)
                return false;
        str_addn(&w->lines, data, n);
        event_active(w->wake, EV_TIMEOUT, 1);
        return true;
}

static void watch_on_stream_end(const struct kube_reply *reply, void *arg)
{
        struct watch *w = arg;
        w->request = NULL;
        w->ended = true;
        if (reply->status != 200) {
                free(w->failed);
                w->failed = xstrdup(reply->error ? reply->error
                                                 : "the API's answer to a watch is not a stream");
                w->failed_code = reply->status;
        }
        event_active(w->wake, EV_TIMEOUT, 1); /* lines before the end are handled first */
}

static void watch_begin(struct watch *w)
{
        bool list = !w->version;
        char *escaped CLEANUP(free_p) = w->page ? curl_easy_escape(NULL, w->page, 0) : NULL;
        struct str path CLEANUP(str_release) = { 0 };
        if (list)
                str_addf(&path, "%s?limit=%d", w->path, PAGE);
        else
                str_addf(&path,
                        "%s?watch=1&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%d",
                        w->path, w->version, STREAM_SECONDS);
        if (escaped)
                str_addf(&path, "&continue=%s", escaped);
        if (w->query)
                str_addf(&path, "&%s", w->query);
        w->request = request_new(
                w->call.k, "GET", str_text(&path), list ? watch_on_list : watch_on_stream_end, w);
        if (!list) {
                w->request->engine = &w->call.k->streams;
                w->request->sink = watch_on_bytes;
                w->request->timeout_ms = (STREAM_SECONDS + 30) * 1000;
        }
        request_start(w->request);
}

/* Handles an event that ends the stream: {"type": "ERROR", "object": {"kind": "Status", …}}. */
static void watch_on_error(struct watch *w, const json_t *object)
{
        const char *said = json_string_value(json_object_get(object, "message"));
        request_destroy(TAKE(w->request));
        w->ended = false;
        str_truncate(&w->lines, 0);
        watch_failure(w, object ? (int)json_integer_value(json_object_get(object, "code")) : 410,
                said ? said : "the API ended the watch with an error");
}

/* False when w is freed, or has started its next request. */
static bool watch_on_event(struct watch *w, const char *type, json_t *object)
{
        char *key CLEANUP(free_p) = NULL;
        if (!json_is_object(object) || streq(type, "ERROR")) {
                watch_on_error(w, json_is_object(object) ? object : NULL);
                return false;
        }
        w->failures = 0;
        watch_set_version(w, object);
        if (streq(type, "BOOKMARK"))
                return true;
        key = watch_key(object);
        if (streq(type, "DELETED"))
                json_object_del(w->known, key);
        else
                watch_remember(w->known, key, object);
        return watch_emit(w, type, object);
}

static bool watch_on_lines(struct watch *w)
{
        size_t at = 0;
        for (char *end;
                w->lines.len > at && (end = memchr(w->lines.data + at, '\n', w->lines.len - at));) {
                size_t n = (size_t)(end - (w->lines.data + at));
                json_auto_t *event = json_loadb(w->lines.data + at, n, JSON_ALLOW_NUL, NULL);
                at += n + 1;
                if (!watch_on_event(w, watch_text(event, "type"), json_object_get(event, "object")))
                        return false;
        }
        if (at) {
                memmove(w->lines.data, w->lines.data + at, w->lines.len - at);
                str_truncate(&w->lines, w->lines.len - at);
        }
        return true;
}

static void watch_on_end(struct watch *w)
{
        char *why CLEANUP(free_p) = TAKE(w->failed);
        w->ended = false;
        str_truncate(&w->lines, 0);
        if (why) {
                watch_failure(w, w->failed_code, why);
                return;
        }
        /* until an event arrives: a server that closes at once must not be asked in a busy loop */
        w->failures++;
        watch_again(w);
}

static void watch_on_wake(evutil_socket_t fd, short what, void *arg)
{
        struct watch *w = arg;
        struct kube *k = w->call.k;
        kube_enter(k);
        if (watch_on_lines(w)) {
                if (w->ended)
                        watch_on_end(w);
                else if (!w->request)
                        watch_begin(w);
        }
        kube_leave(k);
}

struct kube_call *kube_watch(struct kube *k, const char *path, const char *query,
        void (*fn)(const char *type, json_t *object, void *arg), void *arg)
{
        struct watch *w = xcalloc(1, sizeof(*w));
        w->call = (struct kube_call){ .k = k, .destroy = watch_destroy };
        w->path = xstrdup(path);
        w->query = query && *query ? xstrdup(query) : NULL;
        w->fn = fn;
        w->arg = arg;
        w->known = json_object();
        w->listed = json_array();
        w->wake = evtimer_new(k->base, watch_on_wake, w);
        if (!w->wake)
                abort();
        call_link(k, &w->call);
        event_after(w->wake, 0);
        return &w->call;
}
