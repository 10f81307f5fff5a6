/* Shared by the files of the tree: what is refused before libyaml reads it, and libyaml's
 * errors as sentences. */
#ifndef SLIPWAY_TREE_CHECK_H
#define SLIPWAY_TREE_CHECK_H

#include <yaml.h>

#include "base/tree.h"

/* Sets the place and the sentence of a failure; returns -EINVAL. `line` and `col` from 1. */
int tree_fail(struct tree *at, struct error *err, uint32_t line, uint32_t col, const char *hint,
        const char *fmt, ...) PRINTF(6, 7);
/* UTF-8 without NUL and control characters. */
int tree_check_text(const struct tree_file *file, struct tree *at, struct error *err);
/* After yaml_parser_parse failed. */
int tree_syntax(const yaml_parser_t *parser, const struct tree_file *file, struct tree *at,
        struct error *err);

#endif
