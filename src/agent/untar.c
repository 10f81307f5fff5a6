/* A set of programs: a plain tar (ustar, or GNU's with short names), whose members land flat in one directory. Only regular files count; a member
 * whose name would land anywhere else is refused before anything is written. */
#include <fcntl.h>

#include "agent/agent.h"

#define BLOCK       512
#define MEMBERS_MAX 4096

struct member {
        char name[256];
        uint64_t offset, size;
        struct member *next;
};

static bool octal(const uint8_t *p, size_t n, uint64_t *out)
{
        size_t i = 0;
        *out = 0;
        while (i < n && p[i] == ' ')
                i++;
        for (; i < n && p[i] && p[i] != ' '; i++) {
                if (p[i] < '0' || p[i] > '7' || *out >> 60)
                        return false;
                *out = *out << 3 | (uint64_t)(p[i] - '0');
        }
        return true;
}

static bool sum_right(const uint8_t *h)
{
        uint64_t want, sum = 0;
        for (size_t i = 0; i < BLOCK; i++)
                sum += i >= 148 && i < 156 ? ' ' : h[i];
        return octal(h + 148, 8, &want) && want == sum;
}

/* The name without a leading "./"; false when it is not one plain name. */
static bool member_name(const uint8_t *h, char out[256])
{
        char full[256];
        bool ustar = memcmp(h + 257, "ustar", 5) == 0 && h[345] && h[262] == 0;
        snprintf(full, sizeof(full), "%.*s%s%.*s", ustar ? 155 : 0, (const char *)h + 345, ustar ? "/" : "", 100, (const char *)h);
        const char *p = full;
        while (has_prefix(p, "./"))
                p += 2;
        size_t n = strlen(p);
        if (n && p[n - 1] == '/' && (h[156] == '5' || h[156] == 'g'))
                n--;
        snprintf(out, 256, "%.*s", (int)n, p);
        for (p = out; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '/')
                        return false;
        return !streq(out, "..") && *out != '-' && strlen(out) < 200;
}

static int bad(struct error *err, const char *why) { return error_set(err, EBADMSG, EXIT_STEP, "its archive is not as it should be: %s", why); }

static int read_at(int fd, void *buf, size_t n, uint64_t at) { return pread(fd, buf, n, (off_t)at) == (ssize_t)n ? 0 : -EIO; }

static void members_free(struct member **m)
{
        while (*m) {
                struct member *next = (*m)->next;
                free(*m);
                *m = next;
        }
}

/* One header: 1 with a file, 0 for something to pass over, or an error. */
static int read_member(const uint8_t *h, struct member *m, struct error *err)
{
        if (!sum_right(h) || !octal(h + 124, 12, &m->size))
                return bad(err, "a header is damaged");
        if (h[156] == 'g' || h[156] == 'x') /* notes (times, comments) that say nothing we use */
                return 0;
        if (!member_name(h, m->name))
                return bad(err, "a member's name is not a plain one");
        if (h[156] == '5' && (!*m->name || streq(m->name, "."))) /* the directory itself */
                return 0;
        if (h[156] != '0' && h[156] != 0)
                return bad(err, "a member is not a regular file");
        return *m->name && *m->name != '.' ? 1 : bad(err, "a member has no name or a hidden one");
}

static int members_read(int fd, struct member **out, struct error *err)
{
        struct member *list CLEANUP(members_free) = NULL, **end = &list;
        uint8_t h[BLOCK];
        size_t count = 0;
        struct stat st;
        if (fstat(fd, &st) < 0)
                return bad(err, strerror(errno));
        for (uint64_t at = 0;; at += BLOCK) {
                struct member m = { .offset = at + BLOCK };
                if (read_at(fd, h, BLOCK, at) < 0)
                        return bad(err, "it ends too early");
                if (!h[0])
                        break;
                int r = read_member(h, &m, err);
                if (r < 0)
                        return r;
                if (m.offset > (uint64_t)st.st_size || m.size > (uint64_t)st.st_size - m.offset || ++count > MEMBERS_MAX)
                        return bad(err, "a member is longer than the archive");
                if (r) {
                        *end = xmalloc(sizeof(m));
                        **end = m;
                        end = &(*end)->next;
                }
                at += (m.size + BLOCK - 1) / BLOCK * BLOCK;
        }
        *out = TAKE(list);
        return 0;
}

