/* auth.bindings: compared with the bindings in the API, shown in the plan and applied as chores.
 * Bindings that are no longer in the file are removed first. */
#ifndef SLIPWAY_BINDINGS_H
#define SLIPWAY_BINDINGS_H

#include "cluster/plan/chores.h"

/* slipway made this binding from auth.bindings, according to its label and name. */
bool binding_ours(const json_t *object);
/* Adds the chores that turn the bindings found (an array; those of others are ignored) into the
 * wanted ones (addon_bindings). `spaces`: the existing Namespaces; NULL: unknown. */
void bindings_chores(
        struct site *s, const json_t *wanted, const json_t *found, const json_t *spaces);
void step_bindings_look(struct step *s); /* arg: site; after the API was observed */

#endif
