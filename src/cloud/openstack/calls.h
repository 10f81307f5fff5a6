/* The calls to OpenStack, a row each, and the structs of their answers. */
#ifndef SLIPWAY_CLOUD_OPENSTACK_CALLS_H
#define SLIPWAY_CLOUD_OPENSTACK_CALLS_H

#include "cloud/cloud.h"

enum os_call {
        OS_LIST_IMAGES,
        OS_LIST_UPLOADS,
        OS_IMPORT_METHODS,
        OS_LIST_FLAVORS,
        OS_LIST_ZONES,
        OS_COMPUTE_LIMITS,
        OS_VOLUME_LIMITS,
        OS_NETWORK_QUOTA,
        OS_BALANCER_QUOTA,
        OS_LIST_EXTENSIONS,
        OS_LIST_NETWORKS,
        OS_LIST_SUBNETS,
        OS_LIST_ROUTERS,
        OS_LIST_PORTS,
        OS_LIST_TRUNKS,
        OS_LIST_GROUPS,
        OS_LIST_FLOATING_IPS,
        OS_LIST_SERVER_GROUPS,
        OS_LIST_VOLUMES,
        OS_LIST_VOLUME_TYPES,
        OS_LIST_SERVERS,
        OS_GET_SERVER,
        OS_LIST_BALANCERS,
        OS_GET_BALANCER,
        OS_LIST_POOLS,
        OS_LIST_MEMBERS,
        OS_LIST_CREDENTIALS,
        OS_CREATE_IMAGE,
        OS_SEND_IMAGE,
        OS_IMPORT_IMAGE,
        OS_READ_IMAGE,
        OS_TAG_IMAGE,
        OS_CREATE_NETWORK,
        OS_CREATE_SUBNET,
        OS_CREATE_ROUTER,
        OS_ADD_INTERFACE,
        OS_REMOVE_INTERFACE,
        OS_CREATE_GROUP,
        OS_CREATE_RULES,
        OS_CREATE_PORTS,
        OS_CREATE_TRUNK,
        OS_CREATE_FLOATING_IP,
        OS_CREATE_SERVER_GROUP,
        OS_CREATE_VOLUME,
        OS_CREATE_SERVER,
        OS_SERVER_ACTION,
        OS_ATTACH_VOLUME,
        OS_ATTACH_PORT,
        OS_SET_PORT,
        OS_CREATE_BALANCER,
        OS_SET_MEMBERS,
        OS_SET_LISTENER,
        OS_SET_BALANCER,
        OS_SET_TAGS,
        OS_CREATE_CREDENTIAL,
        OS_DELETE_NETWORK,
        OS_DELETE_SUBNET,
        OS_DELETE_ROUTER,
        OS_DELETE_PORT,
        OS_DELETE_TRUNK,
        OS_DELETE_GROUP,
        OS_DELETE_RULE,
        OS_DELETE_FLOATING_IP,
        OS_DELETE_SERVER_GROUP,
        OS_DELETE_VOLUME,
        OS_DELETE_SERVER,
        OS_DELETE_BALANCER,
        OS_DELETE_CREDENTIAL,
        OS_DELETE_IMAGE,
        OS_CALLS,
};
extern const struct call_row os_calls[OS_CALLS];

struct os_image {
        const char *id, *name, *status, *visibility, *owner, *architecture, *bus;
        const char *algorithm, *hash, *checksum; /* of its bytes; checksum: MD5 */
        const char *failed;                      /* the stores that an import failed for */
        const char *mark, *made_as;              /* made_as: the id that slipway made it with */
        struct strings tags;
        int64_t min_disk, min_ram, size; /* GB, MB, bytes */
};
struct os_methods { /* of import */
        struct strings names;
};
struct os_flavor {
        const char *id, *name;
        int64_t cpus, ram, disk; /* ram in MB, disk in GB */
};
struct os_zone {
        const char *name;
        bool available;
};
struct os_compute_limits { /* -1: without a limit */
        int64_t servers, servers_used, cpus, cpus_used, ram, ram_used, groups, groups_used;
};
struct os_volume_limits {
        int64_t volumes, volumes_used, gigabytes, gigabytes_used;
};
struct os_quota {
        int64_t limit, used, reserved;
};
struct os_network_quota {
        struct os_quota network, subnet, router, port, floating_ip, group, rule;
};
struct os_balancer_quota {
        int64_t balancers, listeners, pools, members, monitors;
};
struct os_extension {
        const char *alias;
};
/* Networks, subnets, routers: what they have in common, and their own. */
struct os_network {
        const char *id, *name, *description, *status, *project;
        int64_t mtu;
        bool external, shared, port_security;
        struct strings subnets, tags;
};
struct os_range {
        const char *start, *end;
};
struct os_subnet {
        const char *id, *name, *description, *network, *cidr, *gateway;
        int64_t version;
        struct answers ranges; /* struct os_range: what addresses are given from */
        struct strings dns, tags;
};
struct os_router {
        const char *id, *name, *description, *status, *external_network;
        struct strings tags;
};
struct os_fixed_ip {
        const char *subnet, *address;
};
struct os_pair {
        const char *address;
};
struct os_port {
        const char *id, *name, *description, *network, *device, *owner, *status, *mac;
        struct answers addresses; /* struct os_fixed_ip */
        struct answers pairs;     /* struct os_pair: allowed addresses */
        bool security;
        const char *trunk; /* that it is the parent of */
        struct strings groups, tags;
        int64_t revision;
};
struct os_trunk {
        const char *id, *name, *description, *port, *status;
};
struct os_rule {
        const char *id, *description, *direction, *ethertype, *protocol, *prefix, *group;
        int64_t from, to;
};
struct os_group {
        const char *id, *name, *description;
        struct answers rules; /* struct os_rule */
        struct strings tags;
        int64_t revision;
};
struct os_floating_ip {
        const char *id, *address, *description, *port, *fixed, *network, *status;
        struct strings tags;
};
struct os_server_group {
        const char *id, *name, *policy;
        struct strings members;
};
struct os_attachment {
        const char *server, *device;
};
struct os_volume {
        const char *id, *name, *description, *status, *zone, *type, *image;
        int64_t size;               /* GB */
        struct answers attachments; /* struct os_attachment */
        struct pairs metadata;
};
struct os_volume_type {
        const char *id, *name;
};
struct os_server {
        const char *id, *name, *status, *zone, *image, *flavor, *task, *fault, *created;
        struct strings tags;
        struct pairs metadata;
        int64_t power, cpus, ram;
};
struct os_balancer {
        const char *id, *name, *description, *provisioning, *operating, *address, *port;
        struct answers pools, listeners; /* struct os_pool: only ids matter */
        struct strings tags;
};
struct os_pool {
        const char *id, *name;
};
struct os_member {
        const char *id, *name, *address, *status;
        int64_t port;
};
struct os_credential {
        const char *id, *name, *description; /* its secret is not read: it is ours */
};

#endif
