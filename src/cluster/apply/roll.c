#include <event2/event.h>

#include "cluster/apply/back.h"
#include "cluster/apply/roll.h"
#include "cluster/etcd/etcd.h"
#include "cluster/site/op.h"
#include "cluster/site/proven.h"
#include "kube/drain.h"
#include "kube/wait.h"

#define LOOK_MS      300
#define WAIT_SECONDS 900

size_t workers_at_once(const struct site *s)
{
        const struct amount *a = &s->cluster->upgrade.workers_at_once;
        size_t workers = s->count - cluster_count(s->cluster, ROLE_CONTROL_PLANE),
               n = a->percent ? workers * (size_t)a->value / 100 : (size_t)a->value;
        return n ? n : 1;
}

/* ---- cordon and drain ---- */

struct draining {
        struct op op;
        struct member *member;
        struct drain *drain;
        const char *trouble; /* why pods could not be evicted */
};

static void draining_release(struct op *o) { drain_free(((struct draining *)o)->drain); }

static void on_drain_progress(size_t left, const char *held, void *arg)
{
        struct draining *d = arg;
        if (*held)
                step_doing(d->op.step, -1, "%zu pods left; one cannot be evicted: %s", left, held);
        else
                step_doing(d->op.step, -1, "%zu pods left", left);
}

static void on_orphan(const char *pod, void *arg)
{
        struct draining *d = arg;
        step_changed(d->op.step, "evicted %s, which no controller recreates", pod);
}

/* Uncordons a node whose pods could not be evicted. */
static void not_drained(struct draining *d, const char *error)
{
        op_fail(&d->op, EBUSY, EXIT_STEP,
                error ? "the node could not be uncordoned either: kubectl uncordon it, make room for the pod (more replicas, or a softer budget), and run again"
                      : "the node was uncordoned and not changed; make room for the pod (more replicas, or a softer budget), and run again",
                "its pods were not evicted within %" PRId64 " s: %s",
                d->op.site->cluster->upgrade.drain_timeout, d->trouble);
}

static void on_put_back(const struct kube_reply *reply, void *arg)
{
        not_drained(arg, reply->error);
}

static void on_drained(const char *error, void *arg)
{
        struct draining *d = arg;
        d->drain = NULL;
        if (!error) {
                op_done(&d->op, NULL);
                return;
        }
        d->trouble = arena_strdup(d->op.site->arena, error);
        if (d->member->run.cordoned)
                kube_cordon(d->op.site->kube, d->member->node->name, false, on_put_back, d);
        else
                not_drained(d, NULL);
}

static void drain_begin(struct draining *d)
{
        struct site *s = d->op.site;
        struct drain_events events = { on_drain_progress, on_orphan, on_drained, d };
        d->drain = drain_start(s->kube, s->base, d->member->node->name,
                (unsigned)s->cluster->upgrade.drain_timeout, &events);
}

static void on_cordoned(const struct kube_reply *reply, void *arg)
{
        struct draining *d = arg;
        if (reply->error) {
                op_fail(&d->op, EIO, EXIT_STEP, NULL, "it cannot be cordoned: %s", reply->error);
                return;
        }
        d->member->run.cordoned = true;
        drain_begin(d);
}

void member_drain(struct member *m, struct step *s)
{
        struct draining *d = arena_new(m->site->arena, struct draining);
        bool ours;
        *d = (struct draining){ .op.release = draining_release, .member = m };
        op_begin(&d->op, m->site, s);
        step_doing(s, -1, "moving its pods away");
        if (node_cordoned(m->seen.object, &ours) && !ours)
                drain_begin(d);
        else
                kube_cordon(m->site->kube, m->node->name, true, on_cordoned, d);
}

void step_cordon(struct step *s)
{
        struct member *m = s->arg;
        if (!m->site->found.api_up || !m->seen.object)
                step_unchanged(s);
        else
                member_drain(m, s);
}

static void on_uncordoned(const struct kube_reply *reply, void *arg)
{
        if (reply->error)
                step_fail(arg, EIO, EXIT_STEP, NULL, "it cannot be uncordoned: %s", reply->error);
        else
                step_done(arg, NULL);
}

void step_uncordon(struct step *s)
{
        struct member *m = s->arg;
        if (m->run.cordoned)
                kube_cordon(m->site->kube, m->node->name, false, on_uncordoned, s);
        else
                step_unchanged(s);
}

