#include <event2/event.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/time.h>

#include "artifact/fetch_impl.h"
#include "base/file.h"
#include "base/sha256.h"

#define WAIT_MS 500 /* between checks of a lock that another run holds */

static void sources_begin(struct fetch *f);
static void source_run(struct fetch *f);
static void jobs_pump(struct fetch *f);

/* ---- turns of the loop ---- */

static void on_tick(int fd, short what, void *arg)
{
        struct fetch *f = arg;
        f->next(f);
}

void fetch_later(struct fetch *f, void (*next)(struct fetch *f), int ms)
{
        f->next = next;
        event_add(f->tick, &(struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 });
}

void fetch_note(struct fetch *f, const struct item *item, int permille, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        char *text CLEANUP(free_p) = xvasprintf(fmt, ap);
        va_end(ap);
        if (f->request.on_progress)
                f->request.on_progress(item, text, permille, f->request.arg);
}

void job_note(struct job *j, int permille, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        char *text CLEANUP(free_p) = xvasprintf(fmt, ap);
        va_end(ap);
        for (size_t i = 0; i < j->count; i++)
                if (!j->wants[i]->done)
                        fetch_note(j->fetch, j->wants[i]->item, permille, "%s", text);
}

/* ---- the end ---- */

static void job_free(struct job *j)
{
        if (j->running)
                j->kind->stop(j);
        free(j->key);
        free(j->wants);
        free(j);
}

/* The worker first: it may be reading what a job owns. */
static void stop_all(struct fetch *f)
{
        worker_free(TAKE(f->worker));
        transfer_free(TAKE(f->probe));
        while (f->jobs) {
                struct job *j = f->jobs;
                f->jobs = j->next;
                job_free(j);
        }
        close_p(&f->build_lock);
        close_p(&f->cache_lock);
}

static void tell_end(struct fetch *f)
{
        void (*on_done)(struct error * err, void *arg) = f->request.on_done;
        void *arg = f->request.arg;
        struct error err CLEANUP(error_release) = f->error;
        f->error = (struct error){ 0 };
        on_done(err.code ? &err : NULL, arg); /* f may be freed now */
}

/* Running jobs are stopped from the event loop. */
static void fetch_finish(struct fetch *f)
{
        stop_all(f);
        if (!f->error.code && f->lock_path)
                locked_write(&f->lock, f->lock_path, &f->error);
        tell_end(f);
}

static void fetch_fail(struct fetch *f, struct error *err)
{
        if (f->over)
                return;
        f->over = true;
        f->error = *err;
        *err = (struct error){ 0 };
        fetch_later(f, fetch_finish, 0);
}

/* ---- items ---- */

char *item_key(const struct item *item, const char *arch)
{
        return item->image ? xasprintf("%s/%s", item->name, arch)
                           : xasprintf("%s@%s/%s", item->name, item->version, arch);
}

char *item_title(const struct item *item)
{
        return item->image ? xstrdup(item->name) : xasprintf("%s %s", item->name, item->version);
}

/* Reports an item without a checksum when the lock pins it. */
static void tell_pinned(struct fetch *f, const struct want *w, const struct lock_entry *e)
{
        bool network = streq(e->source, source_name(FROM_MIRROR)) ||
                       streq(e->source, source_name(FROM_UPSTREAM));
        if (*w->pinned || !f->lock_path || !network || !f->request.on_pinned ||
                !(w->item->image || w->trust))
                return;
        char *how CLEANUP(free_p) = xasprintf("%s at first use: %s pins sha256:%s",
                w->item->image ? "pinned" : "trusted without a checksum", f->lock_path, e->digest);
        f->request.on_pinned(w->item, how, f->request.arg);
}

static void item_set(struct fetch *f, struct want *w, const struct lock_entry *e, const char *how)
{
        struct item *item = w->item;
        tell_pinned(f, w, e);
        memcpy(item->digest, e->digest, sizeof(item->digest));
        item->size = e->size;
        free(item->path);
        item->path = blob_path(f->cache, e->digest);
        item->source = how;
        w->done = true;
        if (!w->own)
                locked_put(&f->lock, w->key, e);
}

static bool may_come_from(const struct want *w, const char *source)
{
        for (size_t i = 0; i < w->sources; i++)
                if (streq(source_name(w->order[i]), source))
                        return true;
        return false;
}

/* The index has how a digest was verified, because what one cluster trusts does not
 * count for another. */
