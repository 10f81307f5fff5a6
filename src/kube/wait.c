#include "base/base.h"
#include "base/str.h"
#include "kube/wait.h"

static const json_t *status_of(const json_t *object) { return json_object_get(object, "status"); }

static const char *object_text(const json_t *object, const char *field)
{
        return json_string_value(json_object_get(object, field));
}

const json_t *condition_get(const json_t *object, const char *type)
{
        const json_t *conditions = json_object_get(status_of(object), "conditions"), *c;
        size_t i;
        json_array_foreach(conditions, i, c)
        {
                const char *t = object_text(c, "type");
                if (t && streq(t, type))
                        return c;
        }
        return NULL;
}

bool condition_true(const json_t *object, const char *type)
{
        const char *status = object_text(condition_get(object, type), "status");
        return status && streq(status, "True");
}

const char *condition_why(const json_t *object, const char *type)
{
        const json_t *c = condition_get(object, type);
        const char *message = object_text(c, "message");
        return message && *message ? message : object_text(c, "reason");
}

static const char *object_metadata(const json_t *object, const char *field)
{
        const char *s = object_text(json_object_get(object, "metadata"), field);
        return s ? s : "";
}

const char *object_name(const json_t *object) { return object_metadata(object, "name"); }

const char *object_namespace(const json_t *object) { return object_metadata(object, "namespace"); }

bool node_ready(const json_t *node) { return condition_true(node, "Ready"); }

const char *node_provider_id(const json_t *node)
{
        return json_string_value(json_object_get(json_object_get(node, "spec"), "providerID"));
}

const char *node_internal_ip(const json_t *node)
{
        const json_t *addresses = json_object_get(status_of(node), "addresses"), *a;
        size_t i;
        json_array_foreach(addresses, i, a)
        {
                const char *type = object_text(a, "type");
                if (type && streq(type, "InternalIP"))
                        return object_text(a, "address");
        }
        return NULL;
}

bool pod_ready(const json_t *pod)
{
        return !*object_metadata(pod, "deletionTimestamp") && condition_true(pod, "Ready");
}

/* A container that ended once or twice is only late (a controller manager ends when it
 * loses its lease). */
static bool container_failing(const json_t *container)
{
        const char *why = json_string_value(json_object_get(
                json_object_get(json_object_get(container, "state"), "waiting"), "reason"));
        if (!why || streq(why, "ContainerCreating") || streq(why, "PodInitializing"))
                return false;
        return !streq(why, "CrashLoopBackOff") ||
               json_integer_value(json_object_get(container, "restartCount")) > 2;
}

const json_t *pod_failing(const json_t *pod)
{
        static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };
        size_t i;
        json_t *c;
        for (size_t l = 0; l < ARRAY_SIZE(lists); l++)
                json_array_foreach(json_object_get(status_of(pod), lists[l]), i, c)
                {
                        if (container_failing(c))
                                return c;
                }
        return NULL;
}

#define WHY_MAX 300

/* What the container printed last, else what the kubelet says. */
static char *container_why(const json_t *container)
{
        const json_t *state = json_object_get(container, "state");
        const char *ended = object_text(
                           json_object_get(json_object_get(container, "lastState"), "terminated"),
                           "message"),
                   *waiting = object_text(json_object_get(state, "waiting"), "message");
        return ended ? str_last_line_of(ended) : waiting ? xstrdup(waiting) : NULL;
}

char *pods_failing(const json_t *list)
{
        size_t i;
        const json_t *pod, *c = NULL;
        json_array_foreach(json_object_get(list, "items"), i, pod)
        {
                if ((c = pod_failing(pod)))
                        break;
        }
        if (!c)
                return NULL;
        json_int_t ends = json_integer_value(json_object_get(c, "restartCount"));
        const char *node = object_text(json_object_get(pod, "spec"), "nodeName");
        char *why CLEANUP(free_p) = container_why(c);
        struct str out CLEANUP(str_release) = { 0 };
        str_addf(&out, "pod %s on %s: %s", object_name(pod), node ? node : "no node",
                object_text(json_object_get(json_object_get(c, "state"), "waiting"), "reason"));
        if (ends)
                str_addf(&out, ", it ended %" JSON_INTEGER_FORMAT " times", ends);
        if (why && *why)
                str_addf(&out, ": %.*s", WHY_MAX, why);
        return str_take(&out);
}

/* The controller has observed the latest generation. */
static bool generation_observed(const json_t *object)
{
        json_int_t wanted = json_integer_value(
                json_object_get(json_object_get(object, "metadata"), "generation"));
        return status_of(object) &&
               json_integer_value(json_object_get(status_of(object), "observedGeneration")) >=
                       wanted &&
               wanted > 0;
}

static json_int_t status_number(const json_t *object, const char *field)
{
        return json_integer_value(json_object_get(status_of(object), field));
}

bool deployment_available(const json_t *deployment)
{
        const json_t *replicas = json_object_get(json_object_get(deployment, "spec"), "replicas");
        json_int_t wanted = replicas ? json_integer_value(replicas) : 1;
        return generation_observed(deployment) &&
               status_number(deployment, "updatedReplicas") >= wanted &&
               status_number(deployment, "availableReplicas") >= wanted &&
               status_number(deployment, "replicas") <=
                       status_number(deployment, "updatedReplicas");
}

bool daemonset_ready(const json_t *daemonset)
{
        json_int_t wanted = status_number(daemonset, "desiredNumberScheduled");
        return generation_observed(daemonset) &&
               status_number(daemonset, "updatedNumberScheduled") >= wanted &&
               status_number(daemonset, "numberAvailable") >= wanted;
}

bool statefulset_ready(const json_t *set)
{
        const json_t *spec = json_object_get(set, "spec"),
                     *replicas = json_object_get(spec, "replicas");
        json_int_t wanted = replicas ? json_integer_value(replicas) : 1;
        const char *strategy =
                json_string_value(json_object_get(json_object_get(spec, "updateStrategy"), "type"));
        bool updated = (strategy && streq(strategy, "OnDelete")) ||
                       status_number(set, "updatedReplicas") >= wanted;
        return generation_observed(set) && updated && status_number(set, "readyReplicas") >= wanted;
}

bool crd_established(const json_t *crd) { return condition_true(crd, "Established"); }

const char *workload_image(const json_t *workload, const char *container)
{
        const json_t *template = json_object_get(json_object_get(workload, "spec"), "template"), *c;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(template, "spec"), "containers"), i, c)
        {
                const char *name = object_text(c, "name");
                if (name && streq(name, container))
                        return object_text(c, "image");
        }
        return NULL;
}
