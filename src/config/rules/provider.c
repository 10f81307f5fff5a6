/* What belongs to one provider and was written for another, and what a provider
 * cannot do without. */
#include "config/rules/rules.h"

#define CLOUDS (1 << PROVIDER_OPENSTACK | 1 << PROVIDER_AWS)

/* Pool fields that only some providers read. */
static const struct {
        const char *field;
        unsigned providers;
        const char *instead[PROVIDER_TERRAFORM + 1]; /* by provider; NULL: leave it out */
} pool_fields[] = {
        { "flavor", 1 << PROVIDER_OPENSTACK,
                { [PROVIDER_AWS] = "use instanceType",
                        [PROVIDER_LOCAL] = "use machine: {cpus, memory}" } },
        { "instanceType", 1 << PROVIDER_AWS,
                { [PROVIDER_OPENSTACK] = "use flavor",
                        [PROVIDER_LOCAL] = "use machine: {cpus, memory}" } },
        { "machine", 1 << PROVIDER_LOCAL | 1 << PROVIDER_TERRAFORM, { 0 } },
        { "image", CLOUDS, { 0 } },
        { "zones", CLOUDS, { 0 } },
        { "floatingIP", 1 << PROVIDER_OPENSTACK, { [PROVIDER_AWS] = "use publicIP" } },
        { "publicIP", 1 << PROVIDER_AWS, { [PROVIDER_OPENSTACK] = "use floatingIP" } },
        { "spot", 1 << PROVIDER_AWS, { 0 } },
        { "rootVolume", CLOUDS, { 0 } },
        { "spread", 1 << PROVIDER_OPENSTACK, { 0 } },
};

static bool pool_field_refused(const char *field)
{
        char path[64];
        snprintf(path, sizeof(path), "pools.%s", field);
        return schema_refused(path);
}

static void foreign_fields(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        enum provider_kind kind = c->provider.kind;
        for (size_t i = 0; i < ARRAY_SIZE(pool_fields); i++) {
                const struct tree *at = tree_get(pool->src, pool_fields[i].field);
                const char *instead = pool_fields[i].instead[kind];
                if (at && !pool_field_refused(pool_fields[i].field) &&
                        !(pool_fields[i].providers & 1u << kind))
                        problem_add_key(p, at, instead ? instead : "leave it out",
                                "%s has no effect with provider %s", pool_fields[i].field,
                                provider_words[kind]);
        }
}

static bool provider_is_flatcar(const struct pool *pool)
{
        return pool->os && streq(pool->os, "flatcar");
}

void rule_user_data(const struct pool *pool, enum user_data format, struct problems *p)
{
        if (format == USER_DATA_IGNITION && pool->os && !provider_is_flatcar(pool))
                problem_add(p, pool->src, "os", "use userData: cloud-init, or os: flatcar",
                        "%s does not read Ignition, but the provider's userData is ignition",
                        pool->os);
        else if (format == USER_DATA_IGNITION && !pool->os)
                problem_warn(p, pool->src, "os", "set os: flatcar in the pool",
                        "userData is ignition, but the pool does not name an operating system that reads it");
        else if (format == USER_DATA_CLOUD_INIT && provider_is_flatcar(pool))
                problem_add(p, pool->src, "os", "use userData: ignition in the provider",
                        "Flatcar reads Ignition, but the provider's userData is cloud-init");
}

/* A pool's zones are some of the provider's, when that lists any. */
static void pool_zones(const struct pool *pool, const struct strings *zones, struct problems *p)
{
        for (size_t i = 0; i < pool->zones.n && zones->n; i++) {
                bool found = false;
                for (size_t k = 0; pool->zones.v[i] && k < zones->n; k++)
                        found |= zones->v[k] && streq(pool->zones.v[i], zones->v[k]);
                if (!found && pool->zones.v[i])
                        problem_add(p, rule_item(tree_get(pool->src, "zones"), i), NULL,
                                "use one of the provider's zones, or add it there",
                                "the provider has no zone \"%s\"", pool->zones.v[i]);
        }
}

/* One that exists has an address, one that is made has a size. */
static void provider_bastion(const struct cluster *c, const struct bastion *b, const char *size,
        const char *example, struct problems *p)
{
        static const char *const made[] = { "image", "user" };
        const char *path =
                arena_printf(p->arena, "provider.%s.bastion", provider_words[c->provider.kind]);
        if (!b->src || rule_spoiled(p, path))
                return;
        const char *what = b->flavor ? b->flavor : b->type;
        if (!b->address && !what)
                rule_error(p, c, path,
                        arena_printf(p->arena, "name one, such as %s: %s", size, example),
                        "a bastion that slipway creates needs the %s of its machine", size);
        else if (b->address && what)
                problem_add(p, b->src, "address",
                        "leave address out to create a bastion, or name only the address",
                        "a bastion that exists has an address, and one that slipway creates has the field %s",
                        size);
        for (size_t i = 0; b->address && !what && i < ARRAY_SIZE(made); i++)
                if (tree_get(b->src, made[i]))
                        problem_add(p, b->src, made[i],
                                "leave it out; a user is part of the address: user@host",
                                "%s is of a bastion that slipway creates, and %s exists", made[i],
                                b->address);
}

