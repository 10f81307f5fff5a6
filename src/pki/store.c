#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include "pki/pki.h"

void (*store_written)(const char *path);

static const char *store_user_name(uid_t uid, char buf[64])
{
        struct passwd *pw = getpwuid(uid);
        if (pw)
                snprintf(buf, 64, "%s", pw->pw_name);
        else
                snprintf(buf, 64, "user %u", (unsigned)uid);
        return buf;
}

static int store_check_owner(const char *path, const struct stat *st, struct error *err)
{
        char theirs[64], ours[64];
        if (st->st_uid == geteuid())
                return 0;
        error_set(err, EPERM, EXIT_STATE, "%s belongs to %s, but slipway runs as %s", path,
                store_user_name(st->st_uid, theirs), store_user_name(geteuid(), ours));
        return error_hint(err, "run as %s, or give another directory with --state", theirs);
}

static int store_check_dir(const char *path, mode_t closed, struct error *err)
{
        struct stat st;
        if (lstat(path, &st) < 0)
                return error_set(
                        err, errno, EXIT_STATE, "cannot read %s: %s", path, strerror(errno));
        if (S_ISLNK(st.st_mode)) {
                error_set(err, ELOOP, EXIT_STATE,
                        "%s is a symbolic link, but the state must be a directory", path);
                return error_hint(
                        err, "remove the link and give the directory itself with --state");
        }
        if (!S_ISDIR(st.st_mode)) {
                error_set(err, ENOTDIR, EXIT_STATE,
                        "%s is not a directory, but the state must be one", path);
                return error_hint(err, "move it away, or give another directory with --state");
        }
        int r = store_check_owner(path, &st, err);
        if (r == 0 && st.st_mode & closed) {
                error_set(err, EPERM, EXIT_STATE,
                        "%s holds keys but is open to other users (mode %04o)", path,
                        (unsigned)st.st_mode & 07777);
                return error_hint(err, "chmod 700 %s", path);
        }
        return r;
}

int store_dir(const char *path, struct error *err)
{
        struct stat st;
        if (lstat(path, &st) < 0 && errno == ENOENT) {
                int r = dir_make(path, 0700, err);
                if (r < 0)
                        return r;
        }
        return store_check_dir(path, 077, err);
}

/* The parent directory may hold other clusters and be readable, but not writable for others. */
int store_open(const char *state, const char *name, char **dir, struct error *err)
{
        char *top CLEANUP(free_p) = xstrdup(*state ? state : ".");
        struct stat st;
        for (size_t n = strlen(top); n > 1 && top[n - 1] == '/'; n--)
                top[n - 1] = 0; /* lstat follows a link when a slash is behind it */
        if (lstat(top, &st) < 0 && errno == ENOENT) {
                int r = dir_make(top, 0700, err);
                if (r < 0)
                        return r;
        }
        int r = store_check_dir(top, 022, err);
        char *path CLEANUP(free_p) = path_join(top, name);
        if (r == 0)
                r = store_dir(path, err);
        if (r == 0)
                *dir = TAKE(path);
        return r;
}

/* NAME.tmp.PID, as file_write makes them. */
static bool is_temporary(const char *name)
{
        const char *t = strstr(name, ".tmp.");
        return t && t[5] && t[5 + strspn(t + 5, "0123456789")] == 0;
}

void store_sweep(const char *path)
{
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
                if (is_temporary(e->d_name))
                        unlinkat(dirfd(d), e->d_name, 0);
        if (d)
                closedir(d);
}

bool store_exists(const char *path)
{
        struct stat st;
        return lstat(path, &st) == 0;
}

bool store_has_files(const char *path)
{
        DIR *d = opendir(path);
        struct stat st;
        bool any = false;
        for (struct dirent *e; d && !any && (e = readdir(d));)
                any = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                      !S_ISDIR(st.st_mode);
        if (d)
                closedir(d);
        return any;
}

static int store_check_file(const char *path, const struct stat *st, bool secret, struct error *err)
{
        if (!S_ISREG(st->st_mode)) {
                error_set(err, EINVAL, EXIT_STATE, "%s is not a regular file", path);
                return error_hint(err, "restore it from a backup");
        }
        if ((size_t)st->st_size > PEM_MAX) {
                error_set(err, EFBIG, EXIT_STATE,
                        "%s is too large for a file of the state: %jd bytes", path,
                        (intmax_t)st->st_size);
                return error_hint(err, "restore it from a backup");
        }
        int r = secret ? store_check_owner(path, st, err) : 0;
        if (r == 0 && secret && st->st_mode & 077) {
                error_set(err, EPERM, EXIT_STATE,
                        "%s holds a secret but is open to other users (mode %04o)", path,
                        (unsigned)st->st_mode & 07777);
                return error_hint(err, "chmod 600 %s, if no other user can have read it", path);
        }
        return r;
}

static int store_read_all(int fd, struct str *out)
{
        for (;;) {
                str_reserve(out, 4096);
                ssize_t n = read(fd, out->data + out->len, out->cap - out->len - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                out->len += (size_t)n;
                out->data[out->len] = 0;
        }
}

int store_read(const char *path, bool secret, struct str *out, struct error *err)
{
        struct stat st;
        int fd CLEANUP(close_p) =
                open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        str_truncate(out, 0);
        if (fd < 0 && errno == ENOENT)
                return -ENOENT;
        if (fd < 0 && errno == ELOOP) {
                error_set(err, ELOOP, EXIT_STATE,
                        "%s is a symbolic link, but must be a regular file", path);
                return error_hint(err, "replace the link with the file itself");
        }
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(
                        err, errno, EXIT_STATE, "cannot read %s: %s", path, strerror(errno));
        int r = store_check_file(path, &st, secret, err);
        if (r < 0)
                return r;
        str_reserve(out, (size_t)st.st_size + 4096);
        r = store_read_all(fd, out);
        return r < 0 ? error_set(err, -r, EXIT_STATE, "cannot read %s: %s", path, strerror(-r)) : 0;
}

int store_write(const char *path, const char *text, size_t n, unsigned flags, struct error *err)
{
        int r = file_write(path, text, n, 0600, flags, NULL, err);
        if (r == 0 && store_written)
                store_written(path);
        return r;
}

/* A user may be named "a/b" or "..": special characters become %XX. */
char *store_name(const char *dir, const char *sub, const char *name)
{
        struct str s = { 0 };
        str_addf(&s, "%s/%s/", dir, sub);
        for (const char *p = name; *p; p++) {
                bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                             (*p >= '0' && *p <= '9') || strchr("-_@", *p) ||
                             (*p == '.' && p > name);
                if (plain)
                        str_addc(&s, *p);
                else
                        str_addf(&s, "%%%02X", (unsigned char)*p);
        }
        str_add(&s, ".pem");
        return str_take(&s);
}
