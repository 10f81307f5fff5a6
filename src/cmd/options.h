/* The command line's parser, driven by option_table. */
#ifndef SLIPWAY_OPTIONS_H
#define SLIPWAY_OPTIONS_H

#include "cmd/cmd.h"

/* Finds the verb and fills the options (strings point into argv; lists live in the arena). `*verb`
 * is NULL when none was given. */
int options_parse(int argc, char **argv, struct arena *a, struct options *out,
        const struct verb **verb, struct error *err);
/* Whether a verb takes an option: global ones, or those its row names. */
bool option_applies(const struct option_row *row, const struct verb *v);

#endif
