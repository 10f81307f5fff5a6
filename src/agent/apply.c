/* A run checks every entry first, writes to the record what it may change, and then applies entry
 * by entry in the order of the spec. After a kill the next run checks again: unchanged entries are
 * left alone, and the record has all that the killed run may have created. */
#include <dirent.h>

#include "agent/agent.h"
#include "base/file.h"

#define LOCK_SECONDS 60

static const struct kind {
        bool machine; /* belongs to the machine: left alone under another root */
        void (*check)(struct agent *a, struct entry *e); /* NULL: the kind is checked as a whole */
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
        [SPEC_USER] = { true, check_user, apply_users },
        [SPEC_BLOCK] = { false, check_block, apply_blocks },
        [SPEC_COMMAND] = { true, check_command, apply_commands },
};

bool agent_whole(const struct agent *a) { return !*a->root; }

/* Removes temporary files of a killed run. This agent holds the lock, so no other
 * one writes here. */
static void remove_temporaries(struct agent *a, const char *below)
{
        char *path CLEANUP(free_p) = xasprintf("%s%s", a->state, below);
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
                if (strstr(e->d_name, ".tmp."))
                        unlinkat(dirfd(d), e->d_name, 0);
        if (d)
                closedir(d);
}

/* Creates and locks the state directory. Another agent may still be finishing after its connection
 * was cut: waits for it. */
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
                if (err->code != EWOULDBLOCK || i == LOCK_SECONDS * 10 ||
                        !session_alive(&a->session))
                        return false;
                error_release(err);
                session_turn(&a->session, 100);
        }
        a->ours = true;
        remove_temporaries(a, "");
        remove_temporaries(a, "/before");
        return record_load(a, err) == 0; /* the agent that held the lock may have changed it */
}

int agent_meant(const struct agent *a, const char *node, struct error *err)
{
        if (!node || !a->record.node || streq(node, a->record.node))
                return 0;
        error_set(err, EREMCHG, EXIT_STATE,
                "this host is node %s of the cluster, but the order is for node %s", a->record.node,
                node);
        return error_hint(err,
                "check the address of %s; to give this host another name, reset it first as %s",
                node, a->record.node);
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
        check_units(a); /* last, because it uses the results of the others */
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

/* ---- entries that are no longer in the spec ---- */

static void row_event(
        struct agent *a, const struct row *row, enum wire_state state, const char *detail)
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
                                        : "kept",
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

/* Packages, modules and mounts are kept, because other programs may need them by now. Effects of
 * commands are unknown. */
static bool row_stays(const struct row *row)
{
        return row->kind == SPEC_PACKAGE || row->kind == SPEC_MODULE || row->kind == SPEC_MOUNT ||
               row->kind == SPEC_COMMAND;
}

static void remove_row(struct agent *a, struct row *row)
{
        struct error err CLEANUP(error_release) = { 0 };
        int back = 0;
        const char *value;
        if (row->kind == SPEC_UNIT && agent_whole(a))
                unit_remove(a, row);
        else if (row->kind == SPEC_IMAGE && agent_whole(a))
                image_remove(a, row->key);
        else if (row->kind == SPEC_USER && agent_whole(a))
                back = user_remove(a, row->key, &err);
        else if (row->kind == SPEC_BLOCK)
                back = block_remove(a, row->key, &err);
        else if (row->kind == SPEC_SYSCTL) {
                if ((value = before_get(a, "sysctl", row->key)) &&
                        sysctl_write(a, row->key, value, &err) == 0)
                        back = 1;
        } else if (row->kind <= SPEC_LINK || row->kind == SPEC_ARTIFACT)
                back = remove_path(a, row, &err);
        if (back < 0) {
                row_event(a, row, STATE_FAILED, err.message);
                return;
        }
        row_event(a, row, back == 2 ? STATE_SAME : STATE_REMOVED,
                back == 2 ? "kept: it has other contents"
                : back    ? "restored what was there before"
                          : NULL);
        record_drop(&a->record, row);
}

/* In reverse order, so that units stop before their files are removed. Images are removed after the
 * run, when nothing starts from the old ones. */
static void remove_vanished(struct agent *a, bool images)
{
        for (size_t i = a->record.count; i-- > 0 && session_alive(&a->session);) {
                struct row *row = a->record.rows[i];
                if (index_get(&a->wanted, row->id) || (row->kind == SPEC_IMAGE) != images)
                        continue;
                if (row_stays(row))
                        record_drop(&a->record, row);
                else if (a->mode == APPLY_COMPARE)
                        row_event(a, row, STATE_REMOVED, NULL);
                else
                        remove_row(a, row);
        }
}

void record_undo(struct agent *a)
{
        index_clear(&a->wanted);
        remove_vanished(a, false); /* images are removed with the runtime's data */
}

/* ---- the run ---- */

/* Writes all that this run may change to the record, and marks the units that will
 * read something new. */
static int apply_prepare(struct agent *a, struct error *err)
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
                if (e->kind == SPEC_DIR && !known)
                        place_keep(a, e->path);
                if (e->kind == SPEC_UNIT && agent_whole(a))
                        snprintf(row->digest, SHA256_HEX, "%s",
                                e->news || (!known && !e->unit.active) ? "" : e->reads);
                if (interrupted &&
                        (e->kind == SPEC_FILE || e->kind == SPEC_LINK || e->kind == SPEC_ARTIFACT))
                        temp_remove(a, e->path);
                if (e->state != STATE_SAME &&
                        (e->kind <= SPEC_LINK ||
                                (e->kind == SPEC_ARTIFACT && !(e->flags & SPEC_SET))))
                        r = before_keep(a, e->path, err);
        }
        a->record.spec[0] = 0;
        free(a->record.cluster);
        a->record.cluster = a->cluster ? xstrdup(a->cluster) : NULL;
        if (a->node && !a->record.node)
                a->record.node = xstrdup(a->node);
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

