/* A collection, kept up to date: a list, then a stream of changes from its resourceVersion on, again and again. What was seen is remembered by
 * name, so that a second list (the stream's place was forgotten, 410) is told as the changes that were missed. */
#include <event2/event.h>

#include "kube/call.h"

#define PAGE           500
#define STREAM_SECONDS 300 /* the server ends it then; the next begins where it stopped */
#define FIRST_DELAY    100
#define LAST_DELAY     2000

struct watch {
        struct kube_call call;
        char *path, *query;
        void (*fn)(const char *type, json_t *object, void *arg);
        void *arg;
        struct event *wake; /* lines are there, or it is time for the next request */
        struct request *request;
        struct str lines;
        json_t *known;  /* "namespace/name" → {metadata} */
        json_t *listed; /* the items of the list so far */
        char *page;     /* continue from here */
        char *version;  /* resourceVersion to go on from; NULL: list */
        bool synced, ended;
        char *failed; /* why it ended, NULL: in order */
        int failed_code;
        unsigned failures; /* in a row */
        bool *gone;        /* of the innermost callback */
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

/* False when the callback ended the watch: w is gone. */
static bool emit(struct watch *w, const char *type, json_t *object)
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

static const char *text_of(const json_t *metadata, const char *field)
{
        const char *s = json_string_value(json_object_get(metadata, field));
        return s ? s : "";
}

static void set_version(struct watch *w, const json_t *object)
{
        const char *version = text_of(json_object_get(object, "metadata"), "resourceVersion");
        if (!*version)
                return;
        free(w->version);
        w->version = xstrdup(version);
}

static char *key_of(const json_t *object)
{
        const json_t *m = json_object_get(object, "metadata");
        return xasprintf("%s/%s", text_of(m, "namespace"), text_of(m, "name"));
}

static void remember(json_t *known, const char *key, const json_t *object)
{
        static const char *const kept[] = { "name", "namespace", "uid", "resourceVersion" };
        const json_t *m = json_object_get(object, "metadata");
        json_t *short_one = json_object();
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                if (json_object_get(m, kept[i]))
                        json_object_set(short_one, kept[i], json_object_get(m, kept[i]));
        json_object_set_new(known, key, json_pack("{s:o}", "metadata", short_one));
}

static bool same(const json_t *a, const json_t *b, const char *field)
{
        return streq(text_of(json_object_get(a, "metadata"), field), text_of(json_object_get(b, "metadata"), field));
}

/* What a list tells about one object that was known before, or not. */
static bool tell_item(struct watch *w, json_t *before, json_t *item)
{
        if (!before)
                return emit(w, "ADDED", item);
        if (!same(before, item, "uid"))
                return emit(w, "DELETED", before) && emit(w, "ADDED", item);
        return same(before, item, "resourceVersion") || emit(w, "MODIFIED", item);
}

static bool tell_list(struct watch *w, json_t *items)
{
        json_auto_t *before = TAKE(w->known);
        json_t *now = w->known = json_object(), *item;
        size_t i;
        const char *name;
        json_array_foreach(items, i, item)
        {
                char *key CLEANUP(free_p) = key_of(item);
                json_auto_t *old = json_incref(json_object_get(before, key));
                remember(now, key, item);
                json_object_del(before, key);
                if (!tell_item(w, old, item))
                        return false;
        }
        json_object_foreach(before, name, item) if (!emit(w, "DELETED", item)) return false;
        return true;
}

static void begin(struct watch *w);

/* The next request, after a pause that grows while it fails. */
static void again(struct watch *w)
{
        unsigned delay = 0;
        if (w->failures)
                delay = w->failures > 5 ? LAST_DELAY : FIRST_DELAY << (w->failures - 1);
        event_after(w->wake, delay < LAST_DELAY ? delay : LAST_DELAY);
}

static void forget_place(struct watch *w)
{
        free(w->version);
        free(w->page);
        w->version = w->page = NULL;
        json_array_clear(w->listed);
}

/* Tells it and tries again. An expired place is no failure: list from the start. */
static void failure(struct watch *w, int code, const char *why)
{
        w->failures++;
        if (code == 410) {
                forget_place(w);
        } else {
                json_auto_t *status = json_pack("{s:s, s:s, s:s, s:i}", "apiVersion", "v1", "kind", "Status", "message", why, "code", code);
                if (!emit(w, "ERROR", status))
                        return;
        }
        again(w);
}

/* Objects in a list do not say what they are; those of the stream do. */
static void name_items(const json_t *list, json_t *items)
{
        const char *kind = text_of(list, "kind");
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

static void on_list(const struct kube_reply *reply, void *arg)
{
        struct watch *w = arg;
        json_t *items = json_object_get(reply->body, "items");
        w->request = NULL;
        if (reply->error || !json_is_array(items)) {
                free(w->page); /* a list is of one moment: begin it anew */
                w->page = NULL;
                json_array_clear(w->listed);
                failure(w, reply->status, reply->error ? reply->error : "the answer to a list is not a list");
                return;
        }
        const char *page = text_of(json_object_get(reply->body, "metadata"), "continue");
        name_items(reply->body, items);
        json_array_extend(w->listed, items);
        free(w->page);
        w->page = *page ? xstrdup(page) : NULL;
        if (w->page) {
                begin(w);
                return;
        }
        json_auto_t *all = TAKE(w->listed);
        w->listed = json_array();
        set_version(w, reply->body);
        if (!tell_list(w, all))
                return;
        bool first = !w->synced;
        w->synced = true;
        w->failures = 0;
        if (first && !emit(w, "SYNCED", NULL))
                return;
        begin(w);
}

static bool on_bytes(const char *data, size_t n, void *arg)
{
        struct watch *w = arg;
        if (n > MAX_BODY - w->lines.len)
                return false;
        str_addn(&w->lines, data, n);
        event_active(w->wake, EV_TIMEOUT, 1);
        return true;
}

static void on_stream_end(const struct kube_reply *reply, void *arg)
{
        struct watch *w = arg;
        w->request = NULL;
        w->ended = true;
        if (reply->status != 200) {
                free(w->failed);
                w->failed = xstrdup(reply->error ? reply->error : "the answer to a watch is not a stream");
                w->failed_code = reply->status;
        }
        event_active(w->wake, EV_TIMEOUT, 1); /* what came before the end is told first */
}

static void begin(struct watch *w)
{
        bool list = !w->version;
        char *escaped CLEANUP(free_p) = w->page ? curl_easy_escape(NULL, w->page, 0) : NULL;
        struct str path CLEANUP(str_release) = { 0 };
        if (list)
                str_addf(&path, "%s?limit=%d", w->path, PAGE);
        else
                str_addf(&path, "%s?watch=1&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%d", w->path, w->version, STREAM_SECONDS);
        if (escaped)
                str_addf(&path, "&continue=%s", escaped);
        if (w->query)
                str_addf(&path, "&%s", w->query);
        w->request = request_new(w->call.k, "GET", str_text(&path), list ? on_list : on_stream_end, w);
        if (!list) {
                w->request->engine = &w->call.k->streams;
                w->request->sink = on_bytes;
                w->request->timeout_ms = (STREAM_SECONDS + 30) * 1000;
        }
        request_start(w->request);
}

/* An event that ends the stream: {"type": "ERROR", "object": {"kind": "Status", …}}. */
static void on_error_event(struct watch *w, const json_t *object)
{
        const char *said = json_string_value(json_object_get(object, "message"));
        request_destroy(TAKE(w->request));
        w->ended = false;
        str_truncate(&w->lines, 0);
        failure(w, object ? (int)json_integer_value(json_object_get(object, "code")) : 410, said ? said : "the watch broke off");
}

/* False when there is no more to do with w: it is gone, or on to its next request. */
static bool on_event(struct watch *w, const char *type, json_t *object)
{
        char *key CLEANUP(free_p) = NULL;
        if (!json_is_object(object) || streq(type, "ERROR")) {
                on_error_event(w, json_is_object(object) ? object : NULL);
                return false;
        }
        w->failures = 0;
        set_version(w, object);
        if (streq(type, "BOOKMARK"))
                return true;
        key = key_of(object);
        if (streq(type, "DELETED"))
                json_object_del(w->known, key);
        else
                remember(w->known, key, object);
        return emit(w, type, object);
}

static bool on_lines(struct watch *w)
{
        size_t at = 0;
        for (char *end; w->lines.len > at && (end = memchr(w->lines.data + at, '\n', w->lines.len - at));) {
                size_t n = (size_t)(end - (w->lines.data + at));
                json_auto_t *event = json_loadb(w->lines.data + at, n, JSON_ALLOW_NUL, NULL);
                at += n + 1;
                if (!on_event(w, text_of(event, "type"), json_object_get(event, "object")))
                        return false;
        }
        if (at) {
                memmove(w->lines.data, w->lines.data + at, w->lines.len - at);
                str_truncate(&w->lines, w->lines.len - at);
        }
        return true;
}

static void on_end(struct watch *w)
{
        char *why CLEANUP(free_p) = TAKE(w->failed);
        w->ended = false;
        str_truncate(&w->lines, 0);
        if (why) {
                failure(w, w->failed_code, why);
                return;
        }
        w->failures++; /* until something comes: a server that hangs up at once must not be asked in a circle */
        again(w);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
        struct watch *w = arg;
        struct kube *k = w->call.k;
        kube_enter(k);
        if (on_lines(w)) {
                if (w->ended)
                        on_end(w);
                else if (!w->request)
                        begin(w);
        }
        kube_leave(k);
}

struct kube_call *kube_watch(struct kube *k, const char *path, const char *query, void (*fn)(const char *type, json_t *object, void *arg), void *arg)
{
        struct watch *w = xcalloc(1, sizeof(*w));
        w->call = (struct kube_call){ .k = k, .destroy = watch_destroy };
        w->path = xstrdup(path);
        w->query = query && *query ? xstrdup(query) : NULL;
        w->fn = fn;
        w->arg = arg;
        w->known = json_object();
        w->listed = json_array();
        w->wake = evtimer_new(k->base, on_wake, w);
        if (!w->wake)
                abort();
        call_link(k, &w->call);
        event_after(w->wake, 0);
        return &w->call;
}
