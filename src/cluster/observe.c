/* What is: asked of the machines, of etcd and of the API before the plan is made. Nothing here fails a run by itself: a cluster that is yet to be answers nothing. */
#include <event2/event.h>

#include "cluster/etcd.h"
#include "cluster/keep.h"
#include "cluster/plan.h"
#include "kube/wait.h"

#define ASK_MS  15000 /* a slow answer must not look like none: nodes that are gone are known from it */
#define API_MS  60000 /* an API that lives may just be starting again, */
#define ETCD_MS 20000 /* and so may etcd: sooner, as nothing goes before it */
#define LOOK_MS 300

struct observe {
        struct site *site;
        struct step *step;
        struct kube *kube;
        size_t waiting, next; /* next: the member that etcd is asked on when the one before did not answer */
        bool etcd;            /* somebody could be asked for etcd's members */
        bool dumb;            /* and nobody answers */
};

/* ---- nodes that are no longer in the file ---- */

static struct member *gone_find(struct site *s, const char *name)
{
        for (size_t i = 0; i < s->gone_count; i++)
                if (streq(s->gone[i]->node->name, name))
                        return s->gone[i];
        return NULL;
}

/* The node as far as it can be known without the file. */
static struct member *gone_add(struct site *s, const char *name, const char *address, unsigned roles)
{
        struct member *m = gone_find(s, name);
        if (m) {
                ((struct pool *)m->node->pool)->roles |= roles;
                return m;
        }
        struct member **all = arena_array(s->arena, struct member *, s->gone_count + 1);
        if (s->gone_count)
                memcpy(all, s->gone, s->gone_count * sizeof(struct member *));
        s->gone = all;
        m = former_find(s, name);
        if (!m)
                *(m = arena_new(s->arena, struct member)) = member_former(s, name, address, 0);
        ((struct pool *)m->node->pool)->roles |= roles;
        return all[s->gone_count++] = m;
}

static const char *label(const json_t *node, const char *key)
{
        return json_string_value(json_object_get(json_object_get(json_object_get(node, "metadata"), "labels"), key));
}

static void gone_nodes(struct site *s)
{
        const json_t *items = json_object_get(s->nodes, "items"), *n;
        size_t i;
        json_array_foreach(items, i, n)
        {
                struct member *m = site_member(s, object_name(n));
                if (!m && label(n, "slipway.dev/pool"))
                        m = gone_add(
                                s, object_name(n), node_internal_ip(n), label(n, "node-role.kubernetes.io/control-plane") ? ROLE_CONTROL_PLANE : ROLE_WORKER);
                if (m && !m->object)
                        m->object = json_incref((json_t *)n);
        }
}

/* https://10.0.0.1:2380 → 10.0.0.1 */
static const char *url_host(struct site *s, const char *url)
{
        const char *host = strstr(url, "://"), *end;
        if (!host)
                return NULL;
        host += 3 + (host[3] == '[');
        end = strrchr(host, ':');
        if (end && end > host && end[-1] == ']')
                end--;
        return arena_strndup(s->arena, host, end ? (size_t)(end - host) : strlen(host));
}

static void gone_peers(struct site *s)
{
        for (size_t i = 0; i < s->peer_count; i++) {
                const struct etcd_peer *p = &s->peers[i];
                bool wanted = false;
                size_t k = 0;
                for (const struct node *n; !wanted && (n = cluster_next(s->cluster, ROLE_ETCD, &k));)
                        wanted = etcd_peer_of(p, 1, n) != NULL;
                if (!wanted)
                        gone_add(s, *p->name ? p->name : p->peer, url_host(s, p->peer), ROLE_ETCD);
        }
}

static void gone_machines(struct site *s)
{
        struct strings names = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        if (!s->ops->others || s->ops->others(&s->provider, &names, &err) < 0)
                return;
        for (size_t i = 0; i < names.n; i++)
                gone_add(s, names.v[i], NULL, 0);
}

