/* Charts, their repositories and namespaces. */
#include "config/rules/rules.h"

#define VALUES_FILES_MAX 8 /* each is an argument of helm */

static const char *const own_namespaces[] = { "default", "kube-system", "kube-public",
        "kube-node-lease" };

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

static const char *repositories_hint(
        const struct services *s, const char *word, size_t n, struct problems *p)
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
        return arena_printf(
                p->arena, "add it: services.repositories: [{name: %s, url: \"https://…\"}]", name);
}

/* REPOSITORY/CHART of a repository that is listed, oci://, an URL, or a path that begins with . or
 * / or ~. */
static void services_reference(const struct services *s, const struct chart *c, struct problems *p)
{
        const char *ref = c->chart;
        if (!ref || strchr("./~", ref[0]) || strstr(ref, "://"))
                return;
        size_t n = strcspn(ref, "/");
        if (!ref[n]) {
                problem_add(p, c->src, "chart",
                        arena_printf(p->arena,
                                "write REPOSITORY/%s, oci://HOST/%s or a path that begins with ./",
                                ref, ref),
                        "the chart \"%s\" names no repository", ref);
                return;
        }
        for (size_t i = 0; i < s->repositories.n; i++)
                if (s->repositories.v[i].name && strlen(s->repositories.v[i].name) == n &&
                        strncmp(ref, s->repositories.v[i].name, n) == 0)
                        return;
        problem_add(p, c->src, "chart", repositories_hint(s, ref, n, p),
                "there is no repository \"%.*s\"", (int)n, ref);
}

static const struct chart *chart_named(const struct services *s, const char *name)
{
        for (size_t i = 0; name && i < s->charts.n; i++)
                if (s->charts.v[i].name && streq(s->charts.v[i].name, name))
                        return &s->charts.v[i];
        return NULL;
}

/* Whether all that it waits for have been placed. */
static bool placeable(const struct services *s, const struct chart *c, const bool *placed)
{
        for (size_t i = 0; i < c->after.n; i++) {
                const struct chart *o = chart_named(s, c->after.v[i]);
                if (o && !placed[o - s->charts.v])
                        return false;
        }
        return true;
}

/* Charts are placed one after another behind those they name; who is left waits in a circle, or
 * for one. */
static void circles(const struct services *s, struct problems *p)
{
        bool *placed CLEANUP(free_p) = xcalloc(s->charts.n + 1, sizeof(*placed));
        for (bool more = true; more;) {
                more = false;
                for (size_t i = 0; i < s->charts.n; i++)
                        if (!placed[i] && placeable(s, &s->charts.v[i], placed))
                                placed[i] = more = true;
        }
        for (size_t i = 0; i < s->charts.n; i++)
                if (!placed[i]) {
                        problem_add(p, s->charts.v[i].src, "after",
                                "take one of the names out of after",
                                "this chart would wait for itself, through the charts that it names");
                        return;
                }
}

static void chart_after(const struct services *s, const struct chart *c, struct problems *p)
{
        const struct tree *list = tree_get(c->src, "after");
        for (size_t i = 0; i < c->after.n; i++)
                if (c->after.v[i] && !chart_named(s, c->after.v[i]))
                        problem_add(p, rule_item(list, i), NULL,
                                "name a chart of services.charts, or an addon that is a chart",
                                "there is no chart \"%s\"", c->after.v[i]);
}

static void repository(const struct repository *r, struct problems *p)
{
        static const char *const schemes[] = { "http://", "https://", "oci://" };
        bool known = !r->url || strchr("./~", r->url[0]);
        for (size_t i = 0; !known && i < ARRAY_SIZE(schemes); i++)
                known = has_prefix(r->url, schemes[i]) && r->url[strlen(schemes[i])];
        if (!known)
                problem_add(p, r->src, "url",
                        "write https://HOST/PATH, oci://HOST/PATH, or a path that begins with ./",
                        "\"%s\" is neither a URL of a repository nor a path", r->url);
        if (url_has_user(r->url))
                problem_add(p, r->src, "url", "set username and passwordFile",
                        "a URL in the file must not hold a user name or password");
        if (!r->username != !r->password_file)
                problem_add(p, r->src, r->username ? "username" : "passwordFile",
                        "set both, or none",
                        r->username ? "the username is set, but the password is not"
                                    : "the password is set, but the username is not");
}

static void chart(const struct services *s, size_t index, struct problems *p)
{
        const struct chart *c = &s->charts.v[index];
        services_reference(s, c, p);
        if (c->name && strlen(c->name) > 53)
                problem_add(p, c->src, "name", "use a shorter one",
                        "helm accepts names of at most 53 characters, got %zu", strlen(c->name));
        if (c->namespace && !c->create_namespace && !namespace_known(s, c->namespace))
                problem_warn(p, c->src, "namespace",
                        "add it there, unless a chart or manifest creates it",
                        "the namespace \"%s\" is not among services.namespaces", c->namespace);
        if (c->atomic && !c->wait)
                problem_add(p, c->src, "wait", "set atomic: false too, or leave wait out",
                        "without wait a failed release is not noticed, so it cannot be rolled back");
        chart_after(s, c, p);
        if (c->values_file && c->values_files.n)
                problem_add(p, c->src, "valuesFile", "put it first in valuesFiles",
                        "valuesFile and valuesFiles are both set");
        if (c->values_files.n > VALUES_FILES_MAX)
                problem_add(p, c->src, "valuesFiles", "put some of them together",
                        "a chart has at most %d files of values, got %zu", VALUES_FILES_MAX,
                        c->values_files.n);
        if (c->values && c->values->kind != TREE_MAP && c->values->kind != TREE_NULL)
                problem_add(p, c->values, NULL,
                        tree_get(c->src, "chart")
                                ? "write them as in the chart's values.yaml, or name a file with valuesFile"
                                : "write them as in the chart's values.yaml",
                        "a chart's values must be a map");
        for (size_t i = 0; i < index && index < 1000; i++) {
                const struct chart *o = &s->charts.v[i];
                if (c->name && o->name && c->namespace && o->namespace && streq(c->name, o->name) &&
                        streq(c->namespace, o->namespace))
                        problem_add(p, c->src, "name",
                                tree_get(c->src, "chart") ? "give it another name or namespace"
                                                          : "give the other another name",
                                "the chart \"%s\" in namespace %s is already listed %s", c->name,
                                c->namespace, rule_where(p, o->src, c->src));
        }
}

void rules_services(struct cluster *c, struct problems *p)
{
        const struct services *s = &c->services;
        for (size_t i = 0; i < s->repositories.n; i++)
                repository(&s->repositories.v[i], p);
        for (size_t i = 0; i < s->charts.n; i++)
                chart(s, i, p);
        circles(s, p);
        rule_duplicates(p, rule_find(c, "services.namespaces"), &s->namespaces, "namespace");
}
