/* Where values stand in their file's text, in bytes: for edits that keep everything else as
 * it was written. */
#ifndef SLIPWAY_TREE_EDIT_H
#define SLIPWAY_TREE_EDIT_H

#include "base/tree.h"

struct tree_extent {
        /* end: behind the last character of the value itself, not of a comment after it */
        size_t start, end;
        bool flow; /* a list or map in brackets */
};

/* False when it is not written where it says it is: an alias or a merge key (<<) made it, or its
 * file is another's text. */
bool tree_extent(const struct tree *t, struct tree_extent *out);
/* The file's text with `del` bytes at `at` replaced. */
void text_splice(struct str *text, size_t at, size_t del, const char *with);

#endif
