/* Nodes that are no longer in the file, and what may be done to their hosts. slipway connects to
 * such a host, and resets it, only at the recorded address and only if slipway's own record (or the
 * provider, for machines it made) has it. A node that only the API or etcd knows is shown in the
 * plan and removed from those two; its host is not touched. */
#include "cluster/site/removed.h"
#include "cluster/site/peer.h"
#include "kube/wait.h"

/* ---- the record ---- */

/* A run continues without the record: hosts that are missing in it will only not be connected to
 * after they are removed from the file, and a node's previous version is asked of the API only. */
void site_record_save(struct site *s)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        if (!s->identity.looking)
                records_write(s->identity.dir, &s->found.record, &ignored);
}

bool site_existed(const struct site *s) { return s->found.record.existed; }

bool site_begun(const struct site *s)
{
        const struct host_records *r = &s->found.record;
        return r->existed || r->adopted || r->n;
}

int site_must_exist(const struct site *s, struct error *err)
{
        if (site_existed(s))
                return 0;
        error_set(err, ENOENT, EXIT_STATE, "cluster %s does not exist yet", s->cluster->name);
        return error_hint(err, "'slipway up' creates it; nothing was changed");
}

void site_record_cluster(struct site *s)
{
        s->found.record.existed = true;
        site_record_save(s);
}

void site_record_prune(struct site *s)
{
        for (size_t i = s->found.record.n; i-- > 0;)
                if (!cluster_node(s->cluster, s->found.record.v[i].name))
                        records_drop(&s->found.record, s->found.record.v[i].name);
        site_record_cluster(s);
}

void site_record_clear(struct site *s)
{
        s->found.record.n = 0;
        s->found.record.existed = s->found.record.adopted = false;
        site_record_save(s);
}

/* 32 hexadecimal digits; a machine that was never set up has a word
 * like "uninitialized" instead. */
const char *member_machine_id(const struct member *m)
{
        const char *id = json_string_value(json_object_get(m->seen.said, "machineId"));
        return id && strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32 ? id : NULL;
}

static bool same_text(const char *a, const char *b) { return a && b ? streq(a, b) : a == b; }

/* What is known of a machine's versions is not true for another machine. */
static bool record_same_machine(const struct host_record *a, const struct host_record *b)
{
        return !a->machine_id || !b->machine_id || streq(a->machine_id, b->machine_id);
}

static bool record_same(const struct host_record *a, const struct host_record *b)
{
        return same_text(a->address, b->address) && same_text(a->user, b->user) &&
               a->port == b->port && same_text(a->ip, b->ip) &&
               same_text(a->host_key, b->host_key) && same_text(a->machine_id, b->machine_id) &&
               a->roles == b->roles;
}

void member_record(struct member *m)
{
        struct site *s = m->site;
        const struct node *n = m->node;
        struct host_record *h = records_put(&s->found.record, s->arena, n->name);
        const char *id = member_machine_id(m), *key = m->seen.host_key;
        char ip[IP_TEXT];
        bool moved = !h->address || !n->address || !streq(h->address, n->address);
        struct host_record now = { .name = h->name,
                .address = n->address,
                .user = n->host ? n->host->user : NULL,
                .port = n->host ? n->host->port : 0,
                .ip = n->ip[0].family ? arena_strdup(s->arena, ip_format(&n->ip[0], ip)) : NULL,
                .host_key = key     ? arena_strdup(s->arena, key)
                            : moved ? NULL
                                    : h->host_key,
                .machine_id = id ? arena_strdup(s->arena, id) : NULL,
                .roles = n->pool->roles };
        if (record_same_machine(h, &now)) {
                now.healthy = h->healthy;
                now.unproven = h->unproven;
        }
        /* an old record is always rewritten */
        if (!s->found.record.old && record_same(h, &now))
                return;
        *h = now;
        site_record_save(s);
}

void member_unrecord(struct member *m)
{
        records_drop(&m->site->found.record, m->node->name);
        site_record_save(m->site);
}

const char *member_replaced(const struct member *m)
{
        const struct host_record *h = records_find(&m->site->found.record, m->node->name);
        const char *id = member_machine_id(m);
        if (m->plan.fate == FATE_REMOVE || !h || !h->machine_id || !id || streq(h->machine_id, id))
                return NULL;
        if (member_moved(m))
                return arena_printf(m->site->arena,
                        "its host was %s and was replaced: that host is not changed", h->address);
        return arena_printf(m->site->arena,
                "its machine-id is %s and the record has %s: the host was reinstalled or replaced",
                id, h->machine_id);
}