void former_steps(struct site *s, struct step *observe)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        former_read(s);
        for (size_t i = 0; i < s->former_count; i++) {
                struct member *m = &s->former[i];
                if (s->ops->find(&s->provider, m->node, m->machine, &ignored) < 0 || m->machine->state != MACHINE_RUNNING || !m->machine->target.host)
                        continue;
                m->connect = run_step(&s->run, "connect", m->node->name, step_connect, m);
                step_after(observe, m->connect);
        }
}

/* Steps that see whether they can be reached: the plan waits for them. */
static void greet(struct observe *o)
{
        struct site *s = o->site;
        struct step *plan = s->plan;
        for (size_t i = 0; i < s->gone_count; i++) {
                struct member *m = s->gone[i];
                struct error err CLEANUP(error_release) = { 0 };
                if (m->connect)
                        continue;
                if (s->ops->find(&s->provider, m->node, m->machine, &err) < 0 || m->machine->state != MACHINE_RUNNING || !m->machine->target.host)
                        continue;
                m->connect = run_step(&s->run, "connect", m->node->name, step_connect, m);
                step_after(plan, m->connect);
        }
}

static void greeted(struct observe *o)
{
        if (--o->waiting)
                return;
        greet(o);
        step_done(o->step, NULL);
}

static void on_state(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct etcd_state state;
        m->etcd_well = answer && etcd_state(answer, &state) && state.leader && !state.learner;
        greeted(arg);
}

/* Whether those who stay are a quorum matters when one is to leave: only then each is asked. */
static void ask_health(struct observe *o)
{
        struct site *s = o->site;
        bool leaves = false;
        for (size_t i = 0; i < s->gone_count; i++)
                leaves |= etcd_peer_of(s->peers, s->peer_count, s->gone[i]->node) != NULL;
        o->waiting = 1;
        for (size_t i = 0; leaves && i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!m->link || !member_has_etcd(m))
                        continue;
                o->waiting++;
                etcd_ask(m, ETCD_STATUS, ASK_MS / 1000, on_state, o);
        }
        greeted(o);
}

/* A cluster that is being taken over has no etcdctl yet, and lives all the same: its API answers. Its members are kubeadm's, one beside each API server. */
static void adopted_peers(struct site *s)
{
        s->peers = arena_array(s->arena, struct etcd_peer, s->count + 1);
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                char *url CLEANUP(free_p) = member_adopted(m) && member_has_etcd(m) ? etcd_peer_url(m->node) : NULL;
                if (url)
                        s->peers[s->peer_count++] =
                                (struct etcd_peer){ .name = m->node->name, .peer = arena_strdup(s->arena, url), .client = arena_strdup(s->arena, url) };
        }
        s->live = s->peer_count > 0;
}

static void answered(struct observe *o)
{
        struct site *s = o->site;
        if (--o->waiting)
                return;
        if (!s->live && s->api_up)
                adopted_peers(s);
        gone_nodes(s);
        gone_peers(s);
        gone_machines(s);
        ask_health(o);
}

/* ---- etcd ---- */

static void ask_etcd(struct observe *o);

static void on_peers(struct member *m, json_t *answer, const char *trouble, void *arg)
{
        struct observe *o = arg;
        if (!answer) {
                ask_etcd(o);
                return;
        }
        o->site->live = true;
        o->site->peers = etcd_peers(answer, o->site->arena, &o->site->peer_count);
        answered(o);
}

/* A run that was killed may have left etcd and the API server starting. Without them nobody knows who is cordoned, which version runs and who must be drained, so a
 * plan made now would be a wrong one. Where they have never been they do not come by themselves, nor does the API where etcd is silent. */
static bool comes(const struct observe *o, int64_t ms) { return site_born(o->site) && run_now(&o->site->run) - o->step->began < ms; }

static void ask_etcd_again(evutil_socket_t fd, short what, void *arg)
{
        struct observe *o = arg;
        o->next = 0;
        ask_etcd(o);
}

