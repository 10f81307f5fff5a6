/* Two documents with a line "=" between them: merge, then walk the result. */
#include "base/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every link must hold, and every value have a path. */
static void walk(const struct tree *t)
{
        uint32_t n = 0;
        const struct tree *last = NULL;
        struct str s CLEANUP(str_release) = { 0 };
        tree_path(&s, t, "field");
        tree_each (c, t) {
                if (c->parent != t || c->index != n++ || (t->kind == TREE_MAP) != (c->key != NULL))
                        abort();
                if (t->kind == TREE_MAP && t->count < 100 && tree_get(t, c->key) != c)
                        abort();
                last = c;
                walk(c);
        }
        if (t->kind >= TREE_LIST && (t->count != n || t->last != last))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct str s CLEANUP(str_release) = { 0 }, again CLEANUP(str_release) = { 0 };
        const char *text = (const char *)data, *cut = memmem(text, size, "\n=\n", 3);
        size_t len = cut ? (size_t)(cut - text) : size;
        struct tree *base, *over, *back;
        if (tree_parse(&a, "a", text, len, &base, &err) < 0)
                return 0;
        if (cut && tree_parse(&a, "b", cut + 3, size - len - 3, &over, &err) == 0)
                base = tree_merge(base, over);
        walk(base);
        tree_json(&s, base);
        if (base->kind < TREE_LIST || s.len > 100000)
                return 0;
        if (tree_parse(&a, "json", str_text(&s), s.len, &back, &err) < 0) /* JSON is YAML */
                abort();
        tree_json(&again, back);
        if (!streq(str_text(&s), str_text(&again)))
                abort();
        return 0;
}
