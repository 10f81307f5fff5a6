/* What was at a path before the agent first changed it: /var/lib/slipway/before/index has one line
 * per path, and the files are beside it by number. Entries that are removed from the spec are
 * restored from it, and a reset restores the whole host. */
#include <dirent.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "base/file.h"

#define INDEX_MAX ((size_t)32 << 20)

static struct original *original_add(
        struct agent *a, const char *kind, const char *key, const char *value)
{
        if (a->before.count == a->before.cap) {
                a->before.cap = a->before.cap ? a->before.cap * 2 : 64;
                a->before.v = xrealloc(a->before.v, a->before.cap * sizeof(*a->before.v));
        }
        struct original *o = &a->before.v[a->before.count++];
        *o = (struct original){
                .kind = xstrdup(kind), .key = xstrdup(key), .value = xstrdup(value)
        };
        a->before.dirty = true;
        return o;
}

/* Removes saved files without a line in the index: a run was killed before it wrote it. */
static void before_remove_strays(struct agent *a)
{
        char *path CLEANUP(free_p) = path_join(a->state, "before");
        DIR *d = a->ours ? opendir(path) : NULL;
        for (struct dirent *e; d && (e = readdir(d));) {
                bool named = e->d_name[0] < '0' || e->d_name[0] > '9';
                for (size_t i = 0; i < a->before.count && !named; i++)
                        named = streq(a->before.v[i].kind, "file") &&
                                streq(a->before.v[i].value, e->d_name);
                if (!named)
                        unlinkat(dirfd(d), e->d_name, 0);
        }
        if (d)
                closedir(d);
}

static void before_load(struct agent *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(a->state, "before/index"), *save = NULL;
        if (a->before.loaded)
                return;
        a->before.loaded = true;
        bool there = file_read(path, INDEX_MAX, &s, &err) == 0 && s.len;
        for (char *line = there ? strtok_r(s.data, "\n", &save) : NULL; line;
                line = strtok_r(NULL, "\n", &save)) {
                char *f[6], *p = line;
                size_t n = 0;
                for (; p && n < 6; n++) {
                        f[n] = p;
                        p = n < 5 ? strchr(p, '\t') : NULL;
                        if (p)
                                *p++ = 0;
                }
                if (n < 6)
                        continue;
                struct original *o = original_add(a, f[0], f[5], f[4]);
                o->mode = (unsigned)strtoul(f[1], NULL, 8);
                o->uid = (unsigned)strtoul(f[2], NULL, 10);
                o->gid = (unsigned)strtoul(f[3], NULL, 10);
                size_t number = streq(o->kind, "file") ? strtoul(o->value, NULL, 10) : 0;
                a->before.next = number > a->before.next ? number : a->before.next;
        }
        a->before.dirty = false;
        if (there || err.code == ENOENT)
                before_remove_strays(a);
}

/* Kinds that describe no content of a path: values of sysctls, created parent directories, states
 * of units, packages, users, tables of rules, and names in a directory. */
static bool before_is_value(const char *kind)
{
        return word_in("sysctl made unit package table lay user", kind);
}

static struct original *original_find(struct agent *a, const char *kind, const char *key)
{
        before_load(a);
        for (size_t i = 0; i < a->before.count; i++) {
                struct original *o = &a->before.v[i];
                if (streq(o->key, key) && (kind ? streq(o->kind, kind) : !before_is_value(o->kind)))
                        return o;
        }
        return NULL;
}

static void original_drop(struct agent *a, struct original *o)
{
        free(o->key);
        free(o->kind);
        free(o->value);
        *o = a->before.v[--a->before.count];
        a->before.dirty = true;
}

void before_release(struct agent *a)
{
        while (a->before.count)
                original_drop(a, &a->before.v[0]);
        free(a->before.v);
        memset(&a->before, 0, sizeof(a->before));
}

int before_flush(struct agent *a, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(a->state, "before/index");
        if (!a->before.dirty)
                return 0;
        for (size_t i = 0; i < a->before.count; i++) {
                const struct original *o = &a->before.v[i];
                str_addf(&s, "%s\t%o\t%u\t%u\t%s\t%s\n", o->kind, o->mode, o->uid, o->gid, o->value,
                        o->key);
        }
        int r = file_write(path, str_text(&s), s.len, 0600, FILE_SYNC, NULL, err);
        a->before.dirty = r < 0;
        return r;
}

static int before_copy(const char *from, const char *to, unsigned mode)
{
        char buf[64 << 10];
        ssize_t n;
        int r = 0, in CLEANUP(close_p) = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW),
            out CLEANUP(close_p) = -1;
        if (in < 0 ||
                (out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)) < 0)
                return -errno;
        while (r == 0 && (n = read(in, buf, sizeof(buf))) != 0)
                r = n < 0 ? -errno : write_all(out, buf, (size_t)n);
        if (r == 0 && fsync(out) < 0)
                r = -errno;
        if (r < 0)
                unlink(to);
        return r;
}

/* A hard link where possible: the agent never writes into a file, it replaces it. */
static int before_keep_file(struct agent *a, const char *full, struct str *value)
{
        char *to CLEANUP(free_p) = NULL;
        int r;
        do {
                free(to);
                to = xasprintf("%s/before/%zu", a->state, ++a->before.next);
                r = link(full, to) < 0 ? -errno : 0;
                if (r == -EXDEV || r == -EPERM || r == -EMLINK || r == -ENOTSUP)
                        r = before_copy(full, to, 0600);
        } while (r == -EEXIST); /* saved by a run that was killed before it wrote the index */
        str_addf(value, "%zu", a->before.next);
        return r;
}

