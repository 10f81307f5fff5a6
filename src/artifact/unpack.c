/* Upstream's archives (tar, compressed with gzip or not): members by name, as blobs. zlib and a
 * hundred lines: a library for archives would bring twenty others with it, and every start of the
 * program would load them. */
#include <zlib.h>

#include "artifact/pack.h"
#include "artifact/tar.h"
#include "base/tar_header.h"

#define LONG_NAME_MAX 4096
#define MEMBERS_MAX   20000 /* upstream's archives have some dozens */

struct reader {
        gzFile file;
        const char *path;
        char name[LONG_NAME_MAX]; /* of the member that is open, without "./" */
        unsigned mode;
        int64_t size, left; /* left: bytes of it that were not read yet */
        int64_t room; /* bytes that may still come out of the archive, however small it is itself */
        unsigned members;
        bool regular;
};

static void gzclose_p(gzFile *f)
{
        if (*f)
                gzclose(*f);
}

static int unpack_damaged(const struct reader *r, struct error *err)
{
        int code = 0;
        const char *why = gzerror(r->file, &code);
        return error_set(err, EIO, EXIT_INTERNAL, "cannot unpack %s: %s", r->path,
                code < 0 && code != Z_ERRNO ? why : "it is damaged or cut short");
}

static int too_large(const struct reader *r, const char *what, struct error *err)
{
        error_set(err, EFBIG, EXIT_STATE, "cannot unpack %s: %s: it was refused", r->path, what);
        return error_hint(err, "the archive is not what it says; take it from another place");
}

static int unpack_read_all(struct reader *r, void *buf, size_t n, struct error *err)
{
        r->room -= (int64_t)n;
        if (r->room < 0)
                return too_large(r, "it unpacks to more than it may", err);
        return gzread(r->file, buf, (unsigned)n) == (int)n ? 0 : unpack_damaged(r, err);
}

