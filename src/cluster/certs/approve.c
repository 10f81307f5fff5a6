#include "cluster/certs/approve.h"
#include "cluster/plan/serving.h"

/* ---- pending requests ---- */

static void approve_list(const struct serving *all, size_t n, json_t *list)
{
        for (size_t i = 0; i < n; i++) {
                struct str names CLEANUP(str_release) = { 0 };
                serving_names(&all[i], &names);
                json_array_append_new(
                        list, json_pack("{s:s, s:s, s:s?, s:b}", "node", all[i].node, "names",
                                      str_text(&names), "trouble", all[i].trouble, "approved", 0));
        }
}

/* ---- approving one node ---- */

static int approve_one(struct site *site, const struct serving *s, json_t *list, struct error *err)
{
        struct str names CLEANUP(str_release) = { 0 };
        if (s->trouble) {
                error_set(err, EPERM, EXIT_STEP,
                        "node %s: its request for a serving certificate is not approved: %s",
                        s->node, s->trouble);
                return error_hint(err,
                        "kubectl get csr shows it; repair the Node, or remove the machine (kubectl delete node, kubeadm reset)");
        }
        struct chore c = serving_chore(site->arena, s);
        int e = kube_do(site->kube, c.method, c.path, c.body, NULL, NULL, err);
        if (e == 0)
                e = serving_remember(site, s, err);
        if (e < 0)
                return error_wrap(err, "approving the serving certificate of %s", s->node);
        serving_names(s, &names);
        json_array_append_new(list, json_pack("{s:s, s:s, s:n, s:b}", "node", s->node, "names",
                                            str_text(&names), "trouble", "approved", 1));
        return 0;
}

/* A kubelet that waited long has several requests: all that may be approved are. */
static int approve_node(struct site *site, const char *node, const struct serving *all, size_t n,
        json_t *list, struct error *err)
{
        const struct serving *refused = NULL;
        size_t done = 0;
        int e = 0;
        for (size_t i = 0; e == 0 && i < n; i++) {
                if (!streq(all[i].node, node))
                        continue;
                if (all[i].trouble)
                        refused = &all[i];
                else
                        e = approve_one(site, &all[i], list, err), done++;
        }
        if (e < 0 || done)
                return e;
        if (refused)
                return approve_one(site, refused, list, err);
        error_set(err, ENOENT, EXIT_USAGE,
                "no kubelet of a node '%s' waits for a serving certificate", node);
        return error_hint(err,
                "slipway certs approve shows those that wait; kubelets with serverTLSBootstrap ask within seconds of their start");
}

int approve_serving(
        struct site *s, const char *const *nodes, size_t n, json_t *list, struct error *err)
{
        json_t *requests = NULL, *known = NULL;
        struct serving *all = NULL;
        int r = kube_get(s->kube, SERVING_REQUESTS, &requests, err);
        if (r == 0)
                r = kube_get(s->kube, "/api/v1/nodes", &known, err);
        size_t count = r == 0 ? serving_read(s->arena, s->cluster, requests, known, &all) : 0;
        if (r == 0 && !n)
                approve_list(all, count, list);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = approve_node(s, nodes[i], all, count, list, err);
        json_decref(requests);
        json_decref(known);
        return r;
}
