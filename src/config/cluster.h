/* The Cluster: cluster.yaml, parsed, defaulted and validated. Every struct that the file can hold
 * begins with `src`, the place it was read from (NULL when it was not written); tree_get(x->src,
 * "field") is the place of one field. schema.c has the table that fills these, and says what each
 * field means. Strings are never NULL unless said; they live in the arena. */
#ifndef SLIPWAY_CLUSTER_H
#define SLIPWAY_CLUSTER_H

#include "base/arena.h"
#include "base/ip.h"
#include "base/tree.h"

struct version {
        unsigned major, minor, patch;
        const char *text; /* "1.36.1", no v */
};

struct strings {
        size_t n;
        const char **v;
};
struct numbers {
        size_t n;
        long *v;
};
struct cidrs {
        size_t n;
        struct cidr *v;
};
struct ips {
        size_t n;
        struct ip *v;
};
struct pair {
        const char *key, *value;
};
struct pairs {
        size_t n;
        struct pair *v;
}; /* in file order */
struct amount {
        long value;
        bool percent;
}; /* 2 or 20% */
struct taint {
        const char *key, *value, *effect;
};
struct taints {
        size_t n;
        struct taint *v;
};

enum role { ROLE_CONTROL_PLANE = 1, ROLE_ETCD = 2, ROLE_WORKER = 4 };

struct disk {
        const struct tree *src;
        const char *device, *filesystem, *mount;
        struct strings options; /* mount options */
};
struct disks {
        size_t n;
        struct disk *v;
};

struct volume { /* a disk the provider makes */
        const struct tree *src;
        int64_t size; /* bytes */
        const char *type, *zone, *device, *filesystem,
                /* device: NULL lets the provider decide */
                *mount;
};
struct volumes {
        size_t n;
        struct volume *v;
};

struct root_volume { /* the system disk of a cloud's machine */
        const struct tree *src;
        int64_t size;     /* bytes; 0: the image's */
        const char *type, /* NULL: the cloud's default */
                *zone,    /* of cinder; NULL: it chooses */
                *kms_key; /* NULL: the account's default */
        bool encrypted;
        long iops; /* 0: the type's */
};

struct machine_shape { /* provider local */
        const struct tree *src;
        long cpus;
        int64_t memory, disk; /* bytes, 0: not limited */
};

struct host {
        const struct tree *src;
        const char *name;    /* NULL: from the address */
        const char *address; /* where ssh goes: a name or an address */
        struct ips ip;       /* what the cluster uses; empty: the address, if it is one */
        const char *user;    /* NULL: the provider's */
        long port;           /* 0: the provider's */
        struct pairs labels;
        struct taints taints;
};
struct hosts {
        size_t n;
        struct host *v;
};

struct kubelet_options {
        const struct tree *src;
        struct pairs system_reserved, kube_reserved, eviction_hard;
        long max_pods;
        struct pairs flags;
        /* free-form KubeletConfiguration fields merged over slipway's, or NULL */
        const struct tree *config;
};

struct pool {
        const struct tree *src;
        const char *name;
        unsigned roles;         /* enum role bits */
        long count;             /* -1: not given */
        struct numbers without; /* numbers that have no machine (any longer) */
        struct hosts hosts;
        /* an os id ("debian", "flatcar"…) assumed until the machine reports it; NULL: debian */
        const char *os;
        struct pairs labels, annotations;
        struct taints taints;
        struct disks disks;
        struct volumes volumes;
        struct machine_shape machine;
        const char *flavor, *instance_type, *image; /* NULL: the provider's */
        struct strings zones;
        bool floating_ip, public_ip;
        bool spot; /* AWS */
        struct root_volume root_volume;
        int spread;                     /* enum spread */
        struct kubelet_options kubelet; /* over the cluster's */
};
struct pools {
        size_t n;
        struct pool *v;
};

/* How a pool's machines are kept apart on the cloud's hosts. */
enum spread { SPREAD_SOFT, SPREAD_HARD, SPREAD_NONE };

enum provider_kind {
        PROVIDER_LOCAL,
        PROVIDER_SSH,
        PROVIDER_OPENSTACK,
        PROVIDER_AWS,
        PROVIDER_TERRAFORM
};
enum user_data { USER_DATA_CLOUD_INIT, USER_DATA_IGNITION };

