/* A YAML document as a tree in which every value has its position. Reads libyaml's events;
 * expands aliases and merge keys (<<) within a limit; refuses duplicate keys, deep nesting
 * and alias bombs. */
#ifndef SLIPWAY_TREE_H
#define SLIPWAY_TREE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#define TREE_MAX_FILE    ((size_t)32 << 20) /* bytes of one file */
#define TREE_MAX_DEPTH   64
#define TREE_MAX_NODES   2000000 /* values after aliases are expanded: some 200 MB */
#define TREE_MAX_ALIASED 500000  /* of them, values that aliases made */

enum tree_kind { TREE_NULL, TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree_file {
        const char *name; /* as the user gave it */
        const char *text; /* whole, NUL-terminated: carets show its lines */
        size_t len;
        unsigned order; /* among the files of one run: problems are listed in it */
};

struct tree {
        enum tree_kind kind;
        bool plain;         /* a scalar without quotes: `true`, 12 and null mean something */
        uint32_t line, col; /* from 1; col counts characters */
        const struct tree_file *file;
        struct tree *parent, *next; /* next sibling */
        const char *key;            /* in a map */
        uint32_t key_line, key_col;
        uint32_t index; /* in a list */
        uint32_t count; /* children */
        union {
                const char *text;   /* scalar (TREE_NULL too: "", "~" or "null") */
                struct tree *first; /* list, map */
        };
        struct tree *last;
        /* a scalar with values from the environment: its text in the file; NULL: the
         * same as `text` */
        const char *written;
};

/* What a plain scalar is to YAML 1.1, which kubectl speaks. A quoted one is always TREE_STRING. */
enum tree_type { TREE_STRING, TREE_BOOL, TREE_INT, TREE_FLOAT, TREE_NIL };
enum tree_type tree_type(const struct tree *t);
/* A plain scalar of this text is null. */
bool tree_null_word(const char *s);
/* The value of a TREE_INT; false when it is none, or does not fit. */
bool tree_int(const struct tree *t, int64_t *out);

/* Parses one document. Errors (EXIT_CONFIG) carry "file:line:col: ..." in the message. An empty
 * file is an error; so is a second document. */
int tree_parse(struct arena *a, const char *name, const char *text, size_t len, struct tree **out,
        struct error *err);
int tree_load(struct arena *a, const char *path, struct tree **out, struct error *err);
/* The same in two steps, for callers that show the place themselves: on failure of the second, err
 * is the bare sentence and `at` (a value with only a place) says where. */
int tree_file_read(struct arena *a, const char *path, struct tree_file **out, struct error *err);
int tree_parse_file(struct arena *a, const struct tree_file *file, struct tree **out,
        struct tree *at, struct error *err);

/* Lays `over` onto `base`: maps merge key by key, everything else replaces; a null in `over`
 * removes the key. Returns the result (base, changed); `over` is used up. */
struct tree *tree_merge(struct tree *base, struct tree *over);

/* NULL when not there or not a map. */
const struct tree *tree_get(const struct tree *map, const char *key);
#define tree_each(c, t) \
        for (const struct tree *c = (t) && (t)->kind >= TREE_LIST ? (t)->first : NULL; c; \
                c = c->next)

/* "pools[0].labels.zone" (a leading "spec." is left off); `field` may name a child that
 * is not written. */
void tree_path(struct str *s, const struct tree *t, const char *field);
/* The value as JSON text, YAML 1.1 types kept: for free-form values (a chart's values). */
void tree_json(struct str *s, const struct tree *t);

#endif
