/* The calls to AWS, a row each, and the structs of their answers. Parameters that a row does not
 * name ("Filter.1.Name") are the caller's arguments. */
#ifndef SLIPWAY_CLOUD_AWS_CALLS_H
#define SLIPWAY_CLOUD_AWS_CALLS_H

#include "cloud/cloud.h"

enum aws_call {
        AWS_IDENTITY,
        AWS_LIST_VPCS,
        AWS_LIST_GATEWAYS,
        AWS_LIST_SUBNETS,
        AWS_LIST_ROUTE_TABLES,
        AWS_LIST_NATS,
        AWS_LIST_ADDRESSES,
        AWS_LIST_GROUPS,
        AWS_LIST_INTERFACES,
        AWS_LIST_VOLUMES,
        AWS_LIST_INSTANCES,
        AWS_LIST_IMAGES,
        AWS_LIST_OFFERINGS,
        AWS_LIST_TYPES,
        AWS_LIST_ZONES,
        AWS_LIST_TAGS,
        AWS_CONSOLE,
        AWS_LIST_BALANCERS,
        AWS_LIST_TARGET_GROUPS,
        AWS_BALANCER_TAGS,
        AWS_LIST_CLASSICS,
        AWS_CLASSIC_TAGS,
        AWS_LIST_LISTENERS,
        AWS_LIST_HEALTH,
        AWS_GET_ROLE,
        AWS_GET_PROFILE,
        AWS_LIST_ROLES,
        AWS_LIST_PROFILES,
        AWS_LIST_HOSTED_ZONES,
        AWS_LIST_RECORDS,
        AWS_GET_RECORD,
        AWS_GET_QUOTA,
        AWS_GET_PARAMETER,
        AWS_FIND_TAGGED,
        AWS_CREATE_VPC,
        AWS_SET_VPC,
        AWS_CREATE_GATEWAY,
        AWS_ATTACH_GATEWAY,
        AWS_DETACH_GATEWAY,
        AWS_CREATE_SUBNET,
        AWS_CREATE_ROUTE_TABLE,
        AWS_CREATE_ROUTE,
        AWS_REPLACE_ROUTE,
        AWS_ASSOCIATE_ROUTES,
        AWS_DISASSOCIATE_ROUTES,
        AWS_ALLOCATE_ADDRESS,
        AWS_ASSOCIATE_ADDRESS,
        AWS_CREATE_NAT,
        AWS_CREATE_GROUP,
        AWS_ALLOW_INGRESS,
        AWS_REVOKE_INGRESS,
        AWS_CREATE_INTERFACE,
        AWS_SET_INTERFACE,
        AWS_CREATE_VOLUME,
        AWS_ATTACH_VOLUME,
        AWS_RUN_INSTANCES,
        AWS_START_INSTANCES,
        AWS_STOP_INSTANCES,
        AWS_CREATE_BALANCER,
        AWS_CREATE_TARGET_GROUP,
        AWS_SET_TARGET_GROUP,
        AWS_CREATE_LISTENER,
        AWS_REGISTER_TARGETS,
        AWS_DEREGISTER_TARGETS,
        AWS_CREATE_ROLE,
        AWS_PUT_ROLE_POLICY,
        AWS_CREATE_PROFILE,
        AWS_ADD_ROLE,
        AWS_CHANGE_RECORDS,
        AWS_ASSOCIATE_ZONE,
        AWS_DISASSOCIATE_ZONE,
        AWS_DELETE_VPC,
        AWS_DELETE_GATEWAY,
        AWS_DELETE_SUBNET,
        AWS_DELETE_ROUTE_TABLE,
        AWS_DELETE_NAT,
        AWS_RELEASE_ADDRESS,
        AWS_DELETE_GROUP,
        AWS_DELETE_INTERFACE,
        AWS_DELETE_VOLUME,
        AWS_TERMINATE_INSTANCES,
        AWS_DELETE_BALANCER,
        AWS_DELETE_CLASSIC,
        AWS_DELETE_TARGET_GROUP,
        AWS_DELETE_ROLE,
        AWS_DELETE_ROLE_POLICY,
        AWS_DELETE_PROFILE,
        AWS_REMOVE_ROLE,
        AWS_CALLS,
};
extern const struct call_row aws_calls[AWS_CALLS];

