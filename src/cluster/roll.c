#include <event2/event.h>

#include "cluster/etcd.h"
#include "cluster/roll.h"
#include "cluster/upgrade.h"
#include "kube/drain.h"
#include "kube/wait.h"

#define LOOK_MS      300
#define WAIT_SECONDS 900

size_t workers_at_once(const struct site *s)
{
        const struct amount *a = &s->cluster->upgrade.workers_at_once;
        size_t workers = s->count - cluster_count(s->cluster, ROLE_CONTROL_PLANE), n = a->percent ? workers * (size_t)a->value / 100 : (size_t)a->value;
        return n ? n : 1;
}

/* ---- cordon and drain ---- */

static void on_drain_progress(size_t left, const char *held, void *arg)
{
        struct member *m = arg;
        if (*held)
                step_doing(m->draining, -1, "%zu pods left; one may not go: %s", left, held);
        else
                step_doing(m->draining, -1, "%zu pods left", left);
}

static void on_orphan(const char *pod, void *arg)
{
        struct member *m = arg;
        step_changed(m->draining, "evicted %s, which nothing makes again", pod);
}

/* Nothing stays cordoned because of us when its pods could not leave. */
static void on_put_back(const char *error, void *arg)
{
        struct member *m = arg;
        struct step *s = m->draining;
        struct error err CLEANUP(error_release) = { 0 };
        m->draining = NULL;
        error_set(&err, EBUSY, EXIT_STEP, "its pods did not leave within %" PRId64 " s: %s", m->site->cluster->upgrade.drain_timeout, m->trouble);
        error_hint(&err,
                error ? "the node could not be uncordoned either: kubectl uncordon it, make room for the pod (more replicas, or a softer budget), and run again"
                      : "the node was uncordoned and not changed; make room for the pod (more replicas, or a softer budget), and run again");
        step_done(s, &err);
}

static void on_drained(const char *error, void *arg)
{
        struct member *m = arg;
        struct step *s = m->draining;
        m->drain = NULL;
        if (!error) {
                m->draining = NULL;
                step_done(s, NULL);
                return;
        }
        m->trouble = arena_strdup(m->site->arena, error);
        if (m->cordoned)
                kube_cordon(m->site->kube, m->node->name, false, on_put_back, m);
        else
                on_put_back(NULL, m);
}

static void drain(struct member *m)
{
        struct drain_events events = { on_drain_progress, on_orphan, on_drained, m };
        m->drain = drain_start(m->site->kube, m->site->base, m->node->name, (unsigned)m->site->cluster->upgrade.drain_timeout, &events);
}

static void on_cordoned(const char *error, void *arg)
{
        struct member *m = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (error) {
                struct step *s = m->draining;
                m->draining = NULL;
                error_set(&err, EIO, EXIT_STEP, "it cannot be cordoned: %s", error);
                step_done(s, &err);
                return;
        }
        m->cordoned = true;
        drain(m);
}

void member_drain(struct member *m, struct step *s)
{
        bool ours;
        m->draining = s;
        step_doing(s, -1, "moving its pods away");
        if (node_cordoned(m->object, &ours) && !ours)
                drain(m);
        else
                kube_cordon(m->site->kube, m->node->name, true, on_cordoned, m);
}

void step_cordon(struct step *s)
{
        struct member *m = s->arg;
        if (!m->site->api_up || !m->object || (m->fate == FATE_REMOVE && !m->answers)) /* who is dead is not asked: its pods go with its Node */
                step_kept(s);
        else
                member_drain(m, s);
}

static void on_uncordoned(const char *error, void *arg)
{
        struct step *s = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (error)
                error_set(&err, EIO, EXIT_STEP, "it cannot be uncordoned: %s", error);
        step_done(s, error ? &err : NULL);
}

void step_uncordon(struct step *s)
{
        struct member *m = s->arg;
        if (m->cordoned)
                kube_cordon(m->site->kube, m->node->name, false, on_uncordoned, s);
        else
                step_kept(s);
}

/* ---- the virtual address ---- */

static void on_address(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct step *s = arg;
        if (status == 0 && out && strstr(out, "left"))
                step_changed(s, "gave the virtual address to another node");
        else if (status == 0) {
                step_kept(s);
                return;
        }
        step_done(s, NULL); /* keepalived sees by itself that the API server goes, only later */
}

/* keepalived that ends in good order says so, and the next takes over at once. The agent starts it again, and it does not ask for the address back. */
void step_leave_address(struct step *s)
{
        struct member *m = s->arg;
        static const char script[] = "if [ -n \"$(ip -o address show to \"$1\")\" ] && systemctl stop slipway-keepalived.service; then sleep 1; echo left; fi";
        const char *const argv[] = { "sh", "-c", script, "address", m->site->cluster->api.vip, NULL };
        if (!member_cut(m, s))
                link_run(m->link, argv, NULL, 1 << 12, on_address, s);
}

/* ---- health: a chain of looks, from the beginning again until all are good ---- */

static void look(struct member *m);

static void on_timer(evutil_socket_t fd, short what, void *arg) { look(arg); }

static void again(struct member *m, const char *what)
{
        if (m->healthy->state != STEP_RUNNING)
                return; /* its time is over */
        if (m->well_by && run_now(&m->site->run) > m->well_by) {
                upgrade_back(m, m->healthy, what);
                return;
        }
        step_doing(m->healthy, -1, "waiting for %s", what);
        if (!m->timer)
                m->timer = evtimer_new(m->site->base, on_timer, m);
        event_add(m->timer, &(struct timeval){ .tv_usec = LOOK_MS * 1000 });
}

static void well(struct member *m)
{
        if (m->healthy->state == STEP_RUNNING)
                step_done(m->healthy, NULL);
}

