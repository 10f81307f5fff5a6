/* Services: what the file installs in the cluster (services.namespaces, addons, manifests, charts),
 * as a plan has it. Pure: no network, no disk. cluster/services/ fills it in and does it. */
#ifndef SLIPWAY_ADDON_SERVICE_H
#define SLIPWAY_ADDON_SERVICE_H

#include <jansson.h>

#include "base/sha256.h"
#include "config/cluster.h"

enum service_kind {
        SERVICE_NAMESPACE,
        SERVICE_ADDON, /* built in; addons that are charts are SERVICE_CHART */
        SERVICE_MANIFEST,
        SERVICE_BUILTIN, /* slipway's own objects: services.dex */
        SERVICE_CHART
};
enum service_action {
        SERVICE_KEEP,    /* as wanted */
        SERVICE_INSTALL, /* not there yet */
        SERVICE_CHANGE,
        SERVICE_ADOPT,   /* a release that slipway did not make: from now on it is slipway's */
        SERVICE_RECOVER, /* left half done by a run that was stopped */
        SERVICE_REMOVE,  /* no longer in the file */
        SERVICE_STAYS,   /* no longer in the file, and never deleted */
};

#define SERVICE_INPUTS \
        41 /* room for the digest of a release's inputs: a label holds 63 characters */

struct service {
        enum service_kind kind;
        enum service_action action;
        const char *name, *ns; /* a manifest's name is its path as the file has it; ns may be "" */
        const char *note;      /* what the plan tells beside the action; NULL: nothing */
        json_t *changes;       /* service_diff; NULL: not known */
        /* of a manifest, an addon, and of what is built in: */
        json_t *objects, *prune; /* wanted now; in the cluster and no longer wanted */
        char digest[SHA256_HEX];
        /* of a chart: */
        const struct chart *chart;   /* NULL: no longer in the file */
        const char *package;         /* the path of its directory or archive */
        json_t *crds;                /* objects of its crds/; NULL: not read yet */
        const char *version;         /* "web-1.2.0": name and version of the chart; NULL: unknown */
        char inputs[SERVICE_INPUTS]; /* wanted */
        const char *had;             /* those of the newest revision; NULL: it is not slipway's */
        const char *state;       /* of the newest revision: "deployed", …; NULL: there is none */
        long revision, deployed; /* the newest, and the newest that was deployed; 0: none */
        bool drifted;            /* the newest revision was not made by slipway */
        bool went_back;          /* but by helm, after one of slipway's that failed */
        bool placed;             /* its namespace exists, so the API can judge its objects */
        /* and has done so, as strictly as helm by the API's schemas, which helm reads for long */
        bool judged;
};

struct services_found {
        struct service *v;
        size_t n;
        bool blind;        /* the API was not there to ask: what is in the cluster is not known */
        json_t *inventory; /* of the manifests' objects, as the cluster has it; NULL: none yet */
};

/* What decides whether a release is as wanted: the chart's bytes, its values and its namespace. */
void service_inputs(const struct chart *c, const char *package_digest, char out[SERVICE_INPUTS]);
/* Fills in revision, deployed, state, had, drifted and went_back from the metadata of helm's
 * Secrets. */
void service_revisions(struct service *s, struct arena *a, const json_t *secrets);
/* Decides the action of a chart whose `inputs` and revisions are known. */
void service_decide(struct service *s, struct arena *a);
/* Names and namespaces of releases that slipway made and the file no longer has: appends them to
 * `out`. Returns how many. */
size_t service_removed(const struct services *wanted, const json_t *secrets, struct arena *a,
        struct service *out, size_t room);

/* Differences of two arrays of objects: [{action: add|change|remove, object: "ConfigMap shop/web",
 * fields: ["data.a: \"1\" → \"2\""]}]. Values of Secrets are never in it. `ns`: of objects that
 * name none. */
json_t *service_diff(const json_t *before, const json_t *after, const char *ns);
/* Appends the differences between objects as they are and as they would be, without what the API
 * itself writes (status, versions). All in the order of `wanted`; null: not there, not judged. */
void service_diff_live(
        const json_t *wanted, const json_t *is, const json_t *would, json_t *changes);
/* Of a built-in kind that has no namespaces. */
bool service_cluster_wide(const json_t *object);
/* "ConfigMap shop/web"; malloc'd. */
char *service_object_name(const json_t *object, const char *ns);
/* Objects of `before` that are not in `after`, as {apiVersion, kind, metadata: {name, namespace}};
 * without CRDs and namespaces other than `own` (NULL: none), with which other things would go:
 * those are appended to `stay`. */
json_t *service_pruned(const json_t *before, const json_t *after, const char *own, json_t *stay);
/* An object as the inventory has it: only what names it. */
json_t *service_reference(const json_t *object);

/* Something is to be done. */
bool services_any(const struct services_found *f);
void services_text(const struct services_found *f, bool all, struct str *out);
json_t *services_json(const struct services_found *f);
/* The map of the inventory that lists the objects of this kind by its names; NULL: it has none. */
const char *service_section(enum service_kind k);
const char *service_kind_name(enum service_kind k);
const char *service_action_name(enum service_action a);

/* Labels that slipway gives to a release's Secret. */
#define SERVICE_LABEL_INPUTS   "slipway.dev/inputs"
#define SERVICE_LABEL_REVISION "slipway.dev/revision"
#define SERVICE_LABEL_CHART    "slipway.dev/chart"

#endif
