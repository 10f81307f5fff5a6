/* The kinds of things, a row each. */
#include "provider/aws/kinds.h"

const struct kind kinds[KINDS] = {
        [KIND_VPC] = { "VPC", LIST_VPCS, AWS_CREATE_VPC, "vpc", .twins = true, .args = vpc_args },
        [KIND_VPC_NAMES] = { "DNS names in the VPC", LIST_NONE, AWS_SET_VPC,
                .args = vpc_names_args },
        [KIND_GATEWAY] = { "internet gateway", LIST_GATEWAYS, AWS_CREATE_GATEWAY,
                "internet-gateway", .twins = true },
        [KIND_GATEWAY_ON] = { "attachment of the internet gateway", LIST_GATEWAYS,
                AWS_ATTACH_GATEWAY, .args = gateway_on_args, .found = gateway_on_found,
                .done = "Resource.AlreadyAssociated" },
        [KIND_SUBNET] = { "subnet", LIST_SUBNETS, AWS_CREATE_SUBNET, "subnet", .args = subnet_args,
                .done = "InvalidSubnet.Conflict" },
        [KIND_TABLE] = { "route table", LIST_TABLES, AWS_CREATE_ROUTE_TABLE, "route-table",
                .token = true, .args = table_args },
        [KIND_ROUTE] = { "route", LIST_TABLES, AWS_CREATE_ROUTE, .args = route_args,
                .found = route_found },
        [KIND_TABLE_ON] = { "route table of the subnet", LIST_TABLES, AWS_ASSOCIATE_ROUTES,
                .args = table_on_args, .found = table_on_found,
                .done = "Resource.AlreadyAssociated" },
        [KIND_ADDRESS] = { "Elastic IP address", LIST_ADDRESSES, AWS_ALLOCATE_ADDRESS, "elastic-ip",
                .twins = true, .args = address_args },
        [KIND_NAT] = { "NAT gateway", LIST_NATS, AWS_CREATE_NAT, "natgateway", .token = true,
                .args = nat_args, .ready = nat_ready },
        [KIND_GROUP] = { "security group", LIST_GROUPS, AWS_CREATE_GROUP, "security-group",
                .args = group_args, .done = "InvalidGroup.Duplicate" },
        [KIND_RULES] = { "rules of the security group", LIST_GROUPS, AWS_ALLOW_INGRESS,
                .args = rules_args, .found = rules_found, .done = "InvalidPermission.Duplicate" },
        [KIND_RULES_GONE] = { "unwanted rules of the security group", LIST_GROUPS,
                AWS_REVOKE_INGRESS, .args = rules_gone_args, .found = rules_gone,
                .done = "InvalidPermission.NotFound" },
        [KIND_ROLE] = { "role", LIST_NONE, AWS_CREATE_ROLE, "Tags.member.", .args = role_args,
                .done = "EntityAlreadyExists" },
        [KIND_POLICY] = { "policy of the role", LIST_NONE, AWS_PUT_ROLE_POLICY,
                .args = policy_args },
        [KIND_PROFILE] = { "instance profile", LIST_PROFILES, AWS_CREATE_PROFILE, "Tags.member.",
                .args = profile_args, .found = profile_found, .done = "EntityAlreadyExists" },
        [KIND_PROFILE_ROLE] = { "role of the instance profile", LIST_PROFILES, AWS_ADD_ROLE,
                .args = profile_role_args, .found = profile_role_found, .done = "LimitExceeded" },
        [KIND_TARGET_GROUP] = { "target group", LIST_TARGET_GROUPS, AWS_CREATE_TARGET_GROUP,
                "Tags.member.", .args = target_group_args, .found = first_found,
                .done = "DuplicateTargetGroupName" },
        [KIND_TARGET_SETTINGS] = { "settings of the target group", LIST_NONE, AWS_SET_TARGET_GROUP,
                .args = target_settings_args },
        [KIND_BALANCER] = { "load balancer", LIST_BALANCERS, AWS_CREATE_BALANCER, "Tags.member.",
                .args = balancer_args, .found = first_found, .done = "DuplicateLoadBalancerName" },
        [KIND_LISTENER] = { "listener", LIST_TARGET_GROUPS, AWS_CREATE_LISTENER, "Tags.member.",
                .args = listener_args, .found = listener_found, .done = "DuplicateListener" },
        [KIND_TARGETS] = { "targets of the load balancer", LIST_HEALTH, AWS_REGISTER_TARGETS,
                .args = targets_args, .found = targets_found },
        [KIND_ZONE_VPC] = { "VPC of the hosted zone", LIST_NONE, AWS_ASSOCIATE_ZONE,
                .args = zone_vpc_args, .done = "ConflictingDomainExists" },
        [KIND_RECORD] = { "DNS record", LIST_RECORD, AWS_CHANGE_RECORDS, .args = record_args,
                .found = record_found },
        [KIND_INTERFACE] = { "network interface", LIST_INTERFACES, AWS_CREATE_INTERFACE,
                "network-interface", .token = true, .args = interface_args },
        [KIND_FORWARDING] = { "forwarding of the network interface", LIST_NONE, AWS_SET_INTERFACE,
                .args = forwarding_args },
        [KIND_ADDRESS_ON] = { "Elastic IP address of the machine", LIST_ADDRESSES,
                AWS_ASSOCIATE_ADDRESS, .args = address_on_args, .found = address_on_found },
        [KIND_VOLUME] = { "volume", LIST_VOLUMES, AWS_CREATE_VOLUME, "volume", .token = true,
                .args = volume_args },
        [KIND_INSTANCE] = { "instance", LIST_INSTANCES, AWS_RUN_INSTANCES, "instance",
                .token = true, .args = instance_args, .ready = instance_ready },
        [KIND_VOLUME_ON] = { "attachment of the volume", LIST_VOLUMES, AWS_ATTACH_VOLUME,
                .args = volume_on_args, .found = volume_on_found, .done = "VolumeInUse" },
};

bool thing_find(struct aws_run *w, struct thing *t)
{
        const struct kind *k = &kinds[t->kind];
        if (t->given || (t->there && !k->list))
                return t->there;
        if (k->found)
                return k->found(w, t);
        const void *row = k->list ? index_get(&w->lists[k->list].by_role, t->role) : NULL;
        if (!row)
                return false;
        t->is = row;
        t->id = *(const char *const *)row;
        return true;
}
