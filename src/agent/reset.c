/* Takes Kubernetes off the host: what the record knows goes back to what it was, and what the running programs made (processes, mounts, links, rules,
 * cgroups, data) goes with it. Nothing here needs a kubelet or a runtime that answers, nor room on the disk: room is made before anything is written.
 * Killed anywhere it is simply begun again: the record on disk stays whole until the very end, when the state directory goes. */
#include <dirent.h>

#include "agent/reset.h"
#include "base/file.h"

#define CTL_SECONDS  120
#define STOP_SECONDS 120

/* Who would start anew what is being taken away stops first; the runtime last, when its containers are gone. Also looked for without a record. */
static const char *const workers[] = { "kubelet.service", "kube-proxy.service", "flanneld.service", "slipway-keepalived.service", "slipway-haproxy.service",
        "etcd.service" };
static const char *const runtimes[] = { "containerd.service", "crio.service" };

/* Where the cluster's programs keep things. Those that were there before us are kept as directories, and `whole` ones lose all that is in them: nobody else has
 * anything there. */
static const struct place {
        const char *path;
        bool whole;
} places[] = {
        { "/var/lib/kubelet", true },
        { "/var/lib/containerd", true },
        { "/var/lib/etcd", true },
        { "/var/lib/cni", true },
        { "/var/lib/kube-proxy", true },
        { "/var/lib/calico", true },
        { "/var/lib/containers", true },
        { "/var/lib/crio", true },
        { "/run/containerd", true },
        { "/run/crio", true },
        { "/run/flannel", true },
        { "/run/calico", true },
        { "/run/cilium", true },
        { "/var/log/pods", true },
        { "/var/log/containers", true },
        { "/etc/kubernetes", true },
        { "/etc/cni/net.d", false },
        { "/etc/cni", false },
        { "/opt/cni/bin", false },
        { "/opt/cni", false },
        { "/etc/containerd", false },
        { "/etc/slipway", false },
        { "/opt/slipway", false },
        { "/opt/containerd", false },
        { "/usr/libexec/kubernetes", false },
        { "/run/nri", false },
        { "/run/netns", false },
};

void places_keep(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct stat st;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                char *full CLEANUP(free_p) = agent_path(a, places[i].path);
                if (lstat(full, &st) < 0 || S_ISDIR(st.st_mode)) /* nothing is copied */
                        before_keep(a, places[i].path, &err);
        }
}

void reset_event(struct agent *a, enum spec_kind kind, const char *name, enum wire_state state, const char *detail)
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
        journal(a, "%s %s%s%s", state == STATE_REMOVED ? "removed" : "failed", name, detail ? ": " : "", detail ? detail : "");
}

/* ---- units ---- */

static bool is_mount(const char *unit) { return has_suffix(unit, ".mount") || has_suffix(unit, ".automount") || has_suffix(unit, ".swap"); }

static bool is_runtime(const char *unit)
{
        for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
                if (streq(unit, runtimes[i]))
                        return true;
        return false;
}

/* One that does not stop in time is killed: systemd does so at its own timeout, which may be long or none. */
static void stop(struct agent *a, const struct words *names)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct words w CLEANUP(words_release) = { 0 };
        if (names->n == 0)
                return;
        for (size_t round = 0; round < 2; round++) {
                words_release(&w);
                const char *const *head = round ? WORDS("systemctl", "--quiet", "kill", "--signal=KILL", "--") : WORDS("systemctl", "--quiet", "stop", "--");
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
        for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
                words_add(&names, workers[i]);
        for (size_t i = a->record.count; i-- > 0;) {
                const struct row *row = a->record.rows[i];
                if (row->kind == SPEC_UNIT && !(row->flags & SPEC_DISABLE) && row->flags & SPEC_START && !is_mount(row->key) && !is_runtime(row->key) &&
                        !before_unit_was(a, row->key, "active"))
                        words_add(&names, row->key);
        }
        stop(a, &names);
}

/* A runtime that is the host's goes on: it is asked to let the pods go. */
static void leave_runtime(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
                if (record_find(&a->record, SPEC_UNIT, runtimes[i]))
                        return;
        if (tool(&a->session, WORDS("crictl", "rmp", "--all", "--force"), STOP_SECONDS, NULL, &err) < 0)
                journal(a, "crictl rmp: %s", err.message);
}

static void stop_runtimes(struct agent *a)
{
        struct words names CLEANUP(words_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
                if (record_find(&a->record, SPEC_UNIT, runtimes[i]))
                        words_add(&names, runtimes[i]);
        stop(a, &names);
}

/* ---- data ---- */

static bool was_absent(struct agent *a, const char *path) { return before_is(a, "absent", path) || before_is(a, "made", path); }

static void empty(struct agent *a, const char *path)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *full CLEANUP(free_p) = agent_path(a, path);
        int n = tree_empty(full, &err);
        if (n < 0)
                reset_event(a, SPEC_DIR, path, STATE_FAILED, err.message);
        else if (n > 0)
                reset_event(a, SPEC_DIR, path, STATE_REMOVED, "all that was in it");
}

