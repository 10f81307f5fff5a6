/* Verbs that edit the cluster's file and then do what `up` does. The file is written when the plan was approved and before the first change: so a run that is killed
 * goes on with `up`, and one that is refused has changed nothing. */
#ifndef SLIPWAY_EDITED_H
#define SLIPWAY_EDITED_H

#include "cmd/operate.h"

struct text { /* of a file that is changed */
        struct tree_file now;
        const char *before;
        size_t before_len;
};

struct edit {
        const struct options *o;
        struct arena *arena;
        const char *const *files;
        size_t file_count;
        struct text *texts; /* one a file of -f, at most */
        size_t count;
};

void edit_begin(struct edit *e, const struct options *o, struct arena *a);
/* The Cluster of the files as they are on disk, with everything in order: what is changed must have been right before. */
int edit_before(struct edit *e, struct cluster **out, struct error *err);
/* Takes the new text of a file in. */
void edit_keep(struct edit *e, const struct tree_file *file, struct str *text);
/* The Cluster of the files after the edits so far; loose: whatever is wrong with it. */
int edit_load(const struct edit *e, bool loose, struct cluster **out, struct problems *p, struct error *err);
/* When edit_load failed: its first problem as the error, and that nothing was changed. */
int edit_refused(const struct problems *p, struct error *err);
/* For site.accepted, with the edit as its arg: writes the files. */
int edit_accepted(struct site *s, struct error *err);

#endif
