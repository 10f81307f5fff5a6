/* The members as a JSON object:
 *
 *   cluster, quorum
 *   problems[]: sentences
 *   members[]: name, node (of cluster.yaml, or null), id, address, started, learner, leader,
 *     version, dbSize, inUse, quota, revision, raftIndex, raftApplied, raftTerm, alarms[],
 *     defragment, trouble
 *
 * A node of cluster.yaml that is not a member has a row too, with id null. */
#include "base/print.h"
#include "cluster/etcd/etcd.h"
#include "cluster/site/answer.h"

static void number(json_t *o, const char *key, bool known, int64_t value)
{
        json_object_set_new(o, key, known ? json_integer(value) : json_null());
}

json_t *etcd_alarms_json(const struct etcd_state *s)
{
        json_t *alarms = json_array();
        for (size_t i = 0; i < json_array_size(s->errors); i++) {
                const char *alarm = etcd_alarm(json_string_value(json_array_get(s->errors, i)));
                if (alarm)
                        json_array_append_new(alarms, json_text(alarm));
        }
        return alarms;
}

static void state_json(json_t *o, const struct etcd_seen *n, json_t *problems)
{
        bool known = n && n->answered;
        static const struct etcd_state none;
        const struct etcd_state *s = known ? &n->state : &none;
        status_text(o, "version", known ? s->version : NULL);
        number(o, "dbSize", known, s->size);
        number(o, "inUse", known, s->in_use);
        number(o, "quota", known, s->quota);
        number(o, "revision", known, s->revision);
        number(o, "raftIndex", known, (int64_t)s->index);
        number(o, "raftApplied", known, (int64_t)s->applied);
        number(o, "raftTerm", known, (int64_t)s->term);
        json_object_set_new(o, "alarms", etcd_alarms_json(s));
        json_object_set_new(o, "defragment", json_boolean(known && etcd_wants_defrag(s)));
        status_text(o, "trouble", n ? n->trouble : NULL);
        for (size_t i = 0; i < json_array_size(s->errors); i++) {
                const char *said = json_string_value(json_array_get(s->errors, i));
                status_problem(problems, "etcd on %s: %s", n->member->node->name,
                        said ? said : "it reports an error that is not text");
        }
}

static json_t *row(const struct etcd_peer *p, const struct etcd_seen *n, json_t *problems)
{
        char id[17], host[IP_TEXT];
        json_t *o = json_object();
        status_text(o, "name", p && *p->name ? p->name : n ? n->member->node->name : NULL);
        status_text(o, "node", n ? n->member->node->name : NULL);
        status_text(o, "id", p ? etcd_id(p->id, id) : NULL);
        status_text(o, "address",
                p                               ? p->peer
                : n->member->node->ip[0].family ? ip_format(&n->member->node->ip[0], host)
                                                : NULL);
        json_object_set_new(o, "started", json_boolean(p && *p->name));
        json_object_set_new(o, "learner", json_boolean(p && p->learner));
        json_object_set_new(
                o, "leader", json_boolean(p && n && n->answered && n->state.leader == p->id));
        state_json(o, n, problems);
        return o;
}

static const struct etcd_seen *seen_of(const struct etcd_view *v, const struct etcd_peer *p)
{
        for (size_t i = 0; i < v->count; i++)
                if (v->seen[i].peer == p)
                        return &v->seen[i];
        return NULL;
}

static void etcd_members_node_problems(const struct etcd_view *v, json_t *problems)
{
        for (size_t i = 0; i < v->count; i++) {
                const struct etcd_seen *n = &v->seen[i];
                if (n->trouble)
                        status_problem(
                                problems, "etcd on %s: %s", n->member->node->name, n->trouble);
                else if (v->peer_count && !n->peer)
                        status_problem(problems,
                                "node %s is not a member of etcd: slipway up adds it",
                                n->member->node->name);
        }
}

json_t *etcd_view_json(const struct etcd_view *v)
{
        json_t *problems = json_array(), *members = json_array(), *o = json_object();
        etcd_members_node_problems(v, problems);
        for (size_t i = 0; i < v->peer_count; i++) {
                const struct etcd_seen *n = seen_of(v, &v->peers[i]);
                json_array_append_new(members, row(&v->peers[i], n, problems));
                if (!n)
                        status_problem(problems,
                                "member %s (%s) is not an etcd node of cluster.yaml",
                                *v->peers[i].name ? v->peers[i].name : "without a name",
                                v->peers[i].peer);
        }
        for (size_t i = 0; i < v->count; i++)
                if (!v->seen[i].peer)
                        json_array_append_new(members, row(NULL, &v->seen[i], problems));
        if (!v->quorum)
                status_problem(
                        problems, "etcd has no quorum: no member that answers can read through it");
        status_text(o, "cluster", v->site->cluster->name);
        json_object_set_new(o, "quorum", json_boolean(v->quorum));
        json_object_set_new(o, "members", members);
        json_object_set_new(o, "problems", problems);
        return o;
}
