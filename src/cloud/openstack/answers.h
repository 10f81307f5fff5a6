/* How the answers of OpenStack are read; included once, by calls.c. */
#ifndef SLIPWAY_CLOUD_OPENSTACK_ANSWERS_H
#define SLIPWAY_CLOUD_OPENSTACK_ANSWERS_H

#include "cloud/answer_rows.h"
#include "cloud/openstack/calls.h"

#define TEXT_ID(type_) NEED(type_, id, "id")

static const struct answer_field os_image_fields[] = {
        TEXT_ID(os_image),
        FIELD(os_image, name, "name", A_TEXT),
        FIELD(os_image, status, "status", A_TEXT),
        FIELD(os_image, visibility, "visibility", A_TEXT),
        FIELD(os_image, owner, "owner", A_TEXT),
        FIELD(os_image, architecture, "architecture", A_TEXT),
        FIELD(os_image, min_disk, "min_disk", A_NUMBER),
        FIELD(os_image, min_ram, "min_ram", A_NUMBER),
        FIELD(os_image, size, "size", A_NUMBER),
        FIELD(os_image, bus, "hw_disk_bus", A_TEXT),
        FIELD(os_image, algorithm, "os_hash_algo", A_TEXT),
        FIELD(os_image, hash, "os_hash_value", A_TEXT),
        FIELD(os_image, checksum, "checksum", A_TEXT),
        FIELD(os_image, failed, "os_glance_failed_import", A_TEXT, .max = 4096),
        FIELD(os_image, mark, "slipway-mark", A_TEXT),
        FIELD(os_image, made_as, "slipway-id", A_TEXT),
        FIELD(os_image, tags, "tags", A_TEXTS),
};
SCHEMA(os_image, "image");
static const struct answer_field os_methods_fields[] = {
        FIELD(os_methods, names, "value", A_TEXTS),
};
SCHEMA(os_methods, "import methods");
static const struct answer_field os_flavor_fields[] = {
        TEXT_ID(os_flavor),
        FIELD(os_flavor, name, "name", A_TEXT, .required = true),
        FIELD(os_flavor, cpus, "vcpus", A_NUMBER),
        FIELD(os_flavor, ram, "ram", A_NUMBER),
        FIELD(os_flavor, disk, "disk", A_NUMBER),
};
SCHEMA(os_flavor, "flavor");
static const struct answer_field os_zone_fields[] = {
        FIELD(os_zone, name, "zoneName", A_TEXT, .required = true),
        FIELD(os_zone, available, "zoneState.available", A_FLAG),
};
SCHEMA(os_zone, "zone");
static const struct answer_field os_compute_limits_fields[] = {
        FIELD(os_compute_limits, servers, "absolute.maxTotalInstances", A_NUMBER),
        FIELD(os_compute_limits, servers_used, "absolute.totalInstancesUsed", A_NUMBER),
        FIELD(os_compute_limits, cpus, "absolute.maxTotalCores", A_NUMBER),
        FIELD(os_compute_limits, cpus_used, "absolute.totalCoresUsed", A_NUMBER),
        FIELD(os_compute_limits, ram, "absolute.maxTotalRAMSize", A_NUMBER),
        FIELD(os_compute_limits, ram_used, "absolute.totalRAMUsed", A_NUMBER),
        FIELD(os_compute_limits, groups, "absolute.maxServerGroups", A_NUMBER),
        FIELD(os_compute_limits, groups_used, "absolute.totalServerGroupsUsed", A_NUMBER),
};
SCHEMA(os_compute_limits, "limits");
static const struct answer_field os_volume_limits_fields[] = {
        FIELD(os_volume_limits, volumes, "absolute.maxTotalVolumes", A_NUMBER),
        FIELD(os_volume_limits, volumes_used, "absolute.totalVolumesUsed", A_NUMBER),
        FIELD(os_volume_limits, gigabytes, "absolute.maxTotalVolumeGigabytes", A_NUMBER),
        FIELD(os_volume_limits, gigabytes_used, "absolute.totalGigabytesUsed", A_NUMBER),
};
SCHEMA(os_volume_limits, "limits");
static const struct answer_field os_quota_fields[] = {
        FIELD(os_quota, limit, "limit", A_NUMBER),
        FIELD(os_quota, used, "used", A_NUMBER),
        FIELD(os_quota, reserved, "reserved", A_NUMBER),
};
SCHEMA(os_quota, "quota");
static const struct answer_field os_network_quota_fields[] = {
        FIELD(os_network_quota, network, "network", A_ONE, .sub = &os_quota_schema),
        FIELD(os_network_quota, subnet, "subnet", A_ONE, .sub = &os_quota_schema),
        FIELD(os_network_quota, router, "router", A_ONE, .sub = &os_quota_schema),
        FIELD(os_network_quota, port, "port", A_ONE, .sub = &os_quota_schema),
        FIELD(os_network_quota, floating_ip, "floatingip", A_ONE, .sub = &os_quota_schema),
        FIELD(os_network_quota, group, "security_group", A_ONE, .sub = &os_quota_schema),
        FIELD(os_network_quota, rule, "security_group_rule", A_ONE, .sub = &os_quota_schema),
};
SCHEMA(os_network_quota, "quotas");
static const struct answer_field os_balancer_quota_fields[] = {
        FIELD(os_balancer_quota, balancers, "loadbalancer", A_NUMBER),
        FIELD(os_balancer_quota, listeners, "listener", A_NUMBER),
        FIELD(os_balancer_quota, pools, "pool", A_NUMBER),
        FIELD(os_balancer_quota, members, "member", A_NUMBER),
        FIELD(os_balancer_quota, monitors, "healthmonitor", A_NUMBER),
};
SCHEMA(os_balancer_quota, "quotas");
static const struct answer_field os_extension_fields[] = {
        FIELD(os_extension, alias, "alias", A_TEXT, .required = true),
};
SCHEMA(os_extension, "extension");
static const struct answer_field os_network_fields[] = {
        TEXT_ID(os_network),
        FIELD(os_network, name, "name", A_TEXT),
        FIELD(os_network, description, "description", A_TEXT),
        FIELD(os_network, status, "status", A_TEXT),
        FIELD(os_network, project, "project_id", A_TEXT),
        FIELD(os_network, mtu, "mtu", A_NUMBER),
        FIELD(os_network, external, "router:external", A_FLAG),
        FIELD(os_network, shared, "shared", A_FLAG),
        FIELD(os_network, port_security, "port_security_enabled", A_FLAG),
        FIELD(os_network, subnets, "subnets", A_TEXTS),
        FIELD(os_network, tags, "tags", A_TEXTS),
};
SCHEMA(os_network, "network");
static const struct answer_field os_range_fields[] = {
        NEED(os_range, start, "start"),
        NEED(os_range, end, "end"),
};
SCHEMA(os_range, "range of addresses");
static const struct answer_field os_subnet_fields[] = {
        TEXT_ID(os_subnet),
        FIELD(os_subnet, name, "name", A_TEXT),
        FIELD(os_subnet, description, "description", A_TEXT),
        NEED(os_subnet, network, "network_id"),
        FIELD(os_subnet, cidr, "cidr", A_TEXT),
        FIELD(os_subnet, gateway, "gateway_ip", A_TEXT),
        FIELD(os_subnet, version, "ip_version", A_NUMBER),
        FIELD(os_subnet, ranges, "allocation_pools", A_MANY, .sub = &os_range_schema),
        FIELD(os_subnet, dns, "dns_nameservers", A_TEXTS),
        FIELD(os_subnet, tags, "tags", A_TEXTS),
};
SCHEMA(os_subnet, "subnet");
static const struct answer_field os_router_fields[] = {
        TEXT_ID(os_router),
        FIELD(os_router, name, "name", A_TEXT),
        FIELD(os_router, description, "description", A_TEXT),
        FIELD(os_router, status, "status", A_TEXT),
        FIELD(os_router, external_network, "external_gateway_info.network_id", A_TEXT),
        FIELD(os_router, tags, "tags", A_TEXTS),
};
SCHEMA(os_router, "router");
static const struct answer_field os_fixed_ip_fields[] = {
        FIELD(os_fixed_ip, subnet, "subnet_id", A_TEXT),
        FIELD(os_fixed_ip, address, "ip_address", A_TEXT, .required = true),
};
SCHEMA(os_fixed_ip, "fixed IP");
static const struct answer_field os_pair_fields[] = {
        NEED(os_pair, address, "ip_address"),
};
SCHEMA(os_pair, "address pair");
static const struct answer_field os_port_fields[] = {
        TEXT_ID(os_port),
        FIELD(os_port, name, "name", A_TEXT),
        FIELD(os_port, description, "description", A_TEXT),
        FIELD(os_port, network, "network_id", A_TEXT),
        FIELD(os_port, device, "device_id", A_TEXT),
        FIELD(os_port, owner, "device_owner", A_TEXT),
        FIELD(os_port, status, "status", A_TEXT),
        FIELD(os_port, mac, "mac_address", A_TEXT),
        FIELD(os_port, trunk, "trunk_details.trunk_id", A_TEXT),
        FIELD(os_port, addresses, "fixed_ips", A_MANY, .sub = &os_fixed_ip_schema),
        FIELD(os_port, pairs, "allowed_address_pairs", A_MANY, .sub = &os_pair_schema),
        FIELD(os_port, security, "port_security_enabled", A_FLAG),
        FIELD(os_port, groups, "security_groups", A_TEXTS),
        FIELD(os_port, tags, "tags", A_TEXTS),
        FIELD(os_port, revision, "revision_number", A_NUMBER),
};
SCHEMA(os_port, "port");
static const struct answer_field os_trunk_fields[] = {
        TEXT_ID(os_trunk),
        FIELD(os_trunk, name, "name", A_TEXT),
        FIELD(os_trunk, description, "description", A_TEXT),
        FIELD(os_trunk, port, "port_id", A_TEXT),
        FIELD(os_trunk, status, "status", A_TEXT),
};
SCHEMA(os_trunk, "trunk");
static const struct answer_field os_rule_fields[] = {
        TEXT_ID(os_rule),
        FIELD(os_rule, description, "description", A_TEXT),
        FIELD(os_rule, direction, "direction", A_TEXT),
        FIELD(os_rule, ethertype, "ethertype", A_TEXT),
        FIELD(os_rule, protocol, "protocol", A_TEXT),
        FIELD(os_rule, prefix, "remote_ip_prefix", A_TEXT),
        FIELD(os_rule, group, "remote_group_id", A_TEXT),
        FIELD(os_rule, from, "port_range_min", A_NUMBER),
        FIELD(os_rule, to, "port_range_max", A_NUMBER),
};
SCHEMA(os_rule, "rule");
static const struct answer_field os_group_fields[] = {
        TEXT_ID(os_group),
        FIELD(os_group, name, "name", A_TEXT),
        FIELD(os_group, description, "description", A_TEXT),
        FIELD(os_group, rules, "security_group_rules", A_MANY, .sub = &os_rule_schema),
        FIELD(os_group, tags, "tags", A_TEXTS),
        FIELD(os_group, revision, "revision_number", A_NUMBER),
};
SCHEMA(os_group, "security group");
static const struct answer_field os_floating_ip_fields[] = {
        TEXT_ID(os_floating_ip),
        FIELD(os_floating_ip, address, "floating_ip_address", A_TEXT, .required = true),
        FIELD(os_floating_ip, description, "description", A_TEXT),
        FIELD(os_floating_ip, port, "port_id", A_TEXT),
        FIELD(os_floating_ip, fixed, "fixed_ip_address", A_TEXT),
        FIELD(os_floating_ip, network, "floating_network_id", A_TEXT),
        FIELD(os_floating_ip, status, "status", A_TEXT),
        FIELD(os_floating_ip, tags, "tags", A_TEXTS),
};
SCHEMA(os_floating_ip, "floating IP");
static const struct answer_field os_server_group_fields[] = {
        TEXT_ID(os_server_group),
        FIELD(os_server_group, name, "name", A_TEXT),
        FIELD(os_server_group, policy, "policy", A_TEXT),
        FIELD(os_server_group, members, "members", A_TEXTS),
};
SCHEMA(os_server_group, "server group");
static const struct answer_field os_attachment_fields[] = {
        FIELD(os_attachment, server, "server_id", A_TEXT),
        FIELD(os_attachment, device, "device", A_TEXT),
};
SCHEMA(os_attachment, "attachment");
static const struct answer_field os_volume_fields[] = {
        TEXT_ID(os_volume),
        FIELD(os_volume, name, "name", A_TEXT),
        FIELD(os_volume, description, "description", A_TEXT),
        FIELD(os_volume, status, "status", A_TEXT),
        FIELD(os_volume, zone, "availability_zone", A_TEXT),
        FIELD(os_volume, type, "volume_type", A_TEXT),
        FIELD(os_volume, size, "size", A_NUMBER),
        FIELD(os_volume, attachments, "attachments", A_MANY, .sub = &os_attachment_schema),
        FIELD(os_volume, metadata, "metadata", A_PAIRS),
        FIELD(os_volume, image, "volume_image_metadata.image_id", A_TEXT),
};
SCHEMA(os_volume, "volume");
static const struct answer_field os_volume_type_fields[] = {
        TEXT_ID(os_volume_type),
        FIELD(os_volume_type, name, "name", A_TEXT),
};
SCHEMA(os_volume_type, "volume type");
static const struct answer_field os_server_fields[] = {
        TEXT_ID(os_server),
        FIELD(os_server, name, "name", A_TEXT),
        FIELD(os_server, status, "status", A_TEXT),
        FIELD(os_server, zone, "OS-EXT-AZ:availability_zone", A_TEXT),
        FIELD(os_server, image, "image.id", A_TEXT),
        FIELD(os_server, flavor, "flavor.original_name", A_TEXT),
        FIELD(os_server, task, "OS-EXT-STS:task_state", A_TEXT),
        FIELD(os_server, created, "created", A_TEXT),
        FIELD(os_server, fault, "fault.message", A_TEXT, .max = 4096),
        FIELD(os_server, tags, "tags", A_TEXTS),
        FIELD(os_server, metadata, "metadata", A_PAIRS),
        FIELD(os_server, power, "OS-EXT-STS:power_state", A_NUMBER),
        FIELD(os_server, cpus, "flavor.vcpus", A_NUMBER),
        FIELD(os_server, ram, "flavor.ram", A_NUMBER),
};
SCHEMA(os_server, "server");
static const struct answer_field os_pool_fields[] = {
        TEXT_ID(os_pool),
        FIELD(os_pool, name, "name", A_TEXT),
};
SCHEMA(os_pool, "pool");
static const struct answer_field os_balancer_fields[] = {
        TEXT_ID(os_balancer),
        FIELD(os_balancer, name, "name", A_TEXT),
        FIELD(os_balancer, description, "description", A_TEXT),
        FIELD(os_balancer, provisioning, "provisioning_status", A_TEXT),
        FIELD(os_balancer, operating, "operating_status", A_TEXT),
        FIELD(os_balancer, address, "vip_address", A_TEXT),
        FIELD(os_balancer, port, "vip_port_id", A_TEXT),
        FIELD(os_balancer, pools, "pools", A_MANY, .sub = &os_pool_schema),
        FIELD(os_balancer, listeners, "listeners", A_MANY, .sub = &os_pool_schema),
        FIELD(os_balancer, tags, "tags", A_TEXTS),
};
SCHEMA(os_balancer, "load balancer");
static const struct answer_field os_member_fields[] = {
        TEXT_ID(os_member),
        FIELD(os_member, name, "name", A_TEXT),
        FIELD(os_member, address, "address", A_TEXT),
        FIELD(os_member, status, "operating_status", A_TEXT),
        FIELD(os_member, port, "protocol_port", A_NUMBER),
};
SCHEMA(os_member, "member");
static const struct answer_field os_credential_fields[] = {
        TEXT_ID(os_credential),
        FIELD(os_credential, name, "name", A_TEXT),
        FIELD(os_credential, description, "description", A_TEXT),
};
SCHEMA(os_credential, "application credential");

#endif
