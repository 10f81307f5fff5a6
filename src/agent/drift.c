/* Finds what changed since it was applied. A file is read only if its lstat differs from
 * the last change. */
#include "agent/agent.h"

#define LOOK_SECONDS 60

static bool file_drifted(struct agent *a, const char *path, const struct print *print,
        const char *digest, unsigned flags)
{
        char *full CLEANUP(free_p) = agent_path(a, path), now_digest[SHA256_HEX];
        struct print now;
        if (!print_take(full, &now))
                return true;
        if (flags & SPEC_ONCE || print_equal(&now, print))
                return false;
        return now.mode != print->mode || now.uid != print->uid || now.gid != print->gid ||
               !file_digest(full, now_digest) || !streq(now_digest, digest);
}

static bool link_drifted(struct agent *a, const struct row *row)
{
        char *full CLEANUP(free_p) = agent_path(a, row->key), target[4096];
        ssize_t n = readlink(full, target, sizeof(target) - 1);
        target[n < 0 ? 0 : n] = 0;
        return n < 0 ||
               (!(row->flags & SPEC_ONCE) && (!row->target || !streq(target, row->target)));
}

static bool dir_drifted(struct agent *a, const struct row *row)
{
        struct print now;
        return !dir_print(a, row->key, &now) || now.mode != row->print.mode ||
               now.uid != row->print.uid || now.gid != row->print.gid;
}

static bool row_drifted(struct agent *a, const struct row *row)
{
        bool there;
        switch (row->kind) {
        case SPEC_DIR:
                return dir_drifted(a, row);
        case SPEC_LINK:
                return link_drifted(a, row);
        case SPEC_FILE:
                return file_drifted(a, row->key, &row->print, row->digest, row->flags);
        case SPEC_ARTIFACT:
                if (!(row->flags & SPEC_SET))
                        return file_drifted(a, row->key, &row->print, row->digest, row->flags);
                for (size_t i = 0; i < row->member_count; i++)
                        if (file_drifted(a, row->members[i].path, &row->members[i].print,
                                    row->members[i].digest, 0))
                                return true;
                return !row->digest[0];
        case SPEC_BLOCK:
                return block_drifted(a, row);
        case SPEC_SYSCTL:
                return row->target && !sysctl_same(a, row->key, row->target, &there) && there;
        default:
                return false;
        }
}

/* Stops at the size of a frame: a partial list is enough to apply the spec again. */
static void drift_add(struct str *frame, const char *key)
{
        if (frame->len < WIRE_MAX - 8192)
                wire_text(frame, TAG_DRIFT, key);
}

void drift_begin(struct agent *a, struct drift *d)
{
        bool images = false;
        *d = (struct drift){ 0 };
        if (!agent_whole(a) || !a->record.spec[0])
                return;
        for (size_t i = 0; i < a->record.count; i++) {
                if (a->record.rows[i]->kind == SPEC_UNIT)
                        words_add(&d->names, a->record.rows[i]->key);
                images |= a->record.rows[i]->kind == SPEC_IMAGE;
        }
        if (d->names.n)
                d->units = units_show(a, &d->names);
        if (images)
                d->images = images_list(a);
}

static void units_drift(struct agent *a, struct drift *d, struct str *frame)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct unit_state *now CLEANUP(free_p) = xcalloc(d->names.n, sizeof(*now));
        if (child_wait(&a->session, d->units, LOOK_SECONDS, &err) == 0)
                units_read(&d->units->text[0], now, d->names.n);
        for (size_t i = 0; i < d->names.n; i++) {
                const struct row *row = record_find(&a->record, SPEC_UNIT, d->names.v[i]);
                if (!row->digest[0] || !unit_as_wanted(&now[i], row->flags))
                        drift_add(frame, row->key);
        }
}

static void images_drift(struct agent *a, struct drift *d, struct str *frame)
{
        struct error err CLEANUP(error_release) = { 0 };
        bool known = d->images && child_wait(&a->session, d->images, LOOK_SECONDS, &err) == 0;
        for (size_t i = 0; i < a->record.count; i++) {
                const struct row *row = a->record.rows[i];
                if (row->kind == SPEC_IMAGE &&
                        (!row->digest[0] || (known && !images_have(&d->images->text[0], row->key))))
                        drift_add(frame, row->key);
        }
}

void drift_end(struct agent *a, struct drift *d, struct str *frame)
{
        if (a->record.spec[0]) {
                for (size_t i = 0; i < a->record.count; i++)
                        if (row_drifted(a, a->record.rows[i]))
                                drift_add(frame, a->record.rows[i]->key);
                if (d->units)
                        units_drift(a, d, frame);
                if (agent_whole(a)) {
                        images_drift(a, d, frame);
                        packages_drift(a, frame);
                }
        }
        child_free(&a->session, d->units);
        child_free(&a->session, d->images);
        words_release(&d->names);
}