struct provider_local {
        const struct tree *src;
        struct cidrs network; /* the machines' addresses; .1 is this computer. One, or one of each
                                 family */
        const char *release;  /* Debian release of the machines */
};
struct provider_ssh {
        const struct tree *src;
        const char *user, *key, *bastion, *sudo_password_file; /* may be NULL but for user */
        long port;
        long connections;       /* at once; 0: as many as this computer has room for */
        struct strings options; /* ssh -o words */
        bool sudo;
};
struct os_network_options { /* one that exists, by name or id; or one that is made */
        const struct tree *src;
        const char *name; /* NULL: it is made */
        struct cidr cidr;
        struct strings dns;
        long mtu; /* 0: the cloud's */
};
struct os_image_options { /* of the machines: one that exists, or one that is uploaded */
        const struct tree *src;
        const char *name, *file, *url, *sha256; /* each may be NULL */
        const char *format;                     /* NULL: seen from the file, or the URL's end */
        struct pairs properties;
};
struct os_cloud_options { /* who slipway is for the cloud, and what the cluster has of it */
        const struct tree *src;
        const char *name; /* of clouds.yaml, or NULL */
        bool controller, csi;
};
/* The jump host of a cloud's machines: one that exists, or one that is made. */
struct bastion {
        const struct tree *src;
        const char *address;       /* [user@]host[:port]; NULL: it is made, or there is none */
        const char *flavor, *type; /* NULL: it is not made */
        const char *image, *user;  /* NULL: the first pool's, and the provider's */
};
struct os_access { /* who reaches the machines from outside */
        const struct tree *src;
        struct cidrs ssh, api, node_ports;
};
struct os_port_options { /* of the nodes' ports */
        const struct tree *src;
        bool trunk;
        struct strings networks, security; /* names; security: or "none" */
        struct cidrs pairs;
};
struct provider_openstack {
        const struct tree *src;
        struct os_cloud_options cloud;
        const char *region, *subnet, *external_network, *user,
                /* region, subnet, external_network, keypair: may be NULL */
                *keypair;
        struct os_image_options image;
        struct os_network_options network;
        struct os_access access;
        struct os_port_options ports;
        bool config_drive, api_floating_ip;
        enum user_data user_data;
        int load_balancer;              /* enum os_lb */
        struct strings security_groups; /* "managed" or names */
        struct strings zones;
        struct pairs metadata;
        struct bastion bastion;
};
enum os_lb { OS_LB_OCTAVIA, OS_LB_VIP, OS_LB_NONE };
struct cloud_parts { /* what the cluster has of its cloud */
        const struct tree *src;
        bool controller, csi;
};
struct cloud_access { /* who reaches the machines from outside: ranges */
        const struct tree *src;
        struct cidrs ssh, api, node_ports;
};
struct aws_vpc {
        const struct tree *src;
        struct cidr cidr;
        const char *id;
        struct strings subnets, public_subnets; /* of an existing VPC */
};
struct aws_ami { /* one of: id, name with owner, ssm */
        const struct tree *src;
        const char *id, *name, *owner, *ssm;
};
struct aws_iam {
        const struct tree *src;
        const char *control, *worker, *permissions_boundary; /* "managed", a name, or NULL */
};
struct aws_imds {
        const struct tree *src;
        long hop_limit;
        bool tags;
};
enum aws_nat_kind { AWS_NAT_ONE, AWS_NAT_PER_ZONE, AWS_NAT_NONE };
struct aws_dns {
        const struct tree *src;
        const char *zone;
        bool private;
};
struct provider_aws {
        const struct tree *src;
        const char *profile, *region, *user, *keypair; /* profile, keypair: may be NULL */
        struct aws_ami image;
        struct strings zones;
        struct aws_vpc vpc;
        int nat; /* enum aws_nat_kind */
        struct aws_iam iam;
        struct aws_imds imds;
        struct cloud_parts cloud;
        struct cloud_access access;
        enum user_data user_data;
        int load_balancer; /* enum aws_lb */
        struct aws_dns dns;
        struct strings security_groups;
        struct pairs tags;
        struct bastion bastion;
};
enum aws_lb { AWS_LB_NLB, AWS_LB_NLB_INTERNAL, AWS_LB_NONE };
struct provider_terraform {
        struct provider_ssh ssh; /* first: its machines are reached like hosts */
        int platform;            /* index into platform_names; platform.h has the table */
        const char *dir;
        enum user_data user_data;
        bool load_balancer;
        struct pairs variables;
};
struct provider {
        const struct tree *src;
        enum provider_kind kind;
        struct provider_local local;
        struct provider_ssh ssh; /* also of provider terraform */
        struct provider_openstack openstack;
        struct provider_aws aws;
        struct provider_terraform terraform;
};