/* What describes a new network has no effect on one that exists. */
static void openstack_existing(const struct provider_openstack *o, struct problems *p)
{
        static const char *const fields[] = { "cidr", "dns", "mtu" };
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                const struct tree *at = tree_get(o->network.src, fields[i]);
                if (at)
                        problem_add_key(p, at, "leave it out, or leave the name out",
                                "%s is of a network that slipway creates, and %s exists", fields[i],
                                o->network.name);
        }
}

static void volume_sizes(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        for (size_t i = 0; i < pool->volumes.n; i++)
                if (!tree_get(pool->volumes.v[i].src, "size"))
                        problem_add(p, pool->volumes.v[i].src, "size",
                                "set it, such as size: 20GiB",
                                "provider %s creates the volume and needs its size",
                                provider_words[c->provider.kind]);
}

static void openstack_volumes(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        static const char *const foreign[] = { "encrypted", "kmsKey", "iops" };
        const struct root_volume *v = &pool->root_volume;
        volume_sizes(c, pool, p);
        if (v->src && !tree_get(v->src, "size") && v->src->kind == TREE_MAP)
                problem_add(p, v->src, "size", "set it, such as size: 50GiB",
                        "provider openstack creates the system disk from the image and needs its size");
        for (size_t i = 0; v->src && i < ARRAY_SIZE(foreign); i++)
                if (tree_get(v->src, foreign[i]))
                        problem_add(p, v->src, foreign[i],
                                "leave it out, and use a type that has it",
                                "%s has no effect with provider openstack", foreign[i]);
}

/* Zones of volumes are those of their machines. */
static void aws_volume_zones(const struct pool *pool, struct problems *p)
{
        static const char hint[] = "leave it out: it is the zone of the machine";
        if (pool->root_volume.zone)
                problem_add(p, pool->root_volume.src, "zone", hint,
                        "zone has no effect with provider aws");
        for (size_t i = 0; i < pool->volumes.n; i++)
                if (pool->volumes.v[i].zone)
                        problem_add(p, pool->volumes.v[i].src, "zone", hint,
                                "zone has no effect with provider aws");
}

