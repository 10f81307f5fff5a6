/* The cluster's files with changes that are not written yet. A verb that edits them makes its plan
 * from the new text, and writes it when the plan is approved, before the first change. So `up`
 * continues a killed run, and a refused run has changed nothing. */
#ifndef SLIPWAY_EDITED_H
#define SLIPWAY_EDITED_H

#include "config/cluster.h"
#include "config/problem.h"

struct edit_text { /* of a file that is changed */
        struct tree_file now;
        const char *before;
        size_t before_len;
};

struct edit {
        struct arena *arena;
        const char *const *files;
        size_t file_count;
        struct edit_text *texts; /* at most one per file */
        size_t count;
};

/* Refuses standard input ("-"), which cannot be written. */
int edit_begin(
        struct edit *e, struct arena *a, const char *const *files, size_t n, struct error *err);
/* Adds the new text of a file. */
void edit_keep(struct edit *e, const struct tree_file *file, struct str *text);
/* The Cluster of the files after the edits so far; loose: even if it is invalid. */
int edit_load(const struct edit *e, bool loose, struct cluster **out, struct problems *p,
        struct error *err);
/* After edit_load failed: sets its first problem as the error, and says that
 * nothing was changed. */
int edit_refused(const struct problems *p, struct error *err);
/* Writes the files, after the plan was approved. */
int edit_write(const struct edit *e, struct error *err);

#endif