struct api {
        const struct tree *src;
        const char *vip;           /* an address, or NULL */
        const char *vip_name;      /* a DNS name of the VIP, which clients use instead; or NULL */
        const char *vip_interface; /* NULL: the interface with the node's address */
        long virtual_router_id;    /* 0: from the VIP */
        struct strings names;      /* further names and addresses in the certificate */
        const char *load_balancer; /* host or host:port in front of the API servers, or NULL */
        long port;                 /* 6443 */
        long local_port;           /* of the load balancer on every node's loopback */
        bool local_balancer;
};

enum fabric_kind {
        FABRIC_FLANNEL,
        FABRIC_CANAL,
        FABRIC_CALICO,
        FABRIC_CILIUM,
        FABRIC_KUBE_OVN,
        FABRIC_NONE,
        FABRIC_CUSTOM
};
struct fabric {
        const struct tree *src;
        enum fabric_kind kind;
        int backend;              /* enum fabric_backend */
        long mtu;                 /* 0: found out */
        const char *interface;    /* NULL: found out */
        struct strings manifests; /* custom */
};
enum fabric_backend { BACKEND_VXLAN, BACKEND_HOST_GW, BACKEND_WIREGUARD };
enum proxy_mode { PROXY_IPTABLES, PROXY_NFTABLES, PROXY_IPVS, PROXY_NONE };
enum proxy_run { PROXY_RUN_SERVICE, PROXY_RUN_DAEMONSET };
struct network {
        const struct tree *src;
        struct cidrs pods, services; /* one, or one of each family */
        long node_mask, node_mask6;  /* bits of a node's pod range */
        const char *domain;
        const char *dns;             /* the DNS service's address; NULL: the tenth of services */
        struct strings dns_upstream; /* empty: the node's */
        struct cidrs hosts;          /* the hosts' network, for checks; may be empty */
        struct fabric fabric;
        int proxy_mode; /* enum proxy_mode */
        int proxy_run;  /* enum proxy_run */
        bool manage_dns;
        const char *proxy_image,
                /* of the cluster's own kube-proxy and CoreDNS; NULL: unchanged */
                *dns_image;
};

enum runtime_kind { RUNTIME_CONTAINERD, RUNTIME_CRIO };
enum oci_kind { OCI_RUNC, OCI_CRUN };
struct runtime {
        const struct tree *src;
        enum runtime_kind kind;
        enum oci_kind oci;
        const char *data_dir; /* NULL: the runtime's own */
        const char *pause;    /* image; NULL: the catalogue's */
        bool managed;         /* false: the host's own, not changed */
};

enum artifact_source {
        ARTIFACT_AUTO,
        ARTIFACT_BUNDLE,
        ARTIFACT_MIRROR,
        ARTIFACT_UPSTREAM,
        ARTIFACT_BUILD
};
struct artifacts {
        const struct tree *src;
        enum artifact_source source;
        const char *bundle, *mirror; /* directory, URL; may be NULL */
        struct strings trust;        /* programs taken once without a checksum */
};

struct registry {
        const struct tree *src;
        const char *mirror;   /* host[:port][/path] for every registry, or NULL */
        struct pairs mirrors; /* one registry each: docker.io: mirror.example.net */
        bool insecure;        /* plain HTTP, or a certificate nobody signed */
        const char *ca_file, *username, *password_file; /* may be NULL */
        const char *ca_pem, *password; /* read from the files by cluster_load; may be NULL */
};

struct proxies {
        const struct tree *src;
        const char *http, *https; /* may be NULL */
        /* what the user added; node addresses, services and pods are added by the rendering */
        struct strings no_proxy;
};
/* A user, and so most often a password, stands in it; false for NULL. */
bool url_has_user(const char *url);

