/* Charts, their repositories and namespaces. */
#include "config/rules.h"

static const char *const own_namespaces[] = { "default", "kube-system", "kube-public", "kube-node-lease" };

static bool namespace_known(const struct services *s, const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(own_namespaces); i++)
                if (streq(name, own_namespaces[i]))
                        return true;
        for (size_t i = 0; i < s->namespaces.n; i++)
                if (s->namespaces.v[i] && streq(name, s->namespaces.v[i]))
                        return true;
        return false;
}

static const char *repositories_hint(const struct services *s, const char *word, size_t n, struct problems *p)
{
        char *name CLEANUP(free_p) = xstrndup(word, n);
        const char **names CLEANUP(free_p) = xcalloc(s->repositories.n, sizeof(*names));
        size_t count = 0;
        for (size_t i = 0; i < s->repositories.n; i++)
                if (s->repositories.v[i].name)
                        names[count++] = s->repositories.v[i].name;
        const char *near = nearest(name, names, count);
        if (near)
                return arena_printf(p->arena, "did you mean %s%s?", near, word + n);
        return arena_printf(p->arena, "add it: services.repositories: [{name: %s, url: \"https://…\"}]", name);
}

/* REPOSITORY/CHART of a repository that is listed, oci://, an URL, or a path that begins with . or / or ~. */
static void reference(const struct services *s, const struct chart *c, struct problems *p)
{
        const char *ref = c->chart;
        if (!ref || strchr("./~", ref[0]) || strstr(ref, "://"))
                return;
        size_t n = strcspn(ref, "/");
        if (!ref[n]) {
                problem_add(p, c->src, "chart", arena_printf(p->arena, "write REPOSITORY/%s, oci://HOST/%s or a path that begins with ./", ref, ref),
                        "the chart \"%s\" names no repository", ref);
                return;
        }
        for (size_t i = 0; i < s->repositories.n; i++)
                if (s->repositories.v[i].name && strlen(s->repositories.v[i].name) == n && strncmp(ref, s->repositories.v[i].name, n) == 0)
                        return;
        problem_add(p, c->src, "chart", repositories_hint(s, ref, n, p), "there is no repository \"%.*s\"", (int)n, ref);
}

static void chart(const struct services *s, size_t index, struct problems *p)
{
        const struct chart *c = &s->charts.v[index];
        reference(s, c, p);
        if (c->name && strlen(c->name) > 53)
                problem_add(p, c->src, "name", "use a shorter one", "helm takes names of at most 53 characters, got %zu", strlen(c->name));
        if (c->namespace && !namespace_known(s, c->namespace))
                problem_warn(p, c->src, "namespace", "add it there, unless a chart or manifest makes it",
                        "the namespace \"%s\" is not among services.namespaces", c->namespace);
        if (c->values && c->values->kind != TREE_MAP && c->values->kind != TREE_NULL)
                problem_add(p, c->values, NULL, "write them as in the chart's values.yaml, or name a file with valuesFile", "a chart's values are a map");
        for (size_t i = 0; i < index && index < 1000; i++) {
                const struct chart *o = &s->charts.v[i];
                if (c->name && o->name && c->namespace && o->namespace && streq(c->name, o->name) && streq(c->namespace, o->namespace))
                        problem_add(p, c->src, "name", "give it another name or namespace", "the chart \"%s\" of the namespace %s is there already %s", c->name,
                                c->namespace, rule_where(p, o->src, c->src));
        }
}

void rules_services(struct cluster *c, struct problems *p)
{
        const struct services *s = &c->services;
        for (size_t i = 0; i < s->charts.n; i++)
                chart(s, i, p);
        rule_duplicates(p, rule_find(c, "services.namespaces"), &s->namespaces, "namespace");
}
