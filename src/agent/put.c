/* Files are written beside their path, synced and renamed. Consecutive files are written first and
 * renamed together, so the disk is waited for once, not once per file. */
#include <fcntl.h>

#include "agent/agent.h"

#define BATCH 64

char *agent_path(const struct agent *a, const char *path)
{
        return xasprintf("%s%s", a->root, path);
}

char *temp_name(const char *full)
{
        const char *slash = strrchr(full, '/');
        return xasprintf("%.*s/.%s.slipway", (int)(slash - full), full, slash + 1);
}

void temp_remove(struct agent *a, const char *path)
{
        char *full CLEANUP(free_p) = agent_path(a, path), *temp CLEANUP(free_p) = temp_name(full);
        unlink(temp);
}

/* Changes only what differs: without root a file may have the right owner already. */
int own(int fd, unsigned mode, unsigned uid, unsigned gid)
{
        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
                return -errno;
        return fchmod(fd, mode) < 0 ? -errno : 0;
}

void sync_dir(const char *full)
{
        char *dir CLEANUP(free_p) = xstrdup(full), *slash = strrchr(dir, '/');
        *(slash == dir ? slash + 1 : slash) = 0;
        int fd CLEANUP(close_p) = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
                fsync(fd);
}

bool file_digest(const char *full, char out[SHA256_HEX])
{
        int fd CLEANUP(close_p) =
                open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && sha256_fd(fd, out) == 0;
}

int make_parents(struct agent *a, const char *path, struct error *err)
{
        char *part CLEANUP(free_p) = xstrdup(path);
        for (char *p = strchr(part + 1, '/'); p; p = strchr(p + 1, '/')) {
                *p = 0;
                char *full CLEANUP(free_p) = agent_path(a, part);
                if (mkdir(full, 0755) == 0) {
                        (void)!chmod(full, 0755); /* independent of the umask */
                        before_made(a, part);
                } else if (errno != EEXIST)
                        return error_set(err, errno, EXIT_STEP,
                                "cannot create the directory %s: %s", part, strerror(errno));
                *p = '/';
        }
        return 0;
}