struct user {
        const struct tree *src;
        const char *name;
        struct strings groups;
        bool admin;
        int64_t lifetime; /* seconds; 0: certificates.lifetime */
};
struct users {
        size_t n;
        struct user *v;
};
struct oidc {
        const struct tree *src;
        const char *issuer, *client_id; /* issuer: NULL when OIDC is off */
        const char *username_claim, *username_prefix, *groups_claim,
                /* prefixes may be NULL */
                *groups_prefix;
        const char *ca_file, *ca_pem; /* may be NULL */
        struct pairs required_claims;
        struct strings signing_algs;
        struct strings scopes;                          /* of a login */
        const char *client_secret_file, *client_secret; /* NULL: a public client */
};
struct binding {
        const struct tree *src;
        const char *group, *user; /* one of them, as the API server sees it; the other is NULL */
        const char *role;         /* a ClusterRole */
        const char *space;        /* its namespace; NULL: all */
};
struct bindings {
        size_t n;
        struct binding *v;
};
struct auth {
        const struct tree *src;
        struct users users;
        struct oidc oidc;
        struct bindings bindings;
};
/* The prefix of the provider's user names, by the rules of its flags; "": none. */
const char *oidc_username_prefix(struct arena *a, const struct oidc *o);

enum key_algorithm { KEY_ECDSA_P256, KEY_ECDSA_P384, KEY_RSA_2048, KEY_RSA_4096 };
struct own_ca {
        const struct tree *src;
        const char *certificate, *key; /* paths; both NULL: made by slipway */
};
struct certificates {
        const struct tree *src;
        enum key_algorithm algorithm;
        int64_t ca_lifetime, lifetime; /* seconds */
        bool verify_kubelets;          /* the API server checks kubelets' serving certificates */
        struct own_ca ca, etcd_ca, front_proxy_ca;
};

/* Defaults for options that the file leaves open: as in the CIS benchmark, or as
 * in kubeadm. hardening.c */
enum hardening { HARDENING_CIS, HARDENING_KUBEADM };

enum encryption_provider {
        ENCRYPTION_NONE,
        ENCRYPTION_SECRETBOX,
        ENCRYPTION_AESCBC,
        ENCRYPTION_AESGCM
};
struct encryption {
        const struct tree *src;
        enum encryption_provider provider;
        struct strings resources;
};

enum audit_level { AUDIT_NONE, AUDIT_METADATA, AUDIT_REQUEST, AUDIT_REQUEST_RESPONSE };
struct audit {
        const struct tree *src;
        enum audit_level level;
        const char *policy_file, *policy; /* own policy and its text; may be NULL */
        const char *path;
        long max_age, max_backups, max_size; /* days, files, MiB */
};

struct admission {
        const struct tree *src;
        struct strings enable, disable;
        int pod_security; /* enum pod_security: what namespaces without a label enforce */
        int pod_warning;  /* the same: what they warn of and write into the audit log */
        const char *config_file, *config; /* own AdmissionConfiguration and its text; may be NULL */
};
enum pod_security { POD_SECURITY_PRIVILEGED, POD_SECURITY_BASELINE, POD_SECURITY_RESTRICTED };

struct component {
        const struct tree *src;
        struct pairs flags;
};
struct components {
        const struct tree *src;
        struct component apiserver, controller_manager, scheduler, kube_proxy, etcd;
        struct kubelet_options kubelet;
};

struct etcd_snapshots {
        const struct tree *src;
        int64_t every;
        long keep;
        const char *copy_to, *copy_key_file; /* may be NULL */
        const char *copy_key;                /* read from the file by cluster_load; may be NULL */
};
enum etcd_run { ETCD_RUN_SERVICE, ETCD_RUN_STATIC_POD };
struct etcd_options {
        const struct tree *src;
        int run;           /* enum etcd_run */
        const char *image; /* of the static pod; NULL: the catalogue's */
        const char *data_dir;
        int64_t quota;               /* bytes */
        int64_t heartbeat, election; /* milliseconds */
        struct etcd_snapshots snapshots;
};

