/* Removes Kubernetes from the host: entries of the record are undone, and what the running programs
 * created (processes, mounts, links, rules, cgroups, data) is removed. Needs no answering kubelet
 * or runtime and no free disk space. After a kill it can be started again: the record stays
 * complete until the end, when the state directory is removed. */
#include <dirent.h>

#include "agent/reset/reset.h"
#include "agent/reset/traces.h"
#include "base/file.h"

#define CTL_SECONDS  120
#define STOP_SECONDS 120

/* Units that would start removed things again are stopped first, the runtime after its containers.
 * They are stopped even if the record does not have them. */
static const char *const workers[] = { "kubelet.service", "slipway-keepalived.service",
        "slipway-haproxy.service", "etcd.service" };
static const char *const runtimes[] = { "containerd.service", "crio.service" };

void reset_event(struct agent *a, enum spec_kind kind, const char *name, enum wire_state state,
        const char *detail)
{
        struct str *out = &a->session.outgoing;
        size_t b = wire_begin(out, WIRE_EVENT);
        wire_number(out, TAG_KIND, kind);
        wire_text(out, TAG_NAME, name);
        wire_number(out, TAG_STATE, state);
        wire_text(out, TAG_DETAIL, detail);
        wire_end(out, b);
        a->changed += state == STATE_REMOVED;
        a->failed += state == STATE_FAILED;
        journal(a, "%s %s%s%s", state == STATE_REMOVED ? "removed" : "failed", name,
                detail ? ": " : "", detail ? detail : "");
}

/* ---- units ---- */

static bool reset_is_mount_unit(const char *unit)
{
        return has_suffix(unit, ".mount") || has_suffix(unit, ".automount") ||
               has_suffix(unit, ".swap");
}

static bool is_runtime(const char *unit)
{
        for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
                if (streq(unit, runtimes[i]))
                        return true;
        return false;
}

/* Kills units that do not stop in time: systemd's own timeout may be long or infinite. */
static void units_stop(struct agent *a, const struct words *names)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct words w CLEANUP(words_release) = { 0 };
        if (names->n == 0)
                return;
        for (size_t round = 0; round < 2; round++) {
                words_release(&w);
                const char *const *head =
                        round ? WORDS("systemctl", "--quiet", "kill", "--signal=KILL", "--")
                              : WORDS("systemctl", "--quiet", "stop", "--");
                for (; *head; head++)
                        words_add(&w, *head);
                for (size_t i = 0; i < names->n; i++)
                        words_add(&w, names->v[i]);
                error_release(&err);
                if (tool(&a->session, w.v, STOP_SECONDS, NULL, &err) != -ETIMEDOUT)
                        return;
        }
}

static void stop_workers(struct agent *a)
{
        struct words names CLEANUP(words_release) = { 0 };
        const char *unit;
        for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
                words_add(&names, workers[i]);
        for (size_t i = 0; (unit = trace_name(TRACE_UNIT, i)); i++)
                words_add(&names, unit);
        for (size_t i = a->record.count; i-- > 0;) {
                const struct row *row = a->record.rows[i];
                if (row->kind == SPEC_UNIT && !(row->flags & SPEC_DISABLE) &&
                        row->flags & SPEC_START && !reset_is_mount_unit(row->key) &&
                        !is_runtime(row->key) && !before_unit_was(a, row->key, "active"))
                        words_add(&names, row->key);
        }
        units_stop(a, &names);
}

/* A runtime of the host keeps running: only its pods are removed. */
static void leave_runtime(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
                if (record_find(&a->record, SPEC_UNIT, runtimes[i]))
                        return;
        if (tool(&a->session, WORDS("crictl", "rmp", "--all", "--force"), STOP_SECONDS, NULL,
                    &err) < 0)
                journal(a, "crictl rmp: %s", err.message);
}

