/* What templates know about a node, as JSON, and what the tables of render.c decide by. The values that belong to the host for good (`host`) stand
 * apart: immutable files are rendered from them alone, so that an address or a version in such a file is an abort, not a leak into user-data. */
#ifndef SLIPWAY_CONTEXT_H
#define SLIPWAY_CONTEXT_H

#include <jansson.h>

#include "node/nodespec.h"
#include "node/os.h"

enum with {
        ON_CONTROL_PLANE = 1 << 0,
        ON_ETCD = 1 << 1,
        ON_KUBE = 1 << 2, /* has a kubelet: control plane and workers */
        WITH_CONTAINERD = 1 << 3,
        WITH_CRIO = 1 << 4,
        WITH_RUNC = 1 << 5,
        WITH_CRUN = 1 << 6,
        WITH_FLANNEL = 1 << 7,
        WITH_KUBE_PROXY = 1 << 8,
        WITH_VIP = 1 << 9,
        WITH_ENCRYPTION = 1 << 10,
        WITH_AUDIT = 1 << 11,
        WITH_ADMISSION = 1 << 12,
        WITH_OIDC_CA = 1 << 13,
        WITH_HTTP_PROXY = 1 << 14,
        WITH_SECRET_PROXY = 1 << 15,     /* the proxy's URL has a password in it */
        WITH_PACKAGES = 1 << 16,         /* the OS has a package manager, so balancers are units */
        WITH_STATIC_BALANCERS = 1 << 17, /* it has none, so they are static pods */
        WITH_NTP = 1 << 18,
        WITH_FLATCAR = 1 << 19,
        WITH_DISKS = 1 << 20,
        WITH_REGISTRY_CA = 1 << 21,
        WITH_REGISTRY_AUTH = 1 << 22,
        WITH_CA_CHAIN = 1 << 23,    /* the authority is an intermediate */
        WITH_ETCD_BESIDE = 1 << 24, /* etcd on the control plane's own hosts */
        WITH_SYSCTLS = 1 << 25,
        WITH_MODULES = 1 << 26,
        WITH_SNAPSHOTS = 1 << 27,
        WITH_ETCD_SERVICE = 1 << 28,
        WITH_ETCD_POD = 1 << 29,
        WITH_HOST_RUNTIME = 1 << 30, /* the host's own, left alone */
        WITH_BALANCER = 1u << 31,    /* on every node's loopback */
};

struct context {
        const struct spec_input *in;
        const struct cluster *cluster;
        const struct node *node;
        const struct facts *facts;
        const struct os_info *os;
        struct arena *arena; /* the NodeSpec's */
        struct catalogue catalogue;
        unsigned with;  /* enum with bits */
        bool immutable; /* only what user-data may hold: `values` is NULL */
        json_t *host, *values;
};

int context_init(struct context *x, const struct spec_input *in, struct arena *a, bool immutable, struct error *err);
void context_release(struct context *x); /* wipes the secrets in it */

/* ---- parts of it, one file each ---- */

void host_values(struct context *x); /* host.c: fills x->host */
void node_values(struct context *x); /* values.c: fills x->values */

/* control.c: {"flags": [..], "volumes": [..], "probe": ..} of the three static pods */
json_t *control_apiserver(const struct context *x);
json_t *control_controller_manager(const struct context *x);
json_t *control_scheduler(const struct context *x);
/* kubelet.c */
json_t *kubelet_values(const struct context *x);
/* The kubelet's configuration: the template, then components.kubelet.config and the pool's laid over it. */
void kubelet_config(const struct context *x, struct str *out);
json_t *kube_proxy_values(const struct context *x);
void kube_proxy_config(const struct context *x, struct str *out);
/* etcd.c */
json_t *etcd_values(const struct context *x);
json_t *etcd_pod_values(const struct context *x); /* etcd_pod.c */
void etcd_config(const struct context *x, struct str *out);
void etcd_copy_key_add(const struct context *x, struct nodespec *s);
/* registry.c */
json_t *registry_values(const struct context *x);
void registry_add(const struct context *x, struct nodespec *s);
/* balancer.c */
json_t *api_values(const struct context *x);
json_t *vip_values(const struct context *x);
/* disks.c */
void disks_add(const struct context *x, struct nodespec *s);
bool disks_any(const struct pool *p);
/* systemd's name for a path: /var/lib/etcd → var-lib-etcd */
void unit_escape(struct str *s, const char *path);

/* credentials.c: keys, certificates and kubeconfigs from the Identity */
void credentials_add(const struct context *x, struct nodespec *s);
/* parts.c: packages, programs and images */
void packages_add(const struct context *x, struct nodespec *s);
void artifacts_add(const struct context *x, struct nodespec *s);
void images_add(const struct context *x, struct nodespec *s);

/* A file entry with its own copy of the text; skipped where only immutable ones are wanted and it is not. */
struct spec_entry *file_add(const struct context *x, struct nodespec *s, enum spec_class class, const char *path, unsigned mode, const char *text, size_t len);
/* The cluster's authority changes: both are believed, one signs. */
static inline bool two_authorities(const struct context *x)
{
        const struct authority *a = &x->in->identity->ca[CA_CLUSTER];
        return !streq(a->clients, a->cert);
}
static inline bool needs_met(const struct context *x, unsigned need) { return (x->with & need) == need; }

/* overlay.c: maps merge key by key, everything else replaces, a null removes */
void json_overlay(json_t *base, json_t *over);
json_t *json_from_yaml(const char *text); /* a text of ours: what does not parse is an abort */
json_t *json_from_tree(const struct tree *t);
void yaml_from_json(const json_t *v, struct str *out);

/* A command-line flag that is a field of a configuration file: a program that reads a file no longer looks at such flags. */
enum field_kind { FIELD_TEXT, FIELD_NUMBER, FIELD_BOOL, FIELD_LIST, FIELD_NANOSECONDS };
struct flag_field {
        const char *flag, *path; /* path: "conntrack.min"; NULL: as the flag */
        enum field_kind kind;
};
/* NULL when the flag is no such field. */
const struct flag_field *flag_field_find(const struct flag_field *table, size_t n, const char *flag);
void flag_field_set(json_t *config, const struct flag_field *f, const char *value);

/* ---- small things ---- */
void json_put(json_t *object, const char *key, const char *text); /* NULL: "" */
void json_add(json_t *array, const char *text);
json_t *json_pairs(const struct pairs *p); /* [{"key":.., "value":..}] */
/* Lays `over` onto `base`, key by key; in the arena. */
struct pairs pairs_over(struct arena *a, const struct pairs *base, const struct pairs *over);
const char *strings_join(struct arena *a, const struct strings *s, const char *between);
const char *cidrs_join(struct arena *a, const struct cidrs *c);
const char *flag_name(const char *name); /* without leading dashes */
bool any_ipv6(const struct cluster *c);
/* The node's address of a family, or its first. */
const struct ip *node_ip(const struct node *n, int family);

#endif
