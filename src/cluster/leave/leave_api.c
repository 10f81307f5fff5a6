/* The API while a node is removed: whether it answers, and the drain. */
#include <event2/event.h>

#include "cluster/apply/roll.h"
#include "cluster/leave/leave.h"
#include "kube/wait.h"

#define API_SECONDS 60

/* ---- the API ---- */

static void on_leave_api(void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        site->wait = NULL;
        step_done(s, NULL);
}

static bool leave_all_forced(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.leaving && !(s->members[i].plan.leaving & LEAVE_FORCE))
                        return false;
        return true;
}

static void on_leave_no_api(evutil_socket_t fd, short what, void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        const char *said = kube_trouble(site->kube);
        char *trouble CLEANUP(free_p) = xstrdup(said ? said : "not ready");
        kube_cancel(site->wait);
        site->wait = NULL;
        /* the next steps see that there is no API */
        kube_free(site->kube);
        if (!leave_all_forced(site)) {
                error_set(
                        &err, ETIMEDOUT, EXIT_UNREACHABLE, "the API does not answer: %s", trouble);
                error_hint(&err,
                        "repair it, or give --force: the hosts are then reset without a drain, and their Node objects stay");
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
        s->deadline = evtimer_new(site->base, on_leave_no_api, s);
        event_add(s->deadline, &(struct timeval){ .tv_sec = leave_all_forced(site) ? API_SECONDS / 4
                                                                                   : API_SECONDS });
        site->wait = kube_wait_ready(site->kube, 500, on_leave_api, s);
}

/* ---- drain ---- */

static void on_leave_node(const struct kube_reply *reply, void *arg)
{
        struct step *s = arg;
        struct member *m = s->arg;
        /* no kubelet is left that could stop the pods */
        if (reply->status == 404 || (reply->status == 200 && !node_ready(reply->body))) {
                if (reply->status == 200)
                        step_doing(s, -1, "its kubelet does not respond: not drained");
                step_unchanged(s);
                return;
        }
        json_decref(m->seen.object);
        m->seen.object = json_incref(reply->body);
        member_drain(m, s);
}

void step_leave_drain(struct step *s)
{
        struct member *m = s->arg;
        bool removed = m->plan.fate == FATE_REMOVE;
        /* an unreachable node is not drained: its pods are deleted with its Node */
        if (m->plan.leaving & (LEAVE_FORCE | LEAVE_ALL) || !m->site->kube ||
                (removed && (!m->site->found.api_up || !m->seen.object || !m->seen.answers))) {
                step_unchanged(s);
                return;
        }
        char *path CLEANUP(free_p) = xasprintf("/api/v1/nodes/%s", m->node->name);
        kube_request(m->site->kube, "GET", path, NULL, NULL, 0, on_leave_node, s);
}
