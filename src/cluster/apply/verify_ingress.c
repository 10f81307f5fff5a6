/* What the addon ingress promises: an Ingress leads to the probes, by HTTP and by TLS. Traefik is
 * asked through the API server, which connects to one of its pods: nothing of the cluster needs to
 * be reached from here. */
#include "addon/addon.h"
#include "cluster/apply/verify_promise.h"

#define THROUGH "/api/v1/namespaces/ingress/services/%s:ingress:%s/proxy/%s"

static void ingress_look(struct verify *v);
static void on_ingress_timer(evutil_socket_t fd, short what, void *arg) { ingress_look(arg); }

static const char *ingress_way(const struct verify *v) { return v->tls ? "TLS" : "HTTP"; }

static void ingress_end(struct verify *v, const char *why)
{
        verify_row(v, CHECK_INGRESS, "cluster", ingress_way(v), why);
        if (why)
                verify_failed(v, "see its log: kubectl -n ingress logs deployment/ingress",
                        "ingress (%s): %s", ingress_way(v), why);
        if (v->tls || why) {
                promise_next(v);
                return;
        }
        v->tls = true;
        ingress_look(v);
}

/* A probe answers with the name of its node. */
static bool ingress_answered(const struct verify *v, const struct kube_reply *reply)
{
        size_t n = reply->text ? strcspn(reply->text, "\n") : 0;
        for (size_t i = 0; !reply->error && i < v->count; i++) {
                const char *node = v->probes[i].member->node->name;
                if (n == strlen(node) && memcmp(reply->text, node, n) == 0)
                        return true;
        }
        return false;
}

static void on_ingress(const struct kube_reply *reply, void *arg)
{
        struct verify *v = arg;
        if (ingress_answered(v, reply)) {
                ingress_end(v, NULL);
                return;
        }
        promise_waits(v, reply->error ? reply->error : "something else answered than the probes");
        if (clock_ms() < v->deadline)
                verify_later(v, on_ingress_timer);
        else
                ingress_end(v, v->waiting);
}

static void ingress_look(struct verify *v)
{
        const char *scheme = v->tls ? "https" : "http";
        promise_ask(v, arena_printf(v->site->arena, THROUGH, scheme, scheme, v->name), on_ingress);
}

static void on_ingress_applied(const char *error, void *arg)
{
        if (error)
                ingress_end(arg, error);
        else
                ingress_look(arg);
}

void verify_ingress(struct verify *v)
{
        struct str documents CLEANUP(str_release) = { 0 };
        promise_begin(v, verify_patience(v), "asking through the ingress controller");
        addon_verify_ingress(v->name, &documents);
        kube_apply(v->site->kube, str_text(&documents), on_ingress_applied, v);
}
