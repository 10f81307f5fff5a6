/* The plan as text and as JSON, with the same facts. */
#include "addon/service.h"
#include "base/print.h"
#include "cluster/etcd/etcd.h"
#include "cluster/plan/anew.h"
#include "cluster/plan/chores.h"
#include "cluster/plan/encrypt.h"
#include "cluster/plan/own_images.h"
#include "cluster/plan/outsiders.h"
#include "cluster/plan/plan.h"
#include "cluster/plan/plan_steps.h"
#include "cluster/plan/reboot.h"
#include "cluster/plan/survey.h"
#include "kube/wait.h"

#define FILES_SHOWN 8

static const char *plan_show_state_word(enum wire_state state)
{
        static const char *const words[] = { "same", "create", "change", "restart", "start",
                "remove", "fail" };
        return (size_t)state < ARRAY_SIZE(words) ? words[state] : "change";
}

/* A node that is not in slipway's record: what the API or etcd reports is shown, and it is removed
 * only from those two. */
static void unknown_words(const struct member *m, struct str *out)
{
        bool etcd = etcd_peer_of(m->site->found.peers, m->site->found.peer_count, m->node) != NULL;
        const char *says = m->seen.object ? node_internal_ip(m->seen.object) : NULL;
        text_addf(out, "known to %s only: ",
                m->seen.object && etcd ? "the API and etcd"
                : etcd                 ? "etcd"
                                       : "the API");
        text_addf(out, "%s%s%s; no host is touched",
                m->seen.object ? "its Node object will be removed" : "",
                m->seen.object && etcd ? ", and " : "",
                etcd ? "it will be removed from etcd's members" : "");
        if (says)
                text_addf(out, " (the API says its address is %.64s)", says);
}

static void remove_words(const struct member *m, struct str *out)
{
        const struct site *s = m->site;
        if (!m->seen.known) {
                unknown_words(m, out);
                return;
        }
        text_addf(out, "%sremove it from the cluster",
                m->seen.object && m->seen.answers ? "drain it, " : "");
        if (s->ops->makes_machines)
                str_add(out, ", remove its machine");
        else if (m->seen.refused)
                text_addf(out, "; its host is not touched: %s", m->seen.refused);
        else
                str_add(out, m->seen.answers ? ", remove Kubernetes from it"
                                             : "; it does not answer: nothing on it is touched");
}

/* What happens to the node, beyond the changed entries. */
static void node_words(const struct member *m, struct str *out)
{
        switch (m->plan.fate) {
        case FATE_MAKE:
                str_add(out, "create its machine, then install everything");
                break;
        case FATE_START:
                str_add(out, "start its machine, then repair what differs");
                break;
        case FATE_INSTALL:
                str_add(out, "install everything");
                break;
        case FATE_REPLACE:
                anew_words(m, out);
                break;
        case FATE_REMOVE:
                remove_words(m, out);
                break;
        default:
                if (m->plan.drains)
                        str_add(out, "drain it; ");
                if (m->plan.registers)
                        str_add(out, "the API does not know it: it registers again; ");
                if (m->plan.reboots)
                        text_addf(out, "reboot it%s%s", member_reboot_why(m) ? ": " : "",
                                member_reboot_why(m) ? member_reboot_why(m) : "");
                else
                        plan_restarts(m->plan.restarts, out);
                if (m->plan.commands)
                        text_addf(out, "%sruns commands of os.commands",
                                m->plan.restarts ? "; " : "");
                else if (!m->plan.restarts && m->plan.change_count)
                        str_add(out, "disrupts nothing");
        }
        if (m->plan.unproven && upgrade_member(m))
                text_addf(out,
                        "%san interrupted run began to change it to %s: it is rolled back to %s if it does not become healthy",
                        out->len ? "; " : "", m->site->cluster->kubernetes.text, m->seen.before);
        /* known only when it runs */
        const char *etcd =
                m->plan.joins && m->plan.fate == FATE_START
                        ? "its etcd comes back, or joins as a learner if its data is lost"
                : m->plan.joins    ? "its etcd joins as a learner and is promoted"
                : m->plan.promotes ? "its etcd is promoted"
                                   : NULL;
        if (etcd)
                text_addf(out, "%s%s", out->len ? "; " : "", etcd);
        if (m->plan.note)
                text_addf(out, "%s%s", out->len ? "; " : "", m->plan.note);
}

