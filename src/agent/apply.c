/* A run: look at everything first, write down what may be touched, then do it entry by entry in the spec's order. Killed anywhere, the next run looks
 * again: what is already right is left alone, and the record knows what else the killed one may have made. */
#include <dirent.h>

#include "agent/agent.h"
#include "base/file.h"

#define LOCK_SECONDS 60

static const struct kind {
        bool machine;                                    /* of the machine itself: left alone under another root */
        void (*check)(struct agent *a, struct entry *e); /* NULL: all of the kind at once */
        void (*apply)(struct agent *a, struct entry *e, size_t n);
} kinds[SPEC_KIND_COUNT] = {
        [SPEC_DIR] = { false, check_dir, apply_dirs },
        [SPEC_FILE] = { false, check_file, apply_files },
        [SPEC_LINK] = { false, check_link, apply_links },
        [SPEC_UNIT] = { true, NULL, apply_units },
        [SPEC_ARTIFACT] = { false, check_artifact, apply_sets },
        [SPEC_IMAGE] = { true, NULL, apply_images },
        [SPEC_SYSCTL] = { false, check_sysctl, apply_sysctls },
        [SPEC_MODULE] = { true, check_module, apply_modules },
        [SPEC_MOUNT] = { false, check_mount, apply_mounts },
        [SPEC_PACKAGE] = { true, NULL, apply_packages },
};

bool agent_whole(const struct agent *a) { return !*a->root; }

/* What a killed run was writing. Nobody else is at work: the lock is ours. */
static void remove_halves(struct agent *a, const char *below)
{
        char *path CLEANUP(free_p) = xasprintf("%s%s", a->state, below);
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
                if (strstr(e->d_name, ".tmp."))
                        unlinkat(dirfd(d), e->d_name, 0);
        if (d)
                closedir(d);
}

/* The state directory, and nobody else in it. Another agent may still be finishing after its connection was cut: it is waited for. */
bool agent_own(struct agent *a, struct error *err)
{
        static const char *const dirs[] = { "", "/store", "/before" };
        char *lock CLEANUP(free_p) = path_join(a->state, "lock");
        if (a->ours)
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                char *dir CLEANUP(free_p) = xasprintf("%s%s", a->state, dirs[i]);
                if (dir_make(dir, 0700, err) < 0)
                        return false;
                chmod(dir, 0700);
        }
        for (int i = 0; lock_take(lock, "the agent", &a->lock, err) < 0; i++) {
                if (err->code != EWOULDBLOCK || i == LOCK_SECONDS * 10 || !session_alive(&a->session))
                        return false;
                error_release(err);
                session_turn(&a->session, 100);
        }
        a->ours = true;
        remove_halves(a, "");
        remove_halves(a, "/before");
        return record_load(a, err) == 0; /* it may have changed while we waited */
}

void spec_check(struct agent *a)
{
        for (size_t i = 0; i < a->count; i++) {
                struct entry *e = &a->entries[i];
                e->state = STATE_SAME;
                e->over = e->broken = e->touched = e->needed = false;
                if (kinds[e->kind].check && (agent_whole(a) || !kinds[e->kind].machine))
                        kinds[e->kind].check(a, e);
        }
        if (!agent_whole(a))
                return;
        check_packages(a);
        check_images(a);
        check_units(a); /* last: they look at what the others found */
}

void spec_needs(struct agent *a)
{
        struct str *out = &a->session.outgoing;
        spec_check(a);
        for (size_t i = 0; i < a->count; i++) {
                const struct entry *e = &a->entries[i];
                bool before = false;
                uint64_t have;
                for (size_t k = 0; k < i && e->needed && !before; k++)
                        before = a->entries[k].needed && streq(a->entries[k].digest, e->digest);
                if (!e->needed || before || store_offset(a, e->digest, &have))
                        continue;
                size_t b = wire_begin(out, WIRE_NEED);
                wire_text(out, TAG_DIGEST, e->digest);
                wire_number(out, TAG_OFFSET, have);
                wire_end(out, b);
        }
        wire_end(out, wire_begin(out, WIRE_READY));
}

