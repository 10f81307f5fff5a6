#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <time.h>

#include "artifact/blob.h"
#include "base/file.h"

#define PARTIAL_DAYS 7 /* age of an abandoned download */

char *cache_path(const char *cache, const char *dir, const char *name)
{
        return xasprintf("%s/%s/%s", cache, dir, name);
}

static char *cache_root(void)
{
        const char *own = getenv("SLIPWAY_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
                   *home = getenv("HOME");
        if (own && *own)
                return xstrdup(own);
        if (xdg && *xdg == '/')
                return path_join(xdg, "slipway");
        return home && *home ? path_join(home, ".cache/slipway") : NULL;
}

int cache_open(char **out, struct error *err)
{
        static const char *const dirs[] = { "blobs/sha256", "partial", "tmp", "logs", "artifacts" };
        char *found CLEANUP(free_p) = cache_root();
        if (!found) {
                error_set(err, ENOENT, EXIT_INTERNAL,
                        "there is no place for the cache: HOME is not set");
                return error_hint(err, "set SLIPWAY_CACHE to a directory");
        }
        int r = dir_make(found, 0755, err);
        if (r < 0)
                return error_hint(err, "set SLIPWAY_CACHE to a directory that can be written");
        /* child processes have other working directories */
        char *root CLEANUP(free_p) = realpath(found, NULL);
        if (!root)
                return error_set(err, errno, EXIT_INTERNAL, "cannot use the cache %s: %s", found,
                        strerror(errno));
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++) {
                char *dir CLEANUP(free_p) = path_join(root, dirs[i]);
                r = dir_make(dir, 0755, err);
        }
        if (r == 0)
                *out = TAKE(root);
        return r;
}

/* Removes entries with that prefix that are older than `age` seconds. */
static void clean_dir(const char *cache, const char *dir, const char *prefix, time_t age)
{
        char *path CLEANUP(free_p) = path_join(cache, dir);
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));) {
                struct error ignored CLEANUP(error_release) = { 0 };
                struct stat st;
                if (streq(e->d_name, ".") || streq(e->d_name, "..") ||
                        !has_prefix(e->d_name, prefix) ||
                        fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                char *entry CLEANUP(free_p) = path_join(path, e->d_name);
                if (st.st_mtime + age <= time(NULL))
                        dir_remove(entry, &ignored); /* what cannot be removed does no harm */
        }
        if (d)
                closedir(d);
}

void cache_clean(const char *cache)
{
        clean_dir(cache, "tmp", "", 0);
        clean_dir(cache, "partial", "", PARTIAL_DAYS * 24 * 3600);
}

void builds_clean(const char *cache) { clean_dir(cache, "artifacts", ".work.", 0); }

char *blob_path(const char *root, const char *digest)
{
        return xasprintf("%s/blobs/sha256/%s", root, digest);
}

bool blob_there(const char *root, const char *digest, int64_t size)
{
        char *path CLEANUP(free_p) = blob_path(root, digest);
        struct stat st;
        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == size;
}

static int cache_failed(const char *cache, int code, struct error *err)
{
        error_set(err, code, EXIT_INTERNAL, "cannot write to the cache %s: %s", cache,
                strerror(code));
        if (code == ENOSPC || code == EDQUOT)
                return error_hint(err,
                        "make room there, or set SLIPWAY_CACHE to another directory, and run again: what was fetched is kept");
        return error_hint(err, "set SLIPWAY_CACHE to a directory that can be written");
}

int blob_begin(struct blob *b, const char *cache, struct error *err)
{
        blob_release(b);
        b->cache = cache;
        b->tmp = cache_path(cache, "tmp", "blob.XXXXXX");
        b->fd = mkostemp(b->tmp, O_CLOEXEC);
        if (b->fd < 0) {
                int code = errno;
                free_p(&b->tmp);
                return cache_failed(cache, code, err);
        }
        b->sum = EVP_MD_CTX_new();
        if (!b->sum || EVP_DigestInit_ex(b->sum, EVP_sha256(), NULL) != 1)
                return error_set(
                        err, EIO, EXIT_INTERNAL, "cannot make digests: OpenSSL has no SHA-256");
        return 0;
}