struct aws_identity {
        const char *account, *arn;
};
struct aws_network { /* struct aws_vpc is config's */
        const char *id, *cidr, *state;
        bool is_default;
        struct pairs tags;
};
struct aws_gateway {
        const char *id, *vpc;
        struct pairs tags;
};
struct aws_subnet {
        const char *id, *vpc, *cidr, *zone, *state;
        int64_t free;
        bool public_ips;
        struct pairs tags;
};
struct aws_route {
        const char *cidr, *gateway, *nat, *state;
};
struct aws_association {
        const char *id, *subnet;
        bool main;
};
struct aws_route_table {
        const char *id, *vpc;
        struct answers routes, associations; /* struct aws_route, struct aws_association */
        struct pairs tags;
};
struct aws_nat {
        const char *id, *subnet, *state, *address;
        struct pairs tags;
};
struct aws_address {
        const char *id, *address, *association, *interface;
        struct pairs tags;
};
struct aws_range {
        const char *cidr, *description;
};
struct aws_peer {
        const char *group;
};
struct aws_rule {
        const char *protocol;
        int64_t from, to;
        struct answers ranges, groups; /* struct aws_range, struct aws_peer */
};
struct aws_group {
        const char *id, *name, *description, *vpc;
        struct answers ingress; /* struct aws_rule */
        struct pairs tags;
};
struct aws_interface {
        const char *id, *subnet, *vpc, *zone, *status, *address, *description, *instance,
                *attachment;
        struct pairs tags;
};
struct aws_attachment {
        const char *instance, *device, *state;
};
struct aws_volume {
        const char *id, *zone, *state, *type;
        int64_t size;
        bool encrypted;
        struct answers attachments; /* struct aws_attachment */
        struct pairs tags;
};
struct aws_instance {
        const char *id, *image, *type, *state, *zone, *address, *public_address, *subnet, *vpc,
                *token, *reason, *lifecycle, *launched;
        int64_t cores, threads;
        struct pairs tags;
};
struct aws_reservation {
        struct answers instances; /* struct aws_instance */
};
struct aws_image_disk {
        const char *device;
        int64_t size; /* GiB */
};
struct aws_image {
        const char *id, *name, *owner, *state, *architecture, *root_device, *created;
        struct answers disks; /* struct aws_image_disk */
};
struct aws_offering {
        const char *type, *zone;
};
struct aws_type {
        const char *name;
        int64_t cpus, memory; /* memory: MiB */
        struct strings architectures;
};
struct aws_zone {
        const char *name, *state;
};
struct aws_tag {
        const char *resource, *kind, *key, *value;
};
struct aws_console {
        const char *text; /* base64 */
};
struct aws_balancer {
        const char *arn, *name, *dns, *zone, *state, *scheme;
        struct strings groups; /* none: it was made without any, and cannot get one */
        struct pairs tags;     /* not in the list: AWS_BALANCER_TAGS */
};
struct aws_classic { /* a load balancer of the first generation */
        const char *name;
        struct pairs tags; /* not in the list: AWS_CLASSIC_TAGS */
};
struct aws_target_group {
        const char *arn, *name, *vpc, *protocol, *kind;
        int64_t port;
        struct strings balancers; /* whose listeners send to it */
        struct pairs tags;        /* not in the list: AWS_BALANCER_TAGS */
};
struct aws_listener {
        const char *arn, *protocol;
        int64_t port;
};
struct aws_health {
        const char *target, *state, *reason;
        int64_t port;
};
struct aws_role {
        const char *name, *arn, *path;
        struct pairs tags;
};
struct aws_profile {
        const char *name, *arn;
        struct answers roles; /* struct aws_role */
        struct pairs tags;
};
struct aws_hosted_zone {
        const char *id, *name, *comment;
        bool private;
};
struct aws_value {
        const char *value;
};
struct aws_record {
        const char *name, *type, *alias, *alias_zone;
        int64_t ttl;
        struct answers values; /* struct aws_value */
};
struct aws_quota {
        const char *code, *name;
        int64_t value;
};
struct aws_parameter {
        const char *value;
};
struct aws_tagged {
        const char *arn;
        struct pairs tags;
};

#endif