static bool is_sha256(const char *s)
{
        return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

/* The format that the end of a URL's path names, or NULL. */
static const char *url_format(const char *url)
{
        static const char *const ends[] = { ".qcow2", ".raw", ".iso" };
        size_t n = strcspn(url, "?#");
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                if (n > strlen(ends[i]) &&
                        !strncmp(url + n - strlen(ends[i]), ends[i], strlen(ends[i])))
                        return ends[i] + 1;
        return NULL;
}

/* One that is uploaded has a name, one source and its checksum. */
static void openstack_image(struct cluster *c, struct problems *p)
{
        static const char path[] = "provider.openstack.image";
        struct os_image_options *i = &c->provider.openstack.image;
        const char *source = i->file ? i->file : i->url;
        if (!i->src || rule_spoiled(p, path))
                return;
        if (!i->name && (source || !i->properties.n))
                rule_error(p, c, path, "add name", "the image has no name");
        else if (i->file && i->url)
                problem_add(p, i->src, "url", "use one of them",
                        "the image comes from a file or from a URL");
        else if (source && (!i->sha256 || !is_sha256(i->sha256)))
                problem_add(p, i->src, "sha256",
                        "set it to the 64 digits that `sha256sum` prints for the file",
                        i->sha256 ? "this is no SHA-256 checksum in lower-case digits"
                                  : "an image that slipway uploads needs its checksum");
        else if (!source && (i->sha256 || i->format))
                problem_add(p, i->src, i->sha256 ? "sha256" : "format",
                        "leave it out, or set file or url to upload the image",
                        "%s is of an image that slipway uploads, and this one exists",
                        i->sha256 ? "sha256" : "format");
        else if (i->url && !i->format && !(i->format = url_format(i->url)))
                problem_add(p, i->src, "url", "set format, such as format: qcow2",
                        "the URL does not end in the image's format");
        else if (i->url && strchr(i->url, '@'))
                problem_add(p, i->src, "url", "download the image, and set file instead",
                        "Glance stores the URL, so a password in it would be seen by others");
}

static void openstack_ports(const struct cluster *c, struct problems *p)
{
        const struct provider_openstack *o = &c->provider.openstack;
        const struct os_port_options *s = &o->ports;
        bool none = false;
        if (!s->src || rule_spoiled(p, "provider.openstack.ports"))
                return;
        rule_duplicates(p, tree_get(s->src, "networks"), &s->networks, "network");
        for (size_t i = 0; i < s->networks.n; i++)
                if (o->network.name && streq(s->networks.v[i], o->network.name))
                        problem_add(p, s->src, "networks", "leave it out",
                                "%s is the network of the machines already", o->network.name);
        for (size_t i = 0; i < s->security.n; i++)
                none |= streq(s->security.v[i], "none");
        if (none && s->security.n > 1)
                problem_add(p, s->src, "security", "use none alone, or only names of groups",
                        "none cannot be combined with groups");
        else if (none && s->pairs.n)
                problem_add(p, s->src, "addressPairs", "leave it out",
                        "without port security every address may be sent from");
}

static void openstack(struct cluster *c, struct problems *p)
{
        const struct provider_openstack *o = &c->provider.openstack;
        openstack_image(c, p);
        openstack_ports(c, p);
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                if (!schema_refused("pools.flavor") && !tree_get(pool->src, "flavor") &&
                        !tree_get(pool->src, "instanceType"))
                        problem_add(p, pool->src, "flavor",
                                "name one of `openstack flavor list`, such as flavor: m1.large",
                                "provider openstack needs to know how large the machines are");
                if (pool->floating_ip && !o->external_network)
                        problem_add(p, pool->src, "floatingIP",
                                "set provider.openstack.externalNetwork",
                                "floating IP addresses come from an external network, but none is set");
                openstack_volumes(c, pool, p);
                rule_user_data(pool, o->user_data, p);
                pool_zones(pool, &o->zones, p);
        }
        rule_duplicates(p, rule_find(c, "provider.openstack.zones"), &o->zones, "zone");
        if (o->api_floating_ip && (!o->external_network || o->load_balancer != OS_LB_OCTAVIA))
                rule_error(p, c, "provider.openstack.apiFloatingIP",
                        o->external_network ? "use loadBalancer: octavia, or leave it out"
                                            : "set provider.openstack.externalNetwork",
                        o->external_network
                                ? "only the load balancer of octavia gets a floating IP address"
                                : "floating IP addresses come from an external network, but none is set");
        provider_bastion(c, &o->bastion, "flavor", "m1.small", p);
        if (o->bastion.flavor && !o->external_network)
                problem_add(p, o->bastion.src, "flavor", "set provider.openstack.externalNetwork",
                        "the bastion's floating IP address comes from an external network, but none is set");
        if (o->network.name)
                openstack_existing(o, p);
        if (o->security_groups.n > 1)
                for (size_t i = 0; i < o->security_groups.n; i++)
                        if (o->security_groups.v[i] && streq(o->security_groups.v[i], "managed"))
                                problem_add(p,
                                        rule_item(rule_find(c, "provider.openstack.securityGroups"),
                                                i),
                                        NULL, "use managed alone, or only names of existing groups",
                                        "managed cannot be combined with other groups");
}

static void aws_vpc(const struct cluster *c, struct problems *p)
{
        const struct aws_vpc *v = &c->provider.aws.vpc;
        char text[IP_TEXT + 4];
        if (v->id && tree_get(v->src, "cidr"))
                problem_add(p, v->src, "cidr",
                        "leave cidr out to use that VPC, or leave id out to create a new one",
                        "an existing VPC already has a range");
        else if (v->cidr.ip.family == 6)
                problem_add(p, v->src, "cidr", "use a private range, such as 10.32.0.0/16",
                        "the range of a VPC is IPv4, got %s", cidr_format(&v->cidr, text));
        else if (v->cidr.ip.family && (v->cidr.bits < 16 || v->cidr.bits > 20))
                problem_add(p, v->src, "cidr", "use a /16",
                        "a VPC that slipway creates has a /16 to /20, got /%u", v->cidr.bits);
        if (v->id && !has_prefix(v->id, "vpc-"))
                problem_add(p, v->src, "id", "see `aws ec2 describe-vpcs`",
                        "%s is not the id of a VPC: they begin with vpc-", v->id);
        if (v->subnets.n && !v->id)
                problem_add(p, v->src, "subnets",
                        "set vpc.id too, or leave subnets out: slipway creates one per zone",
                        "subnets belong to an existing VPC, but vpc.id is not set");
        if (v->id && !v->subnets.n)
                problem_add(p, v->src, "id", "list one subnet of each zone in vpc.subnets",
                        "machines in an existing VPC need its subnets, but none is listed");
}

