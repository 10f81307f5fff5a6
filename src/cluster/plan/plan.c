#include "addon/service.h"
#include "cluster/etcd/etcd.h"
#include "cluster/plan/anew.h"
#include "cluster/plan/fabric_change.h"
#include "cluster/plan/own_images.h"
#include "cluster/plan/plan.h"
#include "cluster/plan/reboot.h"
#include "cluster/plan/replaced.h"
#include "cluster/plan/versions.h"
#include "cluster/plan/fabric_change.h"
#include "cluster/site/proven.h"
#include "config/fabric.h"
#include "kube/wait.h"

/* ---- what a change restarts ---- */

static const struct {
        enum part part;
        const char *words;
        const char *names[4]; /* units, and files of static pods */
} parts[] = {
        { PART_API, "the API server", { "/etc/kubernetes/manifests/kube-apiserver.yaml" } },
        { PART_CONTROLLERS, "the controllers and the scheduler",
                { "/etc/kubernetes/manifests/kube-controller-manager.yaml",
                        "/etc/kubernetes/manifests/kube-scheduler.yaml" } },
        { PART_ETCD, "etcd", { "etcd.service", "/etc/kubernetes/manifests/etcd.yaml" } },
        { PART_KUBELET, "the kubelet", { "kubelet.service" } },
        { PART_RUNTIME, "the container runtime", { "containerd.service", "crio.service" } },
        { PART_PROXY, "kube-proxy", { "kube-proxy.service" } },
        { PART_FABRIC, "the fabric", { "flanneld.service", "calico-node.service" } },
        { PART_BALANCER, "the local balancer",
                { "slipway-haproxy.service", "/etc/kubernetes/manifests/slipway-haproxy.yaml" } },
        { PART_VIP, "the virtual IP",
                { "slipway-keepalived.service",
                        "/etc/kubernetes/manifests/slipway-keepalived.yaml" } },
};

unsigned plan_part(const struct change *c)
{
        bool unit =
                c->kind == SPEC_UNIT && (c->state == STATE_RESTARTED || c->state == STATE_STARTED ||
                                                c->state == STATE_REMOVED);
        for (size_t i = 0; (unit || c->kind == SPEC_FILE) && i < ARRAY_SIZE(parts); i++)
                for (size_t k = 0; k < ARRAY_SIZE(parts[i].names) && parts[i].names[k]; k++)
                        if (streq(parts[i].names[k], c->name))
                                return parts[i].part;
        return 0;
}

void plan_restarts(unsigned set, struct str *out)
{
        size_t n = 0, total = (size_t)__builtin_popcount(set);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                if (set & parts[i].part) {
                        str_add(out, n == 0 ? "restarts " : n + 1 == total ? " and " : ", ");
                        str_add(out, parts[i].words);
                        n++;
                }
}

const char *fate_name(enum fate f)
{
        static const char *const names[FATE_COUNT] = { "keep", "make", "start", "install", "change",
                "replace", "remove" };
        return names[f];
}

bool member_is(const struct member *m, const json_t *object)
{
        const char *mine = json_string_value(json_object_get(m->seen.said, "machineId"));
        const char *its = json_string_value(json_object_get(
                json_object_get(json_object_get(object, "status"), "nodeInfo"), "machineID"));
        return !mine || !*mine || !its || !*its || streq(mine, its);
}

/* ---- refusals ---- */

/* etcd's members change one after another: failed ones are removed, new ones join, are promoted and
 * become healthy, then healthy ones are removed. There must always be a quorum of healthy voters. A
 * member whose machine is off does not count, because it may not start again. */
static void count_coming(
        const struct site *s, const struct member *m, size_t *healthy, size_t *come, size_t *fresh)
{
        const struct etcd_peer *p = etcd_peer_of(s->found.peers, s->found.peer_count, m->node);
        bool comes =
                (m->plan.joins && m->plan.fate != FATE_START && m->plan.fate != FATE_REPLACE) ||
                m->plan.promotes;
        *healthy += m->seen.etcd_healthy && !m->plan.promotes;
        *come += comes;
        /* otherwise it replaces its own lost member */
        *fresh += comes && (!p || p->learner);
}

