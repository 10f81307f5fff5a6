/* The values that templates of a node use, as JSON, and the bits that the tables of render.c select
 * by. Values that never change on a host (`host`) are apart: immutable files are rendered from them
 * alone, so an address or a version in such a file aborts instead of leaking into user-data. */
#ifndef SLIPWAY_CONTEXT_H
#define SLIPWAY_CONTEXT_H

#include <jansson.h>

#include "node/nodespec.h"
#include "node/os.h"

/* What a node has or is, as a set of bits: the rows of tables name those that they need. 64 fit;
 * this is not an enum, so that only the type must change to unsigned __int128 if there are more. */
typedef uint64_t with_set;
#define WITH(n)               ((with_set)1 << (n))
#define ON_CONTROL_PLANE      WITH(0)
#define ON_ETCD               WITH(1)
#define ON_KUBE               WITH(2) /* has a kubelet: control plane and workers */
#define WITH_CONTAINERD       WITH(3)
#define WITH_CRIO             WITH(4)
#define WITH_RUNC             WITH(5)
#define WITH_CRUN             WITH(6)
#define WITH_FLANNEL          WITH(7)
#define WITH_KUBE_PROXY       WITH(8)
#define WITH_VIP              WITH(9)
#define WITH_ENCRYPTION       WITH(10)
#define WITH_AUDIT            WITH(11)
#define WITH_ADMISSION        WITH(12)
#define WITH_OIDC_CA          WITH(13)
#define WITH_HTTP_PROXY       WITH(14)
#define WITH_SECRET_PROXY     WITH(15) /* the proxy's URL has a password in it */
#define WITH_PACKAGES         WITH(16) /* the OS has packages, so load balancers are units */
#define WITH_STATIC_BALANCERS WITH(17) /* it has none, so they are static pods */
#define WITH_NTP              WITH(18)
#define WITH_FLATCAR          WITH(19)
#define WITH_DISKS            WITH(20)
#define WITH_REGISTRY_CA      WITH(21)
#define WITH_REGISTRY_AUTH    WITH(22)
#define WITH_CA_CHAIN         WITH(23) /* the CA is an intermediate */
#define WITH_ETCD_BESIDE      WITH(24) /* etcd on the control-plane hosts */
#define WITH_SYSCTLS          WITH(25)
#define WITH_MODULES          WITH(26)
#define WITH_SNAPSHOTS        WITH(27)
#define WITH_ETCD_SERVICE     WITH(28)
#define WITH_ETCD_POD         WITH(29)
#define WITH_HOST_RUNTIME     WITH(30) /* the host's own, not changed */
#define WITH_BALANCER         WITH(31) /* on every node's loopback */
#define WITH_BRIDGE           WITH(32) /* pods on flannel's bridge */
#define WITH_DEX              WITH(33) /* services.dex */
#define WITH_DNS_CACHE        WITH(34) /* the addon nodelocaldns */
#define WITH_FELIX            WITH(35) /* calico-node, for policies */
#define WITH_CALICO_IPAM      WITH(36) /* Calico is the pod network */
#define WITH_MULTUS           WITH(37) /* the addon: the fabric's CNI plugins are called by it */

struct context {
        const struct spec_input *in;
        const struct cluster *cluster;
        const struct node *node;
        const struct facts *facts;
        const struct os_info *os;
        struct arena *arena; /* the NodeSpec's */
        struct catalogue catalogue;
        with_set with;
        bool immutable; /* only what user-data may contain: `values` is NULL */
        json_t *host, *values;
};

int context_init(struct context *x, const struct spec_input *in, struct arena *a, bool immutable,
        struct error *err);
void context_release(struct context *x); /* wipes the secrets in it */

/* The CA certificate that the load balancer and keepalived verify API servers with: a separate
 * file, so that their pods need no other. */
#define API_CA "/etc/slipway/api-ca.crt"

/* ---- its parts, one file each ---- */

void host_values(struct context *x); /* host.c: fills x->host */
void node_values(struct context *x); /* values.c: fills x->values */

/* control.c: {"flags": [..], "volumes": [..], "probe": ..} of the three static pods */
json_t *control_apiserver(const struct context *x);
json_t *control_controller_manager(const struct context *x);
json_t *control_scheduler(const struct context *x);
/* kubelet.c */
json_t *kubelet_values(const struct context *x);
/* The kubelet's configuration: the template, with components.kubelet.config and the pool's merged
 * into it. */
