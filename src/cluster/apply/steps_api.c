/* Steps on the API: waiting for it, applying its first objects, waiting until every
 * node is Ready. */
#include <event2/event.h>

#include "cluster/apply/readiness.h"
#include "cluster/apply/roll.h"
#include "cluster/apply/workloads.h"
#include "cluster/site/proven.h"
#include "config/fabric.h"
#include "kube/wait.h"

/* Much longer than a slow computer needs. */
#define WAIT_SECONDS 900

/* ---- the API ---- */

/* Shows what a step waits for and the API's last error, so that the message of a
 * deadline has both. */
static void waiting_for(struct step *s, const struct kube *k, const char *what)
{
        const char *trouble = kube_trouble(k);
        char *text CLEANUP(free_p) = trouble ? xasprintf("%s: %s", what, trouble) : xstrdup(what);
        if (!s->doing || !streq(s->doing, text))
                step_doing(s, -1, "%s", text);
}

/* What the API needs is still on its way to a node. */
static bool delivering(const struct site *site)
{
        for (size_t i = 0; i < site->count; i++) {
                const struct member *m = &site->members[i];
                if (m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD) && m->run.apply &&
                        m->run.apply->state <= STEP_RUNNING)
                        return true;
        }
        return false;
}

/* The deadline is that of a start: programs and images may take hours over a slow connection. */
static void api_deadline(struct step *s)
{
        if (!s->deadline && !delivering(s->arg))
                step_deadline(s, WAIT_SECONDS,
                        "slipway logs NODE apiserver (or etcd, kubelet) of a control-plane node says why");
}

static void on_api_timer(evutil_socket_t fd, short what, void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        if (s->state == STEP_RUNNING && site->wait) {
                waiting_for(s, site->kube, "waiting for /readyz");
                api_deadline(s);
        } else
                event_del(site->api_timer);
}

static void on_api_ready(void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        site->wait = NULL;
        site_record_cluster(site);
        step_done(s, NULL);
}

void step_api(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (site_kube(site, &err) < 0) {
                step_done(s, &err);
                return;
        }
        step_doing(s, -1, "waiting for /readyz");
        api_deadline(s);
        site->api = s;
        site->wait = kube_wait_ready(site->kube, 200, on_api_ready, s);
        site->api_timer = event_new(site->base, -1, EV_PERSIST, on_api_timer, s);
        event_add(site->api_timer, &(struct timeval){ .tv_sec = 2 });
        api_look(site);
}

/* ---- objects ---- */

static void on_objects(const char *error, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (error)
                error_set(&err, EIO, EXIT_STEP, "%s", error);
        step_done(arg, error ? &err : NULL);
}

static void drop_spec_p(struct member **m)
{
        if (*m)
                member_drop_spec(*m);
}

void step_objects(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct str documents CLEANUP(str_release) = { 0 };
        const struct spec_entry *kubelet = NULL;
        const struct nodespec *spec = NULL;
        struct member *again CLEANUP(drop_spec_p) = NULL;
        for (size_t i = 0; i < site->count && !kubelet; i++) {
                struct member *m = &site->members[i];
                if (m->plan.dropped && m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER) &&
                        member_render(m, &err) == 0)
                        again = m;
                if (m->plan.rendered)
                        kubelet = nodespec_find(
                                spec = &m->plan.spec, SPEC_FILE, "/var/lib/kubelet/config.yaml");
        }
        if (!kubelet) {
                error_set(&err, EINVAL, EXIT_INTERNAL, "no node has a kubelet configuration");
                step_done(s, &err);
                return;
        }
        /* from here on all users in the file are recorded */
        if (identity_people(&site->identity, site->cluster, &err) < 0) {
                step_done(s, &err);
                return;
        }
        if (addon_bootstrap(site->cluster, &site->identity, kubelet->content, &documents, &err) <
                0) {
                step_done(s, &err);
                return;
        }
        str_add(&documents, "\n---\n");
        addon_admins(site->cluster, &documents);
        str_add(&documents, "\n---\n");
        addon_fabric(site->cluster, &documents);
        str_add(&documents, "\n---\n");
        addon_joined(site->cluster, spec, &documents);
        str_add(&documents, "\n---\n");
        if (site->cluster->network.manage_dns)
                addon_dns(site->cluster, &documents);
        kube_apply(site->kube, str_text(&documents), on_objects, s);
}

/* ---- nodes ---- */

static void add_label(json_t *labels, const char *key, const char *value)
{
        json_object_set_new(labels, key, json_string(value));
}

/* What a kubelet must not set on its own Node: roles, and labels and taints of the file. */
static char *node_document(const struct member *m)
{
        const struct node *n = m->node;
        json_t *labels = json_object(), *annotations = json_object();
        if (n->pool->roles & ROLE_CONTROL_PLANE) {
                add_label(labels, "node-role.kubernetes.io/control-plane", "");
                add_label(labels, "node.kubernetes.io/exclude-from-external-load-balancers", "");
        }
        add_label(labels, POOL_LABEL, n->pool->name);
        for (size_t i = 0; i < n->pool->labels.n; i++)
                add_label(labels, n->pool->labels.v[i].key, n->pool->labels.v[i].value);
        for (size_t i = 0; n->host && i < n->host->labels.n; i++)
                add_label(labels, n->host->labels.v[i].key, n->host->labels.v[i].value);
        for (size_t i = 0; i < n->pool->annotations.n; i++)
                add_label(annotations, n->pool->annotations.v[i].key,
                        n->pool->annotations.v[i].value);
        json_t *doc = json_pack("{s:s, s:s, s:{s:s, s:o, s:o}}", "apiVersion", "v1", "kind", "Node",
                "metadata", "name", n->name, "labels", labels, "annotations", annotations);
        char *text = json_dumps(doc, 0);
        json_decref(doc);
        return text;
}

