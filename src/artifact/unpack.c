/* Upstream's archives (tar, compressed with gzip or not): members by name, as blobs. zlib and a hundred lines: a library for archives would bring twenty
 * others with it, and every start of the program would load them. */
#include <zlib.h>

#include "artifact/pack.h"
#include "artifact/tar.h"

#define BLOCK         512
#define LONG_NAME_MAX 4096

struct reader {
        gzFile file;
        const char *path;
        char name[LONG_NAME_MAX]; /* of the member that is open, without "./" */
        unsigned mode;
        int64_t size, left; /* left: bytes of it that were not read yet */
        bool regular;
};

static void gzclose_p(gzFile *f)
{
        if (*f)
                gzclose(*f);
}

static int damaged(const struct reader *r, struct error *err)
{
        int code = 0;
        const char *why = gzerror(r->file, &code);
        return error_set(err, EIO, EXIT_INTERNAL, "cannot unpack %s: %s", r->path, code < 0 && code != Z_ERRNO ? why : "it is damaged or cut short");
}

static int read_all(struct reader *r, void *buf, size_t n, struct error *err) { return gzread(r->file, buf, (unsigned)n) == (int)n ? 0 : damaged(r, err); }

static int64_t octal(const unsigned char *p, size_t n)
{
        int64_t v = 0;
        for (size_t i = 0; i < n && p[i]; i++)
                if (p[i] >= '0' && p[i] <= '7')
                        v = v << 3 | (p[i] - '0');
        return v;
}

static bool sum_right(const unsigned char *h)
{
        int64_t sum = 0;
        for (size_t i = 0; i < BLOCK; i++)
                sum += i >= 148 && i < 156 ? ' ' : h[i];
        return octal(h + 148, 8) == sum;
}

/* What is left of the member, and the zeros that fill its last block. */
static int skip(struct reader *r, struct error *err)
{
        int64_t rest = r->left + (BLOCK - r->size % BLOCK) % BLOCK;
        char buf[16 << 10];
        r->left = 0;
        for (; rest > 0; rest -= (int64_t)sizeof(buf)) {
                int rc = read_all(r, buf, rest < (int64_t)sizeof(buf) ? (size_t)rest : sizeof(buf), err);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static void take_name(struct reader *r, const unsigned char *h, const char *full)
{
        char buf[LONG_NAME_MAX];
        bool prefix = memcmp(h + 257, "ustar", 6) == 0 && h[345];
        if (*full)
                snprintf(buf, sizeof(buf), "%s", full);
        else
                snprintf(buf, sizeof(buf), "%.*s%s%.*s", prefix ? 155 : 0, (const char *)h + 345, prefix ? "/" : "", 100, (const char *)h);
        const char *p = buf;
        while (has_prefix(p, "./"))
                p += 2;
        snprintf(r->name, sizeof(r->name), "%s", p);
}

/* The next member: 1, or 0 at the end. GNU's long names are taken in; pax headers of what nobody asks for are passed over. */
static int next_member(struct reader *r, struct error *err)
{
        unsigned char h[BLOCK];
        char full[LONG_NAME_MAX] = "";
        for (;;) {
                int rc = skip(r, err);
                if (rc < 0)
                        return rc;
                int got = gzread(r->file, h, BLOCK);
                if (got == 0 || (got == BLOCK && !h[0]))
                        return 0;
                if (got != BLOCK || !sum_right(h))
                        return damaged(r, err);
                r->size = r->left = octal(h + 124, 12);
                if (h[156] == 'L') {
                        size_t n = (size_t)r->size < sizeof(full) ? (size_t)r->size : sizeof(full) - 1;
                        if ((rc = read_all(r, full, n, err)) < 0)
                                return rc;
                        full[n] = 0;
                        r->left -= (int64_t)n;
                        continue;
                }
                if (h[156] == 'x' || h[156] == 'g')
                        continue;
                r->regular = h[156] == '0' || h[156] == 0;
                r->mode = (unsigned)octal(h + 100, 8);
                take_name(r, h, full);
                return 1;
        }
}

/* The bytes of the member that is open, into a blob. */
static int copy_member(struct reader *r, struct blob *b, stop_flag stop, struct error *err)
{
        char buf[64 << 10];
        while (r->left > 0) {
                size_t n = r->left < (int64_t)sizeof(buf) ? (size_t)r->left : sizeof(buf);
                int rc = stop && atomic_load(stop) ? error_set(err, ECANCELED, EXIT_INTERNAL, "stopped") : read_all(r, buf, n, err);
                if (rc < 0 || (rc = blob_add(b, buf, n, err)) < 0)
                        return rc;
                r->left -= (int64_t)n;
        }
        return 0;
}

static int to_blob(void *arg, const void *data, size_t n, struct error *err) { return blob_add(arg, data, n, err); }

/* A program of a set: a member of the same name in our own archive. */
static int add_to_set(struct reader *r, struct blob *set, const char *cache, stop_flag stop, struct error *err)
{
        struct tar t = { to_blob, set };
        int rc = set->fd < 0 ? blob_begin(set, cache, err) : 0;
        if (rc == 0)
                rc = tar_member(&t, r->name, 0755, r->size, err);
        if (rc == 0)
                rc = copy_member(r, set, stop, err);
        return rc == 0 ? tar_pad(&t, r->size, err) : rc;
}

static int take_member(struct reader *in, struct unpack *u, const char *cache, stop_flag stop, struct error *err)
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

/* What one member is to those who wait for it. The bytes come once, so a name is taken by one, or goes into the set. */
static int look_at(struct reader *r, struct unpack *wanted, size_t n, struct blob *set, const char *cache, stop_flag stop, struct error *err)
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
                        r = tar_end(&(struct tar){ to_blob, set }, err);
                        if (r == 0)
                                r = blob_end(set, wanted[i].digest, &wanted[i].size, err);
                        wanted[i].found = r == 0;
                }
        }
        return r;
}

int unpack_members(const char *cache, const char *path, struct unpack *wanted, size_t n, stop_flag stop, struct error *err)
{
        struct blob set CLEANUP(blob_release) = BLOB_INIT;
        gzFile file CLEANUP(gzclose_p) = gzopen(path, "rbe");
        if (!file)
                return error_set(err, errno ? errno : ENOMEM, EXIT_INTERNAL, "cannot read %s: %s", path, strerror(errno));
        struct reader in = { .file = file, .path = path };
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
                        return error_set(err, ENOENT, EXIT_INTERNAL, "the archive has no member %s", wanted[i].member);
        return 0;
}