int stage_open(struct agent *a, const char *path, struct staged *s, struct error *err)
{
        int r = make_parents(a, path, err);
        if (r < 0)
                return r;
        s->path = xstrdup(path);
        s->full = agent_path(a, path);
        s->temp = temp_name(s->full);
        unlink(s->temp);
        if (s->blob && link(s->blob, s->temp) == 0) {
                s->fd = open(s->temp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
                s->linked = s->fd >= 0;
        } else
                s->fd = open(s->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        return s->fd < 0 ? error_set(err, errno, EXIT_STEP,
                                   "cannot create a file in its directory: %s", strerror(errno))
                         : 0;
}

int stage_commit(struct agent *a, struct staged *s, struct print *print, struct error *err)
{
        int r = fsync(s->fd) < 0 ? -errno : 0;
        (void)a;
        if (r == 0 && s->once) { /* never replaces a file that appeared meanwhile */
                if (link(s->temp, s->full) < 0 && errno != EEXIST)
                        r = -errno;
                unlink(s->temp);
        } else if (r == 0 && rename(s->temp, s->full) < 0)
                r = -errno;
        if (r == -EISDIR)
                return error_set(err, EISDIR, EXIT_STEP, "a directory of that name exists");
        if (r < 0)
                return error_set(
                        err, -r, EXIT_STEP, "cannot rename it to its path: %s", strerror(-r));
        free_p(&s->temp);
        if (s->linked)
                unlink(s->blob);
        print_take(s->full, print);
        return 0;
}

void stage_release(struct staged *s)
{
        if (s->temp)
                unlink(s->temp);
        close_p(&s->fd);
        char **texts[] = { &s->path, &s->full, &s->temp, &s->blob };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                free_p(texts[i]);
}

static int copy_blob(const char *blob, int to, struct error *err)
{
        char buf[64 << 10];
        int fd CLEANUP(close_p) = open(blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), r = 0;
        ssize_t n = 0;
        while (fd >= 0 && r == 0 && (n = read(fd, buf, sizeof(buf))) > 0)
                r = write_all(to, buf, (size_t)n);
        if (fd < 0 || n < 0)
                r = -errno;
        return r < 0 ? error_set(err, -r, EXIT_STEP, "cannot write it: %s", strerror(-r)) : 0;
}

/* The blob itself becomes the file when no other entry needs it. Not under SELinux: it would keep
 * the label of the store. */
static bool blob_shared(const struct agent *a, const struct entry *e)
{
        if (access("/sys/fs/selinux/enforce", F_OK) == 0)
                return true;
        for (size_t i = 0; i < a->count; i++)
                if (&a->entries[i] != e && a->entries[i].blob &&
                        streq(a->entries[i].digest, e->digest))
                        return true;
        return false;
}

static int stage_entry(struct agent *a, struct entry *e, struct staged *s, struct error *err)
{
        unsigned uid, gid;
        int r = entry_owner(e, &uid, &gid, err);
        char *blob CLEANUP(free_p) = e->blob ? store_path(a, e->digest) : NULL;
        *s = (struct staged){ .e = e, .fd = -1, .once = spec_keeps(e->flags) };
        if (r < 0)
                return r;
        if (blob && !store_has(a, e->digest)) {
                error_set(err, ENODATA, EXIT_STEP, "its content is not in the store of the node");
                return error_hint(err, "run again");
        }
        if (blob && !blob_shared(a, e))
                s->blob = xstrdup(blob);
        if ((r = stage_open(a, e->path, s, err)) < 0)
                return r;
        if (blob && !s->linked)
                r = copy_blob(blob, s->fd, err);
        else if (!blob && (r = write_all(s->fd, e->content, e->len)) < 0)
                error_set(err, -r, EXIT_STEP, "cannot write it: %s", strerror(-r));
        if (r == 0 && (r = own(s->fd, e->mode, uid, gid)) < 0)
                error_set(err, -r, EXIT_STEP, "cannot set its owner and mode: %s", strerror(-r));
        /* starts writing; fsync comes with the whole batch */
        if (r == 0)
                sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        return r;
}

static bool same_dir(const char *a, const char *b)
{
        size_t n = (size_t)(strrchr(a, '/') - a);
        return (size_t)(strrchr(b, '/') - b) == n && strncmp(a, b, n) == 0;
}

static void files_commit(struct agent *a, struct staged *s, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct entry *e = s[i].e;
                struct row *row = record_entry(a, e);
                if (stage_commit(a, &s[i], &row->print, &err) < 0) {
                        entry_failed(a, e, &err);
                        continue;
                }
                memcpy(row->digest, e->digest, SHA256_HEX);
                a->reload |= is_unit_file(e->path);
                entry_report(a, e, e->state);
        }
        for (size_t i = 0; i < n; i++)
                if (i + 1 == n || !same_dir(s[i].full, s[i + 1].full))
                        sync_dir(s[i].full);
        for (size_t i = 0; i < n; i++)
                stage_release(&s[i]);
}

/* The content is unchanged, but not the mode or owner. */
static int set_meta(struct agent *a, struct entry *e, struct error *err)
{
        unsigned uid, gid;
        char *full CLEANUP(free_p) = agent_path(a, e->path);
        int r = entry_owner(e, &uid, &gid, err);
        if (r < 0)
                return r;
        int fd CLEANUP(close_p) = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        r = fd < 0 ? -errno : own(fd, e->mode, uid, gid);
        return r < 0 ? error_set(err, -r, EXIT_STEP, "cannot set its owner and mode: %s",
                               strerror(-r))
                     : 0;
}

/* Updates the record without writing the file. */
static void file_settle(struct agent *a, struct entry *e, enum wire_state state)
{
        struct row *row = record_entry(a, e);
        char *full CLEANUP(free_p) = agent_path(a, e->path);
        memcpy(row->digest, e->digest, SHA256_HEX);
        print_take(full, &row->print);
        entry_report(a, e, state);
}

void apply_files(struct agent *a, struct entry *e, size_t n)
{
        struct staged batch[BATCH];
        size_t staged = 0;
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                if (e[i].state == STATE_SAME) {
                        file_settle(a, &e[i], STATE_SAME);
                } else if (e[i].content_same) {
                        if (set_meta(a, &e[i], &err) < 0)
                                entry_failed(a, &e[i], &err);
                        else
                                file_settle(a, &e[i], STATE_CHANGED);
                } else if (stage_entry(a, &e[i], &batch[staged], &err) < 0) {
                        stage_release(&batch[staged]);
                        entry_failed(a, &e[i], &err);
                } else
                        staged++;
                if (staged == BATCH) {
                        files_commit(a, batch, staged);
                        staged = 0;
                }
        }
        files_commit(a, batch, staged);
}

static int dir_put(struct agent *a, struct entry *e, struct error *err)
{
        char *full CLEANUP(free_p) = agent_path(a, e->path);
        struct stat st;
        int r = make_parents(a, e->path, err);
        if (r < 0)
                return r;
        if (mkdir(full, 0700) < 0 && errno != EEXIST)
                return error_set(err, errno, EXIT_STEP, "cannot create it: %s", strerror(errno));
        if (stat(full, &st) < 0 || !S_ISDIR(st.st_mode))
                return error_set(
                        err, ENOTDIR, EXIT_STEP, "something that is not a directory exists there");
        return set_meta(a, e, err);
}

void apply_dirs(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                if (e[i].state != STATE_SAME && dir_put(a, &e[i], &err) < 0)
                        entry_failed(a, &e[i], &err);
                else {
                        dir_print(a, e[i].path, &record_entry(a, &e[i])->print);
                        entry_report(a, &e[i], e[i].state);
                }
        }
}

static int link_put(struct agent *a, struct entry *e, struct error *err)
{
        char *full CLEANUP(free_p) = agent_path(a, e->path),
                   *temp CLEANUP(free_p) = temp_name(full);
        int r = make_parents(a, e->path, err);
        if (r < 0)
                return r;
        unlink(temp);
        if (symlink(e->target, temp) < 0 || rename(temp, full) < 0) {
                r = -errno;
                unlink(temp);
                return error_set(err, -r, EXIT_STEP, "cannot create it: %s",
                        r == -EISDIR ? "a directory of that name exists" : strerror(-r));
        }
        sync_dir(full);
        a->reload |= is_unit_file(e->path);
        return 0;
}

void apply_links(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                if (e[i].state != STATE_SAME && link_put(a, &e[i], &err) < 0)
                        entry_failed(a, &e[i], &err);
                else {
                        record_entry(a, &e[i]);
                        entry_report(a, &e[i], e[i].state);
                }
        }
}
