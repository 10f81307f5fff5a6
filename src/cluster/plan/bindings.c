#include "cluster/plan/bindings.h"
#include "addon/addon.h"
#include "kube/kinds.h"
#include "kube/wait.h"

#define ASK_MS     15000
#define RBAC_V1    "rbac.authorization.k8s.io/v1"
#define SELECTOR   "?labelSelector=slipway.dev%2Fauth%3D" BINDINGS_VALUE
#define APPLY_TYPE "application/apply-patch+yaml"
#define NAME_SHOWN 253

static const char *binding_text(const json_t *object, const char *key)
{
        const char *t = json_string_value(json_object_get(object, key));
        return t ? t : "";
}

bool binding_ours(const json_t *object)
{
        const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
        return streq(binding_text(labels, BINDINGS_LABEL), BINDINGS_VALUE) &&
               has_prefix(object_name(object), BINDINGS_PREFIX);
}

static const json_t *binding_find(const json_t *all, const json_t *like)
{
        const json_t *object;
        size_t i;
        json_array_foreach(all, i, object)
        {
                if (binding_ours(object) && streq(object_name(object), object_name(like)) &&
                        streq(object_namespace(object), object_namespace(like)))
                        return object;
        }
        return NULL;
}

static bool subject_among(const json_t *subjects, const json_t *wanted)
{
        const json_t *one;
        size_t i;
        json_array_foreach(subjects, i, one)
        {
                if (streq(binding_text(one, "kind"), binding_text(wanted, "kind")) &&
                        streq(binding_text(one, "name"), binding_text(wanted, "name")) &&
                        streq(binding_text(one, "namespace"), binding_text(wanted, "namespace")))
                        return true;
        }
        return false;
}

/* The role of a binding is immutable, so the binding is replaced. */
static bool refers_elsewhere(const json_t *object)
{
        const json_t *ref = json_object_get(object, "roleRef");
        return !streq(binding_text(ref, "kind"), "ClusterRole") ||
               !streq(binding_text(ref, "name"), object_name(object) + strlen(BINDINGS_PREFIX));
}

/* ---- requests ---- */

static const char *binding_path(struct site *s, const char *api, const char *kind,
        const char *space, const char *name, const char *query)
{
        struct str path CLEANUP(str_release) = { 0 };
        kind_path(&path, api, kind_built_in(api, kind), space, name);
        str_add(&path, query);
        return arena_strdup(s->arena, str_text(&path));
}

static const char *path_of_binding(struct site *s, const json_t *object, const char *query)
{
        const char *space = object_namespace(object);
        return binding_path(s, RBAC_V1, *space ? "RoleBinding" : "ClusterRoleBinding", space,
                object_name(object), query);
}

static struct chore chore_apply(struct site *s, const char *path, const json_t *object)
{
        char *body CLEANUP(free_p) = json_dumps(object, 0);
        return (struct chore){ .method = "PATCH",
                .path = path,
                .type = APPLY_TYPE,
                .body = arena_strdup(s->arena, body ? body : "") };
}

/* ---- lines of the plan ---- */

static const char *subject_shown(struct site *s, const json_t *subject)
{
        const char *kind = binding_text(subject, "kind");
        return arena_printf(s->arena, "%.*s %.*s", NAME_SHOWN,
                streq(kind, "Group")  ? "group"
                : streq(kind, "User") ? "user"
                                      : kind,
                NAME_SHOWN, binding_text(subject, "name"));
}

static const char *rights_shown(struct site *s, const json_t *object)
{
        const char *space = object_namespace(object);
        return arena_printf(s->arena, "%s %s%s", object_name(object) + strlen(BINDINGS_PREFIX),
                *space ? "in namespace " : "in all namespaces", space);
}

struct change_words {
        const char *plan, *done, *why;
};
static const struct change_words bind_words = { "bind", "is bound to", "" },
                                 unbind_words = { "unbind", "is no longer bound to",
                                         ", no longer in auth.bindings" };

/* A line for each subject of `in` that is not in `out`. The first line gets the request. */
static void subject_lines(struct site *s, const json_t *object, const json_t *in, const json_t *out,
        const struct change_words *w, struct chore *request)
{
        const json_t *subject;
        size_t i;
        json_array_foreach(in, i, subject)
        {
                if (subject_among(out, subject))
                        continue;
                const char *who = subject_shown(s, subject), *what = rights_shown(s, object);
                request->plan = arena_printf(s->arena, "%s  %s  %s%s", who, w->plan, what, w->why);
                request->done = arena_printf(s->arena, "%s %s %s", who, w->done, what);
                chore_add(s, *request);
                *request = (struct chore){ 0 };
        }
}

static void remove_object(struct site *s, const json_t *object, const char *why)
{
        struct chore request = { .method = "DELETE", .path = path_of_binding(s, object, "") };
        if (!why)
                subject_lines(s, object, json_object_get(object, "subjects"), NULL, &unbind_words,
                        &request);
        if (!request.method) /* the request was added to a line */
                return;
        const char *what = arena_printf(s->arena, "binding %s", rights_shown(s, object));
        request.plan =
                arena_printf(s->arena, "%s  remove  %s", what, why ? why : "it binds nobody");
        request.done = arena_printf(s->arena, "removed %s", what);
        chore_add(s, request);
}