static void apply_send_done(struct agent *a)
{
        struct str *out = &a->session.outgoing;
        size_t b = wire_begin(out, WIRE_DONE);
        wire_number(out, TAG_COUNT, a->changed);
        wire_number(out, TAG_STATUS, a->failed);
        wire_end(out, b);
}

/* Reports what would change, and writes nothing. */
static int apply_dry_run(struct agent *a)
{
        remove_vanished(a, false);
        for (size_t i = 0; i < a->count; i++)
                entry_report(a, &a->entries[i], a->entries[i].state);
        remove_vanished(a, true);
        apply_send_done(a);
        return 0;
}

static int apply_finish(struct agent *a, struct error *err)
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
        apply_send_done(a);
        return 0;
}

int spec_apply(struct agent *a, enum apply_mode mode, struct error *err)
{
        a->mode = mode;
        a->changed = a->failed = 0;
        a->reload = a->recheck = a->pods_ended = false;
        if (mode != APPLY_COMPARE && !agent_own(a, err))
                return -err->code;
        if (a->record.cluster && a->cluster && !streq(a->record.cluster, a->cluster)) {
                error_set(err, EEXIST, EXIT_STATE, "this node belongs to another cluster (%s)",
                        a->record.cluster);
                return error_hint(err, "reset the node first, or remove it from cluster.yaml");
        }
        if (agent_meant(a, a->node, err) < 0) /* again, because the lock may have been waited for */
                return -err->code;
        if (mode == APPLY_RESET) {
                int r = reset_apply(a, err);
                if (r == 0)
                        apply_send_done(a);
                return r;
        }
        if (mode == APPLY_STAGE) { /* the blobs have been received */
                images_stage(a);
                journal(a, "staged %.12s", a->digest);
                apply_send_done(a);
                return 0;
        }
        spec_check(a);
        if (mode == APPLY_COMPARE)
                return apply_dry_run(a);
        journal_bound(a);
        journal(a, "apply %.12s: %zu entries%s", a->digest, a->count,
                mode == APPLY_PLACE ? ", units are not started" : "");
        int r = apply_prepare(a, err);
        if (r < 0)
                return r;
        remove_vanished(a, false);
        apply_all(a);
        if (agent_whole(a))
                units_rest(a);
        remove_vanished(a, true);
        return apply_finish(a, err);
}