/* --- entries that are no longer in the spec ------------------------------------------------------------------------ */

static void row_event(struct agent *a, const struct row *row, enum wire_state state, const char *detail)
{
        struct str *out = &a->session.outgoing;
        size_t b = wire_begin(out, WIRE_EVENT);
        wire_number(out, TAG_KIND, row->kind);
        wire_text(out, TAG_NAME, row->key);
        wire_number(out, TAG_STATE, state);
        wire_text(out, TAG_DETAIL, detail);
        wire_end(out, b);
        a->changed += state == STATE_REMOVED;
        a->failed += state == STATE_FAILED;
        journal(a, "%s %s %s%s%s",
                state == STATE_REMOVED  ? "removed"
                : state == STATE_FAILED ? "failed"
                                        : "left",
                kind_name(row->kind), row->key, detail ? ": " : "", detail ? detail : "");
}

static int remove_path(struct agent *a, const struct row *row, struct error *err)
{
        int back = 0;
        for (size_t i = 0; i < row->member_count && back >= 0; i++)
                back = before_restore(a, row->members[i].path, err);
        if (back >= 0 && !(row->flags & SPEC_SET))
                back = before_restore(a, row->key, err);
        a->reload |= is_unit_file(row->key);
        return back;
}

/* Packages and modules stay: others may have come to need them. */
static bool stays(const struct row *row) { return row->kind == SPEC_PACKAGE || row->kind == SPEC_MODULE || row->kind == SPEC_MOUNT; }

static void remove_row(struct agent *a, struct row *row)
{
        struct error err CLEANUP(error_release) = { 0 };
        int back = 0;
        const char *value;
        if (row->kind == SPEC_UNIT && agent_whole(a))
                unit_remove(a, row);
        else if (row->kind == SPEC_IMAGE && agent_whole(a))
                image_remove(a, row->key);
        else if (row->kind == SPEC_SYSCTL) {
                if ((value = before_get(a, "sysctl", row->key)) && sysctl_write(a, row->key, value, &err) == 0)
                        back = 1;
        } else if (row->kind <= SPEC_LINK || row->kind == SPEC_ARTIFACT)
                back = remove_path(a, row, &err);
        if (back < 0) {
                row_event(a, row, STATE_FAILED, err.message);
                return;
        }
        row_event(a, row, back == 2 ? STATE_SAME : STATE_REMOVED,
                back == 2 ? "something else is in it: it stays"
                : back    ? "what was there before is back"
                          : NULL);
        record_drop(&a->record, row);
}

/* Backwards: units stop before their files go. Images go last of all, when nothing starts from the old ones any more. */
static void remove_vanished(struct agent *a, bool images)
{
        for (size_t i = a->record.count; i-- > 0 && session_alive(&a->session);) {
                struct row *row = a->record.rows[i];
                if (index_get(&a->wanted, row->id) || (row->kind == SPEC_IMAGE) != images)
                        continue;
                if (stays(row))
                        record_drop(&a->record, row);
                else if (a->mode == 2)
                        row_event(a, row, STATE_REMOVED, NULL);
                else
                        remove_row(a, row);
        }
}

void record_undo(struct agent *a)
{
        index_clear(&a->wanted);
        remove_vanished(a, false); /* the images went with the runtime's data */
}

/* --- the run --------------------------------------------------------------------------------------------------------- */

