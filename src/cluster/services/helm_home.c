/* helm's home for one run: settings, credentials and caches. */
#include "base/file.h"
#include "cluster/services/helm.h"
#include "cluster/services/relay.h"

#define PREFIX "slipway-helm-"

/* Settings for the user's own helm must not affect this one. */
static const char *const emptied[] = { "HELM_KUBEASUSER", "HELM_KUBEASGROUPS", "HELM_KUBEAPISERVER",
        "HELM_KUBETOKEN", "HELM_KUBECAFILE", "HELM_KUBECONTEXT", "HELM_KUBETLS_SERVER_NAME",
        "HELM_NAMESPACE", "HELM_DEBUG", "HELM_KUBEINSECURE_SKIP_TLS_VERIFY" };
static const struct {
        const char *name, *file;
} homes[] = { { "HELM_CACHE_HOME", "cache" }, { "HELM_CONFIG_HOME", "config" },
        { "HELM_DATA_HOME", "data" }, { "HELM_PLUGINS", "plugins" },
        { "HELM_REPOSITORY_CACHE", "repository" },
        { "HELM_REPOSITORY_CONFIG", "repositories.yaml" },
        { "HELM_REGISTRY_CONFIG", "registry.json" }, { "KUBECONFIG", "kubeconfig" },
        { "KUBECACHEDIR", "discovery" } };

static void home_env(struct helm *h)
{
        struct arena *a = h->op.site->arena;
        size_t n = 0;
        _Static_assert(ARRAY_SIZE(emptied) + ARRAY_SIZE(homes) + 2 <= ARRAY_SIZE(h->env),
                "room for all of them");
        for (size_t i = 0; i < ARRAY_SIZE(emptied); i++)
                h->env[n++] = arena_printf(a, "%s=", emptied[i]);
        for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
                h->env[n++] = arena_printf(a, "%s=%s/%s", homes[i].name, h->home, homes[i].file);
        h->env[n++] = "HELM_DRIVER=secret";
}

static int home_write(const struct helm *h, const char *name, const char *text, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(h->home, name);
        return file_write(path, text, strlen(text), 0600, 0, NULL, err);
}

/* "host:port" of an oci:// URL. */
static char *oci_host(const char *url)
{
        return xstrndup(url + strlen("oci://"), strcspn(url + strlen("oci://"), "/"));
}

static void add_login(json_t *auths, const struct repository *r)
{
        struct str plain CLEANUP(str_wipe_release) = { 0 }, coded CLEANUP(str_wipe_release) = { 0 };
        char *host CLEANUP(free_p) = oci_host(r->url);
        str_addf(&plain, "%s:%s", r->username, r->password);
        str_add_base64(&coded, plain.data, plain.len);
        json_object_set_new(auths, host, json_pack("{s:s}", "auth", str_text(&coded)));
}

static int add_repository(const struct helm *h, json_t *list, json_t *auths,
        const struct repository *r, struct error *err)
{
        char *ca CLEANUP(free_p) = xasprintf("%s/ca-%s.pem", h->home, r->name);
        if (r->ca_pem && file_write(ca, r->ca_pem, strlen(r->ca_pem), 0600, 0, NULL, err) < 0)
                return -err->code;
        if (has_prefix(r->url, "oci://") && r->password)
                add_login(auths, r);
        if (!has_prefix(r->url, "http"))
                return 0;
        json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", r->name, "url", r->url,
                              "username", r->username ? r->username : "", "password",
                              r->password ? r->password : "", "caFile", r->ca_pem ? ca : ""));
        return 0;
}

static int write_repositories(const struct helm *h, struct error *err)
{
        const struct repositories *all = &h->op.site->cluster->services.repositories;
        json_t *list = json_array(), *auths = json_object();
        int r = 0;
        for (size_t i = 0; r == 0 && i < all->n; i++)
                r = add_repository(h, list, auths, &all->v[i], err);
        json_t *config = json_pack("{s:s, s:o}", "apiVersion", "", "repositories", list),
               *registry = json_pack("{s:o}", "auths", auths);
        char *config_text CLEANUP(free_p) = json_dumps(config, JSON_INDENT(1)),
                          *registry_text CLEANUP(free_p) = json_dumps(registry, JSON_INDENT(1));
        json_decref(config);
        json_decref(registry);
        if (r == 0)
                r = home_write(h, "repositories.yaml", config_text, err);
        return r < 0 ? r : home_write(h, "registry.json", registry_text, err);
}

int helm_home(struct helm *h, struct error *err)
{
        if (h->home)
                return 0;
        if (scratch_make(PREFIX, &h->home, err) < 0)
                return -err->code;
        home_env(h);
        return write_repositories(h, err);
}

int helm_file(
        struct site *s, const char *name, const char *text, const char **path, struct error *err)
{
        int r = helm_home(s->helm, err);
        if (r < 0)
                return r;
        *path = arena_printf(s->arena, "%s/%s", s->helm->home, name);
        return file_write(*path, text, strlen(text), 0600, 0, NULL, err);
}

int helm_dir(struct site *s, const char *name, const char **path, struct error *err)
{
        int r = helm_home(s->helm, err);
        if (r < 0)
                return r;
        *path = arena_printf(s->arena, "%s/%s", s->helm->home, name);
        return dir_make(*path, 0700, err);
}

/* ---- the connection to the API ---- */

/* The host in "https://host:port", without the brackets of IPv6: the name in the certificate. */
static char *url_host(const char *url)
{
        const char *host = url + strlen("https://"), *end = strrchr(host, ':');
        size_t n = end ? (size_t)(end - host) : strlen(host);
        return *host == '[' && n > 2 ? xstrndup(host + 1, n - 2) : xstrndup(host, n);
}

int helm_kubeconfig(struct helm *h, struct error *err)
{
        struct site *s = h->op.site;
        const char *server, *socket;
        struct str text CLEANUP(str_wipe_release) = { 0 };
        kube_current(s->kube, &server, &socket);
        char *host CLEANUP(free_p) = url_host(server), *local CLEANUP(free_p) = NULL;
        if (socket && (!h->relayed || !streq(h->relayed, socket))) {
                relay_free(h->relay);
                h->relay = NULL;
                if (relay_open(s->base, socket, &h->relay, err) < 0)
                        return -err->code;
                h->relayed = arena_strdup(s->arena, socket);
        }
        if (socket)
                local = xasprintf("https://127.0.0.1:%u", relay_port(h->relay));
        int r = site_kubeconfig(s, socket ? local : server, socket ? host : NULL, &text, err);
        return r < 0 ? r : home_write(h, "kubeconfig", str_text(&text), err);
}
