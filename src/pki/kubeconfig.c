#include "base/quote.h"
#include "pki/pki.h"

static void kubeconfig_add_data(struct str *s, const char *key, const char *pem)
{
        str_addf(s, "    %s: ", key);
        str_add_base64(s, pem, strlen(pem));
        str_addc(s, '\n');
}

static void kubeconfig_add_path(struct str *s, const char *key, const char *path)
{
        str_addf(s, "    %s: ", key);
        quote_yaml(s, path);
        str_addc(s, '\n');
}

/* USER@CLUSTER, as kubeadm names contexts. */
static void kubeconfig_add_context_name(struct str *s, const struct kubeconfig *k)
{
        char *name CLEANUP(free_p) = xasprintf("%s@%s", k->user, k->cluster);
        quote_yaml(s, name);
        str_addc(s, '\n');
}

static void kubeconfig_add_cluster(struct str *s, const struct kubeconfig *k)
{
        str_add(s, "apiVersion: v1\nkind: Config\npreferences: {}\nclusters:\n- cluster:\n");
        kubeconfig_add_data(s, "certificate-authority-data", k->ca);
        kubeconfig_add_path(s, "server", k->server);
        if (k->server_name)
                kubeconfig_add_path(s, "tls-server-name", k->server_name);
        str_add(s, "  name: ");
        quote_yaml(s, k->cluster);
        str_addc(s, '\n');
}

static void kubeconfig_add_context(struct str *s, const struct kubeconfig *k)
{
        str_add(s, "- context:\n    cluster: ");
        quote_yaml(s, k->cluster);
        str_add(s, "\n    user: ");
        quote_yaml(s, k->user);
        str_add(s, "\n  name: ");
        kubeconfig_add_context_name(s, k);
}

/* ---- a login through kubelogin (kubectl oidc-login) ---- */

static void exec_add_arg(struct str *s, const char *flag, const char *value)
{
        char *text CLEANUP(free_p) = xasprintf("%s%s", flag, value);
        str_add(s, "      - ");
        quote_yaml(s, text);
        str_addc(s, '\n');
        wipe(text, strlen(text));
}

/* kubelogin takes the client's secret only as an argument. Without one the client is public and
 * proves itself with PKCE. */
static void exec_add_args(struct str *s, const struct kubeconfig *k)
{
        const struct oidc *o = k->oidc;
        exec_add_arg(s, "oidc-login", "");
        exec_add_arg(s, "get-token", "");
        exec_add_arg(s, "--oidc-issuer-url=", o->issuer);
        exec_add_arg(s, "--oidc-client-id=", o->client_id);
        if (o->client_secret)
                exec_add_arg(s, "--oidc-client-secret=", o->client_secret);
        else
                exec_add_arg(s, "--oidc-pkce-method=S256", "");
        for (size_t i = 0; i < o->scopes.n; i++)
                exec_add_arg(s, "--oidc-extra-scope=", o->scopes.v[i]);
        if (k->oidc_ca) {
                struct str ca CLEANUP(str_release) = { 0 };
                str_add_base64(&ca, k->oidc_ca, strlen(k->oidc_ca));
                exec_add_arg(s, "--certificate-authority-data=", str_text(&ca));
        }
}

static void kubeconfig_add_exec(struct str *s, const struct kubeconfig *k)
{
        str_add(s, "\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
                   "      command: kubectl\n      args:\n");
        exec_add_args(s, k);
        str_add(s,
                "      installHint: install the kubectl plugin oidc-login (kubelogin), for example with 'kubectl krew install oidc-login'\n"
                "      interactiveMode: IfAvailable\n      provideClusterInfo: false\n");
}

static void kubeconfig_add_user(struct str *s, const struct kubeconfig *k)
{
        str_add(s, "- name: ");
        quote_yaml(s, k->user);
        if (k->leaf) {
                str_add(s, "\n  user:\n");
                kubeconfig_add_data(s, "client-certificate-data", k->leaf->cert);
                kubeconfig_add_data(s, "client-key-data", k->leaf->key);
        } else if (k->client_pem) {
                str_add(s, "\n  user:\n");
                kubeconfig_add_path(s, "client-certificate", k->client_pem);
                kubeconfig_add_path(s, "client-key", k->client_pem);
        } else if (k->oidc) {
                kubeconfig_add_exec(s, k);
        } else {
                str_add(s, "\n  user: {}\n");
        }
}