int before_keep(struct agent *a, const char *path, struct error *err)
{
        struct str value CLEANUP(str_release) = { 0 };
        struct stat st;
        char *full CLEANUP(free_p) = agent_path(a, path);
        if (original_find(a, NULL, path))
                return 0;
        if (lstat(full, &st) < 0) {
                original_add(a, "absent", path, "-");
                return 0;
        }
        const char *kind = S_ISREG(st.st_mode)   ? "file"
                           : S_ISLNK(st.st_mode) ? "link"
                           : S_ISDIR(st.st_mode) ? "dir"
                                                 : "other";
        int r = 0;
        if (*kind == 'f')
                r = before_keep_file(a, full, &value);
        else if (*kind == 'l') {
                char target[4096];
                ssize_t n = readlink(full, target, sizeof(target) - 1);
                str_addn(&value, target, n > 0 ? (size_t)n : 0);
        } else
                str_add(&value, "-");
        if (r < 0)
                return error_set(err, -r, EXIT_STEP, "cannot save the original of %s: %s", path,
                        strerror(-r));
        struct original *o = original_add(a, kind, path, str_text(&value));
        o->mode = st.st_mode & 07777;
        o->uid = st.st_uid;
        o->gid = st.st_gid;
        return 0;
}

void before_made(struct agent *a, const char *path) { before_value(a, "made", path, "-"); }

void before_value(struct agent *a, const char *kind, const char *key, const char *value)
{
        if (!original_find(a, kind, key))
                original_add(a, kind, key, value);
}

const char *before_get(struct agent *a, const char *kind, const char *key)
{
        const struct original *o = original_find(a, kind, key);
        return o ? o->value : NULL;
}

bool before_is(struct agent *a, const char *kind, const char *key)
{
        return original_find(a, kind, key) != NULL;
}

bool before_unit_was(struct agent *a, const char *unit, const char *word)
{
        return word_in(before_get(a, "unit", unit), word);
}

void before_each(struct agent *a, const char *kind,
        void (*fn)(struct agent *a, const char *key, const char *value))
{
        before_load(a);
        for (size_t i = 0; i < a->before.count; i++)
                if (streq(a->before.v[i].kind, kind))
                        fn(a, a->before.v[i].key, a->before.v[i].value);
}

/* Removes parent directories that were created for this path alone. */
static void remove_parents(struct agent *a, const char *path)
{
        char *p CLEANUP(free_p) = xstrdup(path), *slash;
        while ((slash = strrchr(p, '/')) && slash > p) {
                *slash = 0;
                struct original *o = original_find(a, "made", p);
                char *full CLEANUP(free_p) = agent_path(a, p);
                if (!o || rmdir(full) < 0)
                        return;
                original_drop(a, o);
        }
}

static int restore_file(struct agent *a, const struct original *o, const char *full)
{
        char *from CLEANUP(free_p) = xasprintf("%s/before/%s", a->state, o->value);
        char *temp CLEANUP(free_p) = temp_name(full);
        unlink(temp);
        int r = link(from, temp) < 0 ? before_copy(from, temp, 0600) : 0;
        if (r == 0 && (chown(temp, o->uid, o->gid) < 0 || chmod(temp, o->mode) < 0 ||
                              rename(temp, full) < 0))
                r = -errno;
        /* still there after a failure, or when both names are one file: an earlier run
         * was killed here */
        unlink(temp);
        return r; /* the saved file is removed when no line of the index names it */
}

static int restore_link(const struct original *o, const char *full)
{
        char *temp CLEANUP(free_p) = temp_name(full);
        unlink(temp);
        return symlink(o->value, temp) < 0 || rename(temp, full) < 0 ? -errno : 0;
}

/* Removes only a directory that the agent created and that is empty. */
static int before_remove_dir(const struct original *o, const char *full, bool *stays)
{
        if (!o || !streq(o->kind, "absent") || rmdir(full) == 0)
                return 0;
        *stays = errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY;
        return *stays ? 0 : -errno;
}

int before_restore(struct agent *a, const char *path, struct error *err)
{
        struct original *o = original_find(a, NULL, path);
        char *full CLEANUP(free_p) = agent_path(a, path);
        struct stat st;
        bool dir = lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
        int r = 0, back = 0;
        bool stays = false;
        if (o && streq(o->kind, "file") && !dir)
                r = restore_file(a, o, full), back = 1;
        else if (o && streq(o->kind, "link") && !dir)
                r = restore_link(o, full), back = 1;
        else if (o && streq(o->kind, "dir") && dir)
                r = chown(full, o->uid, o->gid) < 0 || chmod(full, o->mode) < 0 ? -errno : 0,
                back = 1;
        else if (dir)
                r = before_remove_dir(o, full, &stays);
        else if (unlink(full) < 0 && errno != ENOENT)
                r = -errno;
        if (r < 0)
                return error_set(
                        err, -r, EXIT_STEP, "cannot restore or remove %s: %s", path, strerror(-r));
        sync_dir(full);
        if (o)
                original_drop(a, o);
        if (stays)
                before_made(a, path); /* removed later, together with the last path in it */
        else if (!back)
                remove_parents(a, path);
        return stays ? 2 : back;
}
