/* Jobs that transfer bytes: a blob from the bundle, a file from the mirror or from upstream, an
 * image from a registry. */
#include <event2/event.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "artifact/fetch_impl.h"
#include "artifact/pack.h"
#include "base/file.h"
#include "base/sha256.h"

#define SUMS_MAX  ((int64_t)1 << 20)
#define TRIES     4  /* attempts in a row without a byte */
#define TRIES_ALL 40 /* attempts in total */
#define RETRY_MS  500

/* ---- a copy from the bundle ---- */

struct copy {
        char digest[65];
        int64_t size;
        char *from;
};

static struct job *fetch_download_job_of(struct work *w)
{
        return (struct job *)(void *)((char *)w - offsetof(struct job, work));
}

static int copy_run(struct work *w, stop_flag stop, struct error *err)
{
        struct job *j = fetch_download_job_of(w);
        struct copy *c = j->state;
        int r = blob_copy(j->fetch->cache, c->from, stop, c->digest, &c->size, err);
        if (r == 0 && !streq(c->digest, j->key)) {
                error_set(err, EBADMSG, EXIT_STATE,
                        "the bundle is damaged: %s has the digest %.12s…", c->from, c->digest);
                return error_hint(err, "copy the bundle again");
        }
        return r;
}

static void copy_done(struct work *w, struct error *err)
{
        struct job *j = fetch_download_job_of(w);
        struct copy *c = j->state;
        for (size_t i = j->count; !err && i-- > 0;)
                want_resolved(j, j->wants[i], c->digest, c->size, "bundle");
        job_done(j, err);
}

static void copy_start(struct job *j)
{
        struct copy *c = j->state = xcalloc(1, sizeof(*c));
        c->from = blob_path(j->fetch->bundle, j->key);
        job_note(j, -1, "copying from the bundle");
        j->work = (struct work){ .run = copy_run, .done = copy_done };
        worker_submit(j->fetch->worker, &j->work);
}

static void copy_stop(struct job *j)
{
        struct copy *c = j->state;
        free(c->from);
        free(c);
}

const struct job_kind copy_job = { .at_once = 64, .start = copy_start, .stop = copy_stop };

/* ---- a download ---- */

struct download {
        struct job *job;
        struct transfer *transfer;
        struct event *retry;
        char *part, *tag; /* paths: the bytes so far, and the ETag they belong to */
        int fd;
        char sum[65]; /* upstream's checksum, or "" */
        char digest[65];
        int64_t size;
        unsigned tries, tries_all;
        bool in_body, resumed, anew, mismatch;
        int permille;
        struct unpack *members; /* one per want; NULL: the file is the program */
        size_t member_count;
};

static void body_start(struct download *d);

static const char *file_of(const char *url) { return strrchr(url, '/') + 1; }

static void download_fail(struct download *d, struct error *err) { job_done(d->job, err); }

/* The checksums come from the same server as the file. */
static char *sums_url(const struct job *j)
{
        const struct item *item = j->wants[0]->item;
        const struct origin *o = origin_of(item->name);
        char *url CLEANUP(free_p) =
                o->sums ? origin_expand(o->sums, item->version, j->fetch->request.arch) : NULL;
        if (!url)
                return NULL;
        return j->source == FROM_MIRROR
                       ? origin_mirrored(j->fetch->request.cluster->artifacts.mirror, url)
                       : TAKE(url);
}

static void why_set(
        struct download *d, const struct transfer *t, const char *url, struct error *err)
{
        bool mirror = d->job->source == FROM_MIRROR;
        if (transfer_errno(t)) {
                error_set(err, transfer_errno(t), EXIT_INTERNAL, "cannot write to the cache %s: %s",
                        d->job->fetch->cache, transfer_why(t));
                error_hint(err,
                        "make room there, or set SLIPWAY_CACHE to another directory, and run again: it continues where it stopped");
                return;
        }
        switch (transfer_end(t)) {
        case TRANSFER_ABSENT:
                error_set(err, ENOENT, EXIT_INTERNAL, "%s is not there (%s)", url, transfer_why(t));
                error_hint(err, "%s",
                        mirror ? "add the file to the mirror: it holds upstream's files under HOST/PATH"
                               : "see whether upstream has that version");
                break;
        case TRANSFER_UNREACHABLE:
                error_set(err, EHOSTUNREACH, EXIT_UNREACHABLE, "%s cannot be reached (%s)", url,
                        transfer_why(t));
                error_hint(err, "%s",
                        mirror ? "check artifacts.mirror"
                               : "set artifacts.mirror, artifacts.bundle or artifacts.source: build");
                break;
        case TRANSFER_LARGE:
                error_set(err, EFBIG, EXIT_STATE,
                        "%s is larger than a file may be (%" PRId64
                        " MB), or than all of one run may be (%" PRId64 " MB): it was refused",
                        url, d->job->fetch->request.file_max >> 20,
                        d->job->fetch->request.total_max >> 20);
                error_hint(err, "look at what answers there: %s",
                        mirror ? "it may not be the mirror" : "it may not be upstream");
                break;
        default:
                error_set(err, EIO, EXIT_UNREACHABLE,
                        "the download of %s failed after %u tries (%s)", url, d->tries_all,
                        transfer_why(t));
                error_hint(err, "run again: it continues where it stopped");
        }
}