/* ---- the virtual IP ---- */

static void on_address(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct step *s = arg;
        if (status == 0 && out && strstr(out, "left"))
                step_changed(s, "moved the virtual address to another node");
        else if (status == 0) {
                step_unchanged(s);
                return;
        }
        step_done(s, NULL); /* otherwise keepalived notices by itself, only later */
}

/* keepalived announces a normal stop, and another node takes over at once. The agent starts it
 * again, and it does not take the address back. */
void step_leave_address(struct step *s)
{
        struct member *m = s->arg;
        static const char script[] =
                "if [ -n \"$(ip -o address show to \"$1\")\" ] && systemctl stop slipway-keepalived.service; then sleep 1; echo left; fi";
        const char *const argv[] = { "sh", "-c", script, "address", m->site->cluster->api.vip,
                NULL };
        if (!member_cut(m, s))
                member_run(m, argv, NULL, 1 << 12, on_address, s);
}

/* ---- health: checks in order, repeated from the first until all succeed ---- */

struct looking {
        struct op op;
        struct member *member;
        const char *waits_for;
        bool etcd_answered;
};

static void roll_look(struct op *o);

static void roll_again(struct looking *l, const char *what)
{
        l->waits_for = what;
        step_doing(l->op.step, -1, "waiting for %s", what);
        op_later(&l->op, LOOK_MS, roll_look);
}

/* A node that is not healthy in time after an upgrade is returned to its previous version, even
 * while a query is open. */
static void on_unwell(evutil_socket_t fd, short what, void *arg)
{
        struct looking *l = arg;
        if (op_over(&l->op))
                return;
        op_drop(&l->op);
        upgrade_back(l->member, l->op.step, l->waits_for ? l->waits_for : "its services");
}

static void looking_end(struct looking *l)
{
        member_drop_spec(l->member);
        op_done(&l->op, NULL);
}

static void on_kubelet(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        if (op_over(&l->op))
                return;
        if (reply->error) {
                roll_again(l, "the kubelet");
                return;
        }
        proven_healthy(l->member);
        looking_end(l);
}

static void on_roll_node(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        const struct member *m = l->member;
        if (op_over(&l->op))
                return;
        const char *version = json_string_value(
                json_object_get(json_object_get(json_object_get(reply->body, "status"), "nodeInfo"),
                        "kubeletVersion"));
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s/proxy/healthz", m->node->name);
        if (reply->error || !version ||
                !streq(version + (*version == 'v'), m->site->cluster->kubernetes.text))
                roll_again(l, "the kubelet's new version");
        else if (!member_is(m, reply->body))
                roll_again(l, "the kubelet to register");
        else if (!node_ready(reply->body) &&
                 (m->seen.was_ready || m->site->cluster->network.fabric.kind != FABRIC_NONE))
                /* fabric none: the user may have installed one */
                roll_again(l, "the node to be Ready");
        else
                kube_request(m->site->kube, "GET", path, NULL, NULL, 5000, on_kubelet, l);
}

static void look_node(struct looking *l)
{
        const struct member *m = l->member;
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", m->node->name);
        if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)) || !m->site->kube)
                looking_end(l);
        else
                kube_request(m->site->kube, "GET", path, NULL, NULL, 5000, on_roll_node, l);
}

/* Etcd only where it is a static pod. */
static const char *const control_pods[] = { "etcd", "kube-apiserver", "kube-controller-manager",
        "kube-scheduler" };

/* The digest in the wanted manifest. */
static bool wanted_digest(const struct member *m, const char *pod, char out[17])
{
        static const char key[] = "slipway.dev/digest: \"";
        char *path CLEANUP(free_p) = xasprintf("/etc/kubernetes/manifests/%s.yaml", pod);
        const struct spec_entry *e = nodespec_find(&m->plan.spec, SPEC_FILE, path);
        const char *at = e ? strstr(e->content, key) : NULL;
        snprintf(out, 17, "%.16s", at ? at + strlen(key) : "");
        return at != NULL;
}

/* As reported by the kubelet, because static pods appear in the API only seconds later. For the API
 * server its own /readyz is used, because its start-up probe reports later. */
