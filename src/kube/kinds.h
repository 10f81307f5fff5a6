/* Paths of kinds and objects in the API. */
#ifndef SLIPWAY_KUBE_KINDS_H
#define SLIPWAY_KUBE_KINDS_H

#include <jansson.h>

#include "base/str.h"

struct kind {
        const char *plural; /* NULL: not known */
        bool namespaced;
};

/* A built-in kind; apiVersion is "v1" or "apps/v1". */
struct kind kind_built_in(const char *api_version, const char *kind);
/* A kind that a CustomResourceDefinition of the array defines. Strings are borrowed from it. */
struct kind kind_of_crds(const json_t *crds, const char *api_version, const char *kind);
/* A kind of an APIResourceList. Strings are borrowed from it. */
struct kind kind_of_list(const json_t *list, const char *kind);

/* "/api/v1" or "/apis/GROUP/VERSION". */
void kind_root(struct str *s, const char *api_version);
/* The path of one object; the name is escaped. */
void kind_path(
        struct str *s, const char *api_version, struct kind kind, const char *ns, const char *name);

/* The order of an apply: 0 (namespaces, CRDs), 1 (most kinds), 2 (what the API refuses, or what
 * blocks others, before the rest exists). */
#define PHASES 3
unsigned kind_phase(const char *kind);

#endif