void kubelet_config(const struct context *x, struct str *out);
json_t *kube_proxy_values(const struct context *x);
void kube_proxy_config(const struct context *x, struct str *out);
/* etcd.c */
json_t *etcd_values(const struct context *x);
json_t *etcd_pod_values(const struct context *x); /* etcd_pod.c */
void etcd_config(const struct context *x, struct str *out);
void etcd_copy_key_add(const struct context *x, struct nodespec *s);
/* hardening.c: what `hardening: cis` sets; empty with `kubeadm` */
/* Flags of etcd, or of API server, controller manager and scheduler. */
struct pairs hardening_flags(const struct context *x, bool etcd);
json_t *hardening_ciphers(const struct context *x, bool etcd); /* {"list": [..]}, or false */
json_t *hardening_kubelet(const struct context *x);
struct pairs hardening_sysctls(const struct context *x);
bool hardening_kernel(const struct context *x); /* protectKernelDefaults */
/* The mode of a file: with `cis` only root may read those of Kubernetes. */
unsigned hardening_mode(const struct context *x, const char *path, unsigned mode);
/* With `cis` etcd runs as its own user, with copies of its keys here. */
#define ETCD_PKI "/etc/etcd/pki"
bool etcd_own_user(const struct context *x);
void etcd_user_add(const struct context *x, struct nodespec *s);
void etcd_dirs_add(const struct context *x, struct nodespec *s);
void etcd_copies_add(const struct context *x, struct nodespec *s);
/* authentication.c: whether the API server gets an AuthenticationConfiguration; it then has the
 * OIDC settings, instead of flags. */
bool authentication_file(const struct context *x);
void authentication_config(const struct context *x, struct str *out);
/* fabric.c */
json_t *flannel_values(const struct context *x);
json_t *calico_values(const struct context *x);
void calico_link_add(const struct context *x, struct nodespec *s);
/* registry.c */
json_t *registry_values(const struct context *x);
void registry_add(const struct context *x, struct nodespec *s);
/* balancer.c */
json_t *api_values(const struct context *x);
json_t *vip_values(const struct context *x);
/* disks.c */
void disks_add(const struct context *x, struct nodespec *s);
bool disks_any(const struct pool *p);
/* A path in a systemd unit name: /var/lib/etcd → var-lib-etcd */
void unit_escape(struct str *s, const char *path);

/* credentials.c: keys, certificates and kubeconfigs from the Identity */
void credentials_add(const struct context *x, struct nodespec *s);
/* Where services of the node reach the API: its own balancer, or the endpoint. */
const char *node_api_url(const struct context *x);
/* extras.c: what the user adds */
void extras_add(const struct context *x, struct nodespec *s);
/* Refuses a path that the node has twice. */
int extras_check(const struct context *x, const struct nodespec *s, struct error *err);
/* parts.c: packages, programs and images */
void packages_add(const struct context *x, struct nodespec *s);
void artifacts_add(const struct context *x, struct nodespec *s);
void images_add(const struct context *x, struct nodespec *s);

/* Adds a file with a copy of the text; NULL for a file that is not immutable where only
 * those are wanted. */
struct spec_entry *file_add(const struct context *x, struct nodespec *s, enum spec_class class,
        const char *path, unsigned mode, const char *text, size_t len);
/* During a rotation of the cluster CA: both CAs are trusted, one signs. */
static inline bool two_authorities(const struct context *x)
{
        const struct authority *a = &x->in->identity->ca[CA_CLUSTER];
        return !streq(a->clients, a->cert);
}
static inline bool needs_met(const struct context *x, with_set need)
{
        return (x->with & need) == need;
}

/* overlay.c: maps merge key by key, everything else replaces, a null removes */
void json_overlay(json_t *base, json_t *over);
json_t *json_from_yaml(const char *text); /* of a template: aborts if it does not parse */
json_t *json_from_tree(const struct tree *t);
void yaml_from_json(const json_t *v, struct str *out);

/* A command-line flag as a field of a configuration file: a program that reads a file
 * ignores such flags. */
enum field_kind { FIELD_TEXT, FIELD_NUMBER, FIELD_BOOL, FIELD_LIST, FIELD_NANOSECONDS };
struct flag_field {
        const char *flag, *path; /* path: "conntrack.min"; NULL: same as flag */
        enum field_kind kind;
};
/* NULL: the flag has no field. */
const struct flag_field *flag_field_find(
        const struct flag_field *table, size_t n, const char *flag);
void flag_field_set(json_t *config, const struct flag_field *f, const char *value);

/* ---- helpers ---- */
void json_put(json_t *object, const char *key, const char *text); /* NULL: "" */
void json_add(json_t *array, const char *text);
json_t *json_pairs(const struct pairs *p); /* [{"key":.., "value":..}] */
/* `base` with the values of `over`, key by key; in the arena. */
struct pairs pairs_over(struct arena *a, const struct pairs *base, const struct pairs *over);
const char *strings_join(struct arena *a, const struct strings *s, const char *between);
const char *cidrs_join(struct arena *a, const struct cidrs *c);
const char *flag_name(const char *name); /* without leading dashes */
bool any_ipv6(const struct cluster *c);
/* The node's address of a family, or its first. */
const struct ip *node_ip(const struct node *n, int family);

#endif
