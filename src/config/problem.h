/* What is wrong with a file: every problem, each with its place and what to do. */
#ifndef SLIPWAY_PROBLEM_H
#define SLIPWAY_PROBLEM_H

#include "base/tree.h"

struct problem {
        const struct tree_file *file;
        uint32_t line, col;
        const char *path, *message, *hint; /* hint may be NULL */
        bool warning;                      /* shown, but not a failure */
        struct problem *next;
};

/* A text that messages do not show: a value from the environment may be a password. */
struct problem_mask {
        const char *text, *instead;
        struct problem_mask *next;
};

/* A secret in the file: source lines are shown only up to it. */
struct problem_hidden {
        const struct tree *at;
        struct problem_hidden *next;
};

#define PROBLEMS_MAX 1000 /* kept; more are only counted */

struct problems {
        struct arena *arena;
        struct problem *first, *last; /* as they were found; the writers sort */
        size_t errors, warnings;
        struct problem_mask *masks;
        struct problem_hidden *hidden;
        /* the place of problems with parts that are not written (at NULL), or NULL */
        const struct tree *root;
};

/* `at` is the value itself (field NULL), or the map that holds or lacks `field`: the place is the
 * field's value when it is written, else the map's. `field` may be dotted. `hint` may be NULL;
 * "%s"-free text. */
void problem_add(struct problems *p, const struct tree *at, const char *field, const char *hint,
        const char *fmt, ...) PRINTF(5, 6);
/* The place is the key of `at`, not its value: for keys that should not be there. */
void problem_add_key(struct problems *p, const struct tree *at, const char *hint, const char *fmt,
        ...) PRINTF(4, 5);
void problem_warn(struct problems *p, const struct tree *at, const char *field, const char *hint,
        const char *fmt, ...) PRINTF(5, 6);

/* From now on messages, hints and paths show ${NAME} instead of the value. One of fewer than four
 * characters is no secret, and would hide parts of other words. */
void problem_mask(struct problems *p, const char *name, const char *value);

/* The value is a secret: lines that are shown have stars from its place on. */
void problem_hide(struct problems *p, const struct tree *at);

/* In file order, each: "cluster.yaml:14:13: pools[0].count: message", the source line, a caret,
 * "hint: ...". At most `max` (0: all), then a count of the rest. */
void problems_text(struct problems *p, size_t max, struct str *out);
/* [{"file":..,"line":..,"column":..,"path":..,"message":..,"hint":..,"severity":"error"|"warning"}]
 */
void problems_json(struct problems *p, struct str *out);

#endif
