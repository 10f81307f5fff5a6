/* What is sent to the node: the agent, the spec, the blobs. Always in pieces, the next only when
 * ssh has read the one before, so that many links need little memory. */
#include <fcntl.h>
#include <sys/stat.h>

#include "deliver/link/state.h"

#define INLINE_MAX ((size_t)512 << 10) /* longer contents of files are sent as blobs */

static bool is_blob(const struct spec_entry *e)
{
        return e->kind == SPEC_ARTIFACT || e->kind == SPEC_IMAGE ||
               (e->kind == SPEC_FILE && e->len > INLINE_MAX);
}

static const struct item *item_find(
        const struct spec_entry *e, const struct item *items, size_t count)
{
        bool image = e->kind == SPEC_IMAGE;
        for (size_t i = 0; i < count; i++) {
                const struct item *m = &items[i];
                if (m->image == image && streq(m->name, e->name) &&
                        (image || (m->version && e->version && streq(m->version, e->version))))
                        return m;
        }
        return NULL;
}

/* The digest of an entry's blob; false: there is no blob. */
static bool blob_digest(
        const struct spec_entry *e, const struct item *items, size_t count, char out[SHA256_HEX])
{
        *out = 0;
        if (e->kind == SPEC_FILE) {
                sha256_hex(e->content, e->len, out);
                return true;
        }
        const struct item *m = e->name ? item_find(e, items, count) : NULL;
        if (m)
                memcpy(out, m->digest, SHA256_HEX);
        return m && m->digest[0];
}

/* One ENTRY frame. The digest of a spec is made from these frames, so equal specs must
 * have equal frames. */
static bool entry_encode(
        struct str *s, const struct spec_entry *e, const struct item *items, size_t count)
{
        char digest[SHA256_HEX];
        bool known = true;
        size_t begin = wire_begin(s, WIRE_ENTRY);
        wire_number(s, TAG_KIND, e->kind);
        wire_number(s, TAG_CLASS, e->class);
        wire_number(s, TAG_FLAGS, e->flags);
        if (e->mode)
                wire_number(s, TAG_FILE_MODE, e->mode);
        wire_text(s, TAG_PATH, e->path);
        wire_text(s, TAG_NAME, e->name);
        wire_text(s, TAG_TARGET, e->target);
        wire_text(s, TAG_ARTIFACT_VERSION, e->version);
        wire_text(s, TAG_OWNER, e->owner);
        wire_text(s, TAG_UNITS, e->units);
        if (is_blob(e)) {
                known = blob_digest(e, items, count, digest);
                wire_text(s, TAG_DIGEST, digest);
        } else if (e->kind == SPEC_FILE || e->kind == SPEC_BLOCK || e->kind == SPEC_COMMAND)
                wire_bytes(s, TAG_CONTENT, e->content ? e->content : "", e->len);
        wire_end(s, begin);
        return known;
}

void link_digest(const struct nodespec *spec, const struct item *items, size_t count, char out[65])
{
        struct str s CLEANUP(str_wipe_release) = { 0 };
        struct sha256 sum;
        sha256_init(&sum);
        for (size_t i = 0; i < spec->count; i++) {
                struct spec_entry e = spec->entries[i];
                e.flags &= ~(unsigned)SPEC_AGAIN;
                str_truncate(&s, 0);
                entry_encode(&s, &e, items, count);
                sha256_add(&sum, s.data, s.len);
        }
        sha256_end(&sum, out);
}

/* ---- the agent ---- */

static bool send_agent(struct link *l)
{
        size_t left = l->agent->len - l->agent_sent, piece = left < LINK_PIECE ? left : LINK_PIECE;
        if (!piece)
                return false;
        proc_write(l->proc, l->agent->bytes + l->agent_sent, piece);
        l->agent_sent += piece;
        link_patience(l, 120);
        return true;
}

/* ---- the spec ---- */

void link_apply(struct link *l, const struct nodespec *spec, const struct item *items, size_t count,
        enum apply_mode mode)
{
        if (l->job.spec) /* one at a time: otherwise a bug in slipway */
                abort();
        link_job_release(l);
        l->job.spec = spec;
        l->job.items = items;
        l->job.count = count;
        l->job.mode = mode;
        link_begin(l);
}

