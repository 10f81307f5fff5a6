/* The parser of the command line, driven by option_table. */
#ifndef SLIPWAY_OPTIONS_H
#define SLIPWAY_OPTIONS_H

#include "cmd/cmd.h"

/* Finds the verb and fills the options (strings point into argv; lists are in the arena). `*verb`
 * is NULL if none was given. */
int options_parse(int argc, char **argv, struct arena *a, struct options *out,
        const struct verb **verb, struct error *err);
/* Whether a verb accepts an option: global ones, or those in its row. */
bool option_applies(const struct option_row *row, const struct verb *v);
/* What an option does for a verb. */
const char *option_help(const struct option_row *row, const struct verb *v);

#endif
