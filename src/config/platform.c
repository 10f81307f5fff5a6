#include "config/platform.h"

const char *const platform_names[] = { "openstack", "aws", "gce", "azure", "vsphere", "oci",
        "hetzner", NULL };

/* clang-format off */

static const struct platform_variable common_variables[] = {
        { "image", VARIABLE_TEXT, NULL, false, true, "The image of machines whose pool has none." },
        { "size", VARIABLE_TEXT, NULL, false, true, "The machine size (flavor, instance type, shape) of pools that have none." },
        { "zones", VARIABLE_LIST, NULL, false, true, "Zones that machines are assigned to in turn, if their pool has none." },
        { "public", VARIABLE_TEXT, "none", false, true, "Which machines get a public address: all, control-plane or none. Without one, the operator's computer needs another way to them, such as a bastion." },
        { "cidr", VARIABLE_TEXT, "10.64.0.0/16", false, false, "The address range of the machines' network." },
        { "ssh_from", VARIABLE_LIST, "0.0.0.0/0", false, true, "Ranges that may connect to port 22 of the machines." },
        { "api_from", VARIABLE_LIST, "0.0.0.0/0", false, true, "Ranges that may connect to the API." },
        { "node_ports_from", VARIABLE_LIST, "", false, true, "Ranges that may connect to ports 80, 443 and node ports of the machines." },
        { "dns_zone", VARIABLE_TEXT, NULL, false, false, "An existing DNS zone, such as example.net: the API gets the name CLUSTER.ZONE." },
};

static const struct platform_variable openstack_variables[] = {
        { "cloud", VARIABLE_TEXT, NULL, false, false, "The entry of clouds.yaml; otherwise the environment decides." },
        { "region", VARIABLE_TEXT, NULL, false, false, "Overrides the region of clouds.yaml." },
        { "network", VARIABLE_TEXT, NULL, false, false, "The name of an existing network, whose range is then `cidr`; otherwise one is created." },
        { "subnet", VARIABLE_TEXT, NULL, false, false, "The name of its subnet, if it has several." },
        { "external_network", VARIABLE_TEXT, NULL, false, false, "The network of public addresses. A network that is created gets a router to it, the load balancer and public machines a floating IP." },
        { "dns_servers", VARIABLE_LIST, "", false, false, "DNS servers of the created subnet." },
        { "key_pair", VARIABLE_TEXT, NULL, false, false, "The name of an existing key pair." },
};

static const struct platform_variable aws_variables[] = {
        { "region", VARIABLE_TEXT, NULL, true, false, "The region." },
        { "profile", VARIABLE_TEXT, NULL, false, false, "The profile in ~/.aws; otherwise the environment decides." },
        { "vpc", VARIABLE_TEXT, NULL, false, false, "The id of an existing VPC, whose range is then `cidr`; otherwise one is created." },
        { "subnets", VARIABLE_LIST, "", false, false, "The ids of its subnets, one per zone." },
        { "root_size", VARIABLE_NUMBER, "40", false, false, "Size of the system disk in GiB." },
        { "instance_profile", VARIABLE_TEXT, NULL, false, false, "The IAM instance profile of the machines." },
        { "key_pair", VARIABLE_TEXT, NULL, false, false, "The name of an existing key pair." },
};

static const struct platform_variable gce_variables[] = {
        { "project", VARIABLE_TEXT, NULL, true, false, "The project." },
        { "region", VARIABLE_TEXT, NULL, true, false, "The region." },
        { "root_size", VARIABLE_NUMBER, "40", false, false, "Size of the system disk in GiB." },
};

static const struct platform_variable azure_variables[] = {
        { "subscription", VARIABLE_TEXT, NULL, false, false, "The id of the subscription; otherwise the environment decides." },
        { "location", VARIABLE_TEXT, NULL, true, false, "The location." },
        { "root_size", VARIABLE_NUMBER, "40", false, false, "Size of the system disk in GiB." },
        { "disk_type", VARIABLE_TEXT, "StandardSSD_LRS", false, false, "The type of system disks, and of volumes that have none." },
        { "dns_group", VARIABLE_TEXT, NULL, false, false, "The resource group of the DNS zone." },
};

static const struct platform_variable vsphere_variables[] = {
        { "datacenter", VARIABLE_TEXT, NULL, true, false, "The datacenter." },
        { "cluster", VARIABLE_TEXT, NULL, true, false, "The compute cluster." },
        { "datastore", VARIABLE_TEXT, NULL, true, false, "The datastore." },
        { "network", VARIABLE_TEXT, NULL, true, false, "The existing network (port group) of the machines." },
        { "folder", VARIABLE_TEXT, NULL, false, false, "The folder of the machines." },
        { "root_size", VARIABLE_NUMBER, "40", false, false, "Size of the system disk in GiB, at least that of the template." },
};

