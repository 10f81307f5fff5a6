/* Where programs and images come from: artifacts, registry mirrors, proxies. */
#include "config/rules/rules.h"

static void sources_artifacts(const struct cluster *c, struct problems *p)
{
        const struct artifacts *a = &c->artifacts;
        if (a->source == ARTIFACT_BUNDLE && !a->bundle)
                rule_error(p, c, "artifacts.bundle",
                        "set artifacts.bundle to its directory, such as ./bundle",
                        "the source is bundle, but artifacts.bundle is not set");
        if (a->source == ARTIFACT_MIRROR && !a->mirror)
                rule_error(p, c, "artifacts.mirror",
                        "set artifacts.mirror, such as https://mirror.example.net/k8s",
                        "the source is mirror, but artifacts.mirror is not set");
        bool other = a->source == ARTIFACT_UPSTREAM || a->source == ARTIFACT_BUILD;
        if (a->bundle && (other || a->source == ARTIFACT_MIRROR))
                rule_warn(p, c, "artifacts.bundle", "leave source out to try the bundle first",
                        "the bundle is not used, because artifacts.source names another source");
        if (a->mirror && (other || a->source == ARTIFACT_BUNDLE))
                rule_warn(p, c, "artifacts.mirror", "leave source out to try the mirror too",
                        "the mirror is not used, because artifacts.source names another source");
}

static void mirror(const struct tree *at, const char *value, struct problems *p)
{
        const char *scheme = strstr(value, "://");
        if (scheme)
                problem_add(p, at, NULL,
                        arena_printf(p->arena, "write %s%s", scheme + 3,
                                has_prefix(value, "http:") ? ", and insecure: true beside it" : ""),
                        "a mirror is host[:port][/path] without a scheme, got %s", value);
        else if (!*value || strpbrk(value, " \t\"'\\{}"))
                problem_add(p, at, NULL,
                        "write host[:port][/path], such as registry.example.net:5000",
                        "%s is not the address of a registry", *value ? value : "an empty text");
}

static void sources_registry(const struct cluster *c, struct problems *p)
{
        const struct registry *r = &c->registry;
        const struct tree *at = rule_find(c, "registry.mirror"),
                          *map = rule_find(c, "registry.mirrors");
        if (r->mirror && at)
                mirror(at, r->mirror, p);
        for (size_t i = 0; i < r->mirrors.n; i++) {
                const struct pair *m = &r->mirrors.v[i];
                const struct tree *value = m->key ? tree_get(map, m->key) : NULL;
                if (value && m->value)
                        mirror(value, m->value, p);
                if (value && strstr(m->key, "://"))
                        problem_add(p, value, NULL,
                                arena_printf(p->arena, "write %s", strstr(m->key, "://") + 3),
                                "a registry is named without a scheme, got %s", m->key);
        }
        if (r->username && !r->password_file)
                rule_error(p, c, "registry.passwordFile",
                        "set registry.passwordFile to a file with the password",
                        "the username is set, but the password is not");
        if (r->password_file && !r->username)
                rule_error(p, c, "registry.username", "set registry.username too",
                        "the password is set, but the username is not");
        if ((r->username || r->ca_file || r->insecure) && !r->mirror && !r->mirrors.n &&
                !rule_spoiled(p, "registry"))
                rule_error(p, c, "registry.mirror", "set registry.mirror or registry.mirrors",
                        "these settings are for a mirror, but none is set");
}

bool url_has_user(const char *url)
{
        const char *host = url ? strstr(url, "://") : NULL;
        return host && memchr(host + 3, '@', strcspn(host + 3, "/?#"));
}

static void proxies(const struct cluster *c, struct problems *p)
{
        const struct proxies *x = &c->proxy;
        if (x->no_proxy.n && !x->http && !x->https && !rule_spoiled(p, "proxy"))
                rule_error(p, c, "proxy.noProxy",
                        "set proxy.http and proxy.https, or leave noProxy out",
                        "noProxy has no effect without a proxy");
        else if (x->http && !x->https && !rule_spoiled(p, "proxy.https"))
                rule_warn(p, c, "proxy.https", "set proxy.https too, usually to the same URL",
                        "only http requests use the proxy, but registries use https");
        if (url_has_user(x->http) || url_has_user(x->https))
                rule_warn(p, c, url_has_user(x->https) ? "proxy.https" : "proxy.http",
                        "if the API server needs the proxy (for an OIDC issuer or external webhooks), use a proxy without a password",
                        "only the nodes' runtime and package manager use this proxy: control-plane pods get no proxy, because its password would be visible to everyone who can read pods");
        for (size_t i = 0; i < x->no_proxy.n; i++)
                if (x->no_proxy.v[i] && strchr(x->no_proxy.v[i], ','))
                        problem_add(p, rule_item(rule_find(c, "proxy.noProxy"), i), NULL,
                                "write a list, such as [.example.net, 192.0.2.0/24]",
                                "this entry holds several values: %s", x->no_proxy.v[i]);
                else if (x->no_proxy.v[i] && strstr(x->no_proxy.v[i], "://"))
                        problem_add(p, rule_item(rule_find(c, "proxy.noProxy"), i), NULL,
                                "write only the name or range",
                                "%s has a scheme, but noProxy takes names and ranges",
                                x->no_proxy.v[i]);
}

void rules_sources(struct cluster *c, struct problems *p)
{
        sources_artifacts(c, p);
        sources_registry(c, p);
        proxies(c, p);
}