/* One cluster, several users; the context of the first user is the current one. */
static void kubeconfig_add_all(struct str *s, const struct kubeconfig *k, size_t n)
{
        str_reserve(s, 8192 * n); /* growing would leave copies of keys that are not wiped */
        kubeconfig_add_cluster(s, &k[0]);
        str_add(s, "contexts:\n");
        for (size_t i = 0; i < n; i++)
                kubeconfig_add_context(s, &k[i]);
        str_add(s, "current-context: ");
        kubeconfig_add_context_name(s, &k[0]);
        str_add(s, "users:\n");
        for (size_t i = 0; i < n; i++)
                kubeconfig_add_user(s, &k[i]);
}

void kubeconfig_text(const struct kubeconfig *k, struct str *out) { kubeconfig_add_all(out, k, 1); }

static int admin_leaf(
        struct identity *id, const struct cluster *c, struct leaf *out, struct error *err)
{
        static const char *const name = "admin";
        char *path CLEANUP(free_p) = path_join(id->dir, "admin.pem");
        struct leaf_file f = {
                .path = path, .text = id->pki->file, .renew = identity_renews(id, NULL)
        };
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

/* https://host:port of the cluster's endpoint; malloc'd, NULL: it has no address yet. */
static char *kubeconfig_server(const struct cluster *c, struct error *err)
{
        const char *host = cluster_endpoint_host(c);
        struct ip ip;
        if (host && *host)
                return xasprintf(ip_parse(host, &ip) && ip.family == 6 ? "https://[%s]:%ld"
                                                                       : "https://%s:%ld",
                        host, cluster_endpoint_port(c));
        error_set(err, EADDRNOTAVAIL, EXIT_CONFIG, "the cluster's endpoint has no address yet");
        error_hint(err, "set api.vip, api.names or api.loadBalancer, or create the machines first");
        return NULL;
}

int identity_kubeconfig(
        struct identity *id, const struct cluster *c, struct str *out, struct error *err)
{
        char *server CLEANUP(free_p) = kubeconfig_server(c, err);
        if (!server)
                return -err->code;
        size_t n = 1 + c->auth.users.n;
        struct kubeconfig *all CLEANUP(free_p) = xcalloc(n, sizeof(*all));
        struct leaf *leaves CLEANUP(free_p) = xcalloc(n, sizeof(*leaves));
        int r = admin_leaf(id, c, &leaves[0], err);
        for (size_t i = 1; r == 0 && i < n; i++)
                r = identity_user(id, c, &c->auth.users.v[i - 1], &leaves[i], err);
        for (size_t i = 0; r == 0 && i < n; i++)
                all[i] = (struct kubeconfig){ c->name,
                        i ? c->auth.users.v[i - 1].name : "kubernetes-admin", server,
                        id->ca[CA_CLUSTER].bundle, &leaves[i], NULL, NULL, NULL, NULL };
        if (r == 0)
                kubeconfig_add_all(out, all, n);
        for (size_t i = 0; i < n; i++)
                leaf_release(&leaves[i]);
        return r;
}

const char *identity_oidc_ca(const struct identity *id, const struct cluster *c)
{
        return c->auth.oidc.ca_pem    ? c->auth.oidc.ca_pem
               : c->services.dex.host ? id->ca[CA_CLUSTER].bundle
                                      : NULL;
}

int identity_kubeconfig_oidc(const struct identity *id, const struct cluster *c, const char *user,
        struct str *out, struct error *err)
{
        char *server CLEANUP(free_p) = kubeconfig_server(c, err);
        if (!server)
                return -err->code;
        struct kubeconfig k = { .cluster = c->name,
                .user = user,
                .server = server,
                .ca = id->ca[CA_CLUSTER].bundle,
                .oidc = &c->auth.oidc,
                .oidc_ca = identity_oidc_ca(id, c) };
        /* growing would leave copies of the client's secret */
        str_reserve(out, 16384 + 2 * (strlen(k.ca) + (k.oidc_ca ? strlen(k.oidc_ca) : 0)));
        kubeconfig_text(&k, out);
        return 0;
}
