#include "base/quote.h"
#include "pki/pki.h"

static void add_data(struct str *s, const char *key, const char *pem)
{
        str_addf(s, "    %s: ", key);
        str_add_base64(s, pem, strlen(pem));
        str_addc(s, '\n');
}

static void add_path(struct str *s, const char *key, const char *path)
{
        str_addf(s, "    %s: ", key);
        quote_yaml(s, path);
        str_addc(s, '\n');
}

/* USER@CLUSTER, as kubeadm calls its contexts. */
static void add_context_name(struct str *s, const struct kubeconfig *k)
{
        char *name CLEANUP(free_p) = xasprintf("%s@%s", k->user, k->cluster);
        quote_yaml(s, name);
        str_addc(s, '\n');
}

static void add_cluster(struct str *s, const struct kubeconfig *k)
{
        str_add(s, "apiVersion: v1\nkind: Config\npreferences: {}\nclusters:\n- cluster:\n");
        add_data(s, "certificate-authority-data", k->ca);
        add_path(s, "server", k->server);
        if (k->server_name)
                add_path(s, "tls-server-name", k->server_name);
        str_add(s, "  name: ");
        quote_yaml(s, k->cluster);
        str_addc(s, '\n');
}

static void add_context(struct str *s, const struct kubeconfig *k)
{
        str_add(s, "- context:\n    cluster: ");
        quote_yaml(s, k->cluster);
        str_add(s, "\n    user: ");
        quote_yaml(s, k->user);
        str_add(s, "\n  name: ");
        add_context_name(s, k);
}

static void add_user(struct str *s, const struct kubeconfig *k)
{
        str_add(s, "- name: ");
        quote_yaml(s, k->user);
        if (k->leaf) {
                str_add(s, "\n  user:\n");
                add_data(s, "client-certificate-data", k->leaf->cert);
                add_data(s, "client-key-data", k->leaf->key);
        } else if (k->client_pem) {
                str_add(s, "\n  user:\n");
                add_path(s, "client-certificate", k->client_pem);
                add_path(s, "client-key", k->client_pem);
        } else {
                str_add(s, "\n  user: {}\n");
        }
}

/* One cluster, several users; the first user's context is the current one. */
static void add_all(struct str *s, const struct kubeconfig *k, size_t n)
{
        str_reserve(s, 8192 * n); /* so that keys are not copied about */
        add_cluster(s, &k[0]);
        str_add(s, "contexts:\n");
        for (size_t i = 0; i < n; i++)
                add_context(s, &k[i]);
        str_add(s, "current-context: ");
        add_context_name(s, &k[0]);
        str_add(s, "users:\n");
        for (size_t i = 0; i < n; i++)
                add_user(s, &k[i]);
}

void kubeconfig_text(const struct kubeconfig *k, struct str *out) { add_all(out, k, 1); }

static int admin_leaf(struct identity *id, const struct cluster *c, struct leaf *out, struct error *err)
{
        static const char *const name = "admin";
        char *path CLEANUP(free_p) = path_join(id->dir, "admin.pem");
        struct leaf_file f = { .path = path, .text = id->pki->file, .renew = identity_renews(id, NULL) };
        admin_want(c, &id->pki->want);
        int r = leaf_file_read(&f, err);
        if (r == 0)
                r = leaf_file_get(&f, id, name, &id->pki->want, out, err);
        if (r == 0)
                r = leaf_file_write(&f, id, &name, out, 1, err);
        id->pki->file = f.text;
        return r;
}

int identity_people(struct identity *id, const struct cluster *c, struct error *err)
{
        struct leaf l = { 0 };
        int r = admin_leaf(id, c, &l, err);
        leaf_release(&l);
        for (size_t i = 0; r == 0 && i < c->auth.users.n; i++) {
                r = identity_user(id, c, &c->auth.users.v[i], &l, err);
                leaf_release(&l);
        }
        return r;
}

int identity_kubeconfig(struct identity *id, const struct cluster *c, struct str *out, struct error *err)
{
        const char *host = cluster_endpoint_host(c);
        if (!host || !*host) {
                error_set(err, EADDRNOTAVAIL, EXIT_CONFIG, "the cluster's endpoint has no address yet");
                return error_hint(err, "set api.vip, api.names or api.loadBalancer, or make the machines first");
        }
        size_t n = 1 + c->auth.users.n;
        struct ip ip;
        char *server CLEANUP(free_p) = xasprintf(ip_parse(host, &ip) && ip.family == 6 ? "https://[%s]:%ld" : "https://%s:%ld", host, cluster_endpoint_port(c));
        struct kubeconfig *all CLEANUP(free_p) = xcalloc(n, sizeof(*all));
        struct leaf *leaves CLEANUP(free_p) = xcalloc(n, sizeof(*leaves));
        int r = admin_leaf(id, c, &leaves[0], err);
        for (size_t i = 1; r == 0 && i < n; i++)
                r = identity_user(id, c, &c->auth.users.v[i - 1], &leaves[i], err);
        for (size_t i = 0; r == 0 && i < n; i++)
                all[i] = (struct kubeconfig){ c->name, i ? c->auth.users.v[i - 1].name : "kubernetes-admin", server, id->ca[CA_CLUSTER].bundle, &leaves[i],
                        NULL };
        if (r == 0)
                add_all(out, all, n);
        for (size_t i = 0; i < n; i++)
                leaf_release(&leaves[i]);
        return r;
}