/* The only API server or the only etcd member restarts. */
static bool api_outage(const struct site *s)
{
        size_t planes = cluster_count(s->cluster, ROLE_CONTROL_PLANE),
               stores = cluster_count(s->cluster, ROLE_ETCD);
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (m->plan.fate != FATE_CHANGE)
                        continue;
                if ((m->plan.restarts & PART_API && planes == 1) ||
                        (m->plan.restarts & PART_ETCD && stores == 1))
                        return true;
        }
        return false;
}

static void changes_text(const struct member *m, bool all, struct str *out)
{
        size_t n = 0;
        for (size_t i = 0; i < m->plan.change_count; i++) {
                const struct change *c = &m->plan.changes[i];
                if (!all && n++ == FILES_SHOWN) {
                        text_addf(out, "      and %zu more (slipway plan shows all)\n",
                                m->plan.change_count - FILES_SHOWN);
                        return;
                }
                text_addf(out, "      %-8s %s %s%s%s\n", plan_show_state_word(c->state),
                        spec_kind_name(c->kind), c->name, c->detail ? ": " : "",
                        c->detail ? c->detail : "");
        }
}

static void member_text(const struct member *m, bool all, size_t width, struct str *out)
{
        struct str words CLEANUP(str_release) = { 0 };
        if (m->plan.fate == FATE_KEEP && !m->plan.joins && !m->plan.promotes && !m->plan.note)
                return;
        node_words(m, &words);
        text_addf(out, "  %-*s  %-8s %s\n", (int)width, m->node->name, fate_name(m->plan.fate),
                str_text(&words));
        changes_text(m, all, out);
}

static size_t kept(const struct site *s)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                n += s->members[i].plan.fate == FATE_KEEP && !s->members[i].plan.joins &&
                     !s->members[i].plan.promotes;
        return n;
}

static void warning_text(const struct site *s, struct str *out)
{
        if (s->found.warning)
                text_addf(out, "  warning: %s\n", s->found.warning);
}

void plan_text(const struct site *s, bool all, struct str *out)
{
        size_t width = 8, same = kept(s);
        if (plan_empty(s)) {
                text_addf(out, "plan for %s: nothing to do, %zu node%s unchanged\n",
                        s->cluster->name, s->count, s->count == 1 ? " is" : "s are");
                for (size_t i = 0; i < s->count; i++)
                        if (s->members[i].plan.note)
                                text_addf(out, "  %s: %s\n", s->members[i].node->name,
                                        s->members[i].plan.note);
                services_text(s->found.services, all, out); /* unchanged ones */
                warning_text(s, out);
                return;
        }
        for (size_t i = 0; i < s->count + s->found.removed_count; i++) {
                const struct member *m =
                        i < s->count ? &s->members[i] : s->found.removed[i - s->count];
                width = strlen(m->node->name) > width ? strlen(m->node->name) : width;
        }
        text_addf(out, "plan for %s%s%s:\n", s->cluster->name, s->found.version ? ", now " : "",
                s->found.version ? s->found.version : "");
        for (size_t i = 0; i < s->count; i++)
                member_text(&s->members[i], all, width, out);
        for (size_t i = 0; i < s->found.removed_count; i++)
                member_text(s->found.removed[i], all, width, out);
        survey_text(s, out);
        for (size_t i = 0; i < OWN_IMAGE_COUNT; i++)
                if (own_image_differs(s, i))
                        text_addf(out, "  the cluster's own %s: image %s instead of %s\n",
                                own_image_name(i), own_image_wanted(s->cluster, i),
                                s->found.own_images_now[i]);
        outsiders_text(s, out);
        chores_text(s, out);
        services_text(s->found.services, all, out);
        if (encrypt_text(s))
                text_addf(out, "  %s\n", encrypt_text(s));
        warning_text(s, out);
        if (s->only_bastion)
                str_add(out,
                        "  the nodes are reached through the bastion: what is to do on them is planned when it runs\n");
        else if (same)
                text_addf(out, "  %zu node%s unchanged\n", same, same == 1 ? " is" : "s are");
        if (api_outage(s))
                str_add(out,
                        "  the API does not answer for some seconds, because the only API server or etcd restarts; pods keep running\n");
}

