/* Received blobs: /var/lib/slipway/store/DIGEST.part while bytes arrive, DIGEST once the blob is
 * complete and its hash is right. A cut connection leaves the part, and the next run sends the
 * rest. Emptied after a successful run. */
#include <dirent.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "base/file.h"

char *store_path(struct agent *a, const char *digest)
{
        return xasprintf("%s/store/%s", a->state, digest);
}

static char *part_path(struct agent *a, const char *digest)
{
        return xasprintf("%s/store/%s.part", a->state, digest);
}

bool store_has(struct agent *a, const char *digest)
{
        char *path CLEANUP(free_p) = store_path(a, digest);
        return access(path, F_OK) == 0;
}

int store_offset(struct agent *a, const char *digest, uint64_t *have)
{
        char *part CLEANUP(free_p) = part_path(a, digest);
        struct stat st;
        *have = lstat(part, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
        return store_has(a, digest);
}

static bool store_is_needed(const struct agent *a, const char *digest)
{
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].needed && streq(a->entries[i].digest, digest))
                        return true;
        return false;
}

/* Hashes the bytes that are already here. */
static int hash_part(struct blob *b, uint64_t offset)
{
        char buf[64 << 10];
        sha256_init(&b->sum);
        while (b->at < offset) {
                size_t want = offset - b->at < sizeof(buf) ? (size_t)(offset - b->at) : sizeof(buf);
                ssize_t n = read(b->fd, buf, want);
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                sha256_add(&b->sum, buf, (size_t)n);
                b->at += (size_t)n;
        }
        return ftruncate(b->fd, (off_t)offset) < 0 ? -errno : 0;
}

static int store_failed(struct agent *a, int code, struct error *err)
{
        close_p(&a->blob.fd);
        error_set(err, code, EXIT_STEP, "cannot receive the blob %.12s at byte %" PRIu64 ": %s",
                a->blob.digest, a->blob.at, strerror(code));
        if (code == ENOSPC || code == EDQUOT)
                return error_hint(err,
                        "free space on the file system of %s on the node, then run again: the transfer continues",
                        a->state);
        return error_hint(err,
                "check the disk and the permissions of %s/store on the node, then run again",
                a->state);
}

/* Complete: checks its digest and renames it. */
static int store_finish(struct agent *a, struct error *err)
{
        struct blob *b = &a->blob;
        char digest[SHA256_HEX], *part CLEANUP(free_p) = part_path(a, b->digest),
                                       *whole CLEANUP(free_p) = store_path(a, b->digest);
        sha256_end(&b->sum, digest);
        if (close(b->fd) < 0) {
                b->fd = -1;
                return store_failed(a, errno, err);
        }
        b->fd = -1;
        if (!streq(digest, b->digest)) {
                unlink(part);
                error_set(err, EBADMSG, EXIT_STEP,
                        "the blob %.12s was damaged in transfer: it arrived as %.12s", b->digest,
                        digest);
                return error_hint(err, "run again: the blob is sent again");
        }
        return rename(part, whole) < 0 ? store_failed(a, errno, err) : 0;
}

int store_begin(struct agent *a, const struct wire_frame *f, struct error *err)
{
        struct blob *b = &a->blob;
        char *digest CLEANUP(free_p) = wire_string(f, TAG_DIGEST);
        uint64_t offset = wire_value(f, TAG_OFFSET, 0), size = wire_value(f, TAG_SIZE, 0);
        if (b->fd >= 0 || !a->complete || !digest || !sha256_valid(digest) ||
                !store_is_needed(a, digest) || offset > size)
                return error_set(
                        err, EPROTO, EXIT_STEP, "a blob came that the agent had not asked for");
        if (!agent_own(a, err))
                return -err->code;
        memcpy(b->digest, digest, SHA256_HEX);
        b->at = 0;
        b->size = size;
        char *part CLEANUP(free_p) = part_path(a, digest);
        b->fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (b->fd < 0)
                return store_failed(a, errno, err);
        int r = hash_part(b, offset);
        if (r < 0)
                return store_failed(a, -r, err);
        return b->at == b->size ? store_finish(a, err) : 0;
}

int store_data(struct agent *a, const struct wire_frame *f, struct error *err)
{
        struct blob *b = &a->blob;
        struct wire_field v;
        if (b->fd < 0 || !wire_find(f, TAG_BYTES, &v) || v.len > b->size - b->at)
                return error_set(
                        err, EPROTO, EXIT_STEP, "a DATA frame came that does not belong to a blob");
        int r = write_all(b->fd, v.data, v.len);
        if (r < 0) {
                /* the part ends where the next run continues */
                (void)!ftruncate(b->fd, (off_t)b->at);
                return store_failed(a, -r, err);
        }
        sha256_add(&b->sum, v.data, v.len);
        b->at += v.len;
        return b->at == b->size ? store_finish(a, err) : 0;
}

/* An image that is not imported yet needs its blob. */
static bool store_is_waiting(struct agent *a, const char *name)
{
        for (size_t i = 0; i < a->count; i++) {
                const struct entry *e = &a->entries[i];
                const struct row *row =
                        e->kind == SPEC_IMAGE ? record_find(&a->record, SPEC_IMAGE, e->name) : NULL;
                if (row && !row->digest[0] && streq(name, e->digest))
                        return true;
        }
        return false;
}

void store_clean(struct agent *a)
{
        char *path CLEANUP(free_p) = path_join(a->state, "store");
        DIR *d = opendir(path);
        if (!d)
                return;
        for (struct dirent *e; (e = readdir(d));)
                if (e->d_name[0] != '.' && !store_is_waiting(a, e->d_name))
                        unlinkat(dirfd(d), e->d_name, 0);
        closedir(d);
}
