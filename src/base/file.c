#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"

char *path_join(const char *a, const char *b)
{
        return xasprintf("%s%s%s", a, !*a || has_suffix(a, "/") ? "" : "/", b);
}

/* The descriptor that is checked is the one that is read, so that the file cannot be
 * exchanged in between. */
static int file_secret_check(const char *path, const struct stat *st, struct error *err)
{
        if (!S_ISREG(st->st_mode) || !(st->st_mode & (S_IRWXG | S_IRWXO)))
                return 0;
        error_set(err, EACCES, EXIT_CONFIG, "others may read %s (its mode is %04o)", path,
                st->st_mode & 07777);
        return error_hint(err, "restrict it to its owner: chmod 600 %s", path);
}

static int file_read_as(
        const char *path, bool secret, size_t max, struct str *out, struct error *err)
{
        bool in = streq(path, "-");
        int fd CLEANUP(close_p) =
                in ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot read %s: %s", path, strerror(errno));
        if (S_ISDIR(st.st_mode))
                return error_set(
                        err, EISDIR, EXIT_INTERNAL, "cannot read %s: it is a directory", path);
        if (!in && !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
                return error_set(err, EINVAL, EXIT_INTERNAL,
                        "cannot read %s: it is not a regular file", path);
        if (secret && file_secret_check(path, &st, err) < 0)
                return -err->code;
        if (!in && S_ISFIFO(st.st_mode)) /* a shell's <(…): wait for its writer */
                fcntl(fd, F_SETFL, 0);
        if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > max)
                return error_set(err, EFBIG, EXIT_INTERNAL,
                        "cannot read %s: %jd bytes, the maximum is %zu MiB", path,
                        (intmax_t)st.st_size, max >> 20);
        for (;;) {
                str_reserve(out, 64 << 10);
                ssize_t n = read(fd, out->data + out->len, 64 << 10);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_set(err, errno, EXIT_INTERNAL, "cannot read %s: %s", path,
                                strerror(errno));
                if (n == 0)
                        return 0;
                out->len += (size_t)n;
                out->data[out->len] = 0;
                if (out->len > max)
                        return error_set(err, EFBIG, EXIT_INTERNAL,
                                "cannot read %s: more than the maximum of %zu MiB", path,
                                max >> 20);
        }
}

int file_read(const char *path, size_t max, struct str *out, struct error *err)
{
        return file_read_as(path, false, max, out, err);
}

int file_read_secret(const char *path, size_t max, struct str *out, struct error *err)
{
        return file_read_as(path, true, max, out, err);
}

/* The file has the same bytes and mode already. */
static bool unchanged(const char *path, const void *data, size_t n, mode_t mode)
{
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != n ||
                (st.st_mode & 07777) != mode)
                return false;
        char buf[16 << 10];
        for (size_t off = 0; off < n;) {
                ssize_t r = read(fd, buf, sizeof(buf));
                if (r <= 0 || off + (size_t)r > n ||
                        memcmp(buf, (const char *)data + off, (size_t)r))
                        return false;
                off += (size_t)r;
        }
        return true;
}

int write_all(int fd, const void *data, size_t n)
{
        const char *p = data;
        while (n) {
                ssize_t w = write(fd, p, n);
                if (w < 0 && errno == EINTR)
                        continue;
                if (w < 0)
                        return -errno;
                p += w;
                n -= (size_t)w;
        }
        return 0;
}

