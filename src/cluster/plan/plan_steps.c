#include "cluster/plan/plan.h"
#include "cluster/plan/plan_steps.h"

#define RESTARTS "" /* the restarts of the node */
/* How most changes are undone. */
#define FORMER_FILE "restore the previous file, and run 'slipway up' again"

static const struct plan_row {
        const char *name; /* of the run's step */
        const char *what;
        const char *disrupts; /* NULL: nothing */
        const char *undo;     /* NULL: nothing to undo */
} plan_rows[PLAN_KINDS] = {
        [PLAN_PREPARE] = { "prepare", "make what the provider needs once", NULL, "'slipway down'" },
        [PLAN_MACHINE] = { "machine", "make or start the machine", NULL,
                "'slipway down', or 'slipway remove-node'" },
        [PLAN_CONNECT] = { "connect", "connect to it" },
        [PLAN_CHECK] = { "check", "check the new machines" },
        [PLAN_CHECK_NEW] = { "check", "check the new machine" },
        [PLAN_SNAPSHOT] = { "snapshot", "take a snapshot of etcd" },
        [PLAN_REMEMBER] = { "record version", "record the version to roll back to" },
        [PLAN_STAGE] = { "stage", "send the new programs; nothing uses them yet" },
        [PLAN_STAGED] = { "staged", "all nodes have the new programs" },
        [PLAN_DRAIN] = { "drain", "cordon the node and move its pods away",
                "its pods start on other nodes", "kubectl uncordon" },
        [PLAN_ADDRESS] = { "address", "move the virtual address to another node" },
        [PLAN_ETCD_JOIN] = { "etcd join", "join etcd as a learner", NULL, "'slipway remove-node'" },
        [PLAN_APPLY] = { "apply", "apply the NodeSpec of the node", RESTARTS, FORMER_FILE },
        [PLAN_REGISTER] = { "register", "restart the kubelet, which registers the node again" },
        [PLAN_REBOOT] = { "reboot", "reboot the machine",
                "everything on it stops until it is back" },
        [PLAN_ETCD_PROMOTE] = { "etcd promote", "promote the etcd learner to a voter", NULL,
                "'slipway remove-node'" },
        [PLAN_HEALTHY] = { "healthy", "wait until the node is healthy" },
        [PLAN_UNCORDON] = { "uncordon", "uncordon the node" },
        [PLAN_IMAGES] = { "images", "change the images of the cluster's own kube-proxy and CoreDNS",
                "their pods restart one after another", FORMER_FILE },
        [PLAN_API_OPTIONAL] = { "API", "wait for the API" },
        [PLAN_ETCD_QUORUM] = { "etcd quorum",
                "check that the etcd members that stay have a quorum" },
        [PLAN_LEAVE_DRAIN] = { "drain", "cordon the node and move its pods away",
                "its pods start on other nodes", "kubectl uncordon" },
        [PLAN_MEMBERS] = { "balancer", "take the node out of the load balancer of the API", NULL,
                "add the node to the file again" },
        [PLAN_MEMBERS_BACK] = { "balancer back",
                "put the node into the load balancer of the API again" },
        [PLAN_API_LEAVE] = { "API stop", "stop the API server gracefully" },
        [PLAN_ETCD_LEAVE] = { "etcd leave", "remove the member from etcd", NULL,
                "add the node to the file again" },
        [PLAN_DELETE_NODE] = { "delete Node", "delete the Node from the API", NULL,
                "add the node to the file again" },
        [PLAN_DESTROY] = { "machine", "remove the machine", "everything on it is lost" },
        [PLAN_RETIRE] = { "remove machine", "remove the machine; its address and volumes stay",
                "everything on its system disk is lost" },
        [PLAN_RESET] = { "reset", "remove Kubernetes from the host", NULL,
                "add the host to the file again" },
        [PLAN_GONE] = { "delete again",
                "delete the Node again if its kubelet has registered it again" },
        [PLAN_UNRECORD] = { "record", "delete the node from the record" },
        [PLAN_API] = { "API", "wait for the API" },
        [PLAN_OBJECTS] = { "objects", "apply the cluster's objects", NULL, FORMER_FILE },
        [PLAN_FABRIC] = { "fabric", "apply the fabric's manifests", NULL, "kubectl delete" },
        [PLAN_READY] = { "Ready", "wait until the node is Ready" },
        [PLAN_DNS] = { "DNS", "wait for DNS" },
        [PLAN_CHORES] = { "API changes", "make the small changes in the API that the plan lists" },
        [PLAN_SHUT_OUT] = { "revoke access",
                "remove the rights of users who are no longer in the file", NULL,
                "add them to the file again" },
        [PLAN_VERIFY] = { "verify", "verify services and names from pods" },
        [PLAN_UNINSTALL] = { "uninstall",
                "uninstall the release of a chart that is no longer in the file",
                "its objects are deleted", "add the chart to the file again" },
        [PLAN_NAMESPACES] = { "namespaces", "create namespaces" },
        [PLAN_CRDS] = { "CRDs", "apply the CustomResourceDefinitions of charts", NULL,
                "restore the previous chart, and run 'slipway up' again" },
        [PLAN_MANIFESTS] = { "manifests",
                "apply addons, manifests and built-in services, and delete what was taken out of them",
                NULL, FORMER_FILE },
        [PLAN_CHART] = { "chart", "install or upgrade the release", NULL, FORMER_FILE },
        [PLAN_END_RELEASE] = { "uninstall", "uninstall the release before the cluster is removed",
                "its objects are deleted", "'slipway up'" },
        [PLAN_BALANCERS] = { "load balancers",
                "delete Services of type LoadBalancer, and wait until they are deleted",
                "their addresses stop answering" },
        [PLAN_VOLUMES] = { "volumes",
                "delete PersistentVolumeClaims, and wait until their volumes are deleted",
                "their data is lost" },
};