static int check_quorum(const struct site *s, struct error *err)
{
        size_t voters = 0, healthy = 0, dead = 0, alive = 0, come = 0, fresh = 0,
               wanted = cluster_count(s->cluster, ROLE_ETCD);
        if (!s->found.live)
                return 0;
        for (size_t i = 0; i < s->found.peer_count; i++)
                voters += !s->found.peers[i].learner;
        for (size_t i = 0; i < s->count; i++)
                count_coming(s, &s->members[i], &healthy, &come, &fresh);
        for (size_t i = 0; i < s->found.removed_count; i++) {
                const struct member *m = s->found.removed[i];
                const struct etcd_peer *p =
                        etcd_peer_of(s->found.peers, s->found.peer_count, m->node);
                if (!p || p->learner)
                        continue;
                bool up = member_reachable(m) && member_has_etcd(m);
                healthy += up;
                alive += up;
                dead += !up;
        }
        size_t left = voters - dead + fresh;
        healthy += come;
        if (alive && (!wanted || healthy - alive < (left - alive) / 2 + 1)) {
                error_set(err, EBUSY, EXIT_PREFLIGHT,
                        "removing %zu of %zu etcd members would leave %zu healthy of %zu: etcd would lose its quorum",
                        alive + dead, voters, healthy - alive, left - alive);
                return error_hint(err,
                        "repair the failed members first ('slipway status' names them), or remove fewer nodes; nothing was changed");
        }
        return 0;
}

/* A blank disk where etcd had data means lost data. Starting a new etcd beside the rest would lose
 * the rest too. */
static int check_loss(const struct site *s, struct error *err)
{
        size_t blank = 0, held = 0;
        const struct member *first = NULL;
        if (s->found.live || !site_existed(s))
                return 0;
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (!(m->node->pool->roles & ROLE_ETCD) || m->plan.fate == FATE_START)
                        continue;
                if (member_has_etcd(m)) {
                        held++;
                } else {
                        blank++;
                        first = first ? first : m;
                }
        }
        if (!blank)
                return 0;
        if (held) {
                error_set(err, ENODATA, EXIT_UNHEALTHY,
                        "etcd has no quorum, and %zu of its %zu members have lost their data (%s)",
                        blank, blank + held, first->node->name);
                return error_hint(err,
                        "'slipway etcd recover' rebuilds it from the members that still have theirs; nothing was changed");
        }
        for (size_t i = 0; i < s->found.removed_count; i++)
                if (s->found.removed[i]->node->pool->roles & ROLE_ETCD &&
                        !s->found.removed[i]->seen.answers) {
                        error_set(err, ENODATA, EXIT_UNHEALTHY,
                                "no etcd member in the file has data, and %s, which had it, is no longer in the file and does not answer",
                                s->found.removed[i]->node->name);
                        return error_hint(err,
                                "start it and run again: the new member then joins it before it is removed; if it is lost for good, 'slipway etcd restore "
                                "SNAPSHOT' brings the cluster back; nothing was changed");
                }
        error_set(err, ENODATA, EXIT_UNHEALTHY,
                "this cluster existed before, but no etcd member still has its data");
        return error_hint(err,
                "'slipway etcd restore SNAPSHOT' brings it back; to start over, run 'slipway down' first; nothing was changed");
}

/* No member is removed while etcd does not answer: its vote would remain, and the others might
 * never have a quorum again. */
static int check_leave(const struct site *s, struct error *err)
{
        bool off = true;
        if (s->found.live || !s->found.removed_count || !site_existed(s))
                return 0;
        for (size_t i = 0; i < s->count; i++)
                off &= !(s->members[i].node->pool->roles & ROLE_ETCD) ||
                       s->members[i].plan.fate == FATE_START;
        error_set(err, EBUSY, EXIT_UNHEALTHY,
                "%s is to be removed, but etcd does not answer, so its member cannot be removed",
                s->found.removed[0]->node->name);
        return error_hint(err,
                off ? "the machines are off: run 'slipway up' with the nodes in the file first, then remove them; nothing was changed"
                    : "'slipway status' says why; without a quorum, 'slipway etcd recover' rebuilds it; nothing was changed");
}