static int copy_range(int from, uint64_t at, uint64_t n, int to, char digest[SHA256_HEX])
{
        char buf[64 << 10];
        struct sha256 sum;
        int r = 0;
        sha256_init(&sum);
        while (n && r == 0) {
                size_t want = n < sizeof(buf) ? (size_t)n : sizeof(buf);
                if ((r = read_at(from, buf, want, at)) < 0)
                        break;
                if (to >= 0)
                        r = write_all(to, buf, want);
                sha256_add(&sum, buf, want);
                at += want;
                n -= want;
        }
        sha256_end(&sum, digest);
        return r;
}

/* One member, unless it is there already. */
static int put_member(struct agent *a, struct entry *e, int tar, const struct member *m, struct row *row, struct error *err)
{
        struct staged s CLEANUP(stage_release) = { .fd = -1 };
        char *path CLEANUP(free_p) = xasprintf("%s/%s", e->path, m->name), *full CLEANUP(free_p) = agent_path(a, path), digest[SHA256_HEX];
        unsigned uid, gid;
        int r = entry_owner(e, &uid, &gid, err);
        struct row_member *note = row_member_add(row, path);
        if (r < 0 || (r = stage_open(a, path, &s, err)) < 0)
                return r;
        if ((r = copy_range(tar, m->offset, m->size, s.fd, note->digest)) < 0 || (r = own(s.fd, e->mode, uid, gid)) < 0)
                return error_set(err, -r, EXIT_STEP, "cannot write %s: %s", path, strerror(-r));
        if (print_take(full, &note->print) && note->print.mode == (S_IFREG | e->mode) && note->print.uid == uid && note->print.gid == gid &&
                file_digest(full, digest) && streq(digest, note->digest))
                return 0;
        return stage_commit(a, &s, &note->print, err);
}

static bool has_member(const struct row *row, const char *path)
{
        for (size_t i = 0; i < row->member_count; i++)
                if (streq(row->members[i].path, path))
                        return true;
        return false;
}

/* What the last archive had and this one has not. */
static void remove_others(struct agent *a, struct row *old, const struct row *row)
{
        for (size_t i = 0; i < old->member_count; i++) {
                struct error err CLEANUP(error_release) = { 0 };
                if (!has_member(row, old->members[i].path))
                        before_restore(a, old->members[i].path, &err);
        }
        row_members_clear(old);
}

static int put_set(struct agent *a, struct entry *e, struct error *err)
{
        struct member *list CLEANUP(members_free) = NULL;
        char *blob CLEANUP(free_p) = store_path(a, e->digest);
        int fd CLEANUP(close_p) = open(blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) {
                error_set(err, ENODATA, EXIT_STEP, "its content was not sent");
                return error_hint(err, "run again");
        }
        int r = members_read(fd, &list, err);
        for (struct member *m = list; m && r == 0; m = m->next) {
                char *path CLEANUP(free_p) = xasprintf("%s/%s", e->path, m->name);
                r = before_keep(a, path, err);
        }
        if (r < 0 || (r = before_flush(a, err)) < 0)
                return r;
        struct row *row = record_entry(a, e), old = { .members = row->members, .member_count = row->member_count };
        row->members = NULL;
        row->member_count = 0;
        row->digest[0] = 0;
        for (struct member *m = list; m && r == 0; m = m->next)
                r = put_member(a, e, fd, m, row, err);
        if (r < 0) { /* what may be there is remembered until a run gets through */
                for (size_t i = 0; i < old.member_count; i++)
                        if (!has_member(row, old.members[i].path))
                                row_member_add(row, old.members[i].path);
                row_members_clear(&old);
                return r;
        }
        char *any CLEANUP(free_p) = xasprintf("%s%s/x", a->root, e->path);
        sync_dir(any);
        memcpy(row->digest, e->digest, SHA256_HEX);
        remove_others(a, &old, row);
        return 0;
}

void apply_sets(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                if (!(e[i].flags & SPEC_SET))
                        apply_files(a, &e[i], 1);
                else if (e[i].state != STATE_SAME && put_set(a, &e[i], &err) < 0)
                        entry_failed(a, &e[i], &err);
                else {
                        record_entry(a, &e[i]);
                        entry_report(a, &e[i], e[i].state);
                }
        }
}