void link_begin(struct link *l)
{
        if (!l->job.spec || l->phase != PHASE_IDLE || l->closing || !l->proc)
                return;
        char digest[SHA256_HEX];
        struct str s CLEANUP(str_release) = { 0 };
        link_digest(l->job.spec, l->job.items, l->job.count, digest);
        size_t begin = wire_begin(&s, WIRE_SPEC);
        wire_text(&s, TAG_DIGEST, digest);
        wire_number(&s, TAG_COUNT, l->job.spec->count);
        wire_text(&s, TAG_NAME, l->target.cluster);
        wire_text(&s, TAG_NODE, l->target.name);
        wire_end(&s, begin);
        proc_write(l->proc, s.data, s.len);
        l->phase = PHASE_SPEC;
        link_pump(l);
}

static bool no_item(struct link *l, const struct spec_entry *e)
{
        error_set(&l->err, ENOENT, EXIT_INTERNAL,
                "node %s: %s%s%s is in the spec but was not fetched", l->target.name,
                e->name ? e->name : e->path, e->version ? " " : "", e->version ? e->version : "");
        error_hint(&l->err, "this is a mistake in slipway: please report it");
        link_failed(l);
        return false;
}

static bool send_entries(struct link *l)
{
        struct str s CLEANUP(str_wipe_release) = { 0 };
        const struct nodespec *spec = l->job.spec;
        for (; l->job.next < spec->count && s.len < LINK_PIECE; l->job.next++)
                if (!entry_encode(&s, &spec->entries[l->job.next], l->job.items, l->job.count))
                        return no_item(l, &spec->entries[l->job.next]);
        if (l->job.next == spec->count) {
                wire_end(&s, wire_begin(&s, WIRE_SPEC_END));
                l->phase = PHASE_NEEDS;
        }
        proc_write(l->proc, s.data, s.len);
        return true;
}

/* ---- blobs ---- */

static void blob_from(const struct link *l, struct link_blob *b)
{
        for (size_t i = 0; i < l->job.count; i++)
                if (streq(l->job.items[i].digest, b->digest)) {
                        b->path = l->job.items[i].path;
                        b->size = l->job.items[i].size;
                        return;
                }
        for (size_t i = 0; i < l->job.spec->count; i++) {
                const struct spec_entry *e = &l->job.spec->entries[i];
                char digest[SHA256_HEX];
                if (e->kind != SPEC_FILE || !is_blob(e) || !blob_digest(e, NULL, 0, digest) ||
                        !streq(digest, b->digest))
                        continue;
                b->content = e->content;
                b->size = (int64_t)e->len;
                return;
        }
}

int link_needs(struct link *l, const char *digest, int64_t offset)
{
        struct link_blob b = { .at = offset };
        /* a node cannot make the list grow without limit */
        for (size_t i = 0; i < l->job.blob_count; i++)
                if (streq(l->job.blobs[i].digest, digest))
                        return -EEXIST;
        memcpy(b.digest, digest, SHA256_HEX);
        blob_from(l, &b);
        /* each blob is needed only once */
        if ((!b.path && !b.content) || l->job.blob_count >= l->job.spec->count)
                return -ENOENT;
        if (b.at < 0 || b.at > b.size) /* the node's part cannot be its beginning */
                b.at = 0;
        if (l->job.blob_count == l->job.blob_cap) {
                l->job.blob_cap = l->job.blob_cap ? l->job.blob_cap * 2 : 16;
                l->job.blobs = xrealloc(l->job.blobs, l->job.blob_cap * sizeof(b));
        }
        l->job.blobs[l->job.blob_count++] = b;
        l->job.total += b.size - b.at;
        return 0;
}

void link_ready(struct link *l)
{
        if (l->job.mode == APPLY_COMPARE) /* nothing is written, so no blob is needed */
                l->job.blob = l->job.blob_count;
        else if (l->job.total && l->events.on_progress)
                l->events.on_progress(l, 0, l->job.total, l->events.arg);
        l->phase = PHASE_BLOBS;
        if (!l->dead && !l->closing)
                link_pump(l);
}

