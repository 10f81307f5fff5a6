/* auth.bindings: compared with the bindings that the API has, shown in the plan, and made equal to
 * the file by chores: what is no longer in the file is removed first. */
#ifndef SLIPWAY_BINDINGS_H
#define SLIPWAY_BINDINGS_H

#include "cluster/plan/chores.h"

/* slipway made it of auth.bindings: by label and name. */
bool binding_ours(const json_t *object);
/* Chores from the bindings that were found (an array; others than ours are ignored) to those that
 * are wanted (addon_bindings). `spaces`: the Namespaces there are; NULL: not known. */
void bindings_chores(
        struct site *s, const json_t *wanted, const json_t *found, const json_t *spaces);
void step_bindings_look(struct step *s); /* arg: site; after the API was observed */

#endif
