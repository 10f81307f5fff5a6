/* The plan for people and for programs: the same facts. */
#include "cluster/keep.h"
#include "cluster/outsiders.h"
#include "cluster/plan.h"

#define FILES_SHOWN 8

static const char *state_word(enum wire_state state)
{
        static const char *const words[] = { "same", "create", "change", "restart", "start", "remove", "fail" };
        return (size_t)state < ARRAY_SIZE(words) ? words[state] : "change";
}

/* What happens to the node, beyond the changes themselves. */
static void node_words(const struct member *m, struct str *out)
{
        struct site *s = m->site;
        bool makes = s->ops->makes_machines;
        switch (m->fate) {
        case FATE_MAKE:
                str_add(out, "make its machine, then install everything");
                break;
        case FATE_START:
                str_add(out, "start its machine, then mend what differs");
                break;
        case FATE_INSTALL:
                str_add(out, "install everything");
                break;
        case FATE_REMOVE:
                str_addf(out, "%s%s%s", m->object && m->answers ? "drain it, " : "", "take it out of the cluster",
                        makes         ? ", remove its machine"
                        : !m->answers ? "; it does not answer: nothing on it is touched"
                                      : ", take Kubernetes off it");
                break;
        default:
                if (m->drains)
                        str_add(out, "drain it; ");
                if (m->registers)
                        str_add(out, "the API does not know it: it registers again; ");
                plan_restarts(m->restarts, out);
                if (!m->restarts && m->change_count)
                        str_add(out, "disrupts nothing");
        }
        const char *etcd = m->joins && m->fate == FATE_START ? "its etcd comes back, or joins as a learner if its data is gone" /* seen when it runs */
                           : m->joins                        ? "its etcd joins as a learner and is promoted"
                           : m->promotes                     ? "its etcd is promoted"
                                                             : NULL;
        if (etcd)
                str_addf(out, "%s%s", out->len ? "; " : "", etcd);
}

/* The only API server, or the only etcd, is away while it starts again. */
static bool api_outage(const struct site *s)
{
        size_t planes = cluster_count(s->cluster, ROLE_CONTROL_PLANE), stores = cluster_count(s->cluster, ROLE_ETCD);
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (m->fate != FATE_CHANGE)
                        continue;
                if ((m->restarts & PART_API && planes == 1) || (m->restarts & PART_ETCD && stores == 1))
                        return true;
        }
        return false;
}

static void changes_text(const struct member *m, bool all, struct str *out)
{
        size_t n = 0;
        for (size_t i = 0; i < m->change_count; i++) {
                const struct change *c = &m->changes[i];
                if (!all && n++ == FILES_SHOWN) {
                        str_addf(out, "      and %zu more (slipway plan shows all)\n", m->change_count - FILES_SHOWN);
                        return;
                }
                str_addf(out, "      %-8s %s %s%s%s\n", state_word(c->state), spec_kind_name(c->kind), c->name, c->detail ? ": " : "",
                        c->detail ? c->detail : "");
        }
}

static void member_text(const struct member *m, bool all, size_t width, struct str *out)
{
        struct str words CLEANUP(str_release) = { 0 };
        if (m->fate == FATE_KEEP && !m->joins && !m->promotes)
                return;
        node_words(m, &words);
        str_addf(out, "  %-*s  %-8s %s\n", (int)width, m->node->name, fate_name(m->fate), str_text(&words));
        changes_text(m, all, out);
}

static size_t kept(const struct site *s)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += s->members[i].fate == FATE_KEEP && !s->members[i].joins && !s->members[i].promotes;
        return n;
}

void plan_text(const struct site *s, bool all, struct str *out)
{
        size_t width = 8, same = kept(s);
        if (plan_empty(s)) {
                str_addf(out, "plan for %s: nothing to do, %zu nodes are as the file says\n", s->cluster->name, s->count);
                return;
        }
        for (size_t i = 0; i < s->count + s->gone_count; i++) {
                const struct member *m = i < s->count ? &s->members[i] : s->gone[i - s->count];
                width = strlen(m->node->name) > width ? strlen(m->node->name) : width;
        }
        str_addf(out, "plan for %s%s%s:\n", s->cluster->name, s->version ? ", now " : "", s->version ? s->version : "");
        for (size_t i = 0; i < s->count; i++)
                member_text(&s->members[i], all, width, out);
        for (size_t i = 0; i < s->gone_count; i++)
                member_text(s->gone[i], all, width, out);
        for (size_t i = 0; i < KEEP_COUNT; i++)
                if (keep_differs(s, i))
                        str_addf(out, "  the cluster's own %s: image %s instead of %s\n", keep_name(i), keep_wanted(s->cluster, i), s->keep_now[i]);
        outsiders_text(s, out);
        if (same)
                str_addf(out, "  %zu node%s as the file says\n", same, same == 1 ? " is" : "s are");
        if (api_outage(s))
                str_add(out, "  the API does not answer for some seconds, because there is only one of what restarts; pods go on running\n");
}

static json_t *member_json(const struct member *m)
{
        struct str words CLEANUP(str_release) = { 0 };
        json_t *changes = json_array();
        node_words(m, &words);
        for (size_t i = 0; i < m->change_count; i++) {
                const struct change *c = &m->changes[i];
                json_array_append_new(changes, json_pack("{s:s, s:s, s:s}", "action", state_word(c->state), "kind", spec_kind_name(c->kind), "name", c->name));
        }
        return json_pack("{s:s, s:s, s:s, s:b, s:b, s:o}", "node", m->node->name, "action", fate_name(m->fate), "disrupts", str_text(&words), "drain",
                (int)m->drains, "etcdJoins", (int)m->joins, "changes", changes);
}

json_t *plan_json(const struct site *s)
{
        json_t *nodes = json_array();
        for (size_t i = 0; i < s->count; i++)
                json_array_append_new(nodes, member_json(&s->members[i]));
        for (size_t i = 0; i < s->gone_count; i++)
                json_array_append_new(nodes, member_json(s->gone[i]));
        json_t *images = json_array();
        for (size_t i = 0; i < KEEP_COUNT; i++)
                if (keep_differs(s, i))
                        json_array_append_new(
                                images, json_pack("{s:s, s:s, s:s}", "of", keep_name(i), "now", s->keep_now[i], "wanted", keep_wanted(s->cluster, i)));
        return json_pack("{s:s, s:s, s:s?, s:b, s:b, s:o, s:o, s:o}", "cluster", s->cluster->name, "kubernetes", s->cluster->kubernetes.text, "running",
                s->version, "changes", (int)!plan_empty(s), "apiOutage", (int)api_outage(s), "nodes", nodes, "images", images, "shutOut", outsiders_json(s));
}
