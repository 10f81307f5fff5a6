#include "cluster/plan/versions.h"
#include "cluster/site/proven.h"

const char *member_version(const struct member *m)
{
        const char *v = json_string_value(json_object_get(
                json_object_get(json_object_get(m->seen.object, "status"), "nodeInfo"),
                "kubeletVersion"));
        return v ? v + (*v == 'v') : NULL;
}

bool upgrade_member(const struct member *m)
{
        return m->plan.fate == FATE_CHANGE && m->seen.before &&
               !streq(m->seen.before, m->site->cluster->kubernetes.text);
}

/* ---- the version before ---- */

static bool changes_program(const struct member *m, bool (*which)(const char *path))
{
        for (size_t i = 0; i < m->plan.change_count; i++)
                if (m->plan.changes[i].kind == SPEC_ARTIFACT &&
                        m->plan.changes[i].state == STATE_CHANGED && which(m->plan.changes[i].name))
                        return true;
        return false;
}

static bool is_kubelet(const char *path) { return has_suffix(path, "/kubelet"); }

/* After an interrupted change the API may report the new version of a node that was never healthy
 * with it. Otherwise the record is used only where the API reports nothing, and only if the
 * kubelet's program changes: somebody else may have upgraded the node since. */
const char *version_before(const struct member *m)
{
        const char *recorded = member_healthy_version(m), *reported = member_version(m);
        if (member_unproven(m) || (!reported && changes_program(m, is_kubelet)))
                return recorded;
        return reported ? arena_strdup(m->site->arena, reported) : NULL;
}

/* ---- refusals ---- */

/* The oldest version with which a control-plane node was last healthy, for an API that does not
 * answer. NULL: unknown. */
static const char *recorded_version(const struct site *s)
{
        struct version oldest = { 0 }, v;
        const char *text = NULL;
        for (size_t i = 0; i < s->count; i++) {
                const char *one = s->members[i].node->pool->roles & ROLE_CONTROL_PLANE
                                          ? member_healthy_version(&s->members[i])
                                          : NULL;
                if (one && version_parse(one, &v) && (!text || version_compare(&v, &oldest) < 0)) {
                        oldest = v;
                        text = one;
                }
        }
        return text;
}

int plan_check_version(const struct site *s, struct error *err)
{
        struct version now, want = s->cluster->kubernetes;
        const char *text = s->found.version ? s->found.version : recorded_version(s);
        if (!text || !version_parse(text, &now))
                return 0;
        int order = version_compare(&want, &now);
        if (order < 0 && !s->allow_down) {
                error_set(err, EINVAL, EXIT_PREFLIGHT,
                        "the cluster %s %s, and kubernetes: %s is older",
                        s->found.version ? "runs" : "does not answer and was last healthy with",
                        text, want.text);
                return error_hint(err,
                        "Kubernetes is not downgraded by editing its version: 'slipway rollback' returns to the previous version; nothing was changed");
        }
        if (want.minor > now.minor + 1) {
                error_set(err, EINVAL, EXIT_PREFLIGHT,
                        "from %s to %s: a minor version must not be skipped", text, want.text);
                return error_hint(err, "upgrade to %ld.%ld first; nothing was changed",
                        (long)now.major, (long)now.minor + 1L);
        }
        if (order && s->removed_kube) {
                error_set(err, EINVAL, EXIT_PREFLIGHT,
                        "from %s to %s while every control-plane node is replaced: these two changes cannot be made at once",
                        text, want.text);
                return error_hint(err,
                        "run 'slipway up' with kubernetes: %s first, then 'slipway upgrade %s'; nothing was changed",
                        text, want.text);
        }
        return 0;
}

/* ---- drains ---- */

static bool runs_pods(const char *path)
{
        static const char *const names[] = { "/kubelet", "/containerd", "/containerd-shim-runc-v2",
                "/runc", "/crun", "/crio" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (has_suffix(path, names[i]))
                        return true;
        return false;
}

/* Pods are evicted before the program of the kubelet or the container runtime changes. Changed
 * flags do not affect pods. */
bool version_drains(const struct member *m)
{
        const char *now = member_version(m);
        struct version running;
        if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)) || !m->seen.object)
                return false;
        if (now && version_parse(now, &running) &&
                version_compare(&running, &m->site->cluster->kubernetes) != 0)
                return true;
        /* not if adopted: then the same version only comes from another path */
        return !member_adopted(m) && changes_program(m, runs_pods);
}
