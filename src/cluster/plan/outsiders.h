/* People who are no longer in the file are shut out: what the API knows of them goes, and how long
 * their certificate still lasts is said. */
#ifndef SLIPWAY_OUTSIDERS_H
#define SLIPWAY_OUTSIDERS_H

#include "cluster/site/site.h"

/* What an outsider has in the API. */
struct grant {
        const char *what; /* "ClusterRoleBinding ops", "token abcdef" */
        const char *path;
        char *rest; /* the binding without them, JSON; NULL: it is removed whole */
};
struct outsiders {
        struct outsider *v;
        size_t n;
        struct grant **grants; /* of each; known when the API answered */
        size_t *grant_count;
        const char *trouble; /* the API's word when it would not say; NULL: none */
};

/* Secrets with this label are a person's: tokens made with `token create --user NAME`, or others
 * that were labelled by hand. */
#define USER_LABEL "slipway.dev/user"

void step_outsiders(
        struct step *s); /* arg: site; before the plan: who is there to be shut out, and what of */
void step_shut_out(struct step *s); /* arg: site; after the API's objects */
/* For the plan. Nothing when there is nobody. */
void outsiders_text(const struct site *s, struct str *out);
json_t *outsiders_json(const struct site *s);

#endif
