#include "cloud/aws/answers.h"

#define PAGES(...) \
        (const struct call_page[]) \
        { \
                __VA_ARGS__, { 0 } \
        }
static const struct call_page ec2_pages[] = { { "nextToken", "NextToken" }, { 0 } };
#define ELB     "elasticloadbalancing"
#define CLASSIC "elb" /* its API of 2012 */
/* A Describe of EC2: safe, and in pages. */
#define EC2_LIST(what, action, key, type_) \
        { \
                .name = "list " what, .service = "ec2", .method = "POST", .path = action, \
                .body = BODY_FORM, .list = key, .pages = ec2_pages, .answer = &type_##_schema \
        }
#define ELB_LIST(what, api, action, key, type_) \
        { \
                .name = "list " what, .service = api, .method = "POST", .path = action, \
                .body = BODY_FORM, .list = action "Result." key ".member", \
                .pages = PAGES({ action "Result.NextMarker", "Marker" }), \
                .answer = &type_##_schema \
        }
#define IAM_LIST(what, action, key, type_) \
        { \
                .name = "list " what, .service = "iam", .method = "POST", .path = action, \
                .body = BODY_FORM, .list = action "Result." key ".member", \
                .pages = PAGES({ action "Result.Marker", "Marker" }), .answer = &type_##_schema \
        }
#define READ(what, service_, action, key, type_) \
        { \
                .name = "read " what, .service = service_, .method = "POST", .path = action, \
                .body = BODY_FORM, .list = key, .answer = &type_##_schema \
        }
/* Refused the second time, or the same: can be sent twice. */
#define SET(what, service_, action) \
        { \
                .name = what, .service = service_, .method = "POST", .path = action, \
                .body = BODY_FORM \
        }
#define MAKE_SAFE(what, service_, action, key, type_) \
        { \
                .name = "create " what, .service = service_, .method = "POST", .path = action, \
                .body = BODY_FORM, .list = key, .answer = &type_##_schema \
        }
#define MAKE(what, service_, action, key, type_) \
        { \
                .name = "create " what, .service = service_, .method = "POST", .path = action, \
                .body = BODY_FORM, .list = key, .retry = RETRY_ONCE, .answer = &type_##_schema \
        }
#define MAKE_TOKEN(what, service_, action, key, type_) \
        { \
                .name = "create " what, .service = service_, .method = "POST", .path = action, \
                .body = BODY_FORM, .list = key, .retry = RETRY_TOKEN, .answer = &type_##_schema \
        }
#define DELETE(what, service_, action) SET("delete " what, service_, action)

