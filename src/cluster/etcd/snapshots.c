#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/print.h"
#include "base/file.h"
#include "cluster/etcd/snapshots.h"

#define DESCRIPTION_MAX (64 << 10)
#define SLACK           ((int64_t)32 << 20) /* free space beyond the file's size */

static char *own_dir(const struct site *s) { return path_join(s->identity.dir, "snapshots"); }

static const char *snapshots_dir_of(struct arena *a, const char *path)
{
        const char *slash = strrchr(path, '/');
        return !slash ? "." : slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
}

/* ---- new snapshots ---- */

int snapshot_name(
        struct snapshot *s, struct site *site, const char *dir, const char *to, struct error *err)
{
        char stamp[32], *own CLEANUP(free_p) = own_dir(site);
        time_t now = time(NULL);
        struct tm tm;
        strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
        *s = (struct snapshot){ .site = site,
                .revision = -1,
                .keys = -1,
                .cluster = site->cluster->name,
                .id = site->identity.prefix };
        if (dir && to) {
                error_set(err, EINVAL, EXIT_USAGE, "--dir and --to exclude each other");
                return error_hint(err, "give one of them");
        }
        if (to) {
                s->path = arena_strdup(site->arena, to);
        } else {
                s->path = arena_printf(
                        site->arena, "%s/%s-%s.db", dir ? dir : own, site->cluster->name, stamp);
                if (!dir && dir_make(own, 0700, err) < 0)
                        return -err->code;
        }
        const char *where = snapshots_dir_of(site->arena, s->path);
        struct stat st;
        if (stat(where, &st) < 0 || !S_ISDIR(st.st_mode)) {
                error_set(err, ENOENT, EXIT_USAGE,
                        "there is no directory %s to write the snapshot to", where);
                return error_hint(err, "create it, or name another directory");
        }
        if (access(s->path, F_OK) == 0) {
                error_set(err, EEXIST, EXIT_USAGE, "%s exists already", s->path);
                return error_hint(err, "name another file, or remove it");
        }
        strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
        s->taken = arena_strdup(site->arena, stamp);
        return 0;
}

int snapshot_room(const struct snapshot *s, struct error *err)
{
        struct statvfs v;
        const char *dir = snapshots_dir_of(s->site->arena, s->path);
        if (statvfs(dir, &v) < 0)
                return error_set(err, errno, EXIT_INTERNAL, "cannot read the free space of %s: %s",
                        dir, strerror(errno));
        int64_t room = (int64_t)v.f_bavail * (int64_t)v.f_frsize, need = s->expected + SLACK;
        if (room >= need)
                return 0;
        error_set(err, ENOSPC, EXIT_PREFLIGHT,
                "%s has no room for the snapshot: %" PRId64 " MB are free and %" PRId64
                " MB are needed",
                dir, room >> 20, need >> 20);
        return error_hint(err, "make room there, or name another place with --dir");
}

json_t *snapshot_json(const struct snapshot *s)
{
        json_t *o = json_object();
        const struct {
                const char *key, *value;
        } texts[] = { { "cluster", s->cluster }, { "id", s->id }, { "node", s->node },
                { "taken", s->taken }, { "etcd", s->version }, { "sha256", s->digest } };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                json_object_set_new(
                        o, texts[i].key, texts[i].value ? json_text(texts[i].value) : json_null());
        json_object_set_new(o, "size", json_integer(s->size));
        json_object_set_new(
                o, "revision", s->revision < 0 ? json_null() : json_integer(s->revision));
        json_object_set_new(o, "keys", s->keys < 0 ? json_null() : json_integer(s->keys));
        return o;
}

