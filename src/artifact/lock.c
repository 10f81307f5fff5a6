#include "artifact/lock.h"
#include "base/file.h"
#include "base/sha256.h"

#define LOCK_MAX ((size_t)4 << 20)

static bool entry_read(const json_t *j, struct lock_entry *out)
{
        const char *digest = json_string_value(json_object_get(j, "sha256")),
                   *source = json_string_value(json_object_get(j, "source"));
        const json_t *size = json_object_get(j, "size");
        if (!digest || !sha256_valid(digest) || !source || strlen(source) >= sizeof(out->source) ||
                !json_is_integer(size) || json_integer_value(size) < 0)
                return false;
        *out = (struct lock_entry){ .size = json_integer_value(size) };
        memcpy(out->digest, digest, sizeof(out->digest));
        memcpy(out->source, source, strlen(source));
        return true;
}

static int lock_damaged(const char *path, const char *why, struct error *err)
{
        error_set(err, EBADMSG, EXIT_STATE, "%s is damaged: %s", path, why);
        return error_hint(err,
                "take it from your version control or remove it: it is written again from what is fetched");
}

int locked_read(struct locked *l, const char *path, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        locked_release(l);
        l->items = json_object();
        if (access(path, F_OK) < 0 && errno == ENOENT)
                return 0;
        int r = file_read(path, LOCK_MAX, &text, err);
        if (r < 0)
                return r;
        json_error_t at;
        json_t *root = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, &at);
        if (!root) {
                char *why CLEANUP(free_p) = xasprintf("line %d: %s", at.line, at.text);
                return lock_damaged(path, why, err);
        }
        const char *key;
        json_t *value;
        struct lock_entry entry;
        if (json_integer_value(json_object_get(root, "version")) != 1 ||
                !json_is_object(json_object_get(root, "items")))
                r = lock_damaged(path, "it is not a list of digests of version 1", err);
        json_object_foreach(json_object_get(root, "items"), key, value)
        {
                if (r == 0 && !entry_read(value, &entry)) {
                        char *why CLEANUP(free_p) = xasprintf(
                                "the entry of %s has no good sha256, size and source", key);
                        r = lock_damaged(path, why, err);
                }
        }
        if (r == 0)
                json_object_update(l->items, json_object_get(root, "items"));
        json_decref(root);
        return r;
}

static int lock_by_name(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Charts are pinned while programs are still fetched: a writer keeps what the other has written. */
static void keep_charts(struct locked *l, const char *path)
{
        struct locked now CLEANUP(locked_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        const char *key;
        json_t *value;
        if (locked_read(&now, path, &ignored) == 0)
                json_object_foreach(now.items, key,
                        value) if (has_prefix(key, LOCK_CHART) && !json_object_get(l->items, key))
                        json_object_set(l->items, key, value);
}

int locked_write(struct locked *l, const char *path, struct error *err)
{
        if (!l->changed)
                return 0;
        keep_charts(l, path);
        size_t n = 0;
        const char **keys CLEANUP(free_p) = xcalloc(json_object_size(l->items) + 1, sizeof(*keys)),
                          *key;
        json_t *value;
        json_object_foreach(l->items, key, value) keys[n++] = key;
        qsort(keys, n, sizeof(*keys), lock_by_name);
        struct str out CLEANUP(str_release) = { 0 };
        str_add(&out, "{\n  \"version\": 1,\n  \"items\": {");
        for (size_t i = 0; i < n; i++) {
                json_t *name = json_string(keys[i]);
                char *quoted CLEANUP(free_p) = json_dumps(name, JSON_ENCODE_ANY);
                char *entry CLEANUP(free_p) =
                        json_dumps(json_object_get(l->items, keys[i]), JSON_SORT_KEYS);
                json_decref(name);
                str_addf(&out, "%s\n    %s: %s", i ? "," : "", quoted, entry);
        }
        str_add(&out, "\n  }\n}\n");
        int r = file_write(path, out.data, out.len, 0644, FILE_SYNC, NULL, err);
        l->changed = r < 0;
        return r;
}

void locked_release(struct locked *l)
{
        json_decref(l->items);
        *l = (struct locked){ 0 };
}

bool locked_get(const struct locked *l, const char *key, struct lock_entry *out)
{
        const json_t *j = json_object_get(l->items, key);
        return j && entry_read(j, out);
}

void locked_put(struct locked *l, const char *key, const struct lock_entry *entry)
{
        struct lock_entry old;
        /* the first source stays */
        if (locked_get(l, key, &old) && streq(old.digest, entry->digest) && old.size == entry->size)
                return;
        json_object_set_new(l->items, key,
                json_pack("{s:s, s:I, s:s}", "sha256", entry->digest, "size",
                        (json_int_t)entry->size, "source", entry->source));
        l->changed = true;
}

void locked_drop(struct locked *l, const char *key)
{
        l->changed |= json_object_del(l->items, key) == 0;
}
