/* reset: who leaves, in which steps. What is done on the host is the agent's (agent/reset.c). */
#include <event2/event.h>

#include "cluster/reset.h"
#include "cluster/roll.h"
#include "kube/wait.h"

#define API_SECONDS 60

/* ---- who ---- */

static size_t staying(const struct site *s, unsigned role)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += !s->members[i].leaving && s->members[i].node->pool->roles & role;
        return n;
}

static int no_such_node(struct site *s, const char *name, struct error *err)
{
        const char **names = arena_array(s->arena, const char *, s->count + 1);
        for (size_t i = 0; i < s->count; i++)
                names[i] = s->members[i].node->name;
        const char *near = nearest(name, names, s->count);
        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no node '%s'", s->cluster->name, name);
        return near ? error_hint(err, "did you mean %s?", near) : error_hint(err, "slipway status lists its nodes");
}

/* What is left must still be a cluster. */
static int rest_is_cluster(struct site *s, struct error *err)
{
        static const struct {
                unsigned role;
                const char *what;
        } needs[] = { { ROLE_CONTROL_PLANE, "control-plane node" }, { ROLE_ETCD, "etcd member" } };
        for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
                if (cluster_count(s->cluster, needs[i].role) && !staying(s, needs[i].role)) {
                        error_set(err, EINVAL, EXIT_USAGE, "cluster %s would be left with no %s", s->cluster->name, needs[i].what);
                        return error_hint(err, "reset the whole cluster: slipway reset without a node");
                }
        return 0;
}

int reset_choose(struct site *s, const struct strings *names, bool force, struct error *err)
{
        size_t count = 0;
        unsigned how = RESET_LEAVES | (force ? RESET_FORCE : 0);
        for (size_t i = 0; i < names->n; i++) {
                struct member *m = site_member(s, names->v[i]);
                if (!m)
                        return no_such_node(s, names->v[i], err);
                count += !m->leaving;
                m->leaving = how;
        }
        bool all = !names->n || count == s->count;
        for (size_t i = 0; all && i < s->count; i++)
                s->members[i].leaving = how | RESET_ALL;
        return all ? 0 : rest_is_cluster(s, err);
}

/* ---- the API ---- */

static void on_api(void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        site->wait = NULL;
        step_done(s, NULL);
}

static bool all_forced(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].leaving && !(s->members[i].leaving & RESET_FORCE))
                        return false;
        return true;
}

static void on_no_api(evutil_socket_t fd, short what, void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        const char *said = kube_trouble(site->kube);
        char *trouble CLEANUP(free_p) = xstrdup(said ? said : "not ready");
        kube_cancel(site->wait);
        site->wait = NULL;
        kube_free(site->kube); /* the steps after this one see that there is none */
        if (!all_forced(site)) {
                error_set(&err, ETIMEDOUT, EXIT_UNREACHABLE, "the API does not answer: %s", trouble);
                error_hint(&err, "mend it, or give --force: the hosts are then reset without a drain, and their Node objects stay");
        } else
                step_doing(s, -1, "the API does not answer: Node objects stay");
        site->kube = NULL;
        step_done(s, err.code ? &err : NULL);
}

void step_api_optional(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (!site->kube && site_kube(site, &err) < 0) {
                step_done(s, &err);
                return;
        }
        step_doing(s, -1, "waiting for /readyz");
        s->deadline = evtimer_new(site->base, on_no_api, s);
        event_add(s->deadline, &(struct timeval){ .tv_sec = all_forced(site) ? API_SECONDS / 4 : API_SECONDS });
        site->wait = kube_wait_ready(site->kube, 500, on_api, s);
}

/* ---- drain ---- */

static void on_node_seen(const struct kube_reply *reply, void *arg)
{
        struct step *s = arg;
        struct member *m = s->arg;
        if (reply->status == 404 || (reply->status == 200 && !node_ready(reply->body))) { /* nobody there who could let pods end */
                if (reply->status == 200)
                        step_doing(s, -1, "its kubelet is dead: no drain");
                step_kept(s);
                return;
        }
        json_decref(m->object);
        m->object = json_incref(reply->body);
        member_drain(m, s);
}

void step_drain_member(struct step *s)
{
        struct member *m = s->arg;
        if (m->leaving & (RESET_FORCE | RESET_ALL) || !m->site->kube) {
                step_kept(s);
                return;
        }
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", m->node->name);
        kube_request(m->site->kube, "GET", path, NULL, NULL, 0, on_node_seen, s);
}