static void on_kubelet(const struct kube_reply *reply, void *arg)
{
        struct member *m = arg;
        if (reply->error)
                again(m, "the kubelet");
        else
                well(m);
}

static void on_node(const struct kube_reply *reply, void *arg)
{
        struct member *m = arg;
        const char *version = json_string_value(json_object_get(json_object_get(json_object_get(reply->body, "status"), "nodeInfo"), "kubeletVersion"));
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s/proxy/healthz", m->node->name);
        if (reply->error || !version || !streq(version + (*version == 'v'), m->site->cluster->kubernetes.text))
                again(m, "the kubelet's new version");
        else if (!member_is(m, reply->body))
                again(m, "the kubelet to register");
        else if (!node_ready(reply->body) &&
                 (m->was_ready || m->site->cluster->network.fabric.kind != FABRIC_NONE)) /* none: it may have one that is not ours */
                again(m, "the node to be Ready");
        else
                kube_request(m->site->kube, "GET", path, NULL, NULL, 5000, on_kubelet, m);
}

static void look_node(struct member *m)
{
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", m->node->name);
        if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)) || !m->site->kube)
                well(m);
        else
                kube_request(m->site->kube, "GET", path, NULL, NULL, 5000, on_node, m);
}

static const char *const control_pods[] = { "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler" }; /* etcd: where it is one */

/* The digest that stands in the wanted manifest. */
static bool wanted_digest(const struct member *m, const char *pod, char out[17])
{
        static const char key[] = "slipway.dev/digest: \"";
        char *path CLEANUP(free_p) = xasprintf("/etc/kubernetes/manifests/%s.yaml", pod);
        const struct spec_entry *e = nodespec_find(&m->spec, SPEC_FILE, path);
        const char *at = e ? strstr(e->content, key) : NULL;
        snprintf(out, 17, "%.16s", at ? at + strlen(key) : "");
        return at != NULL;
}

/* By the kubelet's word: what the API has of static pods comes seconds later. And an API server's own word that it is ready is newer than its pod's, which the
 * kubelet's start-up probe holds back. */
static bool pod_is_new(const struct member *m, const json_t *pods, const char *name)
{
        char *full CLEANUP(free_p) = xasprintf("%s-%s", name, m->node->name), digest[17];
        const json_t *pod;
        size_t i;
        if (!wanted_digest(m, name, digest))
                return true;
        json_array_foreach(pods, i, pod)
        {
                const char *has = json_string_value(json_object_get(json_object_get(json_object_get(pod, "metadata"), "annotations"), "slipway.dev/digest"));
                if (streq(object_name(pod), full))
                        return has && streq(has, digest) && (streq(name, "kube-apiserver") || pod_ready(pod));
        }
        return false;
}

static void on_control(const struct kube_reply *reply, void *arg)
{
        struct member *m = arg;
        const json_t *pods = json_object_get(reply->body, "items");
        for (size_t i = 0; i < ARRAY_SIZE(control_pods); i++)
                if (reply->error || !pod_is_new(m, pods, control_pods[i])) {
                        again(m, reply->error ? "its kubelet" : control_pods[i]);
                        return;
                }
        look_node(m);
}

static void on_own_api(const struct kube_reply *reply, void *arg)
{
        struct member *m = arg;
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s/proxy/pods", m->node->name);
        if (reply->status == 200)
                kube_request(m->site->kube, "GET", path, NULL, NULL, 5000, on_control, m);
        else
                again(m, "its API server");
}

/* Its own, and not what the others have heard of it: the pods of a machine that was lost are still Ready in their list when it is made anew. */
static void look_control(struct member *m)
{
        size_t i = 0, server = 0;
        for (const struct node *c; (c = cluster_next(m->site->cluster, ROLE_CONTROL_PLANE, &i)) && c != m->node;)
                server++;
        if (m->node->pool->roles & ROLE_CONTROL_PLANE)
                kube_ask(m->site->kube, server, "/readyz", 5000, on_own_api, m);
        else
                look_node(m);
}

static void on_etcd(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        m->etcd_answered = answer != NULL;
        if (m->etcd_answered)
                look_control(m);
        else
                again(m, "etcd");
}

/* etcdctl is not small: once it has said yes, etcd's health is part of what the API server beside it says of itself. */
static void look(struct member *m)
{
        static const char *const health[] = { "endpoint", "health", NULL };
        if (m->node->pool->roles & ROLE_ETCD && m->link && !m->etcd_answered)
                etcd_ask(m, health, 10, on_etcd, NULL);
        else
                look_control(m);
}

static void on_jobs(struct link *l, int status, const char *out, const char *errors, void *arg) { look(arg); }

/* systemd may still have the restarts before it: to start what is being restarted is to wait for it. */
void step_healthy(struct step *s)
{
        static const char *const names[] = { "etcd.service", "containerd.service", "crio.service", "kubelet.service" };
        struct member *m = s->arg;
        const char *argv[8] = { "systemctl", "start" };
        size_t n = 2;
        if (m->apply && m->apply->state == STEP_KEPT && !m->joins && !m->made && !m->registers) {
                step_kept(s);
                return;
        }
        m->etcd_answered = false;
        if (upgrade_member(m))
                m->well_by = run_now(s->run) + m->site->cluster->upgrade.health_timeout * 1000;
        else
                step_deadline(s, WAIT_SECONDS, "'slipway logs NODE' says more; the next run goes on from here");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (nodespec_find(&m->spec, SPEC_UNIT, names[i]))
                        argv[n++] = names[i];
        if (m->link && n > 2)
                link_run(m->link, argv, NULL, 1 << 16, on_jobs, m);
        else
                look(m);
}
