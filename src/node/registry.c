/* Registry mirrors, as hosts.toml files of containerd and as registries.conf of CRI-O. */
#include "node/context.h"
#include "node/template.h"

#define REGISTRY_CA "/etc/slipway/registry-ca.crt"

/* CRI-O has no entry for all registries: these are the ones that clusters usually pull from. */
static const char *const usual[] = { "docker.io", "gcr.io", "ghcr.io", "mcr.microsoft.com",
        "public.ecr.aws", "quay.io", "registry.k8s.io" };

struct mirror {
        const char *scheme; /* "https", or "http" with registry.insecure */
        const char *host;   /* host[:port] */
        const char *path;   /* "" or "/path" */
};

static struct mirror mirror_parse(const struct context *x, const char *text)
{
        struct mirror m = { .scheme = x->cluster->registry.insecure ? "http" : "https" };
        const char *rest = strstr(text, "://");
        if (rest) {
                m.scheme = arena_strndup(x->arena, text, (size_t)(rest - text));
                text = rest + 3;
        }
        size_t n = strcspn(text, "/");
        m.host = arena_strndup(x->arena, text, n);
        m.path = streq(text + n, "/") ? "" : text + n;
        return m;
}

static const char *authorization(const struct context *x)
{
        const struct registry *r = &x->cluster->registry;
        struct str plain CLEANUP(str_wipe_release) = { 0 }, out CLEANUP(str_wipe_release) = { 0 };
        if (!(x->with & WITH_REGISTRY_AUTH))
                return "";
        str_addf(&plain, "%s:%s", r->username, r->password);
        str_add_base64(&out, plain.data, plain.len);
        return arena_strdup(x->arena, str_text(&out));
}

/* ---- containerd ---- */

static void hosts_add(const struct context *x, struct nodespec *s, const char *dir,
        const struct mirror *m, bool own)
{
        const char *auth = json_string_value(
                json_object_get(json_object_get(x->values, "registry"), "authorization"));
        struct str text CLEANUP(str_wipe_release) = { 0 };
        char *path = arena_printf(&s->arena, "/etc/containerd/certs.d/%s/hosts.toml", dir);
        if (nodespec_find(s, SPEC_FILE, path))
                return;
        json_t *v = json_object();
        const char *url = own || !*m->path ? arena_printf(x->arena, "%s://%s", m->scheme, m->host)
                                           : arena_printf(x->arena, "%s://%s/v2%s", m->scheme,
                                                     m->host, m->path);
        json_put(v, "url", url);
        json_put(v, "server", own ? url : "");
        json_object_set_new(v, "override_path", json_boolean(!own && *m->path));
        json_object_set_new(v, "insecure", json_boolean(x->cluster->registry.insecure));
        json_put(v, "ca", x->with & WITH_REGISTRY_CA ? REGISTRY_CA : "");
        json_put(v, "authorization", *auth ? arena_printf(x->arena, "Basic %s", auth) : "");
        template_render("hosts.toml", v, &text);
        json_decref(v);
        bool secret = x->with & WITH_REGISTRY_AUTH;
        file_add(x, s, secret ? CLASS_SECRET : CLASS_MUTABLE, path, secret ? 0600 : 0644,
                str_text(&text), text.len);
}

void registry_add(const struct context *x, struct nodespec *s)
{
        const struct registry *r = &x->cluster->registry;
        if (!(x->with & ON_KUBE) || !(x->with & WITH_CONTAINERD) || x->immutable)
                return;
        for (size_t i = 0; i < r->mirrors.n; i++) {
                struct mirror m = mirror_parse(x, r->mirrors.v[i].value);
                hosts_add(x, s, r->mirrors.v[i].key, &m, false);
                hosts_add(x, s, m.host, &m, true); /* for images named after the mirror */
        }
        if (r->mirror) {
                struct mirror m = mirror_parse(x, r->mirror);
                hosts_add(x, s, "_default", &m, false);
                hosts_add(x, s, m.host, &m, true);
        }
}

/* ---- cri-o ---- */

static void list_add(
        const struct context *x, json_t *list, const char *registry, const struct mirror *m)
{
        size_t i;
        json_t *old, *v = json_object();
        json_array_foreach(list, i, old)
        {
                if (streq(json_string_value(json_object_get(old, "prefix")), registry)) {
                        json_decref(v);
                        return;
                }
        }
        json_put(v, "prefix", registry);
        json_object_set_new(v, "own_insecure", json_boolean(!m && x->cluster->registry.insecure));
        json_put(v, "mirror", m ? arena_printf(x->arena, "%s%s", m->host, m->path) : "");
        json_object_set_new(v, "insecure", json_boolean(x->cluster->registry.insecure));
        json_array_append_new(list, v);
}

static void auth_add(const struct context *x, json_t *auths, const char *host, const char *auth)
{
        size_t i;
        json_t *old;
        if (!*auth)
                return;
        json_array_foreach(auths, i, old)
        {
                if (streq(json_string_value(json_object_get(old, "host")), host))
                        return;
                json_object_set_new(old, "last", json_false());
        }
        json_t *v = json_object();
        json_put(v, "host", host);
        json_put(v, "auth", auth);
        json_object_set_new(v, "last", json_true());
        json_array_append_new(auths, v);
}

json_t *registry_values(const struct context *x)
{
        const struct registry *r = &x->cluster->registry;
        const char *auth = authorization(x);
        json_t *v = json_object(), *list = json_array(), *auths = json_array();
        for (size_t i = 0; i < r->mirrors.n; i++) {
                struct mirror m = mirror_parse(x, r->mirrors.v[i].value);
                list_add(x, list, r->mirrors.v[i].key, &m);
                list_add(x, list, m.host, NULL);
                auth_add(x, auths, m.host, auth);
        }
        for (size_t i = 0; r->mirror && i < ARRAY_SIZE(usual); i++) {
                struct mirror m = mirror_parse(x, r->mirror);
                list_add(x, list, usual[i], &m);
                list_add(x, list, m.host, NULL);
                auth_add(x, auths, m.host, auth);
        }
        json_object_set_new(v, "auth", json_boolean(*auth));
        json_put(v, "authorization", auth);
        json_object_set_new(v, "list", list);
        json_object_set_new(v, "auths", auths);
        return v;
}
