/* Where programs and images come from: artifacts, registry mirrors, proxies. */
#include "config/rules.h"

static void artifacts(const struct cluster *c, struct problems *p)
{
        const struct artifacts *a = &c->artifacts;
        if (a->source == ARTIFACT_BUNDLE && !a->bundle)
                rule_error(p, c, "artifacts.bundle", "set artifacts.bundle to its directory, such as ./bundle", "the source is bundle, and there is no bundle");
        if (a->source == ARTIFACT_MIRROR && !a->mirror)
                rule_error(p, c, "artifacts.mirror", "set artifacts.mirror, such as https://mirror.example.net/k8s",
                        "the source is mirror, and there is no mirror");
        bool other = a->source == ARTIFACT_UPSTREAM || a->source == ARTIFACT_BUILD;
        if (a->bundle && (other || a->source == ARTIFACT_MIRROR))
                rule_warn(p, c, "artifacts.bundle", "leave source out to try the bundle first", "the bundle is not used: the source is another");
        if (a->mirror && (other || a->source == ARTIFACT_BUNDLE))
                rule_warn(p, c, "artifacts.mirror", "leave source out to try the mirror too", "the mirror is not used: the source is another");
}

static void mirror(const struct tree *at, const char *value, struct problems *p)
{
        const char *scheme = strstr(value, "://");
        if (scheme)
                problem_add(p, at, NULL, arena_printf(p->arena, "write %s%s", scheme + 3, has_prefix(value, "http:") ? ", and insecure: true beside it" : ""),
                        "a mirror is host[:port][/path] without a scheme, got %s", value);
        else if (!*value || strpbrk(value, " \t\"'\\{}"))
                problem_add(p, at, NULL, "write host[:port][/path], such as registry.example.net:5000", "%s is not the place of a registry",
                        *value ? value : "an empty text");
}

static void registry(const struct cluster *c, struct problems *p)
{
        const struct registry *r = &c->registry;
        const struct tree *at = rule_find(c, "registry.mirror"), *map = rule_find(c, "registry.mirrors");
        if (r->mirror && at)
                mirror(at, r->mirror, p);
        for (size_t i = 0; i < r->mirrors.n; i++) {
                const struct pair *m = &r->mirrors.v[i];
                const struct tree *value = m->key ? tree_get(map, m->key) : NULL;
                if (value && m->value)
                        mirror(value, m->value, p);
                if (value && strstr(m->key, "://"))
                        problem_add(p, value, NULL, arena_printf(p->arena, "write %s", strstr(m->key, "://") + 3),
                                "a registry is named without a scheme, got %s", m->key);
        }
        if (r->username && !r->password_file)
                rule_error(p, c, "registry.passwordFile", "set registry.passwordFile to a file that holds it", "there is a username and no password");
        if (r->password_file && !r->username)
                rule_error(p, c, "registry.username", "set registry.username too", "there is a password and no username");
        if ((r->username || r->ca_file || r->insecure) && !r->mirror && !r->mirrors.n && !rule_spoiled(p, "registry"))
                rule_error(p, c, "registry.mirror", "set registry.mirror or registry.mirrors", "these settings are for a mirror, and there is none");
}

static void proxies(const struct cluster *c, struct problems *p)
{
        const struct proxies *x = &c->proxy;
        if (x->no_proxy.n && !x->http && !x->https && !rule_spoiled(p, "proxy"))
                rule_error(p, c, "proxy.noProxy", "set proxy.http and proxy.https, or leave noProxy out", "there is no proxy to go around");
        else if (x->http && !x->https && !rule_spoiled(p, "proxy.https"))
                rule_warn(
                        p, c, "proxy.https", "set proxy.https too; most often it is the same", "only http goes through the proxy, and registries speak https");
        for (size_t i = 0; i < x->no_proxy.n; i++)
                if (x->no_proxy.v[i] && strchr(x->no_proxy.v[i], ','))
                        problem_add(p, rule_item(rule_find(c, "proxy.noProxy"), i), NULL, "write a list, such as [.example.net, 192.0.2.0/24]",
                                "one entry holds several: %s", x->no_proxy.v[i]);
                else if (x->no_proxy.v[i] && strstr(x->no_proxy.v[i], "://"))
                        problem_add(p, rule_item(rule_find(c, "proxy.noProxy"), i), NULL, "write the name or range alone",
                                "%s has a scheme, which no program looks for here", x->no_proxy.v[i]);
}

void rules_sources(struct cluster *c, struct problems *p)
{
        artifacts(c, p);
        registry(c, p);
        proxies(c, p);
}