/* One way to find the image; a name alone could be anybody's. */
static void aws_image(const struct cluster *c, struct problems *p)
{
        const struct aws_ami *a = &c->provider.aws.image;
        if (!a->src || rule_spoiled(p, "provider.aws.image"))
                return;
        if (!!a->id + !!a->name + !!a->ssm != 1)
                rule_error(p, c, "provider.aws.image", "use its id, or {name, owner}, or {ssm}",
                        "an AMI is found in one way");
        else if (a->id && !has_prefix(a->id, "ami-"))
                rule_error(p, c, "provider.aws.image",
                        "use {name: …, owner: …} to find one by its name",
                        "%s is not the id of an AMI: they begin with ami-", a->id);
        else if (a->name && !a->owner)
                rule_error(p, c, "provider.aws.image",
                        "add owner: the account's number, or self, amazon or aws-marketplace",
                        "anybody can give an AMI the name %s, so its owner must be known", a->name);
}

static void aws_pool(const struct cluster *c, const struct pool *pool, struct problems *p)
{
        if (!tree_get(pool->src, "instanceType") && !tree_get(pool->src, "flavor"))
                problem_add(p, pool->src, "instanceType",
                        "name one, such as instanceType: m7i.large",
                        "provider aws needs to know how large the machines are");
        if (pool->spot && pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD))
                problem_add(p, pool->src, "spot", "leave it out, or use it in a pool of workers",
                        "AWS takes spot instances back at any time, so the control plane and etcd cannot be on them");
        volume_sizes(c, pool, p);
        aws_volume_zones(pool, p);
}

/* Machines and load balancer have addresses of IPv4 only. */
static void aws_access(const struct cluster *c, struct problems *p)
{
        const struct cloud_access *x = &c->provider.aws.access;
        const struct {
                const char *field;
                const struct cidrs *from;
        } fields[] = { { "ssh", &x->ssh }, { "api", &x->api }, { "nodePorts", &x->node_ports } };
        for (size_t k = 0; k < ARRAY_SIZE(fields); k++)
                for (size_t i = 0; i < fields[k].from->n; i++)
                        if (fields[k].from->v[i].ip.family == 6)
                                problem_add(p, rule_item(tree_get(x->src, fields[k].field), i),
                                        NULL, "leave it out",
                                        "machines of provider aws have only addresses of IPv4, which are not in this range");
}

static void aws(const struct cluster *c, struct problems *p)
{
        const struct provider_aws *a = &c->provider.aws;
        const struct tree *zones = rule_find(c, "provider.aws.zones");
        if (!a->zones.n && !rule_spoiled(p, "provider.aws.zones"))
                rule_error(p, c, "provider.aws.zones",
                        a->region ? arena_printf(p->arena,
                                            "list them, such as zones: [%sa, %sb, %sc]", a->region,
                                            a->region, a->region)
                                  : NULL,
                        "machines are assigned to availability zones, but none is listed");
        for (size_t i = 0; i < a->zones.n; i++)
                if (a->region && a->zones.v[i] &&
                        (!has_prefix(a->zones.v[i], a->region) ||
                                !a->zones.v[i][strlen(a->region)]))
                        problem_add(p, rule_item(zones, i), NULL,
                                arena_printf(p->arena, "its zones are called %sa, %sb and so on",
                                        a->region, a->region),
                                "the zone \"%s\" is not in the region %s", a->zones.v[i],
                                a->region);
        rule_duplicates(p, zones, &a->zones, "zone");
        aws_vpc(c, p);
        aws_access(c, p);
        aws_image(c, p);
        provider_bastion(c, &a->bastion, "instanceType", "t3.micro", p);
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *pool = &c->pools.v[i];
                aws_pool(c, pool, p);
                rule_user_data(pool, a->user_data, p);
                pool_zones(pool, &a->zones, p);
        }
}

/* The machines are Debian whatever the pool says. */
static void local(const struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->pools.n; i++)
                if (c->pools.v[i].os && !streq(c->pools.v[i].os, "debian"))
                        problem_add(p, c->pools.v[i].src, "os", "leave it out",
                                "provider local creates Debian machines, got %s", c->pools.v[i].os);
}

void rules_provider(struct cluster *c, struct problems *p)
{
        for (size_t i = 0; i < c->pools.n; i++) {
                foreign_fields(c, &c->pools.v[i], p);
                if (c->runtime.kind == RUNTIME_CRIO && provider_is_flatcar(&c->pools.v[i]))
                        problem_add(p, c->pools.v[i].src, "os", "use runtime: containerd",
                                "Flatcar includes containerd and does not support cri-o");
        }
        if (c->provider.kind == PROVIDER_OPENSTACK)
                openstack(c, p);
        else if (c->provider.kind == PROVIDER_AWS)
                aws(c, p);
        else if (c->provider.kind == PROVIDER_LOCAL)
                local(c, p);
        else if (c->provider.kind == PROVIDER_TERRAFORM)
                rules_terraform(c, p);
}