/* True when it will be tried again, by and by. */
static bool fetch_download_try_again(struct download *d, const struct transfer *t)
{
        d->tries = transfer_got(t) > 0 ? 1 : d->tries + 1;
        d->tries_all++;
        if ((transfer_end(t) != TRANSFER_CUT && transfer_end(t) != TRANSFER_RANGE) ||
                d->tries >= TRIES || d->tries_all >= TRIES_ALL)
                return false;
        long ms = (long)RETRY_MS << (d->tries - 1);
        job_note(d->job, d->permille, "trying again: %s", transfer_why(t));
        event_add(d->retry, &(struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 });
        return true;
}

/* In the thread: the whole file is there. */
static int download_run(struct work *w, stop_flag stop, struct error *err)
{
        struct job *j = fetch_download_job_of(w);
        struct download *d = j->state;
        const char *cache = j->fetch->cache;
        int r = file_digest(d->part, stop, d->digest, &d->size, err);
        if (r < 0)
                return r;
        if (*d->sum && !streq(d->sum, d->digest)) {
                d->mismatch = true;
                error_set(err, EBADMSG, EXIT_STATE,
                        "%s has the digest %.12s…, and upstream's checksum is %.12s…: it was refused",
                        j->key, d->digest, d->sum);
                return error_hint(
                        err, "the file is damaged or not what it says; take it from another place");
        }
        return d->members ? unpack_members(cache, d->part, j->fetch->request.file_max, d->members,
                                    d->member_count, stop, err)
                          : blob_adopt(cache, d->part, d->digest, err);
}

static void download_done(struct work *w, struct error *err)
{
        struct job *j = fetch_download_job_of(w);
        struct download *d = j->state;
        /* two versions of a file may have met */
        if (err && d->mismatch && d->resumed && !d->anew) {
                d->anew = true;
                d->mismatch = false;
                unlink(d->part);
                body_start(d);
                return;
        }
        if (!err || err->code == EBADMSG || err->code == EIO) { /* of no more use */
                unlink(d->part);
                unlink(d->tag);
        }
        /* wants may leave the job while they are resolved: from the end */
        struct unpack *members = d->members;
        for (size_t i = j->count; !err && i-- > 0;)
                want_resolved(j, j->wants[i], members ? members[i].digest : d->digest,
                        members ? members[i].size : d->size, source_name(j->source));
        job_done(j, err);
}

static void on_body_progress(int64_t now, int64_t total, void *arg)
{
        struct download *d = arg;
        int permille = total > 0 ? (int)(now * 1000 / total) : -1;
        if (permille == d->permille)
                return;
        d->permille = permille;
        job_note(d->job, permille, "downloading from %s", source_title(d->job->source));
}

static void on_body(struct transfer *t, void *arg)
{
        struct download *d = arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct job *j = d->job;
        d->transfer = NULL;
        close_p(&d->fd);
        if (transfer_end(t) == TRANSFER_RANGE || transfer_end(t) == TRANSFER_LARGE)
                unlink(d->part);
        if (transfer_got(t) > 0 && !file_write(d->tag, transfer_etag(t), strlen(transfer_etag(t)),
                                           0644, 0, NULL, &err))
                error_release(&err);
        if (transfer_end(t) == TRANSFER_OK) {
                job_note(j, -1, "verifying");
                j->work = (struct work){ .run = download_run, .done = download_done };
                worker_submit(j->fetch->worker, &j->work);
        } else if (!fetch_download_try_again(d, t)) {
                why_set(d, t, j->key, &err);
                download_fail(d, &err);
        }
}

/* What is there of it, if the rest can be trusted to fit: there is a checksum, or the server gave
 * it a name. */
static int64_t part_size(struct download *d, struct str *tag)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct stat st;
        if (fstat(d->fd, &st) < 0 || st.st_size == 0)
                return 0;
        if (file_read(d->tag, 256, tag, &ignored) < 0)
                str_truncate(tag, 0);
        return *d->sum || tag->len ? st.st_size : 0;
}

