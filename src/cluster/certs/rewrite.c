/* Encrypted objects are read and written back unchanged: the API server encrypts them with
 * the first key. */
#include "cluster/certs/certs.h"

#define PAGE "limit=200"

/* 409 and 404 are fine: somebody else has just written it, with the new key, or it was deleted. */
static int put(struct site *s, const char *path, const json_t *object, struct error *err)
{
        struct error why CLEANUP(error_release) = { 0 };
        char *body CLEANUP(free_p) = json_dumps(object, 0);
        int status = 0, r = kube_do(s->kube, "PUT", path, body, &status, NULL, &why);
        wipe(body, strlen(body));
        if (r == 0 || status == 409 || status == 404)
                return 0;
        error_set(err, EIO, EXIT_STEP, "%s cannot be written again: %s", path, why.message);
        return error_hint(err, "run again: it continues from here");
}

/* "secrets" → /api/v1, "deployments.apps" → /apis/apps/v1 */
static int group_path(struct site *s, const char *resource, char **base, struct error *err)
{
        const char *dot = strchr(resource, '.');
        json_t *group = NULL;
        if (!dot) {
                *base = xstrdup("/api/v1");
                return 0;
        }
        char *path CLEANUP(free_p) = xasprintf("/apis/%s", dot + 1);
        int r = kube_get(s->kube, path, &group, err);
        const char *version = json_string_value(
                json_object_get(json_object_get(group, "preferredVersion"), "groupVersion"));
        if (r == 0 && !version)
                r = error_set(err, ENOENT, EXIT_STEP, "the API does not know %s", resource);
        if (r == 0)
                *base = xasprintf("/apis/%s", version);
        json_decref(group);
        return r;
}

static int write_page(struct site *s, const char *base, const char *plural, const json_t *list,
        size_t *count, struct error *err)
{
        const char *kind = json_string_value(json_object_get(list, "kind")),
                   *version = json_string_value(json_object_get(list, "apiVersion"));
        json_t *o;
        size_t i;
        json_array_foreach(json_object_get(list, "items"), i, o)
        {
                const json_t *meta = json_object_get(o, "metadata");
                const char *ns = json_string_value(json_object_get(meta, "namespace")),
                           *name = json_string_value(json_object_get(meta, "name"));
                char *path CLEANUP(free_p) =
                        ns ? xasprintf("%s/namespaces/%s/%s/%s", base, ns, plural, name)
                           : xasprintf("%s/%s/%s", base, plural, name);
                /* items of a list have no apiVersion */
                json_object_set_new(o, "apiVersion", json_string(version));
                json_object_set_new(o, "kind", json_stringn(kind, strlen(kind) - 4));
                int r = put(s, path, o, err);
                if (r < 0)
                        return r;
                ++*count;
        }
        return 0;
}

static int rewrite(struct site *s, const char *resource, size_t *count, struct error *err)
{
        char *base CLEANUP(free_p) = NULL,
                   *plural CLEANUP(free_p) = xstrndup(resource, strcspn(resource, "."));
        char *next CLEANUP(free_p) = xstrdup("");
        int r = group_path(s, resource, &base, err);
        while (r == 0) {
                json_t *list = NULL;
                char *path CLEANUP(free_p) = xasprintf(
                        "%s/%s?" PAGE "%s%s", base, plural, *next ? "&continue=" : "", next);
                r = kube_get(s->kube, path, &list, err);
                if (r == 0)
                        r = write_page(s, base, plural, list, count, err);
                const char *more = json_string_value(
                        json_object_get(json_object_get(list, "metadata"), "continue"));
                free(next);
                next = xstrdup(more ? more : "");
                json_decref(list);
                if (!*next)
                        break;
        }
        return r;
}

/* "*.*" does not name resources: what it covers is encrypted when it is written the next time. */
int certs_rewrite(struct site *s, size_t *count, struct error *err)
{
        const struct strings *all = &s->cluster->encryption.resources;
        int r = site_kube(s, err);
        *count = 0;
        for (size_t i = 0; r == 0 && i < all->n; i++)
                r = strchr(all->v[i], '*') ? 0 : rewrite(s, all->v[i], count, err);
        return r;
}
