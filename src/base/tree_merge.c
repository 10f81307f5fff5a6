#include "base/index.h"
#include "base/tree.h"

#define LINEAR 16

/* Makes `to` the value that `from` is, where `to` stands. */
static void tree_merge_replace(struct tree *to, const struct tree *from)
{
        struct tree *next = to->next, *parent = to->parent;
        uint32_t index = to->index;
        *to = *from;
        to->next = next;
        to->parent = parent;
        to->index = index;
        if (to->kind >= TREE_LIST)
                for (struct tree *c = to->first; c; c = c->next)
                        c->parent = to;
}

/* Takes out the children that were marked by taking their key away, and counts the rest anew. */
static void sweep(struct tree *map)
{
        struct tree **link = &map->first;
        map->last = NULL;
        map->count = 0;
        while (*link) {
                struct tree *c = *link;
                if (!c->key) {
                        *link = c->next;
                        continue;
                }
                c->index = map->count++;
                map->last = c;
                link = &c->next;
        }
}

static void merge_maps(struct tree *base, struct tree *over)
{
        struct index keys CLEANUP(index_release) = { 0 };
        bool indexed = base->count > LINEAR && over->count > LINEAR;
        for (struct tree *c = base->first; indexed && c; c = c->next)
                index_put(&keys, c->key, c);
        struct tree *added = NULL, **end = &added;
        for (struct tree *c = over->first, *next; c; c = next) {
                next = c->next;
                struct tree *old =
                        indexed ? index_get(&keys, c->key) : (struct tree *)tree_get(base, c->key);
                if (c->kind == TREE_NULL) {
                        /* still a string for the searches of this loop; no key is empty */
                        if (old)
                                old->key = "";
                } else if (!old) {
                        c->parent = base;
                        c->next = NULL;
                        *end = c;
                        end = &c->next;
                } else if (old->kind == TREE_MAP && c->kind == TREE_MAP) {
                        merge_maps(old, c);
                } else {
                        tree_merge_replace(old, c);
                }
        }
        for (struct tree *c = base->first; c; c = c->next)
                if (!*c->key)
                        c->key = NULL;
        *(base->last ? &base->last->next : &base->first) = added;
        sweep(base);
}

struct tree *tree_merge(struct tree *base, struct tree *over)
{
        if (base->kind == TREE_MAP && over->kind == TREE_MAP) {
                merge_maps(base, over);
                return base;
        }
        return over->kind == TREE_NULL ? base : over;
}