static void body_start(struct download *d)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str tag CLEANUP(str_release) = { 0 };
        struct job *j = d->job;
        d->in_body = true;
        d->fd = open(d->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (d->fd < 0) {
                error_set(&err, errno, EXIT_INTERNAL, "cannot write %s: %s", d->part,
                        strerror(errno));
                download_fail(d, &err);
                return;
        }
        struct transfer_spec spec = { .url = j->key,
                .fd = d->fd,
                .offset = part_size(d, &tag),
                .on_progress = on_body_progress,
                .on_done = on_body,
                .arg = d };
        spec.validator = str_text(&tag);
        spec.max = j->fetch->request.file_max;
        spec.room = &j->fetch->room;
        d->resumed |= spec.offset > 0;
        job_note(j, d->permille,
                spec.offset ? "going on with the download from %s" : "downloading from %s",
                source_title(j->source));
        if (transfer_start(j->fetch->http, &spec, &d->transfer, &err) < 0)
                download_fail(d, &err);
}

/* Without a checksum only the lock's digest vouches for what comes, or the file that names it as
 * trusted once. */
static void unsummed(struct download *d, const char *why)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct job *j = d->job;
        for (size_t i = 0; i < j->count && !err.code; i++) {
                struct want *w = j->wants[i];
                if (*w->pinned || w->trust)
                        continue;
                error_set(&err, EACCES, EXIT_STATE,
                        "there is no checksum of %s (%s), and no bundle.lock pins it: it was refused",
                        j->key, why);
                error_hint(&err,
                        "%stake over a bundle.lock that has its digest, or take it once as it comes: artifacts.trustOnFirstUse: [%s]",
                        j->source == FROM_MIRROR ? "add the checksum to the mirror, " : "",
                        w->item->name);
                free(w->way);
                w->way = xstrdup(err.hint);
        }
        if (err.code)
                download_fail(d, &err);
        else
                body_start(d);
}

static void on_sums(struct transfer *t, void *arg)
{
        struct download *d = arg;
        struct error err CLEANUP(error_release) = { 0 };
        const char *file = file_of(d->job->key);
        d->transfer = NULL;
        if (transfer_end(t) == TRANSFER_OK &&
                !sums_find(str_text(transfer_body(t)), file, d->sum)) {
                error_set(&err, EBADMSG, EXIT_STATE, "the checksums beside %s have none of it",
                        d->job->key);
                error_hint(&err, "look at them: what answers there may not be the mirror");
        } else if (transfer_end(t) != TRANSFER_OK && transfer_end(t) != TRANSFER_ABSENT) {
                if (fetch_download_try_again(d, t))
                        return;
                why_set(d, t, d->job->key, &err);
        }
        d->tries = 0;
        if (err.code)
                download_fail(d, &err);
        else if (transfer_end(t) == TRANSFER_ABSENT)
                unsummed(d, transfer_why(t));
        else
                body_start(d);
}

static void sums_start(struct download *d)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *url CLEANUP(free_p) = sums_url(d->job);
        struct transfer_spec spec = {
                .url = url, .fd = -1, .max = SUMS_MAX, .on_done = on_sums, .arg = d
        };
        if (!url)
                unsummed(d, "upstream has none");
        else if (transfer_start(d->job->fetch->http, &spec, &d->transfer, &err) < 0)
                download_fail(d, &err);
}

static void on_retry(int fd, short what, void *arg)
{
        struct download *d = arg;
        (d->in_body ? body_start : sums_start)(d);
}

static void download_start(struct job *j)
{
        struct fetch *f = j->fetch;
        struct download *d = j->state = xcalloc(1, sizeof(*d));
        char name[65];
        *d = (struct download){ .job = j, .fd = -1, .permille = -1 };
        sha256_hex(j->key, strlen(j->key), name);
        name[32] = 0;
        d->part = xasprintf("%s/partial/%s.part", f->cache, name);
        d->tag = xasprintf("%s/partial/%s.etag", f->cache, name);
        d->retry = evtimer_new(f->base, on_retry, d);
        for (size_t i = 0; i < j->count; i++) {
                const struct origin *o = origin_of(j->wants[i]->item->name);
                if (!o->member)
                        continue;
                if (!d->members)
                        d->members = xcalloc(d->member_count = j->count, sizeof(*d->members));
                d->members[i].member =
                        origin_expand(o->member, j->wants[i]->item->version, f->request.arch);
        }
        sums_start(d);
}

static void download_stop(struct job *j)
{
        struct download *d = j->state;
        transfer_free(d->transfer);
        event_free(d->retry);
        close_p(&d->fd);
        for (size_t i = 0; i < d->member_count; i++)
                free((void *)(uintptr_t)d->members[i].member);
        free(d->members);
        free(d->part);
        free(d->tag);
        free(d);
}

const struct job_kind download_job = {
        .at_once = 4, .start = download_start, .stop = download_stop
};
