/* The index of a chart repository says which digest an archive has. helm does not compare it. */
#include <ctype.h>

#include "base/tree.h"
#include "cluster/services/services.h"

static const char *last_part(const char *url, size_t *n)
{
        size_t whole = strcspn(url, "?#");
        const char *part = url;
        for (size_t i = 0; i < whole; i++)
                if (url[i] == '/')
                        part = url + i + 1;
        *n = whole - (size_t)(part - url);
        return part;
}

static bool index_has_file(const struct tree *release, const char *file)
{
        const struct tree *urls = tree_get(release, "urls");
        size_t n;
        tree_each (u, urls) {
                const char *part = u->kind == TREE_SCALAR ? last_part(u->text, &n) : NULL;
                if (part && strlen(file) == n && strncmp(part, file, n) == 0)
                        return true;
        }
        return false;
}

static bool index_take(const struct tree *release, char out[SHA256_HEX])
{
        const struct tree *digest = tree_get(release, "digest");
        const char *hex = digest && digest->kind == TREE_SCALAR ? digest->text : NULL;
        if (hex && has_prefix(hex, "sha256:"))
                hex += strlen("sha256:");
        if (!hex || strlen(hex) != SHA256_HEX - 1)
                return false;
        for (size_t i = 0; i < SHA256_HEX; i++)
                out[i] = (char)tolower((unsigned char)hex[i]);
        return true;
}

bool index_digest(const char *path, const char *chart, const char *file, char out[SHA256_HEX])
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct tree *t;
        if (tree_load(&a, path, &t, &ignored) < 0)
                return false;
        tree_each (release, tree_get(tree_get(t, "entries"), chart))
                if (index_has_file(release, file))
                        return index_take(release, out);
        return false;
}