enum update_strategy { UPDATE_MANUAL, UPDATE_REBOOT };
struct os_updates {
        const struct tree *src;
        enum update_strategy strategy;
        const char *group, *server, *window_start, *window_length; /* server, window: may be NULL */
};
/* What is added to nodes: to all of them, or to those of `pools`. */
struct hosts_line { /* of /etc/hosts */
        const struct tree *src;
        const char *address;
        struct strings names, pools;
};
struct hosts_lines {
        size_t n;
        struct hosts_line *v;
};
struct node_file {
        const struct tree *src;
        const char *path, *owner, *mode;    /* owner, mode: may be NULL */
        const char *content, *content_file; /* cluster_load reads the file into `content` */
        bool secret;
        struct strings pools;
};
struct node_files {
        size_t n;
        struct node_file *v;
};
struct node_command { /* run once */
        const struct tree *src;
        const char *shell; /* a line for sh, or NULL: argv */
        struct strings argv, pools;
        int64_t timeout;
};
struct node_commands {
        size_t n;
        struct node_command *v;
};
struct os_options {
        const struct tree *src;
        struct os_updates updates;
        struct pairs sysctls;
        struct strings modules, packages, authorized_keys;
        struct strings ntp;
        struct hosts_lines hosts;
        struct node_files files;
        struct node_commands commands;
};

struct upgrade {
        const struct tree *src;
        struct amount workers_at_once;
        int64_t drain_timeout, health_timeout;
};
enum readiness_type { READINESS_ALL, READINESS_PERCENT, READINESS_COUNT };
struct readiness {
        const struct tree *src;
        int type;   /* enum readiness_type */
        long value; /* of workers; -1: not given */
        int64_t wait;
};
struct heal {
        const struct tree *src;
        bool enabled;
        int64_t unhealthy_after, startup_timeout;
        struct amount max_at_once;
};

struct repository {
        const struct tree *src;
        const char *name, *url;
        const char *username, *password_file, *ca_file;
        const char *password, *ca_pem; /* read by cluster_load */
};
struct repositories {
        size_t n;
        struct repository *v;
};
struct chart {
        const struct tree *src;
        const char *name, *chart, *version, *namespace;
        bool create_namespace, wait, atomic;
        bool fabric; /* the pod network: installed before nodes are Ready */
        const struct tree *values;
        const char *values_file;
        const char *values_text;     /* of that file; read by cluster_load */
        struct strings values_files; /* instead of it, several */
        struct strings values_texts; /* of those files; read by cluster_load */
        struct strings after;
        int64_t timeout;
};
struct charts {
        size_t n;
        struct chart *v;
};
struct addon { /* config/addon.h has the table of names */
        const struct tree *src;
        const char *name;
        const struct tree *values; /* of a chart, or of the table in addon_options.c; NULL: none */
};
struct addons {
        size_t n;
        struct addon *v;
};
enum dex_expose { DEX_HOST_PORT, DEX_NODE_PORT, DEX_LOAD_BALANCER };
struct dex_text { /* of a file that a connector or a client names; config/dex.h says which */
        const struct tree *at;
        const char *text;
};
struct dex {
        const struct tree *src;
        const char *host;
        long port;
        int expose; /* enum dex_expose */
        const struct tree *connectors, *clients, *config;
        const char *passwords_file;
        const struct tree *passwords; /* the list in that file; read by cluster_load */
        struct dex_text *texts;       /* read by cluster_load */
        size_t text_count;
};
struct services {
        const struct tree *src;
        struct strings namespaces, manifests;
        struct addons addons;
        struct repositories repositories; /* also those of addons and of the fabric */
        struct charts charts;             /* likewise, behind the file's own */
        struct dex dex;                   /* dex.host NULL: no identity provider */
};

/* One node, made from the pools by cluster_load: in file order, with stable names and indexes. */
struct node {
        const struct pool *pool;
        const struct host *host; /* NULL for machines a provider makes */
        const char *name;
        const char *address; /* where ssh goes; NULL until the machine exists */
        /* what the cluster uses; ip[0].family 0 until known; [1] is the other
         * family in dual-stack */
        struct ip ip[2];
        unsigned index; /* within the pool, from 1 */
        /* where the machine has the pool's volumes, set by a provider that knows; NULL, also for
         * one of them: in its usual order */
        const char **devices;
};

/* How slipway logs in to machines that a cloud makes: user-data creates it. */
struct login {
        const char *user, *key; /* key: the public one, a line */
};

struct cluster {
        const struct tree *src; /* the spec */
        struct arena *arena;
        const char *name;
        const char *dir; /* of the last file: relative paths in it start here */
        /* of all that the files say, and of the texts they name that are no secrets: another one
         * is another intent */
        char digest[65];
        struct version kubernetes;
        struct strings env; /* variables of the environment that the file uses; env.c */
        struct provider provider;
        struct api api;
        struct network network;
        struct pools pools;
        struct runtime runtime;
        struct artifacts artifacts;
        struct registry registry;
        struct proxies proxy;
        struct auth auth;
        struct certificates certificates;
        int hardening; /* enum hardening */
        struct encryption encryption;
        struct audit audit;
        struct admission admission;
        struct pairs feature_gates; /* values "true" or "false" */
        struct components components;
        struct etcd_options etcd;
        struct os_options os;
        struct upgrade upgrade;
        struct readiness readiness;
        struct heal heal;
        struct services services;