static void ask_etcd(struct observe *o)
{
        static const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };
        const struct site *s = o->site;
        while (o->next < s->count + s->former_count) {
                size_t i = o->next++;
                struct member *m = i < s->count ? &s->members[i] : &s->former[i - s->count];
                if (!m->link || !member_has_etcd(m))
                        continue;
                o->etcd = true;
                etcd_ask(m, ETCD_MEMBERS, ASK_MS / 1000, on_peers, o);
                return;
        }
        if (o->etcd && comes(o, ETCD_MS)) {
                event_base_once(o->site->base, -1, EV_TIMEOUT, ask_etcd_again, o, &soon);
                return;
        }
        o->dumb = true;
        answered(o);
}

/* ---- the API ---- */

static void on_kept(void *arg) { answered(arg); }

static void on_version(const struct kube_reply *reply, void *arg)
{
        struct observe *o = arg;
        const char *v = json_string_value(json_object_get(reply->body, "gitVersion"));
        if (v)
                o->site->version = arena_strdup(o->site->arena, v + (*v == 'v'));
        keep_look(o->site, o->kube, on_kept, o);
}

/* Something of ours runs on a control-plane node, or what is being taken over. */
static bool any_api(const struct member *members, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct member *m = &members[i];
                if (m->link && m->node->pool->roles & ROLE_CONTROL_PLANE && (json_object_get(m->said, "cluster") || member_adopted(m)))
                        return true;
        }
        return false;
}

static void ask_nodes(struct observe *o);

static void on_nodes(const struct kube_reply *reply, void *arg)
{
        struct observe *o = arg;
        if (reply->error) {
                step_doing(o->step, -1, "waiting for the API: %s", reply->error);
                ask_nodes(o);
                return;
        }
        o->site->api_up = true;
        o->site->nodes = json_incref(reply->body);
        kube_request(o->kube, "GET", "/version", NULL, NULL, ASK_MS, on_version, o);
}

static void ask_nodes_again(evutil_socket_t fd, short what, void *arg)
{
        struct observe *o = arg;
        o->kube = NULL;
        ask_nodes(o);
}

/* Those that are in the file; when none of them has an API that answers yet, those they come after; and once more, when it may just be starting. */
static void ask_nodes(struct observe *o)
{
        static const struct timeval soon = { .tv_usec = LOOK_MS * 1000 };
        struct site *s = o->site;
        struct error err CLEANUP(error_release) = { 0 };
        const struct kube *silent = o->kube;
        if (!silent && s->identity.prefix && any_api(s->members, s->count) && site_kube(s, &err) == 0)
                o->kube = s->kube;
        else if ((!silent || silent != s->former_kube) && s->identity.prefix && any_api(s->former, s->former_count) &&
                 (s->former_kube || site_former_kube(s, &err) == 0))
                o->kube = s->former_kube;
        else
                o->kube = NULL;
        if (o->kube)
                kube_request(o->kube, "GET", "/api/v1/nodes", NULL, NULL, ASK_MS, on_nodes, o);
        else if (silent && !o->dumb && comes(o, API_MS))
                event_base_once(s->base, -1, EV_TIMEOUT, ask_nodes_again, o, &soon);
        else
                answered(o);
}

void step_observe(struct step *step)
{
        struct site *s = step->arg;
        struct observe *o = arena_new(s->arena, struct observe);
        *o = (struct observe){ .site = s, .step = step, .waiting = 2 };
        ask_etcd(o);
        ask_nodes(o);
}

/* ---- what would change on a node ---- */

void step_compare(struct step *s)
{
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (!m->site->identity.prefix || (!json_object_get(m->said, "cluster") && !member_adopted(m))) { /* nothing of ours is there: all of it will come */
                m->fate = FATE_INSTALL;
                step_kept(s);
                return;
        }
        if (member_render(m, &err) < 0) {
                step_done(s, &err);
                return;
        }
        if (streq(m->wanted, m->applied) && !json_array_size(m->drift)) {
                step_kept(s);
                return;
        }
        m->fate = FATE_CHANGE;
        if (member_cut(m, s))
                return;
        m->comparing = true;
        m->user = s;
        link_apply(m->link, &m->spec, m->site->items, m->site->item_count, 2);
}
