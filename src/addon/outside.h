/* What a cluster has outside itself, as far as its API knows: load balancers and volumes that
 * somebody else made for it, and the releases of slipway, whose hooks may end more. It must be
 * deleted through the API before the machines go, because afterwards nobody is left who would do
 * it. Pure: no network, no disk. cluster/services/cleanup.c fills it in and does it. */
#ifndef SLIPWAY_ADDON_OUTSIDE_H
#define SLIPWAY_ADDON_OUTSIDE_H

#include "addon/service.h"

/* Lists of the API that it is read from. */
enum outside_list {
        OUTSIDE_RELEASES, /* helm's Secrets */
        OUTSIDE_SERVICES, /* of type LoadBalancer */
        OUTSIDE_VOLUMES,
        OUTSIDE_PODS, /* these and those below only where volumes are to go */
        OUTSIDE_STATEFULSETS,
        OUTSIDE_DEPLOYMENTS,
        OUTSIDE_REPLICASETS,
        OUTSIDE_DAEMONSETS,
        OUTSIDE_JOBS,
        OUTSIDE_CRONJOBS,
        OUTSIDE_LISTS
};
#define OUTSIDE_FIRST   ((1U << OUTSIDE_PODS) - 1)
#define OUTSIDE_HOLDERS (((1U << OUTSIDE_LISTS) - 1) & ~OUTSIDE_FIRST)

struct outside_row {
        const char *path, *query; /* query may be "" */
        bool metadata;            /* no more than metadata is read */
        const char *api_version, *kind;
};
extern const struct outside_row outside_rows[OUTSIDE_LISTS];

struct outside_object {
        const char *api_version, *kind, *ns, *name; /* ns "" for what has none */
        const char *release, *release_ns; /* helm made it for this one; NULL: it did not */
        bool going;                       /* it is being deleted */
        const char *waits;                /* what keeps it, for people; "" when nothing */
        const char *volume;               /* of a claim: its volume */
};
struct outside_objects {
        struct outside_object *v;
        size_t n;
};

/* What becomes of volumes: as their reclaim policy says; all stay; or all go that a driver made. */
enum volumes_fate { VOLUMES_BY_POLICY, VOLUMES_KEEP, VOLUMES_DELETE };

struct outside {
        const char *blind;        /* why the API was not asked; NULL: it was */
        struct service *releases; /* of slipway; `chart` is set when the file has it */
        size_t release_count;
        bool *holds; /* of each release: it owns a balancer, or pods with a claim */
        struct outside_objects balancers; /* Services */
        struct outside_objects claims;    /* whose volumes go with them */
        struct outside_objects holders;   /* workloads and pods that use these claims */
        struct outside_objects kept;      /* volumes that stay */
        struct outside_objects policies;  /* volumes that need another reclaim policy first */
        enum volumes_fate fate;
};

/* Balancers, claims, kept volumes and other policies of the lists. o->fate is read. */
void outside_balancers(const json_t *services, struct arena *a, struct outside_objects *out);
void outside_claims(struct outside *o, const json_t *volumes, struct arena *a);
/* Pods that use one of the claims, and whatever would make them again. lists: OUTSIDE_LISTS of
 * them. */
void outside_holders(json_t *const *lists, const struct outside_objects *claims, struct arena *a,
        struct outside_objects *out);
/* Releases that slipway made, and which of them go before the rest (`holds`): those that own a
 * balancer or use a claim, and those that come after such a one. Whoever serves the others (a
 * storage driver, a load balancer's controller) is still there then. */
void outside_releases(
        struct outside *o, const struct services *file, const json_t *secrets, struct arena *a);
/* Release i of the file comes after release k. */
bool outside_after(const struct outside *o, size_t i, size_t k);

/* There is something to delete. */
bool outside_any(const struct outside *o);
/* What will be deleted, with counts and names; what stays; or that it is not known. "" when there
 * is nothing to say. */
void outside_text(const struct outside *o, struct str *out);
json_t *outside_json(const struct outside *o);
/* "Service shop/web (finalizer example.net/cleanup), …": the first few and a count; malloc'd. */
char *outside_names(const struct outside_objects *v, bool why);
/* Volumes with the reclaim policy of this fate, as documents to apply. */
void outside_policies(const struct outside_objects *v, enum volumes_fate fate, struct str *out);
/* The objects as documents to delete; `all`: also those that are being deleted. */
void outside_documents(const struct outside_objects *v, bool all, struct str *out);

#endif
