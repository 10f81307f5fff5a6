/* Compares files, directories, links and artifacts with the spec. A file that lstat shows unchanged
 * is not read again. */
#include <fcntl.h>

#include "agent/agent.h"
#include "base/paths.h"

bool print_take(const char *full, struct print *out)
{
        struct stat st;
        *out = (struct print){ 0 };
        if (lstat(full, &st) < 0)
                return false;
        *out = (struct print){ .known = true,
                .size = (uint64_t)st.st_size,
                .ino = st.st_ino,
                .changed = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
                .mode = st.st_mode,
                .uid = st.st_uid,
                .gid = st.st_gid };
        return true;
}

bool print_equal(const struct print *a, const struct print *b)
{
        return a->known && b->known && a->size == b->size && a->ino == b->ino &&
               a->changed == b->changed && a->mode == b->mode && a->uid == b->uid &&
               a->gid == b->gid;
}

static bool meta_same(const struct entry *e, const struct print *p)
{
        struct error err CLEANUP(error_release) = { 0 };
        unsigned uid, gid;
        return (p->mode & 07777) == e->mode && entry_owner(e, &uid, &gid, &err) == 0 &&
               p->uid == uid && p->gid == gid;
}

void check_file(struct agent *a, struct entry *e)
{
        const struct row *row = record_find(&a->record, e->kind, e->path);
        char *full CLEANUP(free_p) = agent_path(a, e->path), digest[SHA256_HEX];
        struct print now;
        e->needed = false;
        e->content_same = false;
        e->state = STATE_SAME;
        if (!print_take(full, &now)) {
                e->state = STATE_CREATED;
                e->needed = e->blob;
                return;
        }
        if (spec_keeps(e->flags))
                return;
        e->content_same =
                S_ISREG(now.mode) &&
                ((row && streq(row->digest, e->digest) && print_equal(&row->print, &now)) ||
                        (file_digest(full, digest) && streq(digest, e->digest)));
        e->needed = e->blob && !e->content_same;
        if (!e->content_same || !meta_same(e, &now))
                e->state = STATE_CHANGED;
}

/* Only the mode and owner of a directory count. A link to a directory is accepted. */
bool dir_print(const struct agent *a, const char *path, struct print *out)
{
        char *full CLEANUP(free_p) = agent_path(a, path);
        struct stat st;
        *out = (struct print){ 0 };
        if (stat(full, &st) < 0 || !S_ISDIR(st.st_mode))
                return false;
        *out = (struct print){
                .known = true, .mode = st.st_mode, .uid = st.st_uid, .gid = st.st_gid
        };
        return true;
}

void check_dir(struct agent *a, struct entry *e)
{
        char *full CLEANUP(free_p) = agent_path(a, e->path);
        struct print now;
        if (!dir_print(a, e->path, &now))
                e->state = access(full, F_OK) < 0 ? STATE_CREATED : STATE_CHANGED;
        else
                /* directories of the system stay as they are */
                e->state = meta_same(e, &now) || path_shared(e->path) ? STATE_SAME : STATE_CHANGED;
}

void check_link(struct agent *a, struct entry *e)
{
        char *full CLEANUP(free_p) = agent_path(a, e->path), target[4096];
        ssize_t n = readlink(full, target, sizeof(target) - 1);
        if (n < 0)
                e->state = errno == ENOENT || errno == ENOTDIR ? STATE_CREATED : STATE_CHANGED;
        else if (spec_keeps(e->flags)) {
                e->state = STATE_SAME; /* its new owner may have changed the target */
        } else {
                target[n] = 0;
                /* ONCE: its owner may have changed the target */
                e->state = e->flags & SPEC_ONCE || streq(target, e->target) ? STATE_SAME
                                                                            : STATE_CHANGED;
        }
}

void check_artifact(struct agent *a, struct entry *e)
{
        const struct row *row = record_find(&a->record, e->kind, e->path);
        if (!(e->flags & SPEC_SET)) {
                check_file(a, e);
                return;
        }
        e->state = row && row->digest[0] ? STATE_SAME : STATE_CREATED;
        if (e->state == STATE_SAME && !streq(row->digest, e->digest))
                e->state = STATE_CHANGED;
        for (size_t i = 0; row && e->state == STATE_SAME && i < row->member_count; i++) {
                const struct row_member *m = &row->members[i];
                char *full CLEANUP(free_p) = agent_path(a, m->path), digest[SHA256_HEX];
                struct print now;
                if (!print_take(full, &now) ||
                        (!print_equal(&now, &m->print) &&
                                (!meta_same(e, &now) || !file_digest(full, digest) ||
                                        !streq(digest, m->digest))))
                        e->state = STATE_CHANGED;
        }
        e->needed = e->state != STATE_SAME;
}
