#include <fnmatch.h>

#include "base/quote.h"
#include "node/cis.h"
#include "node/context.h"
#include "node/cis_table.h"

/* ---- files ---- */

static void cis_add(struct cis_files *f, struct arena *a, const struct cis_file *file)
{
        if (f->n % 64 == 0) {
                struct cis_file *v = arena_array(a, struct cis_file, f->n + 64);
                if (f->n)
                        memcpy(v, f->v, f->n * sizeof(*v));
                f->v = v;
        }
        f->v[f->n++] = *file;
}

struct cis_files cis_from_spec(struct arena *a, const struct nodespec *s)
{
        struct cis_files f = { 0 };
        for (size_t i = 0; i < s->count; i++) {
                const struct spec_entry *e = &s->entries[i];
                if (e->kind == SPEC_FILE || e->kind == SPEC_DIR)
                        cis_add(&f, a,
                                &(struct cis_file){ e->path, e->owner ? e->owner : "root:root",
                                        e->mode, e->content });
        }
        return f;
}

static bool cis_reads(enum cis_test test) { return test > IS_OWNER && test != MANUAL; }

const char *cis_script(struct arena *a, const struct cluster *c)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, "d=");
        quote_shell(&s, c->etcd.data_dir);
        str_add(&s, "; for f in \"$d\"");
        for (size_t i = 0; i < ARRAY_SIZE(controls); i++)
                if (*controls[i].path && !strstr(str_text(&s), controls[i].path))
                        str_addf(&s, " %s", controls[i].path);
        str_add(&s,
                " " ETCD_POD
                " /etc/kubernetes/pki/etcd/* /etc/systemd/system/kubelet.service.d/*; do [ -f \"$f\" ] || [ \"$f\" = \"$d\" ] || continue; "
                "stat -c '=%a %U:%G %n' \"$f\"; case $f in");
        const char *between = " ";
        size_t from = s.len;
        for (size_t i = 0; i < ARRAY_SIZE(controls); i++)
                if (cis_reads(controls[i].test) && !strstr(str_text(&s) + from, controls[i].path)) {
                        str_addf(&s, "%s%s", between, controls[i].path);
                        between = "|";
                }
        str_add(&s,
                "|" ETCD_POD ") sed 's/\\(secret: *\\).*/\\1-/;s/^/ /' \"$f\" ;; esac; done; true");
        return arena_strdup(a, str_text(&s));
}

/* "=600 root:root /path", followed by the text with a blank before each line. */
struct cis_files cis_from_output(struct arena *a, const char *out)
{
        struct cis_files f = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        for (const char *p = out; *p;) {
                size_t n = strcspn(p, "\n");
                if (*p == ' ')
                        str_addf(&text, "%.*s\n", (int)n - 1, p + 1);
                const char *next = p + n + (p[n] == '\n');
                if (*p == '=') {
                        char *line = arena_strndup(a, p + 1, n - 1), *owner = strchr(line, ' '),
                             *path = owner ? strchr(owner + 1, ' ') : NULL;
                        if (path) {
                                *owner = *path = 0;
                                cis_add(&f, a,
                                        &(struct cis_file){ path + 1, owner + 1,
                                                (unsigned)strtoul(line, NULL, 8), NULL });
                        }
                }
                if (f.n && text.len && *next != ' ') {
                        f.v[f.n - 1].text = arena_strdup(a, str_text(&text));
                        str_truncate(&text, 0);
                }
                p = next;
        }
        return f;
}

/* ---- one control ---- */

struct look {
        struct arena *arena;
        const struct cluster *cluster;
        const struct node *node;
        const struct cis_files *files;
        struct str why;
};

static const struct cis_file *cis_find(const struct look *l, const char *path)
{
        for (size_t i = 0; i < l->files->n; i++)
                if (streq(l->files->v[i].path, path))
                        return &l->files->v[i];
        return NULL;
}

static json_t *cis_yaml(struct look *l, const char *path)
{
        const struct cis_file *f = cis_find(l, path);
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t = NULL;
        if (!f || !f->text || tree_parse(l->arena, path, f->text, strlen(f->text), &t, &err) < 0)
                return NULL;
        return json_from_tree(t);
}

/* Checks modes and owners of all matching files; -1: none matches. */
static int cis_meta(struct look *l, const struct control *c)
{
        const char *pattern = *c->path ? c->path : l->cluster->etcd.data_dir;
        int found = -1;
        if (!*c->path && !(l->node->pool->roles & ROLE_ETCD)) /* not etcd's directory there */
                return -1;
        for (size_t i = 0; i < l->files->n; i++) {
                const struct cis_file *f = &l->files->v[i];
                if (fnmatch(pattern, f->path, 0))
                        continue;
                bool good = c->test == IS_MODE ? !(f->mode & 0777 & ~strtoul(c->value, NULL, 8))
                                               : streq(f->owner, c->value);
                if (!good && found != 0 && c->test == IS_MODE)
                        str_addf(&l->why, "%s is %03o", f->path, f->mode & 0777);
                else if (!good && found != 0)
                        str_addf(&l->why, "%s belongs to %s", f->path, f->owner);
                found = good && found != 0 ? 1 : 0;
        }
        return found;
}

/* The value of a flag in the command of the static pod's container; NULL: not set. */
static const char *cis_flag(struct look *l, const json_t *pod, const char *name)
{
        const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers"),
                     *word;
        char *want = arena_printf(l->arena, "--%s=", name);
        size_t i;
        json_array_foreach(json_object_get(json_array_get(containers, 0), "command"), i, word)
        {
                const char *t = json_string_value(word);
                if (t && has_prefix(t, want))
                        return arena_strdup(l->arena, t + strlen(want));
        }
        return NULL;
}