static char *index_key(const struct want *w, enum source s)
{
        bool file = !w->item->image && (s == FROM_MIRROR || s == FROM_UPSTREAM);
        return xasprintf("%s %s%s", w->key, source_name(s),
                !file      ? ""
                : w->trust ? " trusted"
                           : " checked");
}

/* The digest of an item that the cache has: from the lock, from the bundle, or from
 * an earlier fetch. */
static bool cached(struct fetch *f, struct want *w, struct lock_entry *e)
{
        if (*w->pinned)
                return locked_get(&f->lock, w->key, e) && blob_there(f->cache, e->digest, e->size);
        if (may_come_from(w, "bundle") && locked_get(&f->bundled, w->key, e)) {
                snprintf(e->source, sizeof(e->source), "bundle");
                return blob_there(f->cache, e->digest, e->size);
        }
        for (size_t i = 0; i < w->sources; i++) {
                char *key CLEANUP(free_p) = index_key(w, w->order[i]);
                if (locked_get(&f->index, key, e) && blob_there(f->cache, e->digest, e->size))
                        return true;
        }
        return false;
}

/* True if the cache has everything. */
static bool ask_cache(struct fetch *f)
{
        bool all = true;
        for (size_t i = 0; i < f->request.count; i++) {
                struct want *w = &f->wants[i];
                struct lock_entry e;
                if (f->request.programs)
                        w->done |= want_built(f, w);
                else if (!w->done && cached(f, w, &e))
                        item_set(f, w, &e, "cache");
                all &= w->done;
        }
        return all;
}

/* What is made from this program is stored under the program's digest: another agent makes another
 * image with the same name. */
static void want_own(struct fetch *f, struct want *w)
{
        char digest[65] = "";
        sha256_hex(f->request.agent ? f->request.agent : "", f->request.agent_len, digest);
        char *key CLEANUP(free_p) = w->key;
        w->key = xasprintf("%s of %.16s", key, digest);
        w->own = true;
}

static bool is_trusted(const struct fetch *f, const char *name)
{
        const struct strings *t = &f->request.cluster->artifacts.trust;
        for (size_t i = 0; i < t->n; i++)
                if (streq(t->v[i], name))
                        return true;
        return false;
}

static void wants_make(struct fetch *f)
{
        f->wants = xcalloc(f->request.count + 1, sizeof(*f->wants));
        for (size_t i = 0; i < f->request.count; i++) {
                struct want *w = &f->wants[i];
                struct lock_entry e;
                w->item = &f->request.items[i];
                w->key = item_key(w->item, f->request.arch);
                if (w->item->image && has_prefix(w->item->name, PROBE_IMAGE))
                        want_own(f, w);
                bool pinned = !w->own && f->lock_path && locked_get(&f->lock, w->key, &e);
                if (pinned)
                        memcpy(w->pinned, e.digest, sizeof(w->pinned));
                w->trust =
                        f->lock_path && !pinned && !w->item->image && is_trusted(f, w->item->name);
                sources_order(f, w, pinned ? e.source : NULL);
        }
}

static int locks_read(struct fetch *f, struct error *err)
{
        char *index CLEANUP(free_p) = path_join(f->cache, "index.json");
        int r = f->lock_path ? locked_read(&f->lock, f->lock_path, err) : 0;
        if (!f->lock.items)
                f->lock.items = json_object();
        /* the index is only a cache: missing entries are resolved again */
        if (r == 0 && locked_read(&f->index, index, err) < 0) {
                error_release(err);
                f->index.changed = true;
        }
        f->bundled.items = json_object();
        if (r == 0 && f->bundle) {
                char *path CLEANUP(free_p) = path_join(f->bundle, "bundle.lock");
                r = locked_read(&f->bundled, path, err);
        }
        return r;
}

/* ---- begin ---- */

/* Now with the cache's lock: another run may have fetched the items meanwhile. */
static void cache_locked(struct fetch *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *index CLEANUP(free_p) = path_join(f->cache, "index.json");
        if (locked_read(&f->index, index, &err) < 0)
                error_release(&err);
        cache_clean(f->cache);
        if (ask_cache(f)) {
                fetch_later(f, fetch_finish, 0);
                return;
        }
        if (http_new(f->base, &f->http, &err) < 0 || worker_new(f->base, &f->worker, &err) < 0)
                fetch_fail(f, &err);
        else
                sources_begin(f);
}

static const struct item *first_wanted(const struct fetch *f)
{
        for (size_t i = 0; i < f->request.count; i++)
                if (!f->wants[i].done)
                        return f->wants[i].item;
        return NULL;
}

