/* The cross-field rules, one file a subject. Each looks at one part of the Cluster and reports all
 * that is wrong with it; none may assume that decoding went well: a field with a problem of its own
 * is zero or NULL here, and is not complained about twice. */
#ifndef SLIPWAY_RULES_H
#define SLIPWAY_RULES_H

#include "config/schema.h"

/* Nobody runs a larger one, and a slip of the finger stays cheap. */
#define CLUSTER_MAX_NODES 20000

/* `path` is dotted, from the spec ("network.pods"); the place is the deepest part of it
 * that is written. */
void rule_error(struct problems *p, const struct cluster *c, const char *path, const char *hint,
        const char *fmt, ...) PRINTF(5, 6);
void rule_warn(struct problems *p, const struct cluster *c, const char *path, const char *hint,
        const char *fmt, ...) PRINTF(5, 6);
/* Where `path` is written, or NULL. */
const struct tree *rule_find(const struct cluster *c, const char *path);
/* The place of the i-th element; a list of one may be written as just its element. `list` NULL
 * gives NULL. */
const struct tree *rule_item(const struct tree *list, size_t i);
/* "on line 14", or "in defaults.yaml:14" when that is another file than `from`'s. */
const char *rule_where(struct problems *p, const struct tree *at, const struct tree *from);
/* A problem was found already at this path or below it ("pools[0].roles"). */
bool rule_spoiled(const struct problems *p, const char *path);
/* The same string twice in a list: `what` is "name". */
void rule_duplicates(
        struct problems *p, const struct tree *list, const struct strings *s, const char *what);

/* A port of the nodes that another program has. */
void rule_port(const struct cluster *c, const char *path, long number, const char *hint,
        struct problems *p);

void rules_version(struct cluster *c, struct problems *p);
void rules_pools(struct cluster *c, struct problems *p);
void rules_readiness(struct cluster *c, struct problems *p);
void rules_nodes(struct cluster *c, struct problems *p);
void rules_disks(struct cluster *c, struct problems *p);
void rules_kubelet(struct cluster *c, struct problems *p);
void rules_provider(struct cluster *c, struct problems *p);
void rules_terraform(struct cluster *c, struct problems *p); /* of rules_provider */
/* Whether the pool's machines read the user-data's format. */
void rule_user_data(const struct pool *pool, enum user_data format, struct problems *p);
void rules_network(struct cluster *c, struct problems *p);
void rules_families(struct cluster *c, struct problems *p);
void rules_api(struct cluster *c, struct problems *p);
void rules_auth(struct cluster *c, struct problems *p);
void rules_dex(struct cluster *c, struct problems *p); /* before auth.oidc is judged */
void rules_bindings(struct cluster *c, struct problems *p);
void rules_admission(struct cluster *c, struct problems *p);
void rules_flags(struct cluster *c, struct problems *p);
void rules_etcd(struct cluster *c, struct problems *p);
void rules_paths(struct cluster *c, struct problems *p);
void rules_os(struct cluster *c, struct problems *p);
void rules_extras(struct cluster *c, struct problems *p);
void rules_idle(struct cluster *c, struct problems *p);
void rules_sources(struct cluster *c, struct problems *p);
void rules_addons(struct cluster *c, struct problems *p);
void rules_cloud(struct cluster *c, struct problems *p);
void rules_services(struct cluster *c, struct problems *p);

extern const char *const provider_words[]; /* by enum provider_kind */

#endif
