#include <event2/event.h>
#include <time.h>

#include "artifact/http.h"
#include "base/file.h"
#include "base/sha256.h"
#include "cluster/site/op.h"

/* What follows after the Identity is open. */
static int site_find_machines(struct site *s, const char *verb, struct error *err)
{
        struct cluster *c = s->cluster;
        s->count = c->node_count;
        s->provider = (struct provider_run){ .base = s->base,
                .cluster = c,
                .state = s->identity.dir,
                .arena = s->arena,
                .prefix = s->identity.prefix,
                .secret = identity_secret(&s->identity, "cloud", s->arena) };
        s->machines = arena_array(s->arena, struct machine, s->count);
        s->members = arena_array(s->arena, struct member, s->count);
        s->lock_path = path_join(c->dir && *c->dir ? c->dir : ".", "bundle.lock");
        int r = records_read(s->identity.dir, s->arena, &s->found.record, err);
        if (r == 0)
                r = s->ops->list(&s->provider, s->machines, err);
        for (size_t i = 0; r == 0 && i < s->count; i++)
                s->members[i] = (struct member){
                        .site = s, .node = &c->nodes[i], .machine = &s->machines[i]
                };
        run_init(&s->run, s->base, s->arena, verb, c->name);
        pool_begin(s);
        return r;
}

static void site_begin(struct site *s, struct event_base *base, struct arena *a, struct cluster *c)
{
        *s = (struct site){
                .base = base, .arena = a, .cluster = c, .identity.lock = -1, .ops = provider_for(c)
        };
}

int site_open(struct site *s, struct event_base *base, struct arena *a, struct cluster *c,
        const char *state, const char *verb, struct error *err)
{
        site_begin(s, base, a, c);
        int r = identity_open(state, c, time(NULL), &s->identity, err);
        return r < 0 ? r : site_find_machines(s, verb, err);
}

int site_look(struct site *s, struct event_base *base, struct arena *a, struct cluster *c,
        const char *state, struct error *err)
{
        site_begin(s, base, a, c);
        int r = identity_look(state, c, time(NULL), &s->identity, err);
        if (r == -ENOENT) {
                error_release(err);
                r = 0;
        }
        return r < 0 ? r : site_find_machines(s, "look", err);
}

const struct machine *site_bastion(struct site *s)
{
        return s->ops->bastion ? s->ops->bastion(&s->provider) : NULL;
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
        if (member_reachable(m))
                return false;
        error_set(&err, EPIPE, EXIT_UNREACHABLE, "the connection was cut");
        error_hint(&err, "run again: it continues where it stopped");
        step_done(s, &err);
        return true;
}

int member_leaves(struct member *m, struct error *err)
{
        int r = m->plan.issued ? 0
                               : identity_node(&m->site->identity, m->site->cluster, m->node,
                                         &m->plan.leaves, err);
        m->plan.issued |= r == 0;
        return r;
}

/* The kubelet renews its own certificate through the API. With an expired certificate, or one of a
 * CA that is being replaced, it cannot: slipway then issues a new one. */
static void look_at_kubelet(struct member *m)
{
        const struct identity *id = &m->site->identity;
        const char *pem = json_string_value(json_object_get(m->seen.said, "kubeletClient"));
        m->seen.facts.kubelet_again =
                pem && id->prefix &&
                (identity_renews(id, m->node->name) || !identity_signed(id, CA_CLUSTER, pem));
        if (m->seen.facts.kubelet_again)
                m->seen.applied[0] = 0; /* send the spec even if it is unchanged */
}

int member_render(struct member *m, struct error *err)
{
        struct site *s = m->site;
        if (m->plan.rendered)
                return 0;
        int r = m->plan.dropped
                        ? 0
                        : facts_from_agent(m->seen.said, m->node, s->arena, &m->seen.facts, err);
        if (r == 0 && !m->plan.dropped)
                look_at_kubelet(m);
        m->seen.facts.provider_id = m->machine->provider_id;
        m->seen.facts.zone = m->machine->zone;
        m->seen.facts.region = m->machine->region;
        if (r == 0 && m->plan.etcd_initial && !m->seen.facts.etcd_initial) {
                m->seen.facts.etcd_initial = m->plan.etcd_initial;
                m->seen.facts.etcd_state = "existing";
        }
        if (r == 0)
                r = member_leaves(m, err);
        struct spec_input in = { .cluster = s->cluster,
                .identity = &s->identity,
                .leaves = &m->plan.leaves,
                .node = m->node,
                .facts = &m->seen.facts };
        if (r == 0)
                r = node_render(&in, &m->plan.spec, err);
        if (r < 0)
                return r;
        if (s->arch_count && !member_items(m)) {
                nodespec_release(&m->plan.spec);
                error_set(err, ENOENT, EXIT_STEP,
                        "its processor is %s, and nothing was fetched for that before it was reached",
                        member_arch(m));
                return error_hint(err, "run `slipway up`, which asks every machine first");
        }
        m->plan.rendered = true;
        m->plan.dropped = false;
        link_digest(
                &m->plan.spec, member_items(m), s->arch_count ? s->item_count : 0, m->plan.wanted);
        return 0;
}

bool member_has_etcd(const struct member *m)
{
        return json_object_get(m->seen.said, "etcd") != NULL;
}

bool member_adopted(const struct member *m)
{
        const char *cert = m->site->identity.ca[CA_CLUSTER].cert,
                   *its = json_string_value(json_object_get(m->seen.said, "clusterCA"));
        const char *cluster = json_string_value(json_object_get(m->seen.said, "cluster"));
        char digest[SHA256_HEX];
        if (!cert || !its || (cluster && *cluster))
                return false;
        sha256_hex(cert, strlen(cert), digest);
        return streq(its, digest);
}

void member_forget_spec(struct member *m)
{
        if (m->plan.rendered)
                nodespec_release(&m->plan.spec);
        m->plan.rendered = m->plan.dropped = false;
}

void member_drop_spec(struct member *m)
{
        bool known = m->plan.rendered || m->plan.dropped;
        member_forget_spec(m);
        m->plan.dropped = known;
}

int member_wants(struct member *m, struct error *err)
{
        return m->plan.dropped ? 0 : member_render(m, err);
}

static void member_release(struct member *m)
{
        link_free(m->run.link);
        json_decref(m->seen.said);
        json_decref(m->seen.drift);
        json_decref(m->seen.object);
        node_identity_release(&m->plan.leaves);
        member_forget_spec(m);
}

void site_release(struct site *s)
{
        pool_end(s);
        ops_release(s); /* first: drains are calls of the API client */
        for (size_t i = 0; s->members && i < s->count; i++)
                member_release(&s->members[i]);
        for (size_t i = 0; i < s->found.removed_count; i++)
                member_release(s->found.removed[i]);
        kube_free(s->kube);
        kube_free(s->removed_kube);
        site_tunnels_free(s);
        fetch_free(s->fetch);
        http_free(s->http);
        items_free(s->items, s->item_count * (s->arch_count ? s->arch_count : 1));
        if (s->api_timer)
                event_free(s->api_timer);
        if (s->verify_timer)
                event_free(s->verify_timer);
        json_decref(s->found.nodes);
        json_decref(s->found.bindings);
        json_decref(s->found.spaces);
        if (s->own_images_timer)
                event_free(s->own_images_timer);
        if (s->ops && s->ops->close)
                s->ops->close(&s->provider);
        run_release(&s->run);
        identity_release(&s->identity);
        free(s->lock_path);
}
