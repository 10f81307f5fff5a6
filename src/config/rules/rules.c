#include "config/minors.h"
#include "config/rules/rules.h"

const char *const provider_words[] = { "local", "ssh", "openstack", "aws", "terraform" };

/* The deepest written part of the path; `*rest` is what is not written ("" when all is). */
static const struct tree *walk(const struct cluster *c, const char *path, const char **rest)
{
        const struct tree *t = c->src;
        char word[64];
        while (*path) {
                size_t n = strcspn(path, ".");
                snprintf(word, sizeof(word), "%.*s", (int)n, path);
                const struct tree *next = tree_get(t, word);
                if (!next)
                        break;
                t = next;
                path += n + (path[n] == '.');
        }
        *rest = path;
        return t;
}

static void rules_report(struct problems *p, const struct cluster *c, const char *path,
        const char *hint, bool warning, const char *fmt, va_list ap)
{
        struct str s CLEANUP(str_release) = { 0 };
        const char *rest;
        const struct tree *at = walk(c, path, &rest);
        str_vaddf(&s, fmt, ap);
        (warning ? problem_warn : problem_add)(
                p, at, *rest ? rest : NULL, hint, "%s", str_text(&s));
}

void rule_error(struct problems *p, const struct cluster *c, const char *path, const char *hint,
        const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        rules_report(p, c, path, hint, false, fmt, ap);
        va_end(ap);
}

void rule_warn(struct problems *p, const struct cluster *c, const char *path, const char *hint,
        const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        rules_report(p, c, path, hint, true, fmt, ap);
        va_end(ap);
}

const struct tree *rule_find(const struct cluster *c, const char *path)
{
        const char *rest;
        const struct tree *t = walk(c, path, &rest);
        return *rest ? NULL : t;
}

const struct tree *rule_item(const struct tree *list, size_t i)
{
        if (!list || list->kind != TREE_LIST)
                return list;
        const struct tree *t = list->first;
        while (t && i--)
                t = t->next;
        return t ? t : list;
}

const char *rule_where(struct problems *p, const struct tree *at, const struct tree *from)
{
        if (at->file && from->file && at->file != from->file)
                return arena_printf(p->arena, "in %s:%u", at->file->name, at->line);
        return arena_printf(p->arena, "on line %u", at->line);
}

bool rule_spoiled(const struct problems *p, const char *path)
{
        size_t n = strlen(path);
        for (const struct problem *q = p->first; q; q = q->next)
                if (!q->warning && q->path && strncmp(q->path, path, n) == 0 &&
                        (!q->path[n] || strchr(".[", q->path[n])))
                        return true;
        return false;
}

void rule_duplicates(
        struct problems *p, const struct tree *list, const struct strings *s, const char *what)
{
        for (size_t i = 1; list && i < s->n && i < 1000; i++)
                for (size_t j = 0; j < i; j++)
                        if (s->v[i] && s->v[j] && strcasecmp(s->v[i], s->v[j]) == 0) {
                                problem_add(p, rule_item(list, i), NULL, "remove one of them",
                                        "the %s \"%s\" is listed twice", what, s->v[i]);
                                break;
                        }
}

void rules_version(struct cluster *c, struct problems *p)
{
        const struct version *v = &c->kubernetes;
        if (!v->text || !v->major)
                return;
        if (v->major == 1 && v->minor >= KUBERNETES_OLDEST_MINOR &&
                v->minor <= KUBERNETES_NEWEST_MINOR)
                return;
        bool newer = v->major > 1 || v->minor > KUBERNETES_NEWEST_MINOR;
        rule_error(p, c, "kubernetes",
                newer ? "use " KUBERNETES_NEWEST ", or a newer slipway"
                      : "use " KUBERNETES_NEWEST ", the newest supported version",
                "Kubernetes %u.%u is too %s: this slipway supports " KUBERNETES_MINORS, v->major,
                v->minor, newer ? "new" : "old");
}

static void (*const all_rules[])(struct cluster *c, struct problems *p) = {
        rules_version,
        rules_pools,
        rules_readiness,
        rules_nodes,
        rules_disks,
        rules_kubelet,
        rules_provider,
        rules_network,
        rules_families,
        rules_api,
        rules_auth,
        rules_bindings,
        rules_admission,
        rules_flags,
        rules_etcd,
        rules_paths,
        rules_os,
        rules_extras,
        rules_idle,
        rules_sources,
        rules_addons,
        rules_cloud,
        rules_services,
};

void cluster_rules(struct cluster *c, struct problems *p)
{
        if (!c->src) /* no spec: said already */
                return;
        for (size_t i = 0; i < ARRAY_SIZE(all_rules); i++)
                all_rules[i](c, p);
}
