/* How the answers of AWS are read; included once, by calls.c. */
#ifndef SLIPWAY_CLOUD_AWS_ANSWERS_H
#define SLIPWAY_CLOUD_AWS_ANSWERS_H

#include "cloud/answer_rows.h"
#include "cloud/aws/calls.h"

#define TAGS(type_) FIELD(type_, tags, "tagSet.item", A_PAIRS)

static const struct answer_field aws_identity_fields[] = {
        NEED(aws_identity, account, "GetCallerIdentityResult.Account"),
        NEED(aws_identity, arn, "GetCallerIdentityResult.Arn"),
};
SCHEMA(aws_identity, "identity");
static const struct answer_field aws_network_fields[] = {
        NEED(aws_network, id, "vpcId"),
        FIELD(aws_network, cidr, "cidrBlock", A_TEXT),
        FIELD(aws_network, state, "state", A_TEXT),
        FIELD(aws_network, is_default, "isDefault", A_FLAG),
        TAGS(aws_network),
};
SCHEMA(aws_network, "VPC");
static const struct answer_field aws_gateway_fields[] = {
        NEED(aws_gateway, id, "internetGatewayId"),
        FIELD(aws_gateway, vpc, "attachmentSet.item.vpcId", A_TEXT),
        TAGS(aws_gateway),
};
SCHEMA(aws_gateway, "internet gateway");
static const struct answer_field aws_subnet_fields[] = {
        NEED(aws_subnet, id, "subnetId"),
        FIELD(aws_subnet, vpc, "vpcId", A_TEXT),
        FIELD(aws_subnet, cidr, "cidrBlock", A_TEXT),
        FIELD(aws_subnet, zone, "availabilityZone", A_TEXT),
        FIELD(aws_subnet, state, "state", A_TEXT),
        FIELD(aws_subnet, free, "availableIpAddressCount", A_NUMBER),
        FIELD(aws_subnet, public_ips, "mapPublicIpOnLaunch", A_FLAG),
        TAGS(aws_subnet),
};
SCHEMA(aws_subnet, "subnet");
static const struct answer_field aws_route_fields[] = {
        FIELD(aws_route, cidr, "destinationCidrBlock", A_TEXT),
        FIELD(aws_route, gateway, "gatewayId", A_TEXT),
        FIELD(aws_route, nat, "natGatewayId", A_TEXT),
        FIELD(aws_route, state, "state", A_TEXT),
};
SCHEMA(aws_route, "route");
static const struct answer_field aws_association_fields[] = {
        NEED(aws_association, id, "routeTableAssociationId"),
        FIELD(aws_association, subnet, "subnetId", A_TEXT),
        FIELD(aws_association, main, "main", A_FLAG),
};
SCHEMA(aws_association, "association");
static const struct answer_field aws_route_table_fields[] = {
        NEED(aws_route_table, id, "routeTableId"),
        FIELD(aws_route_table, vpc, "vpcId", A_TEXT),
        FIELD(aws_route_table, routes, "routeSet.item", A_MANY, .sub = &aws_route_schema),
        FIELD(aws_route_table, associations, "associationSet.item", A_MANY,
                .sub = &aws_association_schema),
        TAGS(aws_route_table),
};
SCHEMA(aws_route_table, "route table");
static const struct answer_field aws_nat_fields[] = {
        NEED(aws_nat, id, "natGatewayId"),
        FIELD(aws_nat, subnet, "subnetId", A_TEXT),
        FIELD(aws_nat, state, "state", A_TEXT),
        FIELD(aws_nat, address, "natGatewayAddressSet.item.allocationId", A_TEXT),
        TAGS(aws_nat),
};
SCHEMA(aws_nat, "NAT gateway");
static const struct answer_field aws_address_fields[] = {
        FIELD(aws_address, id, "allocationId", A_TEXT),
        NEED(aws_address, address, "publicIp"),
        FIELD(aws_address, association, "associationId", A_TEXT),
        FIELD(aws_address, interface, "networkInterfaceId", A_TEXT),
        TAGS(aws_address),
};
SCHEMA(aws_address, "address");
static const struct answer_field aws_range_fields[] = {
        NEED(aws_range, cidr, "cidrIp"),
        FIELD(aws_range, description, "description", A_TEXT),
};
SCHEMA(aws_range, "range");
static const struct answer_field aws_peer_fields[] = { FIELD(aws_peer, group, "groupId", A_TEXT) };
SCHEMA(aws_peer, "group");
static const struct answer_field aws_rule_fields[] = {
        NEED(aws_rule, protocol, "ipProtocol"),
        FIELD(aws_rule, from, "fromPort", A_NUMBER),
        FIELD(aws_rule, to, "toPort", A_NUMBER),
        FIELD(aws_rule, ranges, "ipRanges.item", A_MANY, .sub = &aws_range_schema),
        FIELD(aws_rule, groups, "groups.item", A_MANY, .sub = &aws_peer_schema),
};
SCHEMA(aws_rule, "rule");
static const struct answer_field aws_group_fields[] = {
        NEED(aws_group, id, "groupId"),
        FIELD(aws_group, name, "groupName", A_TEXT),
        FIELD(aws_group, description, "groupDescription", A_TEXT),
        FIELD(aws_group, vpc, "vpcId", A_TEXT),
        FIELD(aws_group, ingress, "ipPermissions.item", A_MANY, .sub = &aws_rule_schema),
        TAGS(aws_group),
};
SCHEMA(aws_group, "security group");
static const struct answer_field aws_interface_fields[] = {
        NEED(aws_interface, id, "networkInterfaceId"),
        FIELD(aws_interface, subnet, "subnetId", A_TEXT),
        FIELD(aws_interface, vpc, "vpcId", A_TEXT),
        FIELD(aws_interface, zone, "availabilityZone", A_TEXT),
        FIELD(aws_interface, status, "status", A_TEXT),
        FIELD(aws_interface, address, "privateIpAddress", A_TEXT),
        FIELD(aws_interface, description, "description", A_TEXT),
        FIELD(aws_interface, instance, "attachment.instanceId", A_TEXT),
        FIELD(aws_interface, attachment, "attachment.attachmentId", A_TEXT),
        TAGS(aws_interface),
};
SCHEMA(aws_interface, "network interface");
static const struct answer_field aws_attachment_fields[] = {
        FIELD(aws_attachment, instance, "instanceId", A_TEXT),
        FIELD(aws_attachment, device, "device", A_TEXT),
        FIELD(aws_attachment, state, "status", A_TEXT),
};
SCHEMA(aws_attachment, "attachment");
static const struct answer_field aws_volume_fields[] = {
        NEED(aws_volume, id, "volumeId"),
        FIELD(aws_volume, zone, "availabilityZone", A_TEXT),
        FIELD(aws_volume, state, "status", A_TEXT),
        FIELD(aws_volume, type, "volumeType", A_TEXT),
        FIELD(aws_volume, size, "size", A_NUMBER),
        FIELD(aws_volume, encrypted, "encrypted", A_FLAG),
        FIELD(aws_volume, attachments, "attachmentSet.item", A_MANY, .sub = &aws_attachment_schema),
        TAGS(aws_volume),
};
SCHEMA(aws_volume, "volume");
static const struct answer_field aws_instance_fields[] = {
        NEED(aws_instance, id, "instanceId"),
        FIELD(aws_instance, image, "imageId", A_TEXT),
        FIELD(aws_instance, type, "instanceType", A_TEXT),
        FIELD(aws_instance, state, "instanceState.name", A_TEXT),
        FIELD(aws_instance, zone, "placement.availabilityZone", A_TEXT),
        FIELD(aws_instance, address, "privateIpAddress", A_TEXT),
        FIELD(aws_instance, public_address, "ipAddress", A_TEXT),
        FIELD(aws_instance, subnet, "subnetId", A_TEXT),
        FIELD(aws_instance, vpc, "vpcId", A_TEXT),
        FIELD(aws_instance, token, "clientToken", A_TEXT),
        FIELD(aws_instance, reason, "stateReason.message", A_TEXT, .max = 1024),
        FIELD(aws_instance, lifecycle, "instanceLifecycle", A_TEXT),
        FIELD(aws_instance, launched, "launchTime", A_TEXT),
        FIELD(aws_instance, cores, "cpuOptions.coreCount", A_NUMBER),
        FIELD(aws_instance, threads, "cpuOptions.threadsPerCore", A_NUMBER),
        TAGS(aws_instance),
};
SCHEMA(aws_instance, "instance");
static const struct answer_field aws_reservation_fields[] = {
        FIELD(aws_reservation, instances, "instancesSet.item", A_MANY, .sub = &aws_instance_schema),
};
SCHEMA(aws_reservation, "reservation");
static const struct answer_field aws_image_disk_fields[] = {
        FIELD(aws_image_disk, device, "deviceName", A_TEXT),
        FIELD(aws_image_disk, size, "ebs.volumeSize", A_NUMBER),
};
SCHEMA(aws_image_disk, "disk");
static const struct answer_field aws_image_fields[] = {
        NEED(aws_image, id, "imageId"),
        FIELD(aws_image, name, "name", A_TEXT),
        FIELD(aws_image, owner, "imageOwnerId", A_TEXT),
        FIELD(aws_image, state, "imageState", A_TEXT),
        FIELD(aws_image, architecture, "architecture", A_TEXT),
        FIELD(aws_image, root_device, "rootDeviceName", A_TEXT),
        FIELD(aws_image, created, "creationDate", A_TEXT),
        FIELD(aws_image, disks, "blockDeviceMapping.item", A_MANY, .sub = &aws_image_disk_schema),
};
SCHEMA(aws_image, "image");
static const struct answer_field aws_offering_fields[] = {
        NEED(aws_offering, type, "instanceType"),
        FIELD(aws_offering, zone, "location", A_TEXT),
};
SCHEMA(aws_offering, "offering");
static const struct answer_field aws_type_fields[] = {
        NEED(aws_type, name, "instanceType"),
        FIELD(aws_type, cpus, "vCpuInfo.defaultVCpus", A_NUMBER),
        FIELD(aws_type, memory, "memoryInfo.sizeInMiB", A_NUMBER),
        FIELD(aws_type, architectures, "processorInfo.supportedArchitectures.item", A_TEXTS),
};
SCHEMA(aws_type, "instance type");
static const struct answer_field aws_zone_fields[] = {
        NEED(aws_zone, name, "zoneName"),
        FIELD(aws_zone, state, "zoneState", A_TEXT),
};
SCHEMA(aws_zone, "zone");
static const struct answer_field aws_tag_fields[] = {
        NEED(aws_tag, resource, "resourceId"),
        FIELD(aws_tag, kind, "resourceType", A_TEXT),
        NEED(aws_tag, key, "key"),
        FIELD(aws_tag, value, "value", A_TEXT, .max = 1024),
};
SCHEMA(aws_tag, "tag");
static const struct answer_field aws_console_fields[] = {
        FIELD(aws_console, text, "output", A_TEXT, .max = 1 << 20),
};
SCHEMA(aws_console, "console");
static const struct answer_field aws_balancer_fields[] = {
        NEED(aws_balancer, arn, "LoadBalancerArn"),
        FIELD(aws_balancer, name, "LoadBalancerName", A_TEXT),
        FIELD(aws_balancer, dns, "DNSName", A_TEXT),
        FIELD(aws_balancer, zone, "CanonicalHostedZoneId", A_TEXT),
        FIELD(aws_balancer, state, "State.Code", A_TEXT),
        FIELD(aws_balancer, scheme, "Scheme", A_TEXT),
        FIELD(aws_balancer, groups, "SecurityGroups.member", A_TEXTS),
};
SCHEMA(aws_balancer, "load balancer");
static const struct answer_field aws_classic_fields[] = {
        NEED(aws_classic, name, "LoadBalancerName"),
};
SCHEMA(aws_classic, "classic load balancer");
static const struct answer_field aws_target_group_fields[] = {
        NEED(aws_target_group, arn, "TargetGroupArn"),
        FIELD(aws_target_group, name, "TargetGroupName", A_TEXT),
        FIELD(aws_target_group, vpc, "VpcId", A_TEXT),
        FIELD(aws_target_group, protocol, "Protocol", A_TEXT),
        FIELD(aws_target_group, kind, "TargetType", A_TEXT),
        FIELD(aws_target_group, port, "Port", A_NUMBER),
        FIELD(aws_target_group, balancers, "LoadBalancerArns.member", A_TEXTS),
};
SCHEMA(aws_target_group, "target group");
static const struct answer_field aws_listener_fields[] = {
        NEED(aws_listener, arn, "ListenerArn"),
        FIELD(aws_listener, protocol, "Protocol", A_TEXT),
        FIELD(aws_listener, port, "Port", A_NUMBER),
};
SCHEMA(aws_listener, "listener");
static const struct answer_field aws_health_fields[] = {
        NEED(aws_health, target, "Target.Id"),
        FIELD(aws_health, state, "TargetHealth.State", A_TEXT),
        FIELD(aws_health, reason, "TargetHealth.Description", A_TEXT, .max = 1024),
        FIELD(aws_health, port, "Target.Port", A_NUMBER),
};
SCHEMA(aws_health, "target");
static const struct answer_field aws_role_fields[] = {
        NEED(aws_role, name, "RoleName"),
        FIELD(aws_role, arn, "Arn", A_TEXT, .max = 2048),
        FIELD(aws_role, path, "Path", A_TEXT, .max = 512),
        FIELD(aws_role, tags, "Tags.member", A_PAIRS),
};
SCHEMA(aws_role, "role");
static const struct answer_field aws_profile_fields[] = {
        NEED(aws_profile, name, "InstanceProfileName"),
        FIELD(aws_profile, arn, "Arn", A_TEXT, .max = 2048),
        FIELD(aws_profile, roles, "Roles.member", A_MANY, .sub = &aws_role_schema),
        FIELD(aws_profile, tags, "Tags.member", A_PAIRS),
};
SCHEMA(aws_profile, "instance profile");
static const struct answer_field aws_hosted_zone_fields[] = {
        NEED(aws_hosted_zone, id, "Id"),
        NEED(aws_hosted_zone, name, "Name"),
        FIELD(aws_hosted_zone, comment, "Config.Comment", A_TEXT, .max = 512),
        FIELD(aws_hosted_zone, private, "Config.PrivateZone", A_FLAG),
};
SCHEMA(aws_hosted_zone, "hosted zone");
static const struct answer_field aws_value_fields[] = {
        FIELD(aws_value, value, "Value", A_TEXT, .max = 4096),
};
SCHEMA(aws_value, "value");
static const struct answer_field aws_record_fields[] = {
        FIELD(aws_record, name, "Name", A_TEXT, .max = 1024, .required = true),
        NEED(aws_record, type, "Type"),
        FIELD(aws_record, alias, "AliasTarget.DNSName", A_TEXT, .max = 1024),
        FIELD(aws_record, alias_zone, "AliasTarget.HostedZoneId", A_TEXT),
        FIELD(aws_record, ttl, "TTL", A_NUMBER),
        FIELD(aws_record, values, "ResourceRecords.ResourceRecord", A_MANY,
                .sub = &aws_value_schema),
};
SCHEMA(aws_record, "record");
static const struct answer_field aws_quota_fields[] = {
        NEED(aws_quota, code, "QuotaCode"),
        FIELD(aws_quota, name, "QuotaName", A_TEXT),
        FIELD(aws_quota, value, "Value", A_NUMBER, .required = true),
};
SCHEMA(aws_quota, "quota");
static const struct answer_field aws_parameter_fields[] = {
        FIELD(aws_parameter, value, "Value", A_TEXT, .max = 4096),
};
SCHEMA(aws_parameter, "parameter");
static const struct answer_field aws_tagged_fields[] = {
        FIELD(aws_tagged, arn, "ResourceARN", A_TEXT, .max = 2048, .required = true),
        FIELD(aws_tagged, tags, "Tags", A_PAIRS),
};
SCHEMA(aws_tagged, "resource");
/* The same struct, as ELB and classic ELB fill it. */
static const struct answer_field aws_balancer_tags_fields[] = {
        FIELD(aws_tagged, arn, "ResourceArn", A_TEXT, .max = 2048, .required = true),
        FIELD(aws_tagged, tags, "Tags.member", A_PAIRS),
};
static const struct answer_schema aws_balancer_tags_schema = { "tags", aws_balancer_tags_fields,
        ARRAY_SIZE(aws_balancer_tags_fields), sizeof(struct aws_tagged) };
static const struct answer_field aws_classic_tags_fields[] = {
        NEED(aws_tagged, arn, "LoadBalancerName"),
        FIELD(aws_tagged, tags, "Tags.member", A_PAIRS),
};
static const struct answer_schema aws_classic_tags_schema = { "tags", aws_classic_tags_fields,
        ARRAY_SIZE(aws_classic_tags_fields), sizeof(struct aws_tagged) };

#endif
