#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "deliver/outdir.h"

struct outdir_row {
        char *path;
        char *target; /* of a link */
        size_t len;
        mode_t mode;
};

static int outdir_fail(const struct outdir *d, const char *path, struct error *err)
{
        int code = errno;
        return error_set(err, code, EXIT_INTERNAL, "cannot write %s/%s%s%s: %s", d->root->path,
                d->name, path ? "/" : "", path ? path : "", strerror(code));
}

int outroot_open(const char *path, struct outroot *out, struct error *err)
{
        int r = dir_make(path, 0755, err);
        if (r < 0)
                return r;
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return error_set(err, errno, EXIT_INTERNAL, "cannot open the directory %s: %s",
                        path, strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
                error_set(err, EAGAIN, EXIT_STATE, "another run is writing to %s", path);
                return error_hint(err, "wait for it to end, or choose another directory with -d");
        }
        mode_t mask = umask(0);
        umask(mask);
        *out = (struct outroot){ .path = xstrdup(path), .fd = fd, .umask = mask };
        fd = -1;
        return 0;
}

void outroot_release(struct outroot *r)
{
        if (r->path)
                close(r->fd);
        free(r->path);
        *r = (struct outroot){ 0 };
}

/* Allowed: nothing, an empty directory, or one with a mark of a rendering. */
static int outroot_may_replace(
        const struct outroot *root, const char *name, const char *const *marks, struct error *err)
{
        struct stat st;
        if (fstatat(root->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT
                               ? 0
                               : error_set(err, errno, EXIT_INTERNAL, "cannot read %s/%s: %s",
                                         root->path, name, strerror(errno));
        if (S_ISDIR(st.st_mode)) {
                int fd CLEANUP(close_p) =
                        openat(root->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                for (size_t i = 0; fd >= 0 && marks[i]; i++)
                        if (fstatat(fd, marks[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                                S_ISREG(st.st_mode))
                                return 0;
                if (fd >= 0 && unlinkat(root->fd, name, AT_REMOVEDIR) == 0)
                        return 0;
        }
        error_set(err, EEXIST, EXIT_USAGE, "%s/%s exists and was not written by slipway render",
                root->path, name);
        return error_hint(err, "move it away, or choose another directory with -d");
}

static int outroot_remove(const struct outroot *root, const char *name, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(root->path, name);
        return dir_remove(path, err);
}

int outdir_begin(const struct outroot *root, const char *name, mode_t mode,
        const char *const *marks, struct outdir *out, struct error *err)
{
        int r = outroot_may_replace(root, name, marks, err);
        if (r < 0)
                return r;
        struct outdir d = { .root = root,
                .name = xstrdup(name),
                .hidden = xasprintf(".%s.slipway-new", name),
                .fd = -1,
                .mode = mode };
        if (mkdirat(root->fd, d.hidden, 0700) < 0) { /* possibly of a killed run */
                r = errno == EEXIST ? outroot_remove(root, d.hidden, err)
                                    : outdir_fail(&d, NULL, err);
                if (r == 0 && mkdirat(root->fd, d.hidden, 0700) < 0)
                        r = outdir_fail(&d, NULL, err);
        }
        if (r == 0 && (d.fd = openat(root->fd, d.hidden,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
                r = outdir_fail(&d, NULL, err);
        if (r < 0)
                outdir_release(&d);
        else
                *out = d;
        return r;
}

/* Relative and without "..". */
static bool path_is_inside(const char *path)
{
        for (const char *p = path; *p; p += strspn(p, "/")) {
                size_t n = strcspn(p, "/");
                if (n == 0 || (n == 2 && p[0] == '.' && p[1] == '.') || (n == 1 && *p == '.'))
                        return false;
                p += n;
        }
        return *path;
}

static struct outdir_row *outdir_add_row(
        struct outdir_row **rows, size_t *count, size_t *cap, const char *path, size_t len)
{
        if (*count == *cap) {
                *cap = *cap ? *cap * 2 : 64;
                *rows = xrealloc(*rows, *cap * sizeof(**rows));
        }
        struct outdir_row *row = &(*rows)[(*count)++];
        *row = (struct outdir_row){ .path = xstrndup(path, len), .len = len };
        return row;
}

/* The directory of the first `len` bytes of the path, made with its parents if this run has not
 * made it yet. Looks from the newest: consecutive files often have the same directory. */
static struct outdir_row *outdir_make_dir(struct outdir *d, const char *path, size_t len)
{
        while (len && path[len - 1] == '/')
                len--;
        for (size_t i = d->dir_count; i-- > 0;)
                if (d->dirs[i].len == len && !memcmp(d->dirs[i].path, path, len))
                        return &d->dirs[i];
        const char *slash = memrchr(path, '/', len);
        if (slash && !outdir_make_dir(d, path, (size_t)(slash - path)))
                return NULL;
        char *copy CLEANUP(free_p) = xstrndup(path, len);
        if (mkdirat(d->fd, copy, 0755) < 0)
                return NULL;
        struct outdir_row *row = outdir_add_row(&d->dirs, &d->dir_count, &d->dir_cap, path, len);
        row->mode = 0755;
        return row;
}

static int outdir_make_parent(struct outdir *d, const char *path, struct error *err)
{
        const char *slash = strrchr(path, '/');
        if (!path_is_inside(path))
                return error_set(err, EINVAL, EXIT_INTERNAL,
                        "cannot write %s/%s/%s: the path leads out of the directory", d->root->path,
                        d->name, path);
        return slash && !outdir_make_dir(d, path, (size_t)(slash - path))
                       ? outdir_fail(d, path, err)
                       : 0;
}

int outdir_dir(struct outdir *d, const char *path, mode_t mode, struct error *err)
{
        int r = outdir_make_parent(d, path, err);
        struct outdir_row *row = r == 0 ? outdir_make_dir(d, path, strlen(path)) : NULL;
        if (row)
                row->mode = mode;
        return r < 0 || row ? r : outdir_fail(d, path, err);
}

int outdir_file(struct outdir *d, const char *path, const void *data, size_t n, mode_t mode,
        struct error *err)
{
        int r = outdir_make_parent(d, path, err);
        if (r < 0)
                return r;
        int fd CLEANUP(close_p) =
                openat(d->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 || (mode & (d->root->umask | 07000) && fchmod(fd, mode) < 0))
                return outdir_fail(d, path, err);
        if (write_all(fd, data, n) < 0)
                return outdir_fail(d, path, err);
        r = close(fd);
        fd = -1;
        return r < 0 ? outdir_fail(d, path, err) : 0;
}

int outdir_link(struct outdir *d, const char *path, const char *target, struct error *err)
{
        int r = outdir_make_parent(d, path, err);
        if (r == 0)
                outdir_add_row(&d->links, &d->link_count, &d->link_cap, path, strlen(path))
                        ->target = xstrdup(target);
        return r;
}

/* Makes links, then sets modes, the deepest directories first: some become read-only. */
static int outdir_finish(struct outdir *d, struct error *err)
{
        for (size_t i = 0; i < d->link_count; i++)
                if (symlinkat(d->links[i].target, d->fd, d->links[i].path) < 0)
                        return outdir_fail(d, d->links[i].path, err);
        for (size_t i = d->dir_count; i-- > 0;)
                if (d->dirs[i].mode != (0755 & ~d->root->umask) &&
                        fchmodat(d->fd, d->dirs[i].path, d->dirs[i].mode, 0) < 0)
                        return outdir_fail(d, d->dirs[i].path, err);
        return fchmod(d->fd, d->mode) < 0 ? outdir_fail(d, NULL, err) : 0;
}

/* Replaces the older rendering, if there is one. */
static int outdir_replace(struct outdir *d, struct error *err)
{
        int at = d->root->fd, r;
        if (renameat2(at, d->hidden, at, d->name, RENAME_EXCHANGE) == 0)
                return outroot_remove(d->root, d->hidden, err); /* now the old one */
        if (errno == EINVAL || errno == ENOSYS) {               /* the filesystem cannot exchange */
                char *old CLEANUP(free_p) = xasprintf(".%s.slipway-old", d->name);
                if ((r = outroot_remove(d->root, old, err)) < 0)
                        return r;
                if (renameat(at, d->name, at, old) < 0 && errno != ENOENT)
                        return outdir_fail(d, NULL, err);
                if (renameat(at, d->hidden, at, d->name) < 0)
                        return outdir_fail(d, NULL, err);
                return outroot_remove(d->root, old, err);
        }
        return renameat(at, d->hidden, at, d->name) < 0 ? outdir_fail(d, NULL, err) : 0;
}

int outdir_commit(struct outdir *d, struct error *err)
{
        int r = outdir_finish(d, err);
        if (r == 0)
                r = outdir_replace(d, err);
        if (r == 0) {
                close(d->fd);
                d->fd = -1; /* nothing to remove */
        }
        return r;
}

static void outdir_free_rows(struct outdir_row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                free(rows[i].path);
                free(rows[i].target);
        }
        free(rows);
}

void outdir_release(struct outdir *d)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        if (!d->name)
                return;
        if (d->fd >= 0) {
                close(d->fd);
                outroot_remove(d->root, d->hidden, &ignored);
        }
        free(d->name);
        free(d->hidden);
        outdir_free_rows(d->dirs, d->dir_count);
        outdir_free_rows(d->links, d->link_count);
        *d = (struct outdir){ .fd = -1 };
}
