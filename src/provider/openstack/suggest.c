/* Names for a first cluster.yaml: of what the cloud has, what fits best. */
#include <event2/event.h>
#include <strings.h>

#include "cloud/openstack/clouds.h"
#include "provider/openstack/openstack.h"
#include "provider/openstack/suggest.h"

#define LIST_MAX    10000
#define PATIENCE_MS 15000 /* of a person who waits for a file */

struct asking {
        struct arena *arena;
        struct event_base *base;
        struct cloud *cloud;
        struct os_session *session;
};

static void asking_release(struct asking *q)
{
        os_free(q->session);
        cloud_free(q->cloud);
        if (q->base)
                event_base_free(q->base);
}

static int suggest_list(struct asking *q, enum os_call call, struct answers *out, struct error *err)
{
        json_t *list = NULL;
        struct fault f = { 0 };
        int r = call_do(os_session(q->session), &os_calls[call],
                &(struct call_args){ .timeout_ms = PATIENCE_MS }, &list, &f);
        if (r < 0)
                r = fault_error(&f, err);
        else
                r = answer_read_list(os_calls[call].answer, list, LIST_MAX, q->arena, out, err);
        fault_release(&f);
        json_decref(list);
        return r;
}

/* Distributions that slipway knows, the best one first. */
static const char *suggest_image(const struct answers *all)
{
        static const char *const wanted[] = { "debian-13", "debian-12", "debian", "ubuntu-24",
                "ubuntu", "rocky", "alma", "flatcar", "" };
        const struct os_image *v = all->v;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
                for (size_t k = 0; k < all->n; k++)
                        if (v[k].name && !strncasecmp(v[k].name, wanted[i], strlen(wanted[i])))
                                return v[k].name;
        return NULL;
}

/* The smallest that a control plane runs well on; else the largest of all. */
static const char *suggest_flavor(const struct answers *all)
{
        const struct os_flavor *v = all->v, *best = NULL, *largest = NULL;
        for (size_t i = 0; i < all->n; i++) {
                bool fits = v[i].cpus >= 2 && v[i].ram >= 4096 && (!v[i].disk || v[i].disk >= 20);
                if (fits && (!best || v[i].ram < best->ram))
                        best = &v[i];
                if (!largest || v[i].ram > largest->ram)
                        largest = &v[i];
        }
        return best ? best->name : largest ? largest->name : NULL;
}

static const char *suggest_network(const struct answers *all, bool external)
{
        const struct os_network *v = all->v;
        for (size_t i = 0; i < all->n; i++)
                if (v[i].external == external && v[i].name && *v[i].name)
                        return v[i].name;
        return NULL;
}

static int suggest_ask(struct asking *q, struct suggestions *out, struct error *err)
{
        struct answers images = { 0 }, flavors = { 0 }, networks = { 0 }, balancers = { 0 };
        struct error none CLEANUP(error_release) = { 0 };
        int r = suggest_list(q, OS_LIST_IMAGES, &images, err);
        if (r == 0)
                r = suggest_list(q, OS_LIST_FLAVORS, &flavors, err);
        if (r == 0)
                r = suggest_list(q, OS_LIST_NETWORKS, &networks, err);
        if (r < 0)
                return r;
        suggest_put(out, "image", suggest_image(&images));
        suggest_put(out, "flavor", suggest_flavor(&flavors));
        suggest_put(out, "external", suggest_network(&networks, true));
        suggest_put(out, "network", suggest_network(&networks, false));
        suggest_put(out, "balancer",
                suggest_list(q, OS_LIST_BALANCERS, &balancers, &none) < 0 ? "vip" : "octavia");
        return 0;
}

int openstack_suggest(struct arena *a, struct suggestions *out, struct error *err)
{
        struct asking q CLEANUP(asking_release) = { .arena = a };
        struct os_cloud cloud = { 0 };
        struct error none CLEANUP(error_release) = { 0 };
        if (os_cloud_load(a, NULL, NULL, &cloud, &none) < 0)
                return 0;
        q.base = event_base_new();
        int r = cloud_open(q.base, NULL, &q.cloud, err);
        if (r == 0)
                r = os_open(q.cloud, &(struct openstack_options){ 0 }, &q.session, err);
        if (r == 0)
                r = suggest_ask(&q, out, err);
        if (r == 0 && !cloud.environment)
                suggest_put(out, "cloud", cloud.name);
        return r;
}