static void cache_lock_try(struct fetch *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(f->cache, "fetch.lock");
        if (lock_take(path, "slipway", &f->cache_lock, &err) == 0) {
                f->waiting = false;
                cache_locked(f);
        } else if (err.code != EWOULDBLOCK) {
                fetch_fail(f, &err);
        } else {
                if (!f->waiting)
                        fetch_note(f, first_wanted(f), -1,
                                "waiting for another run that fetches: %s", err.message);
                f->waiting = true;
                fetch_later(f, cache_lock_try, WAIT_MS);
        }
}

int fetch_start(struct event_base *base, const struct fetch_request *request, struct fetch **out,
        struct error *err)
{
        struct fetch *f = xcalloc(1, sizeof(*f));
        const struct artifacts *from = &request->cluster->artifacts;
        *f = (struct fetch){
                .base = base, .request = *request, .cache_lock = -1, .build_lock = -1
        };
        f->request.file_max = request->file_max ? request->file_max : FETCH_FILE_MAX;
        f->request.total_max = f->room = request->total_max ? request->total_max : FETCH_TOTAL_MAX;
        f->tick = evtimer_new(base, on_tick, f);
        f->lock_path = request->lock ? xstrdup(request->lock) : NULL;
        if (from->bundle && (from->source == ARTIFACT_AUTO || from->source == ARTIFACT_BUNDLE))
                f->bundle = xstrdup(cluster_path(
                        request->cluster->arena, tree_get(from->src, "bundle"), from->bundle));
        int r = cache_open(&f->cache, err);
        if (r == 0)
                r = locks_read(f, err);
        if (r < 0) {
                fetch_free(f);
                return r;
        }
        wants_make(f);
        void (*begin)(struct fetch * f) = request->programs ? sources_begin : cache_lock_try;
        fetch_later(f, ask_cache(f) ? fetch_finish : begin, 0);
        *out = f;
        return 0;
}

void fetch_free(struct fetch *f)
{
        if (!f)
                return;
        stop_all(f);
        http_free(f->http);
        event_free(f->tick);
        for (size_t i = 0; f->wants && i < f->request.count; i++) {
                free(f->wants[i].key);
                str_release(&f->wants[i].tried);
                free(f->wants[i].way);
        }
        free(f->wants);
        for (size_t i = 0; i < SOURCE_COUNT; i++) {
                free(f->dead[i]);
                free(f->pull_dead[i]);
        }
        locked_release(&f->lock);
        locked_release(&f->index);
        locked_release(&f->bundled);
        error_release(&f->error);
        free(f->cache);
        free(f->lock_path);
        free(f->bundle);
        free(f);
}

/* ---- source by source ---- */

/* Failures that no other source can solve: trying one would only hide them. */
static bool is_hard(const struct error *err)
{
        static const int codes[] = { EBADMSG, EFBIG, ENOSPC, EDQUOT, EROFS };
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                if (err->code == codes[i])
                        return true;
        return false;
}

static void want_failed(struct fetch *f, struct want *w, enum source from, const struct error *err)
{
        struct error final CLEANUP(error_release) = { 0 };
        char *title CLEANUP(free_p) = item_title(w->item);
        bool last = ++w->at >= w->sources;
        str_addf(&w->tried, "%s%s: %s", w->tried.len ? "; " : "", source_title(from),
                err->message ? err->message : "it failed");
        if (!last && !is_hard(err)) {
                if (!f->dead[from]) /* reported once for all */
                        fetch_note(f, w->item, -1, "not from %s: %s", source_title(from),
                                err->message ? err->message : "it failed");
                return;
        }
        error_set(&final, err->code ? err->code : EIO, err->status ? err->status : EXIT_INTERNAL,
                "%s: %s", title, is_hard(err) ? err->message : str_text(&w->tried));
        error_hint(&final, "%s",
                err->hint && (is_hard(err) || w->sources == 1) ? err->hint
                : w->way
                        ? w->way
                        : "set artifacts.bundle or artifacts.mirror to where it can be had, and run again");
        fetch_fail(f, &final);
}