static void stop_runtimes(struct agent *a)
{
        struct words names CLEANUP(words_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
                if (record_find(&a->record, SPEC_UNIT, runtimes[i]))
                        words_add(&names, runtimes[i]);
        units_stop(a, &names);
}

/* ---- restoring what existed before ---- */

static void put_sysctl_back(struct agent *a, const char *name, const char *value)
{
        struct error err CLEANUP(error_release) = { 0 };
        bool there;
        if (!sysctl_same(a, name, value, &there) && there &&
                sysctl_write(a, name, value, &err) == 0)
                reset_event(a, SPEC_SYSCTL, name, STATE_REMOVED, "restored what was there before");
}

/* Restarts a unit that was active before the first run, with its restored files. */
static void unit_start_again(struct agent *a, const char *unit, const char *value)
{
        struct error err CLEANUP(error_release) = { 0 };
        bool of_cluster = false; /* of an adopted cluster: not started again */
        for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
                of_cluster |= streq(unit, workers[i]);
        of_cluster |= trace_prefix(TRACE_UNIT, unit);
        if (word_in(value, "active") && !of_cluster && !reset_is_mount_unit(unit) &&
                tool(&a->session, WORDS("systemctl", "--quiet", "restart", "--", unit), CTL_SECONDS,
                        NULL, &err) < 0)
                journal(a, "%s: %s", unit, err.message);
}

static size_t removed_dirs;

static void reset_remove_dir(struct agent *a, const char *path, const char *value)
{
        char *full CLEANUP(free_p) = agent_path(a, path);
        (void)value;
        removed_dirs += rmdir(full) == 0;
}

static void reset_put_back(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        before_each(a, "sysctl", put_sysctl_back);
        places_restore(a);
        do {
                removed_dirs = 0;
                before_each(a, "made", reset_remove_dir);
                before_each(a, "absent", reset_remove_dir);
        } while (removed_dirs);
        if (!agent_whole(a))
                return;
        tool(&a->session, WORDS("systemctl", "daemon-reload"), CTL_SECONDS, NULL, &err);
        before_each(a, "unit", unit_start_again);
        error_release(&err);
        tool(&a->session, WORDS("systemctl", "reset-failed"), CTL_SECONDS, NULL, &err);
}

/* ---- the reset ---- */

/* Removes the state directory, last of all; the lock ends with the process. */
static void reset_forget(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (dir_remove(a->state, &err) < 0)
                reset_event(a, SPEC_DIR, "/var/lib/slipway", STATE_FAILED, err.message);
        a->changed++;
        close_p(&a->lock);
        a->ours = false;
        record_release(&a->record);
        before_release(a);
}

static void reset_machine(struct agent *a)
{
        static void (*const parts[])(struct agent *) = { stop_workers, leave_runtime,
                reset_processes, stop_runtimes, reset_mounts, reset_links, reset_rules,
                reset_data };
        for (size_t i = 0; i < ARRAY_SIZE(parts) && session_alive(&a->session); i++) {
                if (agent_whole(a) || parts[i] == reset_data)
                        parts[i](a);
                session_flush(&a->session);
        }
}

/* Without a record nothing on this host is slipway's: the record is written before the first change
 * and removed after the last. */
static void reset_host(struct agent *a)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        if (!a->record.count)
                return;
        a->record.spec[0] = 0;
        record_save(a, &ignored); /* fails on a full disk, which is no reason to stop */
        reset_machine(a);
        record_undo(a);
        /* the cluster was adopted: its data existed before and is removed too */
        if (before_unit_was(a, "kubelet.service", "active"))
                reset_data(a);
        if (agent_whole(a) && session_alive(&a->session)) {
                reset_cgroups(a);
                reset_packages(a);
        }
        if (session_alive(&a->session))
                reset_put_back(a);
}

int reset_apply(struct agent *a, struct error *err)
{
        if (reset_allowed(a, err) < 0)
                return -err->code;
        journal(a, "reset: %zu entries in the record", a->record.count);
        reset_host(a);
        if (a->session.cut) {
                journal(a, "the connection was cut");
                return error_set(err, ECANCELED, EXIT_UNREACHABLE, "the connection was cut");
        }
        journal(a, "reset: %zu removed, %zu failed", a->changed, a->failed);
        if (!a->failed)
                reset_forget(a);
        return 0;
}