static const struct platform_variable oci_variables[] = {
        { "region", VARIABLE_TEXT, NULL, true, false, "The region." },
        { "compartment", VARIABLE_TEXT, NULL, true, false, "The id of the compartment." },
        { "root_size", VARIABLE_NUMBER, "50", false, false, "Size of the system disk in GiB." },
};

static const struct platform_variable hetzner_variables[] = {
        { "public", VARIABLE_TEXT, "all", false, true, "Which machines get a public address: all, control-plane or none. Without one, a machine reaches nothing outside the network." },
        { "network_zone", VARIABLE_TEXT, "eu-central", false, false, "The network zone." },
        { "balancer_type", VARIABLE_TEXT, "lb11", false, false, "The type of the load balancer." },
};

/* clang-format on */

#define VARIABLES(table) .variables = table, .variable_count = ARRAY_SIZE(table)

static const struct platform platforms[PLATFORM_COUNT] = {
        [PLATFORM_OPENSTACK] = { "openstack", "OpenStack",
                PLATFORM_BALANCER | PLATFORM_VIP | PLATFORM_SIZES, 65535,
                VARIABLES(openstack_variables) },
        [PLATFORM_AWS] = { "aws", "AWS", PLATFORM_BALANCER | PLATFORM_SIZES | PLATFORM_ZONED, 21848,
                VARIABLES(aws_variables) },
        [PLATFORM_GCE] = { "gce", "Google Compute Engine",
                PLATFORM_BALANCER | PLATFORM_SIZES | PLATFORM_ZONED, 262144,
                VARIABLES(gce_variables) },
        [PLATFORM_AZURE] = { "azure", "Azure", PLATFORM_BALANCER | PLATFORM_SIZES | PLATFORM_KEYS,
                65535, VARIABLES(azure_variables) },
        [PLATFORM_VSPHERE] = { "vsphere", "vSphere", PLATFORM_VIP | PLATFORM_SHAPES, 65535,
                VARIABLES(vsphere_variables) },
        [PLATFORM_OCI] = { "oci", "Oracle Cloud",
                PLATFORM_BALANCER | PLATFORM_SIZES | PLATFORM_SHAPES | PLATFORM_ZONED, 32000,
                VARIABLES(oci_variables) },
        [PLATFORM_HETZNER] = { "hetzner", "Hetzner Cloud",
                PLATFORM_BALANCER | PLATFORM_SIZES | PLATFORM_ZONED, 32768,
                VARIABLES(hetzner_variables) },
};

const struct platform *platform_row(enum platform_kind kind) { return &platforms[kind]; }

const struct platform_variable *platform_variable_at(const struct platform *p, size_t i)
{
        if (i < p->variable_count)
                return &p->variables[i];
        i -= p->variable_count;
        return i < ARRAY_SIZE(common_variables) ? &common_variables[i] : NULL;
}

const struct platform_variable *platform_variable(const struct platform *p, const char *name)
{
        const struct platform_variable *v;
        for (size_t i = 0; (v = platform_variable_at(p, i)); i++)
                if (streq(v->name, name))
                        return v;
        return NULL;
}

const char *terraform_variable(const struct cluster *c, const char *name)
{
        const struct pairs *all = &c->provider.terraform.variables;
        for (size_t i = 0; i < all->n; i++)
                if (streq(all->v[i].key, name))
                        return all->v[i].value;
        return NULL;
}

const char *terraform_pool_variable(const struct cluster *c, const struct pool *p, const char *name)
{
        const struct pairs *all = &c->provider.terraform.variables;
        size_t n = p->name ? strlen(p->name) : 0;
        for (size_t i = 0; n && i < all->n; i++)
                if (has_prefix(all->v[i].key, p->name) && all->v[i].key[n] == '.' &&
                        streq(all->v[i].key + n + 1, name))
                        return all->v[i].value;
        return terraform_variable(c, name);
}

bool platform_pool_variable(const char *name)
{
        static const char *const names[] = { "image", "size", "zones", "public" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

struct strings platform_list(struct arena *a, const char *text)
{
        struct strings out = { 0 };
        while (text && *(text += strspn(text, ", "))) {
                size_t n = strcspn(text, ", ");
                strings_add(a, &out, arena_strndup(a, text, n));
                text += n;
        }
        return out;
}
