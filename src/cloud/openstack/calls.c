#include "cloud/openstack/answers.h"

static const struct call_page os_next[] = { { PAGE_LINKS, "marker" }, { 0 } };
#define LIST(what, service_, path_, query_, key, type_) \
        { \
                .name = "list " what, .service = service_, .method = "GET", .path = path_, \
                .query = query_, .list = key, .pages = os_next, .answer = &type_##_schema \
        }
#define GET(what, service_, path_, key, type_) \
        { \
                .name = "read " what, .service = service_, .method = "GET", .path = path_, \
                .wrap = key, .answer = &type_##_schema \
        }
#define CREATE(what, service_, path_, key, type_) \
        { \
                .name = "create " what, .service = service_, .method = "POST", .path = path_, \
                .body = BODY_JSON, .wrap = key, .retry = RETRY_ONCE, .answer = &type_##_schema \
        }
/* PUT sets what it says, however often. */
#define PUT(what, service_, path_, key) \
        { \
                .name = what, .service = service_, .method = "PUT", .path = path_, \
                .body = BODY_JSON, .wrap = key \
        }
#define DELETE(what, service_, path_, query_) \
        { \
                .name = "delete " what, .service = service_, .method = "DELETE", .path = path_, \
                .query = query_ \
        }

const struct call_row os_calls[OS_CALLS] = {
        [OS_LIST_IMAGES] = LIST("images", "image", "/images", "id={id}&name={name}&status=active",
                "images", os_image),
        /* of any status, and not only by the mark */
        [OS_LIST_UPLOADS] = LIST("images", "image", "/images", "name={name}&slipway-mark={mark}",
                "images", os_image),
        [OS_IMPORT_METHODS] =
                GET("import methods", "image", "/info/import", "import-methods", os_methods),
        [OS_LIST_FLAVORS] =
                LIST("flavors", "compute", "/flavors/detail", NULL, "flavors", os_flavor),
        [OS_LIST_ZONES] = LIST(
                "zones", "compute", "/os-availability-zone", NULL, "availabilityZoneInfo", os_zone),
        [OS_COMPUTE_LIMITS] = GET("limits", "compute", "/limits", "limits", os_compute_limits),
        [OS_VOLUME_LIMITS] = GET("limits", "block-storage", "/limits", "limits", os_volume_limits),
        [OS_NETWORK_QUOTA] = GET(
                "quotas", "network", "/quotas/{project}/details.json", "quota", os_network_quota),
        [OS_BALANCER_QUOTA] = GET(
                "quotas", "load-balancer", "/lbaas/quotas/{project}", "quota", os_balancer_quota),
        [OS_LIST_EXTENSIONS] =
                LIST("extensions", "network", "/extensions", NULL, "extensions", os_extension),
        [OS_LIST_NETWORKS] = LIST("networks", "network", "/networks",
                "description={mark}&name={name}&id={id}", "networks", os_network),
        [OS_LIST_SUBNETS] = LIST("subnets", "network", "/subnets",
                "description={mark}&name={name}&network_id={network}", "subnets", os_subnet),
        [OS_LIST_ROUTERS] = LIST("routers", "network", "/routers", "description={mark}&name={name}",
                "routers", os_router),
        [OS_LIST_PORTS] = LIST("ports", "network", "/ports",
                "description={mark}&device_id={device}&network_id={network}", "ports", os_port),
        [OS_LIST_TRUNKS] =
                LIST("trunks", "network", "/trunks", "description={mark}", "trunks", os_trunk),
        [OS_LIST_GROUPS] = LIST("security groups", "network", "/security-groups",
                "description={mark}&name={name}", "security_groups", os_group),
        [OS_LIST_FLOATING_IPS] = LIST("floating IPs", "network", "/floatingips",
                "description={mark}&floating_ip_address={address}", "floatingips", os_floating_ip),
        [OS_LIST_SERVER_GROUPS] = LIST("server groups", "compute", "/os-server-groups", NULL,
                "server_groups", os_server_group),
        [OS_LIST_VOLUMES] = LIST("volumes", "block-storage", "/volumes/detail",
                "metadata={metadata}", "volumes", os_volume),
        [OS_LIST_VOLUME_TYPES] = LIST(
                "volume types", "block-storage", "/types", NULL, "volume_types", os_volume_type),
        [OS_LIST_SERVERS] =
                LIST("servers", "compute", "/servers/detail", "tags={mark}", "servers", os_server),
        [OS_GET_SERVER] = GET("server", "compute", "/servers/{id}", "server", os_server),
        [OS_LIST_BALANCERS] = LIST("load balancers", "load-balancer", "/lbaas/loadbalancers",
                "tags={mark}", "loadbalancers", os_balancer),
        [OS_GET_BALANCER] = GET("load balancer", "load-balancer", "/lbaas/loadbalancers/{id}",
                "loadbalancer", os_balancer),
        [OS_LIST_POOLS] = LIST(
                "pools", "load-balancer", "/lbaas/pools", "loadbalancer_id={id}", "pools", os_pool),
        [OS_LIST_MEMBERS] = LIST("members", "load-balancer", "/lbaas/pools/{pool}/members", NULL,
                "members", os_member),
        [OS_LIST_CREDENTIALS] =
                LIST("application credentials", "identity", "/users/{user}/application_credentials",
                        NULL, "application_credentials", os_credential),
        [OS_CREATE_IMAGE] = { .name = "create image",
                .service = "image",
                .method = "POST",
                .path = "/images",
                .body = BODY_JSON,
                .retry = RETRY_ONCE,
                .answer = &os_image_schema },
        [OS_SEND_IMAGE] = { .name = "upload image",
                .service = "image",
                .method = "PUT",
                .path = "/images/{id}/file",
                .retry = RETRY_ONCE },
        [OS_IMPORT_IMAGE] = { .name = "import image",
                .service = "image",
                .method = "POST",
                .path = "/images/{id}/import",
                .body = BODY_JSON,
                .wrap = "method",
                .retry = RETRY_ONCE },
        [OS_READ_IMAGE] = { .name = "read image",
                .service = "image",
                .method = "GET",
                .path = "/images/{id}/file",
                .retry = RETRY_ONCE },
        [OS_TAG_IMAGE] = { .name = "tag image",
                .service = "image",
                .method = "PUT",
                .path = "/images/{id}/tags/{tag}" },
        [OS_CREATE_NETWORK] = CREATE("network", "network", "/networks", "network", os_network),
        [OS_CREATE_SUBNET] = CREATE("subnet", "network", "/subnets", "subnet", os_subnet),
        [OS_CREATE_ROUTER] = CREATE("router", "network", "/routers", "router", os_router),
        [OS_ADD_INTERFACE] =
                PUT("add router interface", "network", "/routers/{id}/add_router_interface", NULL),
        [OS_REMOVE_INTERFACE] = PUT("remove router interface", "network",
                "/routers/{id}/remove_router_interface", NULL),
        [OS_CREATE_GROUP] =
                CREATE("security group", "network", "/security-groups", "security_group", os_group),
        [OS_CREATE_RULES] = { .name = "create security group rules",
                .service = "network",
                .method = "POST",
                .path = "/security-group-rules",
                .body = BODY_JSON,
                .wrap = "security_group_rules",
                .retry = RETRY_ONCE,
                .list = "security_group_rules",
                .answer = &os_rule_schema },
        [OS_CREATE_PORTS] = { .name = "create ports",
                .service = "network",
                .method = "POST",
                .path = "/ports",
                .body = BODY_JSON,
                .wrap = "ports",
                .retry = RETRY_ONCE,
                .list = "ports",
                .answer = &os_port_schema },
        [OS_CREATE_TRUNK] = CREATE("trunk", "network", "/trunks", "trunk", os_trunk),
        [OS_CREATE_FLOATING_IP] =
                CREATE("floating IP", "network", "/floatingips", "floatingip", os_floating_ip),
        [OS_CREATE_SERVER_GROUP] = CREATE(
                "server group", "compute", "/os-server-groups", "server_group", os_server_group),
        [OS_CREATE_VOLUME] = CREATE("volume", "block-storage", "/volumes", "volume", os_volume),
        /* the body has scheduler hints beside the server */
        [OS_CREATE_SERVER] = { .name = "create server",
                .service = "compute",
                .method = "POST",
                .path = "/servers",
                .body = BODY_JSON,
                .retry = RETRY_ONCE },
        [OS_SERVER_ACTION] = { .name = "act on server",
                .service = "compute",
                .method = "POST",
                .path = "/servers/{id}/action",
                .body = BODY_JSON,
                .retry = RETRY_ONCE },
        [OS_ATTACH_VOLUME] = { .name = "attach volume",
                .service = "compute",
                .method = "POST",
                .path = "/servers/{id}/os-volume_attachments",
                .body = BODY_JSON,
                .wrap = "volumeAttachment",
                .retry = RETRY_ONCE },
        [OS_ATTACH_PORT] = { .name = "attach port",
                .service = "compute",
                .method = "POST",
                .path = "/servers/{id}/os-interface",
                .body = BODY_JSON,
                .wrap = "interfaceAttachment",
                .retry = RETRY_ONCE },
        [OS_SET_PORT] = { .name = "set port",
                .service = "network",
                .method = "PUT",
                .path = "/ports/{id}",
                .body = BODY_JSON,
                .wrap = "port",
                .answer = &os_port_schema },
        [OS_CREATE_BALANCER] = CREATE("load balancer", "load-balancer", "/lbaas/loadbalancers",
                "loadbalancer", os_balancer),
        [OS_SET_MEMBERS] =
                PUT("set members", "load-balancer", "/lbaas/pools/{pool}/members", "members"),
        [OS_SET_LISTENER] =
                PUT("set listener", "load-balancer", "/lbaas/listeners/{id}", "listener"),
        [OS_SET_BALANCER] = PUT(
                "set load balancer", "load-balancer", "/lbaas/loadbalancers/{id}", "loadbalancer"),
        [OS_SET_TAGS] = PUT("set tags", "network", "/{kind}/{id}/tags", "tags"),
        [OS_CREATE_CREDENTIAL] = CREATE("application credential", "identity",
                "/users/{user}/application_credentials", "application_credential", os_credential),
        [OS_DELETE_NETWORK] = DELETE("network", "network", "/networks/{id}", NULL),
        [OS_DELETE_SUBNET] = DELETE("subnet", "network", "/subnets/{id}", NULL),
        [OS_DELETE_ROUTER] = DELETE("router", "network", "/routers/{id}", NULL),
        [OS_DELETE_PORT] = DELETE("port", "network", "/ports/{id}", NULL),
        [OS_DELETE_TRUNK] = DELETE("trunk", "network", "/trunks/{id}", NULL),
        [OS_DELETE_GROUP] = DELETE("security group", "network", "/security-groups/{id}", NULL),
        [OS_DELETE_RULE] =
                DELETE("security group rule", "network", "/security-group-rules/{id}", NULL),
        [OS_DELETE_FLOATING_IP] = DELETE("floating IP", "network", "/floatingips/{id}", NULL),
        [OS_DELETE_SERVER_GROUP] =
                DELETE("server group", "compute", "/os-server-groups/{id}", NULL),
        [OS_DELETE_VOLUME] = DELETE("volume", "block-storage", "/volumes/{id}", NULL),
        [OS_DELETE_SERVER] = DELETE("server", "compute", "/servers/{id}", NULL),
        [OS_DELETE_BALANCER] = DELETE(
                "load balancer", "load-balancer", "/lbaas/loadbalancers/{id}", "cascade=true"),
        [OS_DELETE_CREDENTIAL] = DELETE("application credential", "identity",
                "/users/{user}/application_credentials/{id}", NULL),
        [OS_DELETE_IMAGE] = DELETE("image", "image", "/images/{id}", NULL),
};