static bool pod_is_new(const struct member *m, const json_t *pods, const char *name)
{
        char *full CLEANUP(free_p) = xasprintf("%s-%s", name, m->node->name), digest[17];
        const json_t *pod;
        size_t i;
        if (!wanted_digest(m, name, digest))
                return true;
        json_array_foreach(pods, i, pod)
        {
                const char *has = json_string_value(json_object_get(
                        json_object_get(json_object_get(pod, "metadata"), "annotations"),
                        "slipway.dev/digest"));
                if (streq(object_name(pod), full))
                        return has && streq(has, digest) &&
                               (streq(name, "kube-apiserver") || pod_ready(pod));
        }
        return false;
}

static void on_control(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        const json_t *pods = json_object_get(reply->body, "items");
        if (op_over(&l->op))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(control_pods); i++)
                if (reply->error || !pod_is_new(l->member, pods, control_pods[i])) {
                        roll_again(l, reply->error ? "its kubelet" : control_pods[i]);
                        return;
                }
        look_node(l);
}

static void on_own_api(const struct kube_reply *reply, void *arg)
{
        struct looking *l = arg;
        char *path CLEANUP(free_p) =
                xasprintf("/api/v1/nodes/%s/proxy/pods", l->member->node->name);
        if (op_over(&l->op))
                return;
        if (reply->status == 200)
                kube_request(l->op.site->kube, "GET", path, NULL, NULL, 5000, on_control, l);
        else
                roll_again(l, "its API server");
}

/* Queries its own API server: the others may still list the pods of a lost machine as Ready when it
 * was created again. */
static void look_control(struct looking *l)
{
        const struct member *m = l->member;
        size_t i = 0, server = 0;
        for (const struct node *c;
                (c = cluster_next(m->site->cluster, ROLE_CONTROL_PLANE, &i)) && c != m->node;)
                server++;
        if (m->node->pool->roles & ROLE_CONTROL_PLANE)
                kube_ask(m->site->kube, server, "/readyz", 5000, on_own_api, l);
        else
                look_node(l);
}

static void on_roll_etcd(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct looking *l = arg;
        if (op_over(&l->op))
                return;
        l->etcd_answered = answer != NULL;
        if (l->etcd_answered)
                look_control(l);
        else
                roll_again(l, "etcd");
}

/* etcdctl is a large program: after its first success, etcd's health is taken from the API server's
 * own health checks. */
static void roll_look(struct op *o)
{
        static const char *const health[] = { "endpoint", "health", NULL };
        struct looking *l = (struct looking *)o;
        struct member *m = l->member;
        if (m->node->pool->roles & ROLE_ETCD && member_reachable(m) && !l->etcd_answered)
                etcd_ask(m, health, 10, on_roll_etcd, l);
        else
                look_control(l);
}

static void on_jobs(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct looking *w = arg;
        if (!op_over(&w->op))
                roll_look(&w->op);
}

/* systemd may not have finished the restarts: starting a unit that is restarting waits for it. */
void step_healthy(struct step *s)
{
        static const char *const names[] = { "etcd.service", "containerd.service", "crio.service",
                "kubelet.service" };
        struct member *m = s->arg;
        const char *argv[8] = { "systemctl", "start" };
        size_t n = 2;
        if (m->run.apply && m->run.apply->state == STEP_KEPT && !m->plan.joins && !m->run.made &&
                !m->plan.registers && !m->plan.unproven) {
                step_unchanged(s);
                return;
        }
        struct error err CLEANUP(error_release) = { 0 };
        if (m->plan.dropped && member_render(m, &err) < 0) { /* the checks need the rendered spec */
                step_done(s, &err);
                return;
        }
        struct looking *l = arena_new(m->site->arena, struct looking);
        *l = (struct looking){ .member = m };
        op_begin(&l->op, m->site, s);
        if (upgrade_member(m))
                step_deadline_call(
                        s, (unsigned)m->site->cluster->upgrade.health_timeout, on_unwell, l);
        else
                step_deadline(s, WAIT_SECONDS,
                        "'slipway logs NODE' says more; the next run continues from here");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (nodespec_find(&m->plan.spec, SPEC_UNIT, names[i]))
                        argv[n++] = names[i];
        if (member_reachable(m) && n > 2)
                member_run(m, argv, NULL, 1 << 16, on_jobs, l);
        else
                roll_look(&l->op);
}