int snapshot_describe(const struct snapshot *s, struct error *err)
{
        const char *slash = strrchr(s->path, '/');
        char *sum CLEANUP(free_p) = xasprintf("%s  %s\n", s->digest, slash ? slash + 1 : s->path);
        char *sum_path CLEANUP(free_p) = xasprintf("%s.sha256", s->path),
                       *json_path CLEANUP(free_p) = xasprintf("%s.json", s->path);
        json_t *o = snapshot_json(s);
        char *dump CLEANUP(free_p) = json_dumps(o, JSON_INDENT(2) | JSON_PRESERVE_ORDER),
                   *text CLEANUP(free_p) = xasprintf("%s\n", dump);
        json_decref(o);
        int r = file_write(sum_path, sum, strlen(sum), 0600, FILE_SYNC, NULL, err);
        return r < 0 ? r : file_write(json_path, text, strlen(text), 0600, FILE_SYNC, NULL, err);
}

/* ---- existing snapshots ---- */

static int snapshots_by_name(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The .db files of a directory, the newest last (their names contain the time). Allocated
 * in the arena. */
static size_t snapshots_list(struct arena *a, const char *dir, const char ***out)
{
        DIR *d = opendir(dir);
        size_t n = 0, cap = 0;
        const char **v = NULL;
        for (struct dirent *e; d && (e = readdir(d));) {
                if (!has_suffix(e->d_name, ".db") || e->d_name[0] == '.')
                        continue;
                if (n == cap)
                        v = xrealloc(v, (cap = cap ? cap * 2 : 16) * sizeof(*v));
                v[n++] = arena_strdup(a, e->d_name);
        }
        if (d)
                closedir(d);
        if (n)
                qsort(v, n, sizeof(*v), snapshots_by_name);
        *out = arena_array(a, const char *, n + 1);
        if (n)
                memcpy(*out, v, n * sizeof(*v));
        free(v);
        return n;
}

static int unknown(struct site *site, const char *name, const char *dir, const char **names,
        size_t n, struct error *err)
{
        struct str all CLEANUP(str_release) = { 0 };
        for (size_t i = n > 5 ? n - 5 : 0; i < n; i++)
                str_addf(&all, "%s%s", all.len ? ", " : "", names[i]);
        if (name)
                error_set(err, ENOENT, EXIT_USAGE, "there is no snapshot '%s'", name);
        else
                error_set(err, ENOENT, EXIT_USAGE, "cluster %s has no snapshot here",
                        site->cluster->name);
        return n ? error_hint(err, "the newest under %s: %s", dir, str_text(&all))
                 : error_hint(err, "slipway etcd snapshot takes one");
}

static int snapshots_find(struct snapshot *s, const char *name, struct error *err)
{
        struct site *site = s->site;
        char *dir CLEANUP(free_p) = own_dir(site);
        const char **names;
        size_t n = snapshots_list(site->arena, dir, &names);
        if (!name && n)
                s->path = arena_printf(site->arena, "%s/%s", dir, names[n - 1]);
        else if (name && access(name, F_OK) == 0)
                s->path = arena_strdup(site->arena, name);
        for (size_t i = 0; name && !s->path && i < n; i++)
                if (streq(names[i], name))
                        s->path = arena_printf(site->arena, "%s/%s", dir, name);
        return s->path ? 0 : unknown(site, name, dir, names, n, err);
}

static const char *snapshots_text_at(struct arena *a, const json_t *o, const char *key)
{
        const char *t = json_string_value(json_object_get(o, key));
        return t ? arena_strdup(a, t) : NULL;
}

/* Compares the file with the .sha256 and the .json beside it. */
static int check_digest(struct snapshot *s, const json_t *o, struct error *err)
{
        char *path CLEANUP(free_p) = xasprintf("%s.sha256", s->path);
        struct str text CLEANUP(str_release) = { 0 };
        struct error none CLEANUP(error_release) = { 0 };
        const char *wanted = json_string_value(json_object_get(o, "sha256"));
        if (access(path, F_OK) == 0 && file_read(path, 4096, &text, &none) == 0 && text.len >= 64) {
                str_truncate(&text, 64);
                wanted = str_text(&text);
        }
        if (!wanted || streq(wanted, s->digest))
                return 0;
        error_set(err, EBADMSG, EXIT_STATE,
                "%s is damaged: its digest is not the one written down when it was taken", s->path);
        return error_hint(
                err, "use another snapshot, or fetch this one again from where it was copied to");
}

/* A snapshot identifies its cluster: every namespace's kube-root-ca.crt contains
 * the CA certificate. */
static bool holds_our_ca(const struct snapshot *s, int fd)
{
        const char *pem = s->site->identity.ca[CA_CLUSTER].cert,
                   *line = pem ? strchr(pem, '\n') : NULL;
        if (!line || !s->size)
                return false;
        /* a line from the middle, since all certificates start alike */
        for (int i = 0; i < 3 && strchr(line + 1, '\n'); i++)
                line = strchr(line + 1, '\n');
        size_t n = strcspn(line + 1, "\n");
        void *map = mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
                return false;
        bool found = memmem(map, (size_t)s->size, line + 1, n) != NULL;
        munmap(map, (size_t)s->size);
        return found;
}

static int check_owner(const struct snapshot *s, int fd, bool force, struct error *err)
{
        const struct site *site = s->site;
        if (force)
                return 0;
        if (s->id && !streq(s->id, site->identity.prefix)) {
                error_set(err, EINVAL, EXIT_STATE,
                        "%s is of another cluster (%s, %s), not of %s (%s)", s->path,
                        s->cluster ? s->cluster : "?", s->id, site->cluster->name,
                        site->identity.prefix);
                return error_hint(err, "name a snapshot of this cluster");
        }
        if (s->id || holds_our_ca(s, fd))
                return 0;
        error_set(err, EINVAL, EXIT_STATE,
                "%s was taken in another cluster, or before the CA of this cluster was replaced",
                s->path);
        return error_hint(err,
                "name a snapshot of this cluster; --force uses it anyway; tokens of pods may then be invalid");
}

/* The file of a store begins with two meta pages; the first contains bbolt's magic number. */
static bool is_store(int fd)
{
        uint32_t magic = 0;
        return pread(fd, &magic, sizeof(magic), 16) == sizeof(magic) && magic == 0xED0CDAED;
}

int snapshot_open(
        struct snapshot *s, struct site *site, const char *name, bool force, struct error *err)
{
        struct stat st;
        struct error none CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        *s = (struct snapshot){ .site = site, .revision = -1, .keys = -1 };
        if (snapshots_find(s, name, err) < 0)
                return -err->code;
        int fd CLEANUP(close_p) = open(s->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(
                        err, errno, EXIT_USAGE, "cannot read %s: %s", s->path, strerror(errno));
        if (!S_ISREG(st.st_mode) || !is_store(fd)) {
                error_set(err, EINVAL, EXIT_USAGE, "%s is not an etcd snapshot", s->path);
                return error_hint(err,
                        "name a .db file that slipway etcd snapshot or etcdctl snapshot save wrote");
        }
        s->size = st.st_size;
        int r = sha256_fd(fd, s->digest);
        if (r < 0)
                return error_set(
                        err, -r, EXIT_INTERNAL, "cannot read %s: %s", s->path, strerror(-r));
        char *json_path CLEANUP(free_p) = xasprintf("%s.json", s->path);
        json_t *o = access(json_path, F_OK) == 0 &&
                                    file_read(json_path, DESCRIPTION_MAX, &text, &none) == 0
                            ? json_loads(str_text(&text), 0, NULL)
                            : NULL;
        s->cluster = snapshots_text_at(site->arena, o, "cluster");
        s->id = snapshots_text_at(site->arena, o, "id");
        s->node = snapshots_text_at(site->arena, o, "node");
        s->taken = snapshots_text_at(site->arena, o, "taken");
        s->version = snapshots_text_at(site->arena, o, "etcd");
        if (json_is_integer(json_object_get(o, "revision")))
                s->revision = json_integer_value(json_object_get(o, "revision"));
        if (json_is_integer(json_object_get(o, "keys")))
                s->keys = json_integer_value(json_object_get(o, "keys"));
        r = check_digest(s, o, err);
        json_decref(o);
        return r < 0 ? r : check_owner(s, fd, force, err);
}