/* A field as text, by its path "a.0.b" of keys and list indices; NULL: not set. */
static const char *cis_field(struct look *l, const json_t *v, const char *path)
{
        while (v && *path) {
                size_t n = strcspn(path, ".");
                char *key = arena_strndup(l->arena, path, n);
                v = json_is_array(v) ? json_array_get(v, strtoul(key, NULL, 10))
                                     : json_object_get(v, key);
                path += n + (path[n] == '.');
        }
        if (!v || json_is_string(v))
                return v ? arena_strdup(l->arena, json_string_value(v)) : NULL;
        char *text CLEANUP(free_p) = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        return arena_strdup(l->arena, text ? text : "");
}

static bool cis_list_has(const char *list, const char *word)
{
        size_t n = strlen(word);
        for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
                if (strncmp(p, word, n) == 0 && (!p[n] || p[n] == ','))
                        return true;
        return false;
}

static bool cis_good(enum cis_test test, const char *found, const char *value)
{
        switch (test) {
        case FLAG_IS:
        case FIELD_IS:
        case ETCD_IS:
                return found && streq(found, value);
        case FLAG_HAS:
                return found && cis_list_has(found, value);
        case FLAG_LACKS:
                return !found || !cis_list_has(found, value);
        case FLAG_UNSET:
                return !found;
        case FLAG_MIN:
                return found && strtol(found, NULL, 10) >= strtol(value, NULL, 10);
        case FIELD_NOT:
        case ETCD_NOT:
                return !found || !streq(found, value);
        default:
                return found && *found;
        }
}

/* 1: passes, 0: fails, -1: the file does not exist. */
static int cis_value(struct look *l, const struct control *c)
{
        bool etcd = c->test >= ETCD_IS && c->test <= ETCD_SET, pod = etcd && cis_find(l, ETCD_POD);
        const char *name = c->what;
        if (etcd)
                name = pod ? arena_strndup(l->arena, name, strcspn(name, "|"))
                           : strchr(name, '|') + 1;
        const char *path = pod ? ETCD_POD : c->path;
        if (!cis_find(l, path) && !(cis_find(l, APISERVER) && streq(path, AUTHN)))
                return -1;
        bool flag = pod || (c->test >= FLAG_IS && c->test <= FLAG_MIN);
        json_t *doc = cis_yaml(l, path);
        const char *found = flag ? cis_flag(l, doc, name) : cis_field(l, doc, name);
        bool good = cis_good(c->test, found, c->value);
        const char *wanted =
                c->value && (c->test == FLAG_IS || c->test == FLAG_HAS || c->test == FLAG_MIN ||
                                    c->test == FIELD_IS || c->test == ETCD_IS)
                        ? c->value
                        : NULL;
        if (!good)
                str_addf(&l->why, "%s%s is %s%s%s%s", flag ? "--" : "", name,
                        found ? found : "not set", wanted ? ", wanted " : "", wanted ? wanted : "",
                        cis_find(l, path) ? "" : ": " AUTHN " does not exist");
        json_decref(doc);
        return good;
}

/* ---- the report ---- */

json_t *cis_begin(const struct cluster *c)
{
        json_t *list = json_array();
        for (size_t i = 0; i < ARRAY_SIZE(controls); i++)
                json_array_append_new(list,
                        json_pack("{s:s, s:s, s:s, s:s, s:[]}", "id", controls[i].id, "title",
                                controls[i].title, "result", "", "why",
                                controls[i].test == MANUAL ? controls[i].value : "", "nodes"));
        return json_pack("{s:s, s:s, s:o}", "benchmark", CIS_BENCHMARK, "hardening",
                c->hardening == HARDENING_CIS ? "cis" : "kubeadm", "controls", list);
}

void cis_node(json_t *report, const struct cluster *c, const struct node *n,
        const struct cis_files *files)
{
        struct arena arena CLEANUP(arena_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(controls); i++) {
                struct look l = { &arena, c, n, files, { 0 } };
                const struct control *k = &controls[i];
                json_t *o = json_array_get(json_object_get(report, "controls"), i);
                bool failed = streq(json_string_value(json_object_get(o, "result")), "fail");
                int good = k->test == MANUAL     ? (cis_find(&l, k->path) ? 1 : -1)
                           : k->test <= IS_OWNER ? cis_meta(&l, k)
                                                 : cis_value(&l, k);
                if (good >= 0 && !failed)
                        json_object_set_new(o, "result",
                                json_string(!good               ? "fail"
                                            : k->test == MANUAL ? "manual"
                                                                : "pass"));
                if (good == 0 && !failed)
                        json_object_set_new(o, "why", json_string(str_text(&l.why)));
                if (good == 0)
                        json_array_append_new(json_object_get(o, "nodes"), json_string(n->name));
                str_release(&l.why);
        }
}

void cis_end(json_t *report)
{
        static const char *const results[] = { "pass", "fail", "manual" };
        json_t *list = json_object_get(report, "controls");
        size_t count[ARRAY_SIZE(results)] = { 0 };
        for (size_t i = json_array_size(list); i-- > 0;) {
                const char *result =
                        json_string_value(json_object_get(json_array_get(list, i), "result"));
                for (size_t k = 0; k < ARRAY_SIZE(results); k++)
                        count[k] += streq(result, results[k]);
                if (!*result)
                        json_array_remove(list, i);
        }
        for (size_t k = 0; k < ARRAY_SIZE(results); k++)
                json_object_set_new(report, results[k], json_integer((json_int_t)count[k]));
}