const struct call_row aws_calls[AWS_CALLS] = {
        [AWS_IDENTITY] = { .name = "read identity",
                .service = "sts",
                .method = "POST",
                .path = "GetCallerIdentity",
                .body = BODY_FORM,
                .answer = &aws_identity_schema },
        [AWS_LIST_VPCS] = EC2_LIST("VPCs", "DescribeVpcs", "vpcSet.item", aws_network),
        [AWS_LIST_GATEWAYS] = EC2_LIST("internet gateways", "DescribeInternetGateways",
                "internetGatewaySet.item", aws_gateway),
        [AWS_LIST_SUBNETS] = EC2_LIST("subnets", "DescribeSubnets", "subnetSet.item", aws_subnet),
        [AWS_LIST_ROUTE_TABLES] = EC2_LIST(
                "route tables", "DescribeRouteTables", "routeTableSet.item", aws_route_table),
        [AWS_LIST_NATS] =
                EC2_LIST("NAT gateways", "DescribeNatGateways", "natGatewaySet.item", aws_nat),
        [AWS_LIST_ADDRESSES] =
                READ("addresses", "ec2", "DescribeAddresses", "addressesSet.item", aws_address),
        [AWS_LIST_GROUPS] = EC2_LIST(
                "security groups", "DescribeSecurityGroups", "securityGroupInfo.item", aws_group),
        [AWS_LIST_INTERFACES] = EC2_LIST("network interfaces", "DescribeNetworkInterfaces",
                "networkInterfaceSet.item", aws_interface),
        [AWS_LIST_VOLUMES] = EC2_LIST("volumes", "DescribeVolumes", "volumeSet.item", aws_volume),
        [AWS_LIST_INSTANCES] =
                EC2_LIST("instances", "DescribeInstances", "reservationSet.item", aws_reservation),
        [AWS_LIST_IMAGES] = EC2_LIST("images", "DescribeImages", "imagesSet.item", aws_image),
        [AWS_LIST_OFFERINGS] = EC2_LIST("instance types", "DescribeInstanceTypeOfferings",
                "instanceTypeOfferingSet.item", aws_offering),
        [AWS_LIST_TYPES] = EC2_LIST("sizes of instance types", "DescribeInstanceTypes",
                "instanceTypeSet.item", aws_type),
        [AWS_LIST_ZONES] = READ(
                "zones", "ec2", "DescribeAvailabilityZones", "availabilityZoneInfo.item", aws_zone),
        [AWS_LIST_TAGS] = EC2_LIST("tags", "DescribeTags", "tagSet.item", aws_tag),
        [AWS_CONSOLE] = READ("console", "ec2", "GetConsoleOutput", NULL, aws_console),
        [AWS_LIST_BALANCERS] = ELB_LIST(
                "load balancers", ELB, "DescribeLoadBalancers", "LoadBalancers", aws_balancer),
        [AWS_LIST_TARGET_GROUPS] = ELB_LIST(
                "target groups", ELB, "DescribeTargetGroups", "TargetGroups", aws_target_group),
        [AWS_BALANCER_TAGS] = READ("tags", ELB, "DescribeTags",
                "DescribeTagsResult.TagDescriptions.member", aws_balancer_tags),
        [AWS_LIST_CLASSICS] = ELB_LIST("classic load balancers", CLASSIC, "DescribeLoadBalancers",
                "LoadBalancerDescriptions", aws_classic),
        [AWS_CLASSIC_TAGS] = READ("tags", CLASSIC, "DescribeTags",
                "DescribeTagsResult.TagDescriptions.member", aws_classic_tags),
        [AWS_LIST_LISTENERS] =
                ELB_LIST("listeners", ELB, "DescribeListeners", "Listeners", aws_listener),
        [AWS_LIST_HEALTH] = READ("targets", ELB, "DescribeTargetHealth",
                "DescribeTargetHealthResult.TargetHealthDescriptions.member", aws_health),
        [AWS_GET_ROLE] = READ("role", "iam", "GetRole", "GetRoleResult.Role", aws_role),
        [AWS_GET_PROFILE] = READ("instance profile", "iam", "GetInstanceProfile",
                "GetInstanceProfileResult.InstanceProfile", aws_profile),
        [AWS_LIST_ROLES] = IAM_LIST("roles", "ListRoles", "Roles", aws_role),
        [AWS_LIST_PROFILES] = IAM_LIST(
                "instance profiles", "ListInstanceProfiles", "InstanceProfiles", aws_profile),
        [AWS_LIST_HOSTED_ZONES] = { .name = "list hosted zones",
                .service = "route53",
                .method = "GET",
                .path = "/2013-04-01/hostedzonesbyname",
                .query = "dnsname={name}",
                .list = "HostedZones.HostedZone",
                .pages =
                        PAGES({ "NextDNSName", "dnsname" }, { "NextHostedZoneId", "hostedzoneid" }),
                .answer = &aws_hosted_zone_schema },
        [AWS_LIST_RECORDS] = { .name = "list records",
                .service = "route53",
                .method = "GET",
                .path = "/2013-04-01/hostedzone/{zone}/rrset",
                .list = "ResourceRecordSets.ResourceRecordSet",
                .pages = PAGES({ "NextRecordName", "name" }, { "NextRecordType", "type" },
                        { "NextRecordIdentifier", "identifier" }),
                .answer = &aws_record_schema },
        [AWS_GET_RECORD] = { .name = "read record",
                .service = "route53",
                .method = "GET",
                .path = "/2013-04-01/hostedzone/{zone}/rrset",
                .query = "name={name}&type={type}&maxitems=1",
                .list = "ResourceRecordSets.ResourceRecordSet",
                .answer = &aws_record_schema },
        [AWS_GET_PARAMETER] = { .name = "read parameter",
                .service = "ssm",
                .method = "POST",
                .path = "AmazonSSM.GetParameter",
                .body = BODY_AMZ,
                .wrap = "Parameter",
                .answer = &aws_parameter_schema },
        [AWS_GET_QUOTA] = { .name = "read quota",
                .service = "servicequotas",
                .method = "POST",
                .path = "ServiceQuotasV20190624.GetServiceQuota",
                .body = BODY_AMZ,
                .wrap = "Quota",
                .answer = &aws_quota_schema },
        [AWS_FIND_TAGGED] = { .name = "find tagged resources",
                .service = "tagging",
                .method = "POST",
                .path = "ResourceGroupsTaggingAPI_20170126.GetResources",
                .body = BODY_AMZ,
                .list = "ResourceTagMappingList",
                .pages = PAGES({ "PaginationToken", "PaginationToken" }),
                .answer = &aws_tagged_schema },
        [AWS_CREATE_VPC] = MAKE("VPC", "ec2", "CreateVpc", "vpc", aws_network),
        [AWS_SET_VPC] = SET("set VPC attribute", "ec2", "ModifyVpcAttribute"),
        [AWS_CREATE_GATEWAY] = MAKE(
                "internet gateway", "ec2", "CreateInternetGateway", "internetGateway", aws_gateway),
        [AWS_ATTACH_GATEWAY] = SET("attach internet gateway", "ec2", "AttachInternetGateway"),
        [AWS_DETACH_GATEWAY] = SET("detach internet gateway", "ec2", "DetachInternetGateway"),
        [AWS_CREATE_SUBNET] = MAKE("subnet", "ec2", "CreateSubnet", "subnet", aws_subnet),
        [AWS_CREATE_ROUTE_TABLE] =
                MAKE_TOKEN("route table", "ec2", "CreateRouteTable", "routeTable", aws_route_table),
        [AWS_CREATE_ROUTE] = SET("create route", "ec2", "CreateRoute"),
        [AWS_REPLACE_ROUTE] = SET("replace route", "ec2", "ReplaceRoute"),
        [AWS_ASSOCIATE_ROUTES] = SET("associate route table", "ec2", "AssociateRouteTable"),
        [AWS_DISASSOCIATE_ROUTES] =
                SET("disassociate route table", "ec2", "DisassociateRouteTable"),
        [AWS_ALLOCATE_ADDRESS] = { .name = "allocate address",
                .service = "ec2",
                .method = "POST",
                .path = "AllocateAddress",
                .body = BODY_FORM,
                .retry = RETRY_ONCE,
                .answer = &aws_address_schema },
        [AWS_ASSOCIATE_ADDRESS] = SET("associate address", "ec2", "AssociateAddress"),
        [AWS_CREATE_NAT] =
                MAKE_TOKEN("NAT gateway", "ec2", "CreateNatGateway", "natGateway", aws_nat),
        [AWS_CREATE_GROUP] = { .name = "create security group",
                .service = "ec2",
                .method = "POST",
                .path = "CreateSecurityGroup",
                .body = BODY_FORM,
                .retry = RETRY_ONCE,
                .answer = &aws_group_schema },
        [AWS_ALLOW_INGRESS] = SET("allow ingress", "ec2", "AuthorizeSecurityGroupIngress"),
        [AWS_REVOKE_INGRESS] = SET("revoke ingress", "ec2", "RevokeSecurityGroupIngress"),
        [AWS_CREATE_INTERFACE] = MAKE_TOKEN("network interface", "ec2", "CreateNetworkInterface",
                "networkInterface", aws_interface),
        [AWS_SET_INTERFACE] =
                SET("set network interface attribute", "ec2", "ModifyNetworkInterfaceAttribute"),
        [AWS_CREATE_VOLUME] = { .name = "create volume",
                .service = "ec2",
                .method = "POST",
                .path = "CreateVolume",
                .body = BODY_FORM,
                .retry = RETRY_TOKEN,
                .answer = &aws_volume_schema },
        [AWS_ATTACH_VOLUME] = SET("attach volume", "ec2", "AttachVolume"),
        [AWS_RUN_INSTANCES] = { .name = "create instances",
                .service = "ec2",
                .method = "POST",
                .path = "RunInstances",
                .body = BODY_FORM,
                .retry = RETRY_TOKEN,
                .answer = &aws_reservation_schema },
        [AWS_START_INSTANCES] = SET("start instances", "ec2", "StartInstances"),
        [AWS_STOP_INSTANCES] = SET("stop instances", "ec2", "StopInstances"),
        [AWS_CREATE_BALANCER] = MAKE_SAFE("load balancer", ELB, "CreateLoadBalancer",
                "CreateLoadBalancerResult.LoadBalancers.member", aws_balancer),
        [AWS_CREATE_TARGET_GROUP] = MAKE_SAFE("target group", ELB, "CreateTargetGroup",
                "CreateTargetGroupResult.TargetGroups.member", aws_target_group),
        [AWS_SET_TARGET_GROUP] =
                SET("set target group attributes", ELB, "ModifyTargetGroupAttributes"),
        [AWS_CREATE_LISTENER] = MAKE_SAFE("listener", ELB, "CreateListener",
                "CreateListenerResult.Listeners.member", aws_listener),
        [AWS_REGISTER_TARGETS] = SET("register targets", ELB, "RegisterTargets"),
        [AWS_DEREGISTER_TARGETS] = SET("deregister targets", ELB, "DeregisterTargets"),
        [AWS_CREATE_ROLE] = MAKE("role", "iam", "CreateRole", "CreateRoleResult.Role", aws_role),
        [AWS_PUT_ROLE_POLICY] = SET("set policy of role", "iam", "PutRolePolicy"),
        [AWS_CREATE_PROFILE] = MAKE("instance profile", "iam", "CreateInstanceProfile",
                "CreateInstanceProfileResult.InstanceProfile", aws_profile),
        [AWS_ADD_ROLE] = SET("add role to instance profile", "iam", "AddRoleToInstanceProfile"),
        [AWS_CHANGE_RECORDS] = { .name = "change records",
                .service = "route53",
                .method = "POST",
                .path = "/2013-04-01/hostedzone/{zone}/rrset/",
                .body = BODY_XML },
        [AWS_ASSOCIATE_ZONE] = { .name = "add VPC to hosted zone",
                .service = "route53",
                .method = "POST",
                .path = "/2013-04-01/hostedzone/{zone}/associatevpc",
                .body = BODY_XML },
        [AWS_DISASSOCIATE_ZONE] = { .name = "remove VPC from hosted zone",
                .service = "route53",
                .method = "POST",
                .path = "/2013-04-01/hostedzone/{zone}/disassociatevpc",
                .body = BODY_XML },
        [AWS_DELETE_VPC] = DELETE("VPC", "ec2", "DeleteVpc"),
        [AWS_DELETE_GATEWAY] = DELETE("internet gateway", "ec2", "DeleteInternetGateway"),
        [AWS_DELETE_SUBNET] = DELETE("subnet", "ec2", "DeleteSubnet"),
        [AWS_DELETE_ROUTE_TABLE] = DELETE("route table", "ec2", "DeleteRouteTable"),
        [AWS_DELETE_NAT] = DELETE("NAT gateway", "ec2", "DeleteNatGateway"),
        [AWS_RELEASE_ADDRESS] = DELETE("address", "ec2", "ReleaseAddress"),
        [AWS_DELETE_GROUP] = DELETE("security group", "ec2", "DeleteSecurityGroup"),
        [AWS_DELETE_INTERFACE] = DELETE("network interface", "ec2", "DeleteNetworkInterface"),
        [AWS_DELETE_VOLUME] = DELETE("volume", "ec2", "DeleteVolume"),
        [AWS_TERMINATE_INSTANCES] = DELETE("instances", "ec2", "TerminateInstances"),
        [AWS_DELETE_BALANCER] = DELETE("load balancer", ELB, "DeleteLoadBalancer"),
        [AWS_DELETE_CLASSIC] = DELETE("classic load balancer", CLASSIC, "DeleteLoadBalancer"),
        [AWS_DELETE_TARGET_GROUP] = DELETE("target group", ELB, "DeleteTargetGroup"),
        [AWS_DELETE_ROLE] = DELETE("role", "iam", "DeleteRole"),
        [AWS_DELETE_ROLE_POLICY] = DELETE("policy of role", "iam", "DeleteRolePolicy"),
        [AWS_DELETE_PROFILE] = DELETE("instance profile", "iam", "DeleteInstanceProfile"),
        [AWS_REMOVE_ROLE] =
                SET("remove role from instance profile", "iam", "RemoveRoleFromInstanceProfile"),
};