const struct host_record *member_moved(const struct member *m)
{
        const struct host_record *h = records_find(&m->site->found.record, m->node->name);
        return m->plan.fate != FATE_REMOVE && h && h->address && m->node->address &&
                               !streq(h->address, m->node->address)
                       ? h
                       : NULL;
}

/* ---- removed nodes ---- */

struct member *removed_find(const struct site *s, const char *name)
{
        for (size_t i = 0; name && i < s->found.removed_count; i++)
                if (streq(s->found.removed[i]->node->name, name))
                        return s->found.removed[i];
        return NULL;
}

/* A node with what is known about it without the file. */
static struct member *removed_add(struct site *s, const char *name, const struct host_record *h)
{
        struct member *m = arena_new(s->arena, struct member);
        struct node *n = arena_new(s->arena, struct node);
        struct pool *p = arena_new(s->arena, struct pool);
        struct host *host = arena_new(s->arena, struct host);
        *p = (struct pool){ .name = "", .roles = h ? h->roles : 0 };
        *host = (struct host){ .user = h ? h->user : NULL, .port = h ? h->port : 0 };
        *n = (struct node){ .pool = p,
                .host = host,
                .name = arena_strdup(s->arena, name),
                .address = h ? h->address : NULL };
        const char *ip = h && h->ip ? h->ip : n->address;
        if (ip)
                ip_parse(ip, &n->ip[0]);
        *m = (struct member){ .site = s,
                .node = n,
                .machine = arena_new(s->arena, struct machine),
                .plan.fate = FATE_REMOVE,
                .seen.known = h != NULL };
        *m->machine = (struct machine){ .node = n };
        /* the array doubles at every power of two */
        if (!(s->found.removed_count & (s->found.removed_count - 1))) {
                struct member **all = arena_array(s->arena, struct member *,
                        s->found.removed_count ? s->found.removed_count * 2 : 1);
                if (s->found.removed_count)
                        memcpy(all, s->found.removed,
                                s->found.removed_count * sizeof(struct member *));
                s->found.removed = all;
        }
        return s->found.removed[s->found.removed_count++] = m;
}

static void removed_role(struct member *m, unsigned roles)
{
        ((struct pool *)m->node->pool)->roles |= roles;
}

void removed_read(struct site *s)
{
        for (size_t i = 0; i < s->found.record.n; i++)
                if (!cluster_node(s->cluster, s->found.record.v[i].name) &&
                        !removed_find(s, s->found.record.v[i].name))
                        removed_add(s, s->found.record.v[i].name, &s->found.record.v[i]);
}

/* What the API reports about a removed node: shown where it differs from the record. */
static void removed_object(struct site *s, struct member *m, const json_t *object)
{
        const char *says = node_internal_ip(object);
        struct ip ip;
        char ours[IP_TEXT];
        m->seen.object = json_incref((json_t *)object);
        if (!m->seen.known || !says || !m->node->ip[0].family ||
                (ip_parse(says, &ip) && ip_equal(&ip, &m->node->ip[0])))
                return;
        m->plan.note = arena_printf(s->arena,
                "the API says its address is %.64s: its recorded address %s is used", says,
                ip_format(&m->node->ip[0], ours));
}

static const char *removed_label(const json_t *node, const char *key)
{
        return json_string_value(
                json_object_get(json_object_get(json_object_get(node, "metadata"), "labels"), key));
}

static void removed_nodes(struct site *s)
{
        const json_t *items = json_object_get(s->found.nodes, "items"), *n;
        size_t i;
        json_array_foreach(items, i, n)
        {
                const char *name = object_name(n);
                struct member *file = site_member(s, name),
                              *m = file ? NULL : removed_find(s, name);
                if (file && !file->seen.object)
                        file->seen.object = json_incref((json_t *)n);
                if (file || (!m && !removed_label(n, POOL_LABEL)))
                        continue;
                m = m ? m : removed_add(s, name, NULL);
                if (!m->seen.known || !m->node->pool->roles)
                        removed_role(m, removed_label(n, "node-role.kubernetes.io/control-plane")
                                                ? ROLE_CONTROL_PLANE
                                                : ROLE_WORKER);
                if (!m->seen.object)
                        removed_object(s, m, n);
        }
}