/* Everything this run may touch is in the record before it is touched; units that will read something new are marked. */
static int prepare(struct agent *a, struct error *err)
{
        bool interrupted = !a->record.spec[0] && a->record.count;
        int r = 0;
        if (!a->record.count)
                places_keep(a);
        if (!a->record.count && agent_whole(a)) {
                sysctls_keep(a);
                rules_keep(a);
        }
        for (size_t i = 0; i < a->count && r == 0; i++) {
                struct entry *e = &a->entries[i];
                bool known = record_find(&a->record, e->kind, entry_key(e));
                struct row *row = record_put(&a->record, e->kind, entry_key(e));
                if (!known)
                        row->flags = e->flags;
                if (e->kind == SPEC_UNIT && !known && agent_whole(a))
                        unit_keep(a, e);
                if (e->kind == SPEC_UNIT && agent_whole(a))
                        snprintf(row->digest, SHA256_HEX, "%s", e->news || (!known && !e->unit.active) ? "" : e->reads);
                if (interrupted && (e->kind == SPEC_FILE || e->kind == SPEC_LINK || e->kind == SPEC_ARTIFACT))
                        temp_remove(a, e->path);
                if (e->state != STATE_SAME && (e->kind <= SPEC_LINK || (e->kind == SPEC_ARTIFACT && !(e->flags & SPEC_SET))))
                        r = before_keep(a, e->path, err);
        }
        a->record.spec[0] = 0;
        free(a->record.cluster);
        a->record.cluster = a->cluster ? xstrdup(a->cluster) : NULL;
        if (r == 0)
                r = before_flush(a, err);
        return r < 0 ? r : record_save(a, err);
}

static void apply_all(struct agent *a)
{
        for (size_t i = 0, n; i < a->count && session_alive(&a->session); i += n) {
                struct entry *e = &a->entries[i];
                for (n = 1; i + n < a->count && a->entries[i + n].kind == e->kind; n++)
                        ;
                if (pods_change(a, e, n))
                        pods_stop(a);
                if (agent_whole(a) || !kinds[e->kind].machine) {
                        kinds[e->kind].apply(a, e, n);
                        continue;
                }
                for (size_t k = 0; k < n; k++) {
                        record_entry(a, &e[k]);
                        entry_report(a, &e[k], STATE_SAME);
                }
        }
}

static void done(struct agent *a)
{
        struct str *out = &a->session.outgoing;
        size_t b = wire_begin(out, WIRE_DONE);
        wire_number(out, TAG_COUNT, a->changed);
        wire_number(out, TAG_STATUS, a->failed);
        wire_end(out, b);
}

/* Only says what would change: nothing on the node is written. */
static int say(struct agent *a)
{
        remove_vanished(a, false);
        for (size_t i = 0; i < a->count; i++)
                entry_report(a, &a->entries[i], a->entries[i].state);
        remove_vanished(a, true);
        done(a);
        return 0;
}

static int finish(struct agent *a, struct error *err)
{
        int r = before_flush(a, err);
        if (r < 0)
                return r;
        if (!a->failed && !a->session.cut)
                memcpy(a->record.spec, a->digest, SHA256_HEX);
        if ((r = record_save(a, err)) < 0)
                return r;
        if (a->session.cut) {
                journal(a, "the connection was cut: %zu changed", a->changed);
                return error_set(err, ECANCELED, EXIT_UNREACHABLE, "the connection was cut");
        }
        journal(a, "done: %zu changed, %zu failed", a->changed, a->failed);
        if (!a->failed)
                store_clean(a);
        done(a);
        return 0;
}

int spec_apply(struct agent *a, int mode, struct error *err)
{
        a->mode = mode;
        a->changed = a->failed = 0;
        a->reload = a->recheck = a->pods_ended = false;
        if (mode != 2 && !agent_own(a, err))
                return -err->code;
        if (a->record.cluster && a->cluster && !streq(a->record.cluster, a->cluster)) {
                error_set(err, EEXIST, EXIT_STATE, "this node belongs to another cluster (%s)", a->record.cluster);
                return error_hint(err, "reset the node first, or take it out of cluster.yaml");
        }
        if (mode == 3) {
                int r = reset_apply(a, err);
                if (r == 0)
                        done(a);
                return r;
        }
        if (mode == 4) { /* the blobs came before this */
                images_stage(a);
                journal(a, "staged %.12s", a->digest);
                done(a);
                return 0;
        }
        spec_check(a);
        if (mode == 2)
                return say(a);
        journal_bound(a);
        journal(a, "apply %.12s: %zu entries%s", a->digest, a->count, mode == 1 ? ", units are not started" : "");
        int r = prepare(a, err);
        if (r < 0)
                return r;
        remove_vanished(a, false);
        apply_all(a);
        if (agent_whole(a))
                units_rest(a);
        remove_vanished(a, true);
        return finish(a, err);
}