static json_t *plan_show_member_json(const struct member *m)
{
        struct str words CLEANUP(str_release) = { 0 };
        json_t *changes = json_array();
        node_words(m, &words);
        for (size_t i = 0; i < m->plan.change_count; i++) {
                const struct change *c = &m->plan.changes[i];
                json_array_append_new(changes,
                        json_pack("{s:s, s:s, s:s}", "action", plan_show_state_word(c->state),
                                "kind", spec_kind_name(c->kind), "name", c->name));
        }
        return json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:s}", "node", m->node->name, "action",
                fate_name(m->plan.fate), "disrupts", str_text(&words), "drain", (int)m->plan.drains,
                "etcdJoins", (int)m->plan.joins, "changes", changes, "applied", m->seen.applied);
}

json_t *plan_json(const struct site *s)
{
        json_t *nodes = json_array();
        for (size_t i = 0; i < s->count; i++)
                json_array_append_new(nodes, plan_show_member_json(&s->members[i]));
        for (size_t i = 0; i < s->found.removed_count; i++)
                json_array_append_new(nodes, plan_show_member_json(s->found.removed[i]));
        json_t *images = json_array();
        for (size_t i = 0; i < OWN_IMAGE_COUNT; i++)
                if (own_image_differs(s, i))
                        json_array_append_new(
                                images, json_pack("{s:s, s:s, s:s}", "of", own_image_name(i), "now",
                                                s->found.own_images_now[i], "wanted",
                                                own_image_wanted(s->cluster, i)));
        json_t *o = json_pack("{s:s, s:s, s:s, s:s?, s:b, s:b, s:o, s:o, s:o, s:o, s:s?, s:o}",
                "cluster", s->cluster->name, "file", s->cluster->digest, "kubernetes",
                s->cluster->kubernetes.text, "running", s->found.version, "changes",
                (int)!plan_empty(s), "apiOutage", (int)api_outage(s), "nodes", nodes, "images",
                images, "shutOut", outsiders_json(s), "api", chores_json(s), "warning",
                s->found.warning, "steps", plan_steps_json(s->steps));
        if (s->found.survey.lines.n)
                json_object_set_new(o, "provider", survey_json(&s->found.survey));
        if (s->found.services)
                json_object_set_new(o, "services", services_json(s->found.services));
        return o;
}

/* ---- a saved plan ---- */

/* The first node whose part differs, or NULL. */
static const char *plan_show_other_node(const json_t *saved, const json_t *now)
{
        size_t n = json_array_size(saved) > json_array_size(now) ? json_array_size(saved)
                                                                 : json_array_size(now);
        for (size_t i = 0; i < n; i++) {
                const json_t *a = json_array_get(saved, i), *b = json_array_get(now, i);
                if (!json_equal(a, b))
                        return json_string_value(json_object_get(b ? b : a, "node"));
        }
        return NULL;
}

int plan_compare(const struct site *s, const json_t *saved, struct error *err)
{
        json_t *now = plan_json(s), *warned = json_object_get(saved, "warning");
        /* whether the provider answers makes no difference to the plan */
        if (warned)
                json_object_set(now, "warning", warned);
        const char *node = plan_show_other_node(
                json_object_get(saved, "nodes"), json_object_get(now, "nodes"));
        int r = 0;
        if (!json_equal(json_object_get(saved, "cluster"), json_object_get(now, "cluster")))
                r = error_set(
                        err, EINVAL, EXIT_USAGE, "that is not a plan for %s", s->cluster->name);
        else if (!json_equal(json_object_get(saved, "file"), json_object_get(now, "file")))
                r = error_set(
                        err, ESTALE, EXIT_STATE, "the file has changed since the plan was made");
        else if (node)
                r = error_set(
                        err, ESTALE, EXIT_STATE, "%s has changed since the plan was made", node);
        else if (!json_equal(saved, now))
                r = error_set(
                        err, ESTALE, EXIT_STATE, "the cluster has changed since the plan was made");
        json_decref(now);
        return r < 0 ? error_hint(err,
                               "make it again: slipway plan -o json > PLAN; nothing was changed")
                     : 0;
}