static bool blob_failed(struct link *l, const struct link_blob *b, int code)
{
        error_set(&l->err, code, EXIT_INTERNAL, "node %s: cannot send %s: %s", l->target.name,
                b->path, code == ENODATA ? "it is shorter than it was" : strerror(code));
        error_hint(&l->err, "remove the file and run again: it is fetched anew");
        link_failed(l);
        return false;
}

static int blob_begin(struct link *l, const struct link_blob *b, struct str *s)
{
        if (b->path && (l->job.fd = open(b->path, O_RDONLY | O_CLOEXEC)) < 0)
                return -errno;
        struct stat st;
        if (b->path && (fstat(l->job.fd, &st) < 0 || st.st_size != b->size))
                return -ENODATA;
        size_t begin = wire_begin(s, WIRE_BLOB);
        wire_text(s, TAG_DIGEST, b->digest);
        wire_number(s, TAG_SIZE, (uint64_t)b->size);
        wire_number(s, TAG_OFFSET, (uint64_t)b->at);
        wire_end(s, begin);
        l->job.begun = true;
        return 0;
}

/* The next piece of the blob, as one DATA frame. */
static int blob_piece(struct link *l, struct link_blob *b, struct str *s)
{
        char *piece CLEANUP(free_p) = NULL;
        const char *from = b->content ? b->content + b->at : NULL;
        size_t n = b->size - b->at < (int64_t)LINK_PIECE ? (size_t)(b->size - b->at) : LINK_PIECE;
        if (!from) {
                from = piece = xmalloc(LINK_PIECE);
                ssize_t got = pread(l->job.fd, piece, n, (off_t)b->at);
                if (got <= 0)
                        return got < 0 ? -errno : -ENODATA;
                n = (size_t)got;
        }
        size_t begin = wire_begin(s, WIRE_DATA);
        wire_bytes(s, TAG_BYTES, from, n);
        wire_end(s, begin);
        b->at += (int64_t)n;
        l->job.sent += (int64_t)n;
        return 0;
}

static void send_apply(struct link *l)
{
        struct str s CLEANUP(str_release) = { 0 };
        size_t begin = wire_begin(&s, WIRE_APPLY);
        wire_number(&s, TAG_MODE, l->job.mode);
        wire_text(&s, TAG_NODE, l->target.name);
        wire_end(&s, begin);
        proc_write(l->proc, s.data, s.len);
        l->phase = PHASE_APPLY;
}

static bool send_blob(struct link *l)
{
        struct str s CLEANUP(str_release) = { 0 };
        if (l->job.blob == l->job.blob_count) {
                send_apply(l);
                return true;
        }
        struct link_blob *b = &l->job.blobs[l->job.blob];
        int r = l->job.begun ? 0 : blob_begin(l, b, &s);
        bool more = r == 0 && b->at < b->size;
        if (more)
                r = blob_piece(l, b, &s);
        if (r < 0)
                return blob_failed(l, b, -r);
        proc_write(l->proc, s.data, s.len);
        if (b->at == b->size) {
                close_p(&l->job.fd);
                l->job.begun = false;
                l->job.blob++;
        }
        if (more && l->events.on_progress)
                l->events.on_progress(l, l->job.sent, l->job.total, l->events.arg);
        return true;
}

void link_pump(struct link *l)
{
        bool (*const send[])(struct link *) = { [PHASE_AGENT] = send_agent,
                [PHASE_SPEC] = send_entries,
                [PHASE_BLOBS] = send_blob,
                [PHASE_APPLY] = NULL };
        while (l->proc && !l->err.code && !l->closing && !l->dead && send[l->phase] &&
                proc_queued(l->proc) < LINK_PIECE)
                if (!send[l->phase](l))
                        break;
}

void link_job_release(struct link *l)
{
        close_p(&l->job.fd);
        free(l->job.blobs);
        memset(&l->job, 0, sizeof(l->job));
        l->job.fd = -1;
}
