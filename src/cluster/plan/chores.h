/* Small changes that `up` makes in the API besides applying objects. They are found before the
 * plan, shown in it, and made after the objects are applied. */
#ifndef SLIPWAY_CHORES_H
#define SLIPWAY_CHORES_H

#include "cluster/site/site.h"

struct chore {
        const char *plan; /* a line of the plan: "bootstrap token abcdef remove ..." */
        const char *done; /* "removed bootstrap token abcdef" */
        /* method NULL: done by the request of the previous chore */
        const char *method, *path, *body;
        const char *type; /* content type; NULL: application/json */
};
struct chores {
        struct chore *v;
        size_t n;
};

void chore_add(struct site *s, struct chore c); /* its texts are in the site's arena */
void step_chores_look(struct step *s);          /* arg: site; after the API was observed */
void step_chores(struct step *s);               /* arg: site; after the API's objects */
void chores_text(const struct site *s, struct str *out);
json_t *chores_json(const struct site *s);

#endif