int blob_add(struct blob *b, const void *data, size_t n, struct error *err)
{
        EVP_DigestUpdate(b->sum, data, n);
        b->size += (int64_t)n;
        int r = write_all(b->fd, data, n);
        return r < 0 ? cache_failed(b->cache, -r, err) : 0;
}

static void digest_hex(EVP_MD_CTX *sum, char digest[65])
{
        unsigned char raw[EVP_MAX_MD_SIZE];
        unsigned n = 0;
        EVP_DigestFinal_ex(sum, raw, &n);
        for (unsigned i = 0; i < n && i < 32; i++)
                snprintf(digest + (size_t)2 * i, 3, "%02x", raw[i]);
}

int blob_end(struct blob *b, char digest[65], int64_t *size, struct error *err)
{
        digest_hex(b->sum, digest);
        if (fchmod(b->fd, 0644) < 0 || fsync(b->fd) < 0)
                return cache_failed(b->cache, errno, err);
        char *path CLEANUP(free_p) = blob_path(b->cache, digest);
        if (rename(b->tmp, path) < 0)
                return cache_failed(b->cache, errno, err);
        free_p(&b->tmp);
        *size = b->size;
        blob_release(b);
        return 0;
}

void blob_release(struct blob *b)
{
        close_p(&b->fd);
        if (b->tmp)
                unlink(b->tmp);
        free(b->tmp);
        EVP_MD_CTX_free(b->sum);
        *b = (struct blob)BLOB_INIT;
}

int file_pieces(const char *path, stop_flag stop,
        int (*each)(void *arg, const void *data, size_t n, struct error *err), void *arg,
        struct error *err)
{
        enum { PIECE = 1 << 20 };
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot read %s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return error_set(err, EINVAL, EXIT_INTERNAL,
                        "cannot read %s: it is not a regular file", path);
        char *buf CLEANUP(free_p) = xmalloc(PIECE);
        for (;;) {
                if (stop && atomic_load(stop))
                        return error_set(err, ECANCELED, EXIT_INTERNAL, "stopped");
                ssize_t n = read(fd, buf, PIECE);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_set(err, errno, EXIT_INTERNAL, "cannot read %s: %s", path,
                                strerror(errno));
                int r = n ? each(arg, buf, (size_t)n, err) : 0;
                if (n == 0 || r < 0)
                        return r;
        }
}

static int add_piece(void *arg, const void *data, size_t n, struct error *err)
{
        return blob_add(arg, data, n, err);
}

int blob_copy(const char *cache, const char *from, stop_flag stop, char digest[65], int64_t *size,
        struct error *err)
{
        struct blob b CLEANUP(blob_release) = BLOB_INIT;
        int r = blob_begin(&b, cache, err);
        if (r == 0)
                r = file_pieces(from, stop, add_piece, &b, err);
        return r == 0 ? blob_end(&b, digest, size, err) : r;
}

int blob_adopt(const char *cache, const char *from, const char *digest, struct error *err)
{
        char *path CLEANUP(free_p) = blob_path(cache, digest);
        int fd CLEANUP(close_p) = open(from, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fchmod(fd, 0644) < 0 || fsync(fd) < 0 || rename(from, path) < 0)
                return cache_failed(cache, errno, err);
        return 0;
}

struct counted {
        EVP_MD_CTX *sum;
        int64_t size;
};

static int count_piece(void *arg, const void *data, size_t n, struct error *err)
{
        struct counted *c = arg;
        EVP_DigestUpdate(c->sum, data, n);
        c->size += (int64_t)n;
        return 0;
}

int file_digest(const char *path, stop_flag stop, char digest[65], int64_t *size, struct error *err)
{
        struct counted c = { .sum = EVP_MD_CTX_new() };
        int r = c.sum && EVP_DigestInit_ex(c.sum, EVP_sha256(), NULL) == 1
                        ? file_pieces(path, stop, count_piece, &c, err)
                        : error_set(err, EIO, EXIT_INTERNAL,
                                  "cannot make digests: OpenSSL has no SHA-256");
        if (r == 0) {
                digest_hex(c.sum, digest);
                *size = c.size;
        }
        EVP_MD_CTX_free(c.sum);
        return r;
}