/* What is left of the member, and the zeros that fill its last block. */
static int skip(struct reader *r, struct error *err)
{
        int64_t rest = r->left + (int64_t)tar_padded((uint64_t)r->size) - r->size;
        char buf[16 << 10];
        r->left = 0;
        for (; rest > 0; rest -= (int64_t)sizeof(buf)) {
                int rc = unpack_read_all(
                        r, buf, rest < (int64_t)sizeof(buf) ? (size_t)rest : sizeof(buf), err);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* The next member: 1, or 0 at the end. GNU's long names are taken in; pax headers of what nobody
 * asks for are passed over. */
static int next_member(struct reader *r, struct error *err)
{
        uint8_t block[TAR_BLOCK];
        struct tar_header h;
        char full[LONG_NAME_MAX] = "";
        for (;;) {
                int rc = skip(r, err);
                if (rc < 0)
                        return rc;
                int got = gzread(r->file, block, TAR_BLOCK);
                if (got == 0 || (got == TAR_BLOCK && !block[0]))
                        return 0;
                if (got != TAR_BLOCK || !tar_header_read(block, &h))
                        return unpack_damaged(r, err);
                if (++r->members > MEMBERS_MAX)
                        return too_large(r, "it has more members than it may", err);
                if (h.size > (uint64_t)r->room)
                        return too_large(r, "it unpacks to more than it may", err);
                r->size = r->left = (int64_t)h.size;
                if (h.type == 'L') {
                        size_t n =
                                (size_t)r->size < sizeof(full) ? (size_t)r->size : sizeof(full) - 1;
                        if ((rc = unpack_read_all(r, full, n, err)) < 0)
                                return rc;
                        full[n] = 0;
                        r->left -= (int64_t)n;
                        continue;
                }
                if (h.type == 'x' || h.type == 'g')
                        continue;
                r->regular = h.type == '0';
                r->mode = h.mode;
                const char *name = *full ? full : h.name;
                while (has_prefix(name, "./"))
                        name += 2;
                snprintf(r->name, sizeof(r->name), "%s", name);
                return 1;
        }
}

/* The bytes of the member that is open, into a blob. */
static int copy_member(struct reader *r, struct blob *b, stop_flag stop, struct error *err)
{
        char buf[64 << 10];
        while (r->left > 0) {
                size_t n = r->left < (int64_t)sizeof(buf) ? (size_t)r->left : sizeof(buf);
                int rc = stop && atomic_load(stop)
                                 ? error_set(err, ECANCELED, EXIT_INTERNAL, "stopped")
                                 : unpack_read_all(r, buf, n, err);
                if (rc < 0 || (rc = blob_add(b, buf, n, err)) < 0)
                        return rc;
                r->left -= (int64_t)n;
        }
        return 0;
}

static int unpack_to_blob(void *arg, const void *data, size_t n, struct error *err)
{
        return blob_add(arg, data, n, err);
}

/* A program of a set: a member of the same name in our own archive. */
static int add_to_set(
        struct reader *r, struct blob *set, const char *cache, stop_flag stop, struct error *err)
{
        struct tar t = { unpack_to_blob, set };
        int rc = set->fd < 0 ? blob_begin(set, cache, err) : 0;
        if (rc == 0)
                rc = tar_member(&t, r->name, 0755, r->size, err);
        if (rc == 0)
                rc = copy_member(r, set, stop, err);
        return rc == 0 ? tar_pad(&t, r->size, err) : rc;
}

static int take_member(
        struct reader *in, struct unpack *u, const char *cache, stop_flag stop, struct error *err)
{
        struct blob b CLEANUP(blob_release) = BLOB_INIT;
        int r = blob_begin(&b, cache, err);
        if (r == 0)
                r = copy_member(in, &b, stop, err);
        if (r == 0)
                r = blob_end(&b, u->digest, &u->size, err);
        u->found = r == 0;
        return r;
}

/* What one member is to those who wait for it. The bytes come once, so a name is taken by one, or
 * goes into the set. */
static int look_at(struct reader *r, struct unpack *wanted, size_t n, struct blob *set,
        const char *cache, stop_flag stop, struct error *err)
{
        if (!r->regular)
                return 0;
        for (size_t i = 0; i < n; i++)
                if (!wanted[i].found && streq(wanted[i].member, r->name))
                        return take_member(r, &wanted[i], cache, stop, err);
        for (size_t i = 0; i < n; i++)
                if (streq(wanted[i].member, "*") && !strchr(r->name, '/') && r->mode & 0111)
                        return add_to_set(r, set, cache, stop, err);
        return 0;
}

static int end_set(struct unpack *wanted, size_t n, struct blob *set, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && i < n; i++) {
                if (streq(wanted[i].member, "*") && set->fd >= 0) {
                        r = tar_end(&(struct tar){ unpack_to_blob, set }, err);
                        if (r == 0)
                                r = blob_end(set, wanted[i].digest, &wanted[i].size, err);
                        wanted[i].found = r == 0;
                }
        }
        return r;
}

int unpack_members(const char *cache, const char *path, int64_t max, struct unpack *wanted,
        size_t n, stop_flag stop, struct error *err)
{
        struct blob set CLEANUP(blob_release) = BLOB_INIT;
        gzFile file CLEANUP(gzclose_p) = gzopen(path, "rbe");
        if (!file)
                return error_set(err, errno ? errno : ENOMEM, EXIT_INTERNAL, "cannot read %s: %s",
                        path, strerror(errno));
        struct reader in = { .file = file, .path = path, .room = max };
        int r, got;
        while ((got = next_member(&in, err)) > 0)
                if ((r = look_at(&in, wanted, n, &set, cache, stop, err)) < 0)
                        return r;
        if (got < 0)
                return got;
        if ((r = end_set(wanted, n, &set, err)) < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (!wanted[i].found)
                        return error_set(err, ENOENT, EXIT_INTERNAL, "the archive has no member %s",
                                wanted[i].member);
        return 0;
}