static struct member *removed_peer(struct site *s, const struct etcd_peer *p)
{
        for (size_t i = 0; i < s->found.removed_count; i++)
                if (etcd_peer_of(p, 1, s->found.removed[i]->node))
                        return s->found.removed[i];
        return removed_add(s, *p->name ? p->name : p->peer, NULL);
}

static void removed_peers(struct site *s)
{
        for (size_t i = 0; i < s->found.peer_count; i++) {
                const struct etcd_peer *p = &s->found.peers[i];
                bool wanted = false;
                size_t k = 0;
                for (const struct node *n;
                        !wanted && (n = cluster_next(s->cluster, ROLE_ETCD, &k));)
                        wanted = etcd_peer_of(p, 1, n) != NULL;
                if (!wanted)
                        removed_role(removed_peer(s, p), ROLE_ETCD);
        }
}

static void removed_machines(struct site *s)
{
        struct strings names = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        if (!s->ops->others || s->ops->others(&s->provider, &names, &err) < 0)
                return;
        for (size_t i = 0; i < names.n; i++) {
                struct member *m = removed_find(s, names.v[i]);
                (m ? m : removed_add(s, names.v[i], NULL))->seen.known = true;
        }
}

/* A run was interrupted after the reset: the host has nothing of slipway's, and neither the API nor
 * etcd knows the node. */
static bool has_left(const struct site *s, const struct member *m)
{
        return m->seen.known && !s->ops->makes_machines && m->seen.answers &&
               !json_object_get(m->seen.said, "cluster") && !m->seen.object &&
               !etcd_peer_of(s->found.peers, s->found.peer_count, m->node);
}

void removed_observed(struct site *s)
{
        size_t n = 0;
        removed_nodes(s);
        removed_peers(s);
        removed_machines(s);
        for (size_t i = 0; i < s->found.removed_count; i++)
                if (has_left(s, s->found.removed[i])) {
                        member_hang_up(s->found.removed[i]);
                        json_decref(s->found.removed[i]->seen.said);
                        json_decref(s->found.removed[i]->seen.drift);
                } else
                        s->found.removed[n++] = s->found.removed[i];
        s->found.removed_count = n;
}

/* ---- their hosts ---- */

/* Another node of the file has this address now, so the host there is not the removed node. */
static const struct node *removed_taken(const struct site *s, const struct node *gone)
{
        struct ip ssh = { 0 };
        if (gone->address)
                ip_parse(gone->address, &ssh);
        for (size_t i = 0; i < s->cluster->node_count; i++) {
                const struct node *n = &s->cluster->nodes[i];
                if (gone->address && n->address && streq(gone->address, n->address))
                        return n;
                for (size_t k = 0; k < ARRAY_SIZE(n->ip) && n->ip[k].family; k++)
                        if ((ssh.family && ip_equal(&ssh, &n->ip[k])) ||
                                (gone->ip[0].family && ip_equal(&gone->ip[0], &n->ip[k])))
                                return n;
        }
        return NULL;
}

/* The only place that starts connections to hosts that are not in the file. The host must be the
 * recorded one: its host key and its machine-id are both checked before a password is sent. */
static struct step *removed_reach(struct site *s, struct member *m)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        const struct host_record *h = records_find(&s->found.record, m->node->name);
        const struct node *taken = m->seen.known ? removed_taken(s, m->node) : NULL;
        if (taken && !m->seen.refused)
                m->seen.refused =
                        arena_printf(s->arena, "its recorded address %s is node %s's in the file",
                                m->node->address, taken->name);
        if (!m->seen.known || m->run.connect ||
                s->ops->find(&s->provider, m->node, m->machine, &ignored) < 0 || m->seen.refused ||
                m->machine->state != MACHINE_RUNNING || !m->machine->target.host)
                return NULL;
        m->machine->target.accept_new = false;
        m->machine->target.strict = true;
        m->machine->target.host_key = h ? h->host_key : NULL;
        m->machine->target.machine_id = h ? h->machine_id : NULL;
        return m->run.connect = run_step(&s->run, "connect", m->node->name, step_connect, m);
}

void removed_steps(struct site *s, struct step *observe)
{
        removed_read(s);
        removed_connect(s, observe);
}

void removed_connect(struct site *s, struct step *next)
{
        for (size_t i = 0; i < s->found.removed_count; i++) {
                struct step *connect = removed_reach(s, s->found.removed[i]);
                if (connect)
                        step_after(next, connect);
        }
}
