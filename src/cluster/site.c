#include <event2/event.h>
#include <time.h>

#include "base/file.h"
#include "cluster/plan.h"
#include "kube/drain.h"

/* What comes after the Identity. */
static int find_machines(struct site *s, const char *verb, struct error *err)
{
        struct cluster *c = s->cluster;
        s->count = c->node_count;
        s->provider = (struct provider_run){ .base = s->base, .cluster = c, .state = s->identity.dir, .arena = s->arena };
        s->machines = arena_array(s->arena, struct machine, s->count);
        s->members = arena_array(s->arena, struct member, s->count);
        s->lock_path = path_join(c->dir && *c->dir ? c->dir : ".", "bundle.lock");
        int r = s->ops->list(&s->provider, s->machines, err);
        for (size_t i = 0; r == 0 && i < s->count; i++)
                s->members[i] = (struct member){ .site = s, .node = &c->nodes[i], .machine = &s->machines[i] };
        run_init(&s->run, s->base, s->arena, verb, c->name);
        return r;
}

static int begin(struct site *s, struct event_base *base, struct arena *a, struct cluster *c, struct error *err)
{
        *s = (struct site){ .base = base, .arena = a, .cluster = c, .identity.lock = -1, .ops = provider_for(c) };
        if (!s->ops)
                return error_set(
                        err, ENOTSUP, EXIT_CONFIG, "provider %s: machines there cannot be made yet", c->provider.kind == PROVIDER_AWS ? "aws" : "openstack");
        return 0;
}

int site_open(struct site *s, struct event_base *base, struct arena *a, struct cluster *c, const char *state, const char *verb, struct error *err)
{
        int r = begin(s, base, a, c, err);
        if (r == 0)
                r = identity_open(state, c, time(NULL), &s->identity, err);
        return r < 0 ? r : find_machines(s, verb, err);
}

int site_look(struct site *s, struct event_base *base, struct arena *a, struct cluster *c, const char *state, struct error *err)
{
        int r = begin(s, base, a, c, err);
        if (r < 0)
                return r;
        r = identity_look(state, c, time(NULL), &s->identity, err);
        if (r == -ENOENT) {
                error_release(err);
                r = 0;
        }
        return r < 0 ? r : find_machines(s, "look", err);
}

struct member *site_member(struct site *s, const char *name)
{
        for (size_t i = 0; name && i < s->count; i++)
                if (streq(s->members[i].node->name, name))
                        return &s->members[i];
        return NULL;
}

bool member_cut(const struct member *m, struct step *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (m->link)
                return false;
        error_set(&err, EPIPE, EXIT_UNREACHABLE, "the connection was cut");
        error_hint(&err, "run again: it goes on where it stopped");
        step_done(s, &err);
        return true;
}

int member_leaves(struct member *m, struct error *err)
{
        int r = m->issued ? 0 : identity_node(&m->site->identity, m->site->cluster, m->node, &m->leaves, err);
        m->issued |= r == 0;
        return r;
}

/* The kubelet renews its certificate by itself, through the API. One that is expired, or an authority's that is going, gets it to the API no more: only we can help. */
static void look_at_kubelet(struct member *m)
{
        const struct identity *id = &m->site->identity;
        const char *pem = json_string_value(json_object_get(m->said, "kubeletClient"));
        m->facts.kubelet_again = pem && id->prefix && (identity_renews(id, m->node->name) || !identity_signed(id, CA_CLUSTER, pem));
        if (m->facts.kubelet_again)
                m->applied[0] = 0; /* the spec may be the same: it is sent all the same */
}

int member_render(struct member *m, struct error *err)
{
        struct site *s = m->site;
        if (m->rendered)
                return 0;
        int r = facts_from_agent(m->said, m->node, s->arena, &m->facts, err);
        if (r == 0)
                look_at_kubelet(m);
        if (r == 0 && m->etcd_initial && !m->facts.etcd_initial) {
                m->facts.etcd_initial = m->etcd_initial;
                m->facts.etcd_state = "existing";
        }
        if (r == 0)
                r = member_leaves(m, err);
        struct spec_input in = { .cluster = s->cluster, .identity = &s->identity, .leaves = &m->leaves, .node = m->node, .facts = &m->facts };
        if (r == 0)
                r = node_render(&in, &m->spec, err);
        if (r < 0)
                return r;
        m->rendered = true;
        link_digest(&m->spec, s->items, s->item_count, m->wanted);
        return 0;
}

void member_forget_spec(struct member *m)
{
        if (m->rendered)
                nodespec_release(&m->spec);
        m->rendered = false;
}

static void member_release(struct member *m)
{
        drain_free(m->drain);
        if (m->timer)
                event_free(m->timer);
        link_free(m->link);
        json_decref(m->said);
        json_decref(m->drift);
        json_decref(m->object);
        node_identity_release(&m->leaves);
        member_forget_spec(m);
}

void site_release(struct site *s)
{
        for (size_t i = 0; s->members && i < s->count; i++) /* their drains are calls of the API's client: before it */
                member_release(&s->members[i]);
        for (size_t i = 0; i < s->gone_count; i++)
                if (!former_find(s, s->gone[i]->node->name))
                        member_release(s->gone[i]);
        for (size_t i = 0; i < s->former_count; i++)
                member_release(&s->former[i]);
        kube_free(s->kube);
        kube_free(s->former_kube);
        site_tunnels_free(s);
        fetch_free(s->fetch);
        items_free(s->items, s->item_count);
        if (s->dns_timer)
                event_free(s->dns_timer);
        if (s->api_timer)
                event_free(s->api_timer);
        if (s->verify_timer)
                event_free(s->verify_timer);
        json_decref(s->nodes);
        if (s->fabric_timer)
                event_free(s->fabric_timer);
        run_release(&s->run);
        identity_release(&s->identity);
        free(s->lock_path);
}