/* A name may be lost in a power cut until its directory is on disk too. */
static int sync_parent(const char *path)
{
        char *dir CLEANUP(free_p) = xstrdup(path);
        char *slash = strrchr(dir, '/');
        if (slash)
                *(slash == dir ? slash + 1 : slash) = 0;
        int fd CLEANUP(close_p) = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int file_write(const char *path, const void *data, size_t n, mode_t mode, unsigned flags,
        bool *changed, struct error *err)
{
        if (changed)
                *changed = false;
        if (unchanged(path, data, n, mode))
                return 0;
        char *tmp CLEANUP(free_p) = xasprintf("%s.tmp.%d", path, (int)getpid());
        int fd CLEANUP(close_p) =
                open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot write %s: %s", path, strerror(errno));
        /* independent of the umask */
        int r = fchmod(fd, mode) < 0 ? -errno : write_all(fd, data, n);
        if (r == 0 && flags & FILE_SYNC && fsync(fd) < 0)
                r = -errno;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        fd = -1;
        if (r == 0 && rename(tmp, path) < 0)
                r = -errno;
        if (r < 0) {
                unlink(tmp);
                return error_set(err, -r, EXIT_INTERNAL, "cannot write %s: %s", path, strerror(-r));
        }
        if (flags & FILE_SYNC && (r = sync_parent(path)) < 0)
                return error_set(err, -r, EXIT_INTERNAL, "cannot write %s: %s", path, strerror(-r));
        if (changed)
                *changed = true;
        return 0;
}

int dir_make(const char *path, mode_t mode, struct error *err)
{
        char *copy CLEANUP(free_p) = xstrdup(path);
        for (char *p = copy + 1; *copy && *p; p++) {
                if (*p != '/')
                        continue;
                *p = 0;
                if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                        return error_set(err, errno, EXIT_INTERNAL,
                                "cannot make the directory %s: %s", copy, strerror(errno));
                *p = '/';
        }
        if (mkdir(path, mode) == 0)
                return chmod(path, mode) < 0
                               ? error_set(err, errno, EXIT_INTERNAL,
                                         "cannot make the directory %s: %s", path, strerror(errno))
                               : 0;
        struct stat st;
        if (errno != EEXIST)
                return error_set(err, errno, EXIT_INTERNAL, "cannot make the directory %s: %s",
                        path, strerror(errno));
        if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return error_set(err, ENOTDIR, EXIT_INTERNAL,
                        "cannot make the directory %s: a file of that name is in the way", path);
        return 0;
}

static int remove_at(int at, const char *name)
{
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return unlinkat(at, name, 0) < 0 && errno != ENOENT ? -errno : 0;
        DIR *d = fdopendir(fd);
        if (!d) {
                close(fd);
                return -ENOMEM;
        }
        int r = 0;
        for (struct dirent *e; r == 0 && (e = readdir(d));)
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        r = remove_at(dirfd(d), e->d_name);
        closedir(d);
        if (r == 0 && unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                r = -errno;
        return r;
}

int dir_remove(const char *path, struct error *err)
{
        int r = remove_at(AT_FDCWD, path);
        return r < 0 ? error_set(err, -r, EXIT_INTERNAL, "cannot remove %s: %s", path, strerror(-r))
                     : 0;
}

/* Writes the holder of the lock into the file. */
static void write_holder(int fd, const char *what)
{
        struct passwd *pw = getpwuid(getuid());
        char host[65] = "", when[32] = "";
        time_t now = time(NULL);
        struct tm tm;
        gethostname(host, sizeof(host) - 1);
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &tm));
        char *text CLEANUP(free_p) = xasprintf("%s, process %d of %s on %s, since %s\n", what,
                (int)getpid(), pw ? pw->pw_name : "an unnamed user", host, when);
        if (ftruncate(fd, 0) == 0)
                (void)!pwrite(fd, text, strlen(text), 0);
}

int lock_take(const char *path, const char *what, int *out, struct error *err)
{
        int fd CLEANUP(close_p) = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return error_set(err, errno, EXIT_STATE, "cannot open the lock %s: %s", path,
                        strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                int code = errno;
                char holder[256] = "";
                ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);
                holder[n > 0 ? strcspn(holder, "\n") : 0] = 0;
                error_set(err, code, EXIT_STATE, "%s is locked by %s", path,
                        *holder ? holder : "another run");
                return error_hint(
                        err, "wait for that run to end; the lock is released with its process");
        }
        write_holder(fd, what);
        *out = fd;
        fd = -1;
        return 0;
}
