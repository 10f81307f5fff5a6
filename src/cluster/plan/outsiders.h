/* Revokes the access of users that are no longer in the file: deletes their objects in the API, and
 * tells how long their certificate is still valid. */
#ifndef SLIPWAY_OUTSIDERS_H
#define SLIPWAY_OUTSIDERS_H

#include "cluster/site/site.h"

/* An object in the API that gives a removed user access. */
struct grant {
        const char *what; /* "ClusterRoleBinding ops", "token abcdef" */
        const char *path;
        char *rest; /* the binding without the user, as JSON; NULL: delete it */
};
struct outsiders {
        struct outsider *v;
        size_t n;
        struct grant **grants; /* of each user; known if the API answered */
        size_t *grant_count;
        const char *trouble; /* the API's error; NULL: none */
};

/* Secrets with this label belong to a user: tokens made with `token create --user NAME`, or others
 * with the label. */
#define USER_LABEL "slipway.dev/user"

/* arg: site; before the plan: finds removed users and their objects */
void step_outsiders(struct step *s);
void step_shut_out(struct step *s); /* arg: site; after the API's objects */
/* For the plan. Appends nothing if there are none. */
void outsiders_text(const struct site *s, struct str *out);
json_t *outsiders_json(const struct site *s);

#endif