struct plan_step *plan_add(struct plan *p, enum plan_kind kind, struct member *m)
{
        struct plan_step *s = arena_new(p->arena, struct plan_step);
        *s = (struct plan_step){ .plan = p, .kind = kind, .member = m, .number = ++p->count };
        if (p->last)
                p->last->next = s;
        else
                p->first = s;
        return p->last = s;
}

struct plan_step *plan_add_for(struct plan *p, enum plan_kind kind, const char *subject, void *arg)
{
        struct plan_step *s = plan_add(p, kind, NULL);
        s->subject = subject;
        s->arg = arg;
        return s;
}

void plan_after(struct plan_step *s, struct plan_step *other)
{
        if (!other)
                return;
        size_t n = s->wait_count;
        /* the array doubles at every power of two */
        if (!(n & (n - 1))) {
                struct plan_step **waits =
                        arena_array(s->plan->arena, struct plan_step *, n ? n * 2 : 1);
                if (n)
                        memcpy(waits, s->waits, n * sizeof(struct plan_step *));
                s->waits = waits;
        }
        s->waits[s->wait_count++] = other;
}

const char *plan_kind_name(enum plan_kind kind) { return plan_rows[kind].name; }

static json_t *plan_step_json(const struct plan_step *s)
{
        const struct plan_row *row = &plan_rows[s->kind];
        struct str disrupts CLEANUP(str_release) = { 0 };
        json_t *waits = json_array();
        for (size_t i = 0; i < s->wait_count; i++)
                json_array_append_new(waits, json_integer((json_int_t)s->waits[i]->number));
        if (row->disrupts && !*row->disrupts)
                plan_restarts(s->member->plan.restarts, &disrupts);
        else if (row->disrupts)
                str_add(&disrupts, row->disrupts);
        json_t *o = json_pack("{s:I, s:s, s:s?, s:s, s:s?, s:o, s:s?}", "number",
                (json_int_t)s->number, "step", row->name, "node",
                s->member ? s->member->node->name : NULL, "what", row->what, "disrupts",
                disrupts.len ? str_text(&disrupts) : NULL, "waitsFor", waits, "undo", row->undo);
        if (s->subject)
                json_object_set_new(o, "subject", json_string(s->subject));
        return o;
}

json_t *plan_steps_json(const struct plan *p)
{
        json_t *all = json_array();
        for (const struct plan_step *s = p ? p->first : NULL; s; s = s->next)
                json_array_append_new(all, plan_step_json(s));
        return all;
}