static void empty_all(struct agent *a)
{
        for (size_t i = 0; i < ARRAY_SIZE(places) && session_alive(&a->session); i++)
                if (places[i].whole ? !reset_foreign(a, places[i].path) : was_absent(a, places[i].path))
                        empty(a, places[i].path);
        for (size_t i = 0; i < a->count && session_alive(&a->session); i++) /* those the Cluster names; ONCE: if they came with us */
                if (a->entries[i].kind == SPEC_DIR && (!(a->entries[i].flags & SPEC_ONCE) || was_absent(a, a->entries[i].path)))
                        empty(a, a->entries[i].path);
}

/* A runtime that was there before us, and its data, are the host's. */
bool reset_foreign(struct agent *a, const char *path)
{
        static const char *const of[][2] = { { "/var/lib/containerd", "containerd.service" }, { "/run/containerd", "containerd.service" },
                { "/var/lib/containers", "crio.service" }, { "/var/lib/crio", "crio.service" }, { "/run/crio", "crio.service" } };
        for (size_t i = 0; i < ARRAY_SIZE(of); i++)
                if (streq(path, of[i][0]))
                        return !record_find(&a->record, SPEC_UNIT, of[i][1]) || before_unit_was(a, of[i][1], "active");
        return false;
}

/* ---- what was there before ---- */

static void put_sysctl_back(struct agent *a, const char *name, const char *value)
{
        struct error err CLEANUP(error_release) = { 0 };
        bool there;
        if (!sysctl_same(a, name, value, &there) && there && sysctl_write(a, name, value, &err) == 0)
                reset_event(a, SPEC_SYSCTL, name, STATE_REMOVED, "what was there before is back");
}

/* It ran before us, and reads now what is back in place. */
static void start_again(struct agent *a, const char *unit, const char *value)
{
        struct error err CLEANUP(error_release) = { 0 };
        bool of_cluster = false; /* of one that was taken over: it does not come back */
        for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
                of_cluster |= streq(unit, workers[i]);
        if (word_in(value, "active") && !of_cluster && !is_mount(unit) &&
                tool(&a->session, WORDS("systemctl", "--quiet", "restart", "--", unit), CTL_SECONDS, NULL, &err) < 0)
                journal(a, "%s: %s", unit, err.message);
}

static size_t removed_dirs;

static void remove_dir(struct agent *a, const char *path, const char *value)
{
        char *full CLEANUP(free_p) = agent_path(a, path);
        (void)value;
        removed_dirs += rmdir(full) == 0;
}

static void put_back(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        before_each(a, "sysctl", put_sysctl_back);
        for (size_t i = ARRAY_SIZE(places); i-- > 0;) { /* modes; and those that came with us, now empty */
                struct error ignored CLEANUP(error_release) = { 0 };
                if (before_is(a, "dir", places[i].path) || before_is(a, "absent", places[i].path))
                        before_restore(a, places[i].path, &ignored);
        }
        do {
                removed_dirs = 0;
                before_each(a, "made", remove_dir);
                before_each(a, "absent", remove_dir);
        } while (removed_dirs);
        if (!agent_whole(a))
                return;
        tool(&a->session, WORDS("systemctl", "daemon-reload"), CTL_SECONDS, NULL, &err);
        before_each(a, "unit", start_again);
        error_release(&err);
        tool(&a->session, WORDS("systemctl", "reset-failed"), CTL_SECONDS, NULL, &err);
}

/* ---- the whole ---- */

/* The directory and all that says what was applied, last of all: the lock goes with the process. */
static void forget(struct agent *a)
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

static void off_the_machine(struct agent *a)
{
        static void (*const parts[])(
                struct agent *) = { stop_workers, leave_runtime, reset_processes, stop_runtimes, reset_mounts, reset_links, reset_rules, empty_all };
        for (size_t i = 0; i < ARRAY_SIZE(parts) && session_alive(&a->session); i++) {
                if (agent_whole(a) || parts[i] == empty_all)
                        parts[i](a);
                session_flush(&a->session);
        }
}

/* Without a record nothing here is ours: it is written before the first thing is touched, and goes after the last. */
static void off(struct agent *a)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        if (!a->record.count)
                return;
        a->record.spec[0] = 0;
        record_save(a, &ignored); /* a disk may be full */
        off_the_machine(a);
        record_undo(a);
        if (before_unit_was(a, "kubelet.service", "active")) /* the cluster was taken over: what was there before us was its own */
                empty_all(a);
        if (agent_whole(a) && session_alive(&a->session)) {
                reset_cgroups(a);
                reset_packages(a);
        }
        if (session_alive(&a->session))
                put_back(a);
}

int reset_apply(struct agent *a, struct error *err)
{
        journal(a, "reset: %zu entries in the record", a->record.count);
        off(a);
        if (a->session.cut) {
                journal(a, "the connection was cut");
                return error_set(err, ECANCELED, EXIT_UNREACHABLE, "the connection was cut");
        }
        journal(a, "reset: %zu removed, %zu failed", a->changed, a->failed);
        if (!a->failed)
                forget(a);
        return 0;
}
