/* The table of addons: software that services.addons installs by name. A built-in one is a template
 * of addon/ with images of the catalogue; the others are charts of upstream, which become rows of
 * services.charts and services.repositories when the file is read. */
#ifndef SLIPWAY_CONFIG_ADDON_H
#define SLIPWAY_CONFIG_ADDON_H

#include "config/cluster.h"

enum addon_id {
        /* built in */
        ADDON_METRICS_SERVER,
        ADDON_LOCAL_PATH,
        ADDON_KUBE_STATE_METRICS,
        ADDON_NODELOCALDNS,
        ADDON_DNS_AUTOSCALER,
        ADDON_REGISTRY,
        ADDON_NODE_PROBLEM_DETECTOR,
        ADDON_KUBE_VIP,
        ADDON_INGRESS,
        ADDON_PROMETHEUS,
        ADDON_MULTUS,
        /* charts */
        ADDON_CERT_MANAGER,
        ADDON_METALLB,
        ADDON_TRAEFIK,
        ADDON_ENVOY_GATEWAY,
        ADDON_KUBE_PROMETHEUS,
        ADDON_FLUENT_BIT,
        ADDON_HEADLAMP,
        ADDON_CEPH_CSI_RBD,
        ADDON_CEPH_CSI_CEPHFS,
        ADDON_CLUSTER_AUTOSCALER,
        ADDON_NODE_FEATURE_DISCOVERY,
        /* built in, and asked for in the provider's section (cloud.controller, cloud.csi), not in
         * services.addons */
        ADDON_OPENSTACK_CLOUD,
        ADDON_CINDER_CSI,
        ADDON_AWS_CLOUD,
        ADDON_EBS_CSI,
        ADDON_COUNT
};
#define ADDON_LISTED ADDON_OPENSTACK_CLOUD

struct addon_row {
        const char *version;  /* of the program, or of the chart as its repository has it */
        const char *space;    /* the namespace it is installed in */
        const char *what;     /* a few words, for people */
        const char *needs;    /* what else the cluster must have; NULL: nothing */
        const char *home;     /* upstream's page */
        const char *template; /* built in: of addon/templates; NULL: a chart */
        const char *stays;    /* built in: what its removal leaves behind; NULL: nothing */
        const char *asked;    /* the option that asks for it, instead of services.addons; or NULL */
        /* A chart: */
        const char *repository; /* a name of services.repositories: one of that name in the file is
                                   used instead of `url` */
        const char *url, *chart;
        const char *values; /* YAML, under those of the file; NULL: the chart's own */
        bool privileged;    /* its pods need more than the Pod Security level baseline lets them */
};

/* A value that a built-in addon takes: a key of its `values`. Those of charts are the chart's. */
enum option_kind {
        OPTION_ADDRESS,
        OPTION_RANGES, /* a list of CIDRs and of FIRST-LAST */
        OPTION_NUMBER,
        OPTION_SIZE, /* of a volume: 10Gi */
        OPTION_WORD, /* the name of a network interface */
};
struct addon_option {
        enum addon_id addon;
        const char *name;
        enum option_kind kind;
        const char *fallback; /* NULL: it must be given */
        const char *what;     /* a few words, for people */
        const char *example;
        int64_t min, max; /* of a number */
};
/* The table ends with a row without a name. */
const struct addon_option *addon_options(void);
/* The ends of FIRST-LAST, of one family and in order, or of a CIDR; false: it is neither. */
bool option_range(const char *text, struct ip *first, struct ip *last);
/* What is wrong with a value (NULL: nothing); in the arena. */
const char *option_fault(struct arena *a, const struct addon_option *o, const struct tree *value);
/* The value of the file, else the fallback, which may be "": a range list joined by commas. In the
 * cluster's arena. The addon must be in the file. */
const char *addon_value(const struct cluster *c, enum addon_id id, const char *name);

extern const char *const addon_names[];   /* by enum addon_id; the last is NULL */
extern const char *const addon_choices[]; /* those of services.addons; likewise */
const struct addon_row *addon_row(enum addon_id id);
static inline bool addon_built_in(enum addon_id id) { return addon_row(id)->template; }
/* ADDON_COUNT: there is none of that name (or NULL). */
enum addon_id addon_named(const char *name);
/* Whether the file has it. */
bool cluster_addon(const struct cluster *c, enum addon_id id);
/* A controller of the cloud initialises the nodes: kubelets taint them until it has. */
bool cluster_cloud_controller(const struct cluster *c);
/* The namespace belongs to an addon of the file whose pods need the level privileged. */
bool addon_privileged(const struct cluster *c, const char *space);

/* Room for more rows of charts and repositories. */
void services_grow(struct cluster *c, size_t more);
/* Appends a repository, unless the file lists one of that name: that one is used instead (a mirror,
 * a login, a directory). */
void services_repository(
        struct services *s, const struct tree *src, const char *name, const char *url);

/* Appends the rows of charts and repositories that the addons of the file stand for. */
void addons_expand(struct cluster *c);

#endif
