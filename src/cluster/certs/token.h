/* Bootstrap tokens, which are Secrets of a known form in the API. All of these functions block. */
#ifndef SLIPWAY_CERTS_TOKEN_H
#define SLIPWAY_CERTS_TOKEN_H

#include "cluster/site/site.h"

#define TOKEN_GROUP "system:bootstrappers:kubeadm:default-node-token"

struct token_wish {
        const char *ttl;    /* "24h"; NULL: a day, or CONTROL_PLANE_TTL */
        const char *user;   /* of auth.users: deleted together with the user; NULL: none */
        const char *file;   /* contains the token, "-": standard input; NULL: random */
        bool control_plane; /* the machine gets what a control plane needs: handover.h */
};
/* Short, because the keys of the cluster's CAs are in the API meanwhile. */
#define CONTROL_PLANE_TTL "2h"

/* {"token", "expires", "endpoint", "caCertHash", "join": the command for the machine}, and
 * "certificateKey" for a control plane. A given token that exists is extended; with another secret
 * it is refused. */
int token_create(struct site *s, const struct token_wish *wish, json_t **out, struct error *err);
/* [{"id", "expires" ("": never), "user" (or null), "description"}] */
int token_list(struct site *s, json_t **out, struct error *err);
/* By its id or by the whole token. */
int token_delete(struct site *s, const char *id, struct error *err);

#endif