/* ---- the host ---- */

static void add_dir(struct nodespec *spec, const char *path, unsigned flags)
{
        if (!path || nodespec_find(spec, SPEC_DIR, path))
                return;
        struct spec_entry *e = nodespec_add(spec, SPEC_DIR, CLASS_MUTABLE);
        e->path = arena_strdup(&spec->arena, path);
        e->flags = flags;
}

/* The agent knows what it applied; what it cannot know is which directories the Cluster gave to the programs. */
void step_reset_host(struct step *s)
{
        struct member *m = s->arg;
        const struct cluster *c = m->site->cluster;
        struct error err CLEANUP(error_release) = { 0 };
        if (member_cut(m, s))
                return;
        member_forget_spec(m);
        m->spec = (struct nodespec){ .node = m->node };
        m->rendered = true;
        if (m->node->pool->roles & ROLE_ETCD)
                add_dir(&m->spec, c->etcd.data_dir, 0);
        add_dir(&m->spec, c->runtime.data_dir, 0);
        const char *slash = c->audit.path ? strrchr(c->audit.path, '/') : NULL;
        if (c->audit.level != AUDIT_NONE && slash && slash > c->audit.path)
                add_dir(&m->spec, arena_strndup(m->site->arena, c->audit.path, (size_t)(slash - c->audit.path)), SPEC_ONCE);
        m->user = s;
        link_apply(m->link, &m->spec, NULL, 0, 3);
}

/* ---- the steps ---- */

struct step *reset_member(struct member *m, struct step *after)
{
        struct run *r = &m->site->run;
        const char *name = m->node->name;
        struct step *last = after, *one;
        const struct {
                const char *name;
                void (*start)(struct step *);
                bool wanted;
        } parts[] = {
                { "drain", step_drain_member, !(m->leaving & RESET_ALL) },
                { "API leave", step_api_leave, !(m->leaving & (RESET_ALL | RESET_HOST_DEAD)) && m->node->pool->roles & ROLE_CONTROL_PLANE },
                { "etcd leave", step_etcd_leave, !(m->leaving & RESET_ALL) && m->node->pool->roles & ROLE_ETCD },
                { "delete Node", step_delete_node, !(m->leaving & RESET_ALL) },
                { "reset", step_reset_host, !(m->leaving & RESET_HOST_DEAD) },
                { "gone", step_delete_node, !(m->leaving & (RESET_ALL | RESET_HOST_DEAD)) },
        };
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                if (!parts[i].wanted)
                        continue;
                one = run_step(r, parts[i].name, name, parts[i].start, m);
                step_after(one, last);
                last = one;
        }
        return last;
}

static void connect_to(struct member *m, bool optional)
{
        if (m->connect)
                return;
        m->optional = optional;
        m->connect = run_step(&m->site->run, "connect", m->node->name, step_connect, m);
}

struct step *reset_guard(struct site *s)
{
        bool any = false;
        for (size_t i = 0; i < s->count; i++)
                any |= s->members[i].leaving && s->members[i].node->pool->roles & ROLE_ETCD;
        if (!any)
                return NULL;
        struct step *quorum = run_step(&s->run, "etcd quorum", NULL, step_etcd_quorum, s);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (m->leaving || !(m->node->pool->roles & ROLE_ETCD))
                        continue;
                connect_to(m, true);
                step_after(quorum, m->connect);
        }
        return quorum;
}

void reset_steps(struct site *s)
{
        bool all = true;
        struct step *last = NULL, *guard = NULL, *api = NULL;
        for (size_t i = 0; i < s->count; i++)
                all &= s->members[i].leaving != 0;
        if (!all) {
                api = run_step(&s->run, "API", NULL, step_api_optional, s);
                guard = reset_guard(s);
        }
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!m->leaving)
                        continue;
                connect_to(m, false);
                struct step *ready = run_step(&s->run, "reach", m->node->name, step_kept, NULL);
                step_after(ready, m->connect);
                step_after(ready, api);
                step_after(ready, guard);
                if (m->node->pool->roles & ROLE_ETCD && !all) { /* etcd changes one member at a time */
                        step_after(ready, last);
                        last = reset_member(m, ready);
                } else
                        reset_member(m, ready);
        }
}