/* ---- the comparison ---- */

static bool space_exists(const json_t *spaces, const char *name)
{
        static const char *const always[] = { "default", "kube-system", "kube-public",
                "kube-node-lease" };
        const json_t *space;
        size_t i;
        for (i = 0; i < ARRAY_SIZE(always); i++)
                if (streq(name, always[i]))
                        return true;
        json_array_foreach(spaces, i, space) if (streq(object_name(space), name)) return true;
        return false;
}

static bool space_planned(const struct site *s, const char *path)
{
        for (size_t i = 0; s->found.chores && i < s->found.chores->n; i++)
                if (s->found.chores->v[i].path && streq(s->found.chores->v[i].path, path))
                        return true;
        return false;
}

static void add_space(struct site *s, const json_t *spaces, const char *name)
{
        if (!*name || space_exists(spaces, name))
                return;
        const char *path =
                binding_path(s, "v1", "Namespace", NULL, name, "?fieldManager=slipway&force=true");
        if (space_planned(s, path))
                return;
        json_t *space = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace",
                "metadata", "name", name);
        struct chore request = chore_apply(s, path, space);
        json_decref(space);
        request.plan = arena_printf(
                s->arena, "namespace %s  create  auth.bindings has a binding in it", name);
        request.done = arena_printf(s->arena, "created namespace %s", name);
        chore_add(s, request);
}

static void compare_one(struct site *s, const json_t *wanted, const json_t *found)
{
        const json_t *have = json_object_get(found, "subjects"),
                     *want = json_object_get(wanted, "subjects");
        struct chore request = chore_apply(
                s, path_of_binding(s, wanted, "?fieldManager=slipway&force=true"), wanted);
        subject_lines(s, wanted, have, want, &unbind_words, &request);
        subject_lines(s, wanted, want, have, &bind_words, &request);
}

void bindings_chores(
        struct site *s, const json_t *wanted, const json_t *found, const json_t *spaces)
{
        const json_t *object;
        size_t i;
        json_array_foreach(found, i, object)
        {
                const json_t *want = binding_ours(object) ? binding_find(wanted, object) : NULL;
                if (binding_ours(object) && !want)
                        remove_object(s, object, NULL);
                else if (want && refers_elsewhere(object))
                        remove_object(s, object, "it refers to another role, and is created again");
        }
        json_array_foreach(wanted, i, object) add_space(s, spaces, object_namespace(object));
        json_array_foreach(wanted, i, object)
        {
                const json_t *have = binding_find(found, object);
                compare_one(s, object, have && !refers_elsewhere(have) ? have : NULL);
        }
}

/* ---- reading the API ---- */

static const char *const binding_lists[] = {
        "/apis/" RBAC_V1 "/clusterrolebindings" SELECTOR,
        "/apis/" RBAC_V1 "/rolebindings" SELECTOR,
        /* only for bindings in namespaces */
        "/api/v1/namespaces",
};
enum { LIST_SPACES = 2, LIST_COUNT };

struct bindings_look {
        struct step *step;
        size_t next;
};

static void bindings_end(struct bindings_look *l)
{
        struct site *s = l->step->arg;
        json_t *wanted = addon_bindings(s->cluster);
        bindings_chores(s, wanted, s->found.bindings, s->found.spaces);
        json_decref(wanted);
        step_done(l->step, NULL);
}

static bool bindings_in_spaces(const struct bindings *all)
{
        for (size_t i = 0; i < all->n; i++)
                if (all->v[i].space)
                        return true;
        return false;
}

static void bindings_ask(struct bindings_look *l);

/* If the API does not answer, nothing is removed and all bindings are applied, which changes
 * nothing where they exist. */
static void on_bindings_list(const struct kube_reply *reply, void *arg)
{
        struct bindings_look *l = arg;
        struct found *found = &((struct site *)l->step->arg)->found;
        json_t *items = json_object_get(reply->body, "items");
        if (reply->error) {
                step_changed(l->step,
                        "the bindings in the API cannot be read: %s; those that are no longer in auth.bindings stay until the next run",
                        reply->error);
                bindings_end(l);
                return;
        }
        if (json_is_array(items))
                json_array_extend(l->next == LIST_SPACES ? found->spaces : found->bindings, items);
        l->next++;
        bindings_ask(l);
}

static void bindings_ask(struct bindings_look *l)
{
        struct site *s = l->step->arg;
        if (l->next == LIST_COUNT ||
                (l->next == LIST_SPACES && !bindings_in_spaces(&s->cluster->auth.bindings)))
                bindings_end(l);
        else
                kube_request(s->kube, "GET", binding_lists[l->next], NULL, NULL, ASK_MS,
                        on_bindings_list, l);
}

void step_bindings_look(struct step *step)
{
        struct site *s = step->arg;
        struct bindings_look *l = arena_new(s->arena, struct bindings_look);
        *l = (struct bindings_look){ .step = step };
        json_decref(s->found.bindings);
        json_decref(s->found.spaces);
        s->found.bindings = json_array();
        s->found.spaces = json_array();
        if (s->found.api_up && s->kube)
                bindings_ask(l);
        else
                bindings_end(l);
}