        struct login login; /* set for user-data; key NULL: none */
        /* host name or address of the load balancer that the provider has in front of the API
         * servers; set by the provider, NULL: none, or not known yet */
        const char *balancer;
        /* words of ssh that lead to the bastion of a cloud's machines; set by the provider; NULL:
         * there is none */
        const char *bastion;
        /* Set by the provider for the cloud's controller and its CSI driver: the name that they
         * mark what they make with (NAME-PREFIX), their cloud.conf (secret) and the certificate
         * authorities of the cloud's API. NULL: there are none, or they are not known yet. */
        const char *cloud_name, *cloud_config, *cloud_ca;
        size_t node_count;
        struct node *nodes;
        const struct node **by_name; /* sorted, for cluster_node; NULL until cluster_index */
        /* behind the last node that is more than a worker: who looks for those need not walk 10,000
         * workers; 0 until cluster_index */
        size_t few_end;
};

struct problems;

/* Its machines are hosts that are reached over ssh as provider.ssh says: nothing creates or deletes
 * them here. */
bool provider_has_hosts(const struct provider *p);
/* The addresses that the cluster uses for a node: its first family first, in whatever order they
 * were written. */
void node_set_ips(const struct cluster *c, struct node *n, const struct ip *ips, size_t count);
/* Why no machine can have the address; NULL: it can. */
const char *host_ip_fault(const struct ip *ip);

/* Appends a text that lives as long as the arena. */
void strings_add(struct arena *a, struct strings *s, const char *v);
bool strings_contain(const struct strings *s, const char *v);

/* Reads the files, merges them in order, decodes, defaults, checks everything, makes the nodes.
 * Returns 0, or -EINVAL with the problems listed (err set too: "cluster.yaml: 3 problems"), or
 * another failure in err. `*out` is valid only on 0. */
int cluster_load(struct arena *a, const char *const *files, size_t n, struct cluster **out,
        struct problems *problems, struct error *err);

/* The same where a file's text is another than on disk (`instead`, found by the name it was
 * given by). `loose`: whatever rules it breaks, if it can be read: for a text that is changed
 * step by step. */
int cluster_load_instead(struct arena *a, const char *const *files, size_t n,
        const struct tree_file *instead, size_t instead_count, bool loose, struct cluster **out,
        struct problems *problems, struct error *err);

/* The middle of cluster_load, without a disk: one merged document into a Cluster, whatever is wrong
 * with it (never NULL). cluster_expand and cluster_rules come after it. */
struct cluster *cluster_decode(
        struct arena *a, const struct tree *document, struct problems *problems);
/* hardening.c: defaults that depend on `hardening`, for what the file does not say; cluster_decode
 * has done it. */
void cluster_harden(struct cluster *c);
/* A path as it is on this computer: ~ is the user's home, and what is relative starts beside the
 * file that `at` was written in. */
const char *cluster_path(struct arena *a, const struct tree *at, const char *path);

/* Makes cluster_node fast; cluster_load has called it. */
void cluster_index(struct cluster *c);
/* Finds a node by name, or NULL. */
const struct node *cluster_node(const struct cluster *c, const char *name);
/* Nodes with any of the roles, for loops: for (i = 0; (n = cluster_next(c, ROLE_ETCD, &i));) */
const struct node *cluster_next(const struct cluster *c, unsigned roles, size_t *i);
size_t cluster_count(const struct cluster *c, unsigned roles);
/* The endpoint clients use: load balancer, VIP, the provider's load balancer, first name, or the
 * first control-plane node. NULL host while that has no address. */
const char *cluster_endpoint_host(const struct cluster *c); /* not bracketed */
long cluster_endpoint_port(const struct cluster *c);
/* The DNS service's address(es): network.dns, or the tenth address of each service range. */
size_t cluster_dns(const struct cluster *c, struct ip out[2]);
int version_compare(const struct version *a, const struct version *b);
bool version_parse(const char *s, struct version *out); /* text is left NULL */

#endif
