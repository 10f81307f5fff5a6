/* A set of programs: a plain tar (ustar, or GNU with short names) whose members go flat into one
 * directory. Only regular files are accepted; a member whose name leads elsewhere is refused before
 * anything is written. */
#include <fcntl.h>

#include "agent/agent.h"
#include "base/tar_header.h"

#define MEMBERS_MAX 4096

struct member {
        char name[256];
        uint64_t offset, size;
        struct member *next;
};

/* A plain file name, which cannot leave the directory or be taken for an option. */
static bool member_name(const struct tar_header *h, char out[256])
{
        size_t n = strlen(h->name);
        if (n && h->name[n - 1] == '/' && h->type == '5')
                n--;
        snprintf(out, 256, "%.*s", (int)n, h->name);
        for (const char *p = out; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '/')
                        return false;
        return !streq(out, "..") && *out != '-' && strlen(out) < 200;
}

static int untar_bad(struct error *err, const char *why)
{
        return error_set(err, EBADMSG, EXIT_STEP, "its archive is not valid: %s", why);
}

static int read_at(int fd, void *buf, size_t n, uint64_t at)
{
        return pread(fd, buf, n, (off_t)at) == (ssize_t)n ? 0 : -EIO;
}

static void members_free(struct member **m)
{
        while (*m) {
                struct member *next = (*m)->next;
                free(*m);
                *m = next;
        }
}

/* Reads one header: 1 for a file, 0 for something to skip, or an error. */
static int read_member(const uint8_t *block, struct member *m, struct error *err)
{
        struct tar_header h;
        if (!tar_header_read(block, &h))
                return untar_bad(err, "a header is damaged");
        m->size = h.size;
        if (h.type == 'g' || h.type == 'x') /* extended headers (times, comments): not used */
                return 0;
        if (!member_name(&h, m->name))
                return untar_bad(err, "the name of a member is not a single file name");
        if (h.type == '5' && (!*m->name || streq(m->name, "."))) /* the directory itself */
                return 0;
        if (h.type != '0')
                return untar_bad(err, "a member is not a regular file");
        return *m->name && *m->name != '.'
                       ? 1
                       : untar_bad(err, "a member has no name or a hidden name");
}

static int members_read(int fd, struct member **out, struct error *err)
{
        struct member *list CLEANUP(members_free) = NULL, **end = &list;
        uint8_t h[TAR_BLOCK];
        size_t count = 0;
        struct stat st;
        if (fstat(fd, &st) < 0)
                return untar_bad(err, strerror(errno));
        for (uint64_t at = 0;; at += TAR_BLOCK) {
                struct member m = { .offset = at + TAR_BLOCK };
                if (read_at(fd, h, TAR_BLOCK, at) < 0)
                        return untar_bad(err, "it is truncated");
                if (!h[0])
                        break;
                int r = read_member(h, &m, err);
                if (r < 0)
                        return r;
                if (m.offset > (uint64_t)st.st_size || m.size > (uint64_t)st.st_size - m.offset ||
                        ++count > MEMBERS_MAX)
                        return untar_bad(err, "a member is longer than the archive");
                if (r) {
                        *end = xmalloc(sizeof(m));
                        **end = m;
                        end = &(*end)->next;
                }
                at += tar_padded(m.size);
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

/* Writes one member, unless it is unchanged. */
static int put_member(struct agent *a, struct entry *e, int tar, const struct member *m,
        struct row *row, struct error *err)
{
        struct staged s CLEANUP(stage_release) = { .fd = -1 };
        char *path CLEANUP(free_p) = xasprintf("%s/%s", e->path, m->name),
                   *full CLEANUP(free_p) = agent_path(a, path), digest[SHA256_HEX];
        unsigned uid, gid;
        int r = entry_owner(e, &uid, &gid, err);
        struct row_member *note = row_member_add(row, path);
        if (r < 0 || (r = stage_open(a, path, &s, err)) < 0)
                return r;
        if ((r = copy_range(tar, m->offset, m->size, s.fd, note->digest)) < 0 ||
                (r = own(s.fd, e->mode, uid, gid)) < 0)
                return error_set(err, -r, EXIT_STEP, "cannot write %s: %s", path, strerror(-r));
        if (print_take(full, &note->print) && note->print.mode == (S_IFREG | e->mode) &&
                note->print.uid == uid && note->print.gid == gid && file_digest(full, digest) &&
                streq(digest, note->digest))
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

/* Removes members of the previous archive that this one does not have. */
static void untar_remove_others(struct agent *a, struct row *old, const struct row *row)
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
                error_set(err, ENODATA, EXIT_STEP, "its content is not in the store of the node");
                return error_hint(err, "run again");
        }
        int r = members_read(fd, &list, err);
        for (struct member *m = list; m && r == 0; m = m->next) {
                char *path CLEANUP(free_p) = xasprintf("%s/%s", e->path, m->name);
                r = before_keep(a, path, err);
        }
        if (r < 0 || (r = before_flush(a, err)) < 0)
                return r;
        struct row *row = record_entry(a, e),
                   old = { .members = row->members, .member_count = row->member_count };
        row->members = NULL;
        row->member_count = 0;
        row->digest[0] = 0;
        for (struct member *m = list; m && r == 0; m = m->next)
                r = put_member(a, e, fd, m, row, err);
        if (r < 0) { /* members of both archives may exist until a run succeeds */
                for (size_t i = 0; i < old.member_count; i++)
                        if (!has_member(row, old.members[i].path))
                                row_member_add(row, old.members[i].path);
                row_members_clear(&old);
                return r;
        }
        char *any CLEANUP(free_p) = xasprintf("%s%s/x", a->root, e->path);
        sync_dir(any);
        memcpy(row->digest, e->digest, SHA256_HEX);
        untar_remove_others(a, &old, row);
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
