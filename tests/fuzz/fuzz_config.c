/* Bytes as a cluster.yaml: parse, decode, expand, check, write the problems. Nothing is read from
 * disk. */
#include "config/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct str s CLEANUP(str_release) = { 0 };
        struct problems p = { .arena = &a };
        struct tree *t;
        if (tree_parse(&a, "f", (const char *)data, size, &t, &err) < 0)
                return 0;
        struct cluster *c = cluster_decode(&a, t, &p);
        cluster_expand(c, &p);
        cluster_index(c);
        cluster_rules(c, &p);
        problems_text(&p, 0, &s);
        problems_json(&p, &s);
        for (size_t i = 0; i < s.len; i++) /* whatever the file holds, a terminal gets only text */
                if ((unsigned char)s.data[i] < ' ' && s.data[i] != '\n')
                        abort();
        return 0;
}
