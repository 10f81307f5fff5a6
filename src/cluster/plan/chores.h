/* Small things that up does in the API besides applying objects: seen before the plan, shown in
 * it, done after the objects are applied. */
#ifndef SLIPWAY_CHORES_H
#define SLIPWAY_CHORES_H

#include "cluster/site/site.h"

struct chore {
        const char *plan; /* "bootstrap token abcdef  remove  ...": a line of the plan */
        const char *done; /* "removed bootstrap token abcdef" */
        const char *method, *path, *body; /* method NULL: the chore before it does this one too */
        const char *type;                 /* of the body; NULL: application/json */
};
struct chores {
        struct chore *v;
        size_t n;
};

void chore_add(struct site *s, struct chore c); /* texts in the site's arena */
void step_chores_look(struct step *s);          /* arg: site; after the API was observed */
void step_chores(struct step *s);               /* arg: site; after the API's objects */
void chores_text(const struct site *s, struct str *out);
json_t *chores_json(const struct site *s);

#endif