/* The fabric is up on a node when it has written an annotation into the Node (flanneld: that
 * its addresses are there). */
static bool fabric_up(const struct member *m)
{
        const char *up = cluster_fabric(m->site->cluster)->up;
        json_t *annotations =
                json_object_get(json_object_get(m->seen.object, "metadata"), "annotations");
        return !up || json_object_get(annotations, up);
}

/* For nodes that have no step "healthy", or whose step found nothing to look at. */
static void ready_proves(struct member *m)
{
        const struct step *healthy = m->run.healthy;
        const char *runs = member_version(m);
        if (node_ready(m->seen.object) && runs && streq(runs, m->site->cluster->kubernetes.text) &&
                (!healthy || healthy->state == STEP_DONE || healthy->state == STEP_KEPT))
                proven_healthy(m);
}

static void ready_end(struct member *m)
{
        ready_proves(m);
        step_done(m->run.ready, NULL);
}

static void steps_api_look(struct member *m)
{
        struct step *s = m->run.ready;
        if (!s || s->state != STEP_RUNNING)
                return;
        if (!m->seen.object)
                waiting_for(s, m->site->kube, "waiting for the kubelet");
        else if (!member_is(m, m->seen.object))
                step_doing(s, -1, "waiting for the kubelet of its new machine");
        else if (!m->run.labelled)
                step_doing(s, -1, "registered, labels on their way");
        else if (m->site->cluster->network.fabric.kind == FABRIC_NONE)
                /* registered: it becomes Ready when the user installs a fabric */
                ready_end(m);
        else if (!node_ready(m->seen.object))
                step_doing(s, -1, "registered, not Ready yet");
        else if (!fabric_up(m))
                step_doing(s, -1, "Ready, waiting for the fabric");
        else
                ready_end(m);
}

/* A node without its labels is not finished, even if it is Ready. */
static void on_labelled(const char *error, void *arg)
{
        struct member *m = arg;
        struct error err CLEANUP(error_release) = { 0 };
        m->run.labelled = !error;
        if (!error) {
                steps_api_look(m);
                readiness_look(m->site);
        } else if (m->run.ready && m->run.ready->state == STEP_RUNNING) {
                error_set(&err, EIO, EXIT_STEP, "its labels cannot be set: %s", error);
                error_hint(&err,
                        "fix the labels or annotations of its pool in cluster.yaml, and run again");
                step_done(m->run.ready, &err);
        }
}

static void on_steps_api_node(const char *type, json_t *object, void *arg)
{
        struct site *s = arg;
        struct member *m = site_member(
                s, json_string_value(json_object_get(json_object_get(object, "metadata"), "name")));
        for (size_t i = 0; streq(type, "ERROR") && i < s->count; i++)
                steps_api_look(&s->members[i]); /* waiting steps show why */
        if (!m)
                return;
        json_decref(m->seen.object);
        m->seen.object = streq(type, "DELETED") ? NULL : json_incref(object);
        if (!m->run.named && m->seen.object) {
                m->run.named = true;
                char *doc CLEANUP(free_p) = node_document(m);
                kube_apply(s->kube, doc, on_labelled, m);
        }
        steps_api_look(m);
        readiness_look(s);
}

void step_node_ready(struct step *s)
{
        struct member *m = s->arg;
        struct site *site = m->site;
        if (m->run.back) {
                step_skipped(s);
                return;
        }
        readiness_wait(s, "slipway logs NODE kubelet (or flanneld, containerd) says why");
        if (!site->watch)
                site->watch =
                        kube_watch(site->kube, "/api/v1/nodes", NULL, on_steps_api_node, site);
        steps_api_look(m);
        readiness_look(site);
}

/* ---- DNS ---- */

static void on_dns_ready(void *arg) { step_done(arg, NULL); }

void step_dns(struct step *s)
{
        struct site *site = s->arg;
        /* its pods need a fabric; or DNS is not slipway's */
        if (site->cluster->network.fabric.kind == FABRIC_NONE ||
                !site->cluster->network.manage_dns) {
                step_unchanged(s);
                return;
        }
        step_deadline(s, WAIT_SECONDS,
                "kubectl -n kube-system describe pods -l k8s-app=kube-dns says why");
        struct workloads *w = workloads_new(site, s);
        json_auto_t *objects = json_pack("[{s:s, s:s, s:{s:s, s:s}}]", "apiVersion", "apps/v1",
                "kind", "Deployment", "metadata", "name", "coredns", "namespace", "kube-system");
        workloads_add(w, objects);
        workloads_wait(w, on_dns_ready, s);
}