/* A node that was removed from etcd must not start with its old data. */
static int check_strays(const struct site *s, struct error *err)
{
        for (size_t i = 0; s->found.live && i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (m->node->pool->roles & ROLE_ETCD && member_has_etcd(m) &&
                        m->plan.fate != FATE_REPLACE &&
                        !etcd_peer_of(s->found.peers, s->found.peer_count, m->node)) {
                        error_set(err, EEXIST, EXIT_PREFLIGHT,
                                "%s has etcd data but is no longer an etcd member", m->node->name);
                        return error_hint(err, "run 'slipway reset %s' first; nothing was changed",
                                m->node->name);
                }
        }
        return 0;
}

/* ---- the plan ---- */

static void decide_etcd(struct site *s, struct member *m)
{
        const struct etcd_peer *p = etcd_peer_of(s->found.peers, s->found.peer_count, m->node);
        if (!s->found.live || !(m->node->pool->roles & ROLE_ETCD))
                return;
        if (m->plan.fate == FATE_REPLACE) {
                m->plan.joins = true; /* after it left */
                return;
        }
        /* if the machine is off, step_etcd_join checks its disk later */
        if (member_has_etcd(m) || (m->plan.fate == FATE_START && p))
                m->plan.promotes = p && p->learner;
        else
                /* if the cluster never existed, the first run was interrupted before this node */
                m->plan.joins = !p || *p->client || p->learner || site_existed(s);
}

/* Its Node was deleted, or a restored snapshot does not have it; the kubelet does not notice. */
static bool unregistered(const struct member *m)
{
        return m->site->found.api_up && !m->seen.object && m->run.connect && !m->run.missing &&
               m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER) && !member_adopted(m) &&
               (m->plan.fate == FATE_KEEP || m->plan.fate == FATE_CHANGE);
}

static void plan_decide(struct site *s, struct member *m)
{
        if (!m->run.connect)
                m->plan.fate = m->machine->state == MACHINE_ABSENT ? FATE_MAKE : FATE_START;
        anew_decide(m);
        decide_etcd(s, m);
        m->seen.before = version_before(m);
        m->seen.was_ready = m->seen.object && node_ready(m->seen.object);
        for (size_t i = 0; i < m->plan.change_count; i++) {
                m->plan.restarts |= plan_part(&m->plan.changes[i]);
                m->plan.commands |= m->plan.changes[i].kind == SPEC_COMMAND;
        }
        m->plan.unproven = !m->run.missing && member_unproven_wanted(m);
        if (m->plan.unproven && m->plan.fate == FATE_KEEP)
                m->plan.fate = FATE_CHANGE;
        m->plan.drains = m->plan.fate == FATE_CHANGE && s->found.api_up && version_drains(m);
        m->plan.note = m->run.missing ? arena_printf(s->arena, "left out, as readiness allows: %s",
                                                m->run.missing)
                                      : member_replaced(m);
        m->plan.registers = unregistered(m);
        if (m->plan.registers) {
                m->plan.fate = FATE_CHANGE;
                m->plan.restarts |=
                        PART_KUBELET | (cluster_fabric(s->cluster)->parts ? PART_FABRIC : 0);
        }
        reboot_decide(m);
}

int plan_make(struct site *s, struct error *err)
{
        for (size_t i = 0; i < s->count; i++)
                plan_decide(s, &s->members[i]);
        int r = replaced_check(s, err);
        if (r == 0)
                r = anew_check(s, err);
        if (r == 0)
                r = fabric_change_check(s, err);
        if (r == 0)
                r = check_loss(s, err);
        if (r == 0)
                r = check_strays(s, err);
        if (r == 0)
                r = check_leave(s, err);
        if (r == 0)
                r = check_quorum(s, err);
        if (r == 0)
                r = own_images_check(s, err);
        if (r == 0)
                r = reboot_check(s, err);
        return r == 0 ? plan_check_version(s, err) : r;
}

bool plan_empty(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.fate != FATE_KEEP || s->members[i].plan.joins ||
                        s->members[i].plan.promotes)
                        return false;
        for (size_t i = 0; i < OWN_IMAGE_COUNT; i++)
                if (own_image_differs(s, i))
                        return false;
        return s->found.removed_count == 0 && !s->found.survey.changes && !s->found.outsiders &&
               !s->found.chores && !services_any(s->found.services);
}
