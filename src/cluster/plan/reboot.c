#include "addon/service.h"
#include "cluster/plan/own_images.h"
#include "cluster/plan/reboot.h"

const char *member_reboot_why(const struct member *m)
{
        return json_string_value(json_object_get(m->seen.said, "reboot"));
}

const char *member_boot(const struct member *m)
{
        return json_string_value(json_object_get(m->seen.said, "boot"));
}

int reboot_ask(struct site *s, const struct reboot_request *request, struct error *err)
{
        for (size_t i = 0; i < request->names->n; i++)
                if (!site_member(s, request->names->v[i])) {
                        error_set(err, ENOENT, EXIT_USAGE, "there is no node %s in %s",
                                request->names->v[i], s->cluster->name);
                        return error_hint(err, "'slipway status' lists its nodes");
                }
        s->reboot = request;
        return 0;
}

static bool reboot_chosen(const struct member *m)
{
        const struct reboot_request *r = m->site->reboot;
        for (size_t i = 0; r && i < r->names->n; i++)
                if (streq(r->names->v[i], m->node->name))
                        return true;
        return r && !r->names->n && (r->all || member_reboot_why(m));
}

/* Everything on the node restarts, so the parts that others need decide the order. */
void reboot_decide(struct member *m)
{
        unsigned roles = m->node->pool->roles;
        if (m->plan.fate != FATE_KEEP || !m->run.connect || m->run.missing || !reboot_chosen(m))
                return;
        m->plan.reboots = true;
        m->plan.fate = FATE_CHANGE;
        m->plan.drains = m->site->found.api_up && m->seen.object;
        m->plan.restarts |= (roles & ROLE_ETCD ? PART_ETCD : 0) |
                            (roles & ROLE_CONTROL_PLANE ? PART_API | PART_CONTROLLERS : 0) |
                            (roles & (ROLE_CONTROL_PLANE | ROLE_WORKER) ? PART_KUBELET : 0);
}

/* The first node that `up` would change for another reason; NULL: none. */
static const struct member *reboot_other_change(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (!m->plan.reboots && (m->plan.fate != FATE_KEEP || m->plan.joins ||
                                                m->plan.promotes || m->run.missing))
                        return m;
        }
        return s->found.removed_count ? s->found.removed[0] : NULL;
}

static bool reboot_images_differ(const struct site *s)
{
        for (size_t i = 0; i < OWN_IMAGE_COUNT; i++)
                if (own_image_differs(s, i))
                        return true;
        return false;
}

static int reboot_check_etcd(const struct site *s, struct error *err)
{
        const struct member *reboots = NULL;
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.reboots && s->members[i].node->pool->roles & ROLE_ETCD)
                        reboots = &s->members[i];
        for (size_t i = 0; reboots && i < s->count; i++) {
                const struct member *m = &s->members[i];
                if (!(m->node->pool->roles & ROLE_ETCD) || m->seen.etcd_healthy)
                        continue;
                error_set(err, EBUSY, EXIT_PREFLIGHT,
                        "the etcd member on %s is not healthy: a reboot of %s could cost etcd its quorum",
                        m->node->name, reboots->node->name);
                return error_hint(
                        err, "'slipway status' says why; repair it first; nothing was changed");
        }
        return 0;
}

int reboot_check(const struct site *s, struct error *err)
{
        const struct member *other = reboot_other_change(s);
        if (!s->reboot)
                return 0;
        if (!s->found.live || !s->found.api_up) {
                error_set(err, EBUSY, EXIT_UNHEALTHY,
                        "%s does not answer: nodes are rebooted only while the cluster works",
                        s->found.live ? "the API" : "etcd");
                return error_hint(err, "'slipway status' says why; nothing was changed");
        }
        if (other || reboot_images_differ(s) || services_any(s->found.services)) {
                error_set(err, EBUSY, EXIT_PREFLIGHT,
                        "%s differs from the file, and reboot changes nothing else",
                        other ? other->node->name : "the cluster");
                return error_hint(err,
                        "'slipway plan' shows the difference; run 'slipway up' first; nothing was changed");
        }
        return reboot_check_etcd(s, err);
}