void want_resolved(
        struct job *j, struct want *w, const char digest[65], int64_t size, const char *how)
{
        struct fetch *f = j->fetch;
        struct lock_entry e = { .size = size };
        memcpy(e.digest, digest, sizeof(e.digest));
        snprintf(e.source, sizeof(e.source), "%s", how);
        if (*w->pinned && !streq(w->pinned, digest)) {
                struct error err CLEANUP(error_release) = { 0 };
                error_set(&err, ESTALE, EXIT_STATE, "its digest is %.12s…, and %s pins %.12s…",
                        digest, f->lock_path, w->pinned);
                error_hint(&err,
                        "if the change is intended, remove the line of %s from %s and run again",
                        w->key, f->lock_path);
                want_failed(f, w, j->source, &err);
                for (size_t i = 0; i < j->count; i++) /* another source has it now */
                        if (j->wants[i] == w)
                                j->wants[i] = j->wants[--j->count];
                return;
        }
        item_set(f, w, &e, how);
        char *key CLEANUP(free_p) = index_key(w, j->source);
        locked_put(&f->index, key, &e);
        fetch_note(f, w->item, 1000, "taken from %s",
                streq(how, "computer") ? "this computer" : source_title(j->source));
}

static void index_save(struct fetch *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *index CLEANUP(free_p) = path_join(f->cache, "index.json");
        if (locked_write(&f->index, index, &err) < 0)
                fetch_fail(f, &err);
}

void job_done(struct job *j, struct error *err)
{
        static const struct error nothing = { .code = EIO };
        struct fetch *f = j->fetch;
        for (struct job **p = &f->jobs; *p; p = &(*p)->next) {
                if (*p == j) {
                        *p = j->next;
                        break;
                }
        }
        for (size_t i = 0; i < j->count; i++)
                if (!j->wants[i]->done)
                        want_failed(f, j->wants[i], j->source, err ? err : &nothing);
        job_free(j);
        index_save(f);
        jobs_pump(f);
}

static struct job *job_ready(const struct fetch *f)
{
        for (struct job *j = f->jobs; j; j = j->next) {
                size_t running = 0;
                for (const struct job *k = f->jobs; k; k = k->next)
                        running += k->running && k->kind == j->kind;
                if (!j->running && running < (f->request.programs ? 1 : j->kind->at_once))
                        return j;
        }
        return NULL;
}

/* Starts jobs that may run; when none is left, continues with the next source. */
static void jobs_pump(struct fetch *f)
{
        if (f->pumping || f->over) /* a job that ends while it starts calls this again */
                return;
        f->pumping = true;
        for (struct job *j; !f->over && (j = job_ready(f));) {
                j->running = true;
                j->kind->start(j); /* j may be freed now */
        }
        f->pumping = false;
        if (!f->jobs && !f->over)
                fetch_later(f, sources_begin, 0);
}

static void jobs_make(struct fetch *f)
{
        for (size_t i = 0; i < f->request.count && !f->over; i++) {
                struct want *w = &f->wants[i];
                struct error err CLEANUP(error_release) = { 0 };
                if (!w->done && w->order[w->at] == f->source && want_job(f, w, &err) < 0)
                        want_failed(f, w, f->source, &err);
        }
        jobs_pump(f);
}

static void on_probed(struct transfer *t, void *arg)
{
        struct fetch *f = arg;
        f->probe = NULL;
        if (transfer_end(t) != TRANSFER_OK) {
                f->dead[f->source] = xasprintf("cannot be reached (%s)", transfer_why(t));
                fetch_note(f, first_wanted(f), -1, "%s %s", source_title(f->source),
                        f->dead[f->source]);
        }
        jobs_make(f);
}

static void source_run(struct fetch *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (f->source == FROM_BUILD && !build_lock_take(f)) {
                if (!f->waiting)
                        fetch_note(f, first_wanted(f), -1, "waiting for another run that builds");
                f->waiting = true;
                fetch_later(f, source_run, WAIT_MS);
                return;
        }
        f->waiting = false;
        if (f->source == FROM_BUILD)
                builds_announce(f);
        char *url CLEANUP(free_p) = f->dead[f->source] ? NULL : source_probe(f);
        struct transfer_spec spec = {
                .url = url, .head = true, .fd = -1, .on_done = on_probed, .arg = f
        };
        if (!url)
                jobs_make(f);
        else if (transfer_start(f->http, &spec, &f->probe, &err) < 0)
                fetch_fail(f, &err);
}

/* The first source that an item still needs. */
static void sources_begin(struct fetch *f)
{
        f->source = SOURCE_COUNT;
        for (size_t i = 0; i < f->request.count; i++) {
                const struct want *w = &f->wants[i];
                if (!w->done && w->at < w->sources && w->order[w->at] < f->source)
                        f->source = w->order[w->at];
        }
        if (f->source == SOURCE_COUNT)
                fetch_finish(f);
        else
                source_run(f);
}
