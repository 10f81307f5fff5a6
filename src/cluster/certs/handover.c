#include "cluster/certs/handover.h"
#include "cluster/certs/token.h"
#include "kube/wait.h"

#define SYSTEM "/api/v1/namespaces/kube-system"
#define RBAC   "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system"
#define CERTS  "kubeadm-certs"
#define ROLE   "kubeadm:kubeadm-certs"

int handover_check(const struct site *s, struct error *err)
{
        if (s->cluster->etcd.run == ETCD_RUN_STATIC_POD) {
                error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                        "--control-plane: with etcd.run: static-pod the machine would become an etcd member that is not in cluster.yaml, and the next up would remove it");
                return error_hint(err,
                        "add the machine to a pool with the role control-plane, and run slipway up");
        }
        if (identity_rotating(&s->identity)) {
                error_set(err, EBUSY, EXIT_PREFLIGHT,
                        "--control-plane: a rotation is in progress, and the machine would get a CA or key that is about to be replaced");
                return error_hint(err, "slipway up finishes it; then run this again");
        }
        return 0;
}

/* ---- the Secret ---- */

struct handover_text {
        const char *name, *text;
};

static int handover_seal(const struct handover_text *texts, size_t n, const char *key, json_t *data,
        struct error *err)
{
        for (size_t i = 0; i < n; i++) {
                struct str sealed CLEANUP(str_release) = { 0 };
                int r = seal_text(key, texts[i].text, &sealed, err);
                if (r < 0)
                        return r;
                json_object_set_new(data, texts[i].name, json_string(str_text(&sealed)));
        }
        return 0;
}

/* The names that kubeadm expects; etcd is external for it. The client certificate is that of the
 * first control-plane node, because all of them have the same name for etcd. */
static int handover_data(struct site *s, const char *key, json_t *data, struct error *err)
{
        const struct authority *ca = s->identity.ca;
        const struct leaf *etcd;
        int r = site_first_leaf(s, LEAF_APISERVER_ETCD_CLIENT, &etcd, err);
        if (r < 0)
                return r;
        const struct handover_text texts[] = {
                { "ca.crt", ca[CA_CLUSTER].cert },
                { "ca.key", ca[CA_CLUSTER].key },
                { "front-proxy-ca.crt", ca[CA_FRONT_PROXY].cert },
                { "front-proxy-ca.key", ca[CA_FRONT_PROXY].key },
                { "sa.pub", s->identity.sa_pub },
                { "sa.key", s->identity.sa_key },
                { "external-etcd-ca.crt", ca[CA_ETCD].cert },
                { "external-etcd.crt", etcd->cert },
                { "external-etcd.key", etcd->key },
        };
        return handover_seal(texts, ARRAY_SIZE(texts), key, data, err);
}

/* ---- writing it to the API ---- */

/* Creates the object, or replaces the one of an earlier command. */
static int handover_put(
        struct site *s, const char *path, json_t *object, const char *name, struct error *err)
{
        int status = 0;
        char *body CLEANUP(free_p) = json_dumps(object, 0),
                   *there CLEANUP(free_p) = xasprintf("%s/%s", path, name);
        json_decref(object);
        int r = kube_do(s->kube, "POST", path, body, &status, NULL, err);
        if (r == 0 || status != 409)
                return r;
        error_release(err);
        return kube_do(s->kube, "PUT", there, body, NULL, NULL, err);
}

static json_t *handover_object(
        const char *api, const char *kind, const char *name, const json_t *owner)
{
        const json_t *metadata = json_object_get(owner, "metadata");
        return json_pack("{s:s, s:s, s:{s:s, s:s, s:[{s:s, s:s, s:O, s:O, s:b, s:b}]}}",
                "apiVersion", api, "kind", kind, "metadata", "name", name, "namespace",
                "kube-system", "ownerReferences", "apiVersion", "v1", "kind", "Secret", "name",
                json_object_get(metadata, "name"), "uid", json_object_get(metadata, "uid"),
                "controller", 1, "blockOwnerDeletion", 1);
}

static int handover_permit(struct site *s, const json_t *owner, struct error *err)
{
        static const char *const api = "rbac.authorization.k8s.io/v1";
        json_t *role = handover_object(api, "Role", ROLE, owner),
               *binding = handover_object(api, "RoleBinding", ROLE, owner);
        json_object_set_new(role, "rules",
                json_pack("[{s:[s], s:[s], s:[s], s:[s]}]", "apiGroups", "", "resources", "secrets",
                        "resourceNames", CERTS, "verbs", "get"));
        json_object_set_new(binding, "roleRef",
                json_pack("{s:s, s:s, s:s}", "apiGroup", "rbac.authorization.k8s.io", "kind",
                        "Role", "name", ROLE));
        json_object_set_new(binding, "subjects",
                json_pack("[{s:s, s:s, s:s}]", "apiGroup", "rbac.authorization.k8s.io", "kind",
                        "Group", "name", TOKEN_GROUP));
        int r = handover_put(s, RBAC "/roles", role, ROLE, err);
        if (r < 0) {
                json_decref(binding);
                return r;
        }
        return handover_put(s, RBAC "/rolebindings", binding, ROLE, err);
}

int handover_upload(struct site *s, const json_t *owner, const char *key, struct error *err)
{
        json_t *data = json_object(), *secret;
        int r = 0;
        if (!json_is_string(json_object_get(json_object_get(owner, "metadata"), "uid")) ||
                !*object_name(owner))
                r = error_set(err, EPROTO, EXIT_UNHEALTHY,
                        "the API answered without the uid of the token's Secret");
        if (r == 0)
                r = handover_data(s, key, data, err);
        if (r < 0) {
                json_decref(data);
                return r;
        }
        secret = handover_object("v1", "Secret", CERTS, owner);
        json_object_set_new(secret, "type", json_string("Opaque"));
        json_object_set_new(secret, "data", data);
        r = handover_put(s, SYSTEM "/secrets", secret, CERTS, err);
        if (r == 0)
                r = handover_permit(s, owner, err);
        return r < 0 ? error_wrap(err, "uploading the Secret " CERTS) : 0;
}
