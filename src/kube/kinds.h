/* Which path an object has. */
#ifndef SLIPWAY_KUBE_KINDS_H
#define SLIPWAY_KUBE_KINDS_H

#include <jansson.h>

#include "base/str.h"

struct kind {
        const char *plural; /* NULL: not known */
        bool namespaced;
};

/* A kind every cluster has; apiVersion is "v1" or "apps/v1". */
struct kind kind_built_in(const char *api_version, const char *kind);
/* One that a CustomResourceDefinition (an object of the array) makes. Strings are borrowed from it. */
struct kind kind_of_crds(const json_t *crds, const char *api_version, const char *kind);
/* One of an APIResourceList. Strings are borrowed from it. */
struct kind kind_of_list(const json_t *list, const char *kind);

/* "/api/v1" or "/apis/GROUP/VERSION". */
void kind_root(struct str *s, const char *api_version);
/* The path of one object; the name is escaped. */
void kind_path(struct str *s, const char *api_version, struct kind kind, const char *ns, const char *name);

/* What goes before what: 0 (namespaces, CRDs), 1 (the most), 2 (what the API would refuse, or would stand in the way, before the rest is there). */
#define PHASES 3
unsigned kind_phase(const char *kind);

#endif
