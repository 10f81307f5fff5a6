/* The nodes' addresses, and how their machines are reached. */
#include "base/clock.h"
#include "provider/address.h"
#include "provider/aws/ops.h"
#include "provider/login.h"

#define BOOT_SECONDS 300
#define RESERVED     4 /* AWS keeps the first four addresses of a subnet, and the last */

/* ---- addresses ---- */

static bool subnet_pool(struct aws_run *w, const struct thing *subnet, struct address_pool *p)
{
        const struct aws_subnet *s = subnet->is;
        const struct aws_interface *e;
        const char *range = s && s->cidr ? s->cidr : subnet->with;
        uint64_t size;
        *p = (struct address_pool){ .arena = &w->arena };
        if (!range || !cidr_parse(range, &p->net, NULL))
                return false;
        size = (uint64_t)1 << cidr_host_bits(&p->net);
        if (!cidr_nth(&p->net, RESERVED, &p->from) || !cidr_nth(&p->net, size - 2, &p->to))
                return false;
        for (size_t i = 0; (e = list_row(w, LIST_INTERFACES, i)); i++) {
                struct ip ip;
                if (e->address && ip_parse(e->address, &ip) && cidr_contains(&p->net, &ip))
                        address_taken(p, &ip);
        }
        return true;
}

static struct thing *interface_subnet(const struct thing *interface)
{
        for (size_t i = 0; i < interface->need_count; i++)
                if (interface->needs[i]->kind == KIND_SUBNET)
                        return interface->needs[i];
        return NULL;
}

/* One pool a subnet, kept while the nodes are walked in the file's order. */
struct pools_of {
        const struct thing *subnet;
        struct address_pool pool;
        struct pools_of *next;
};

static struct address_pool *pool_of(
        struct aws_run *w, struct pools_of **all, const struct thing *subnet)
{
        for (struct pools_of *p = *all; p; p = p->next)
                if (p->subnet == subnet)
                        return &p->pool;
        struct pools_of *p = arena_new(&w->arena, struct pools_of);
        *p = (struct pools_of){ .subnet = subnet, .next = *all };
        *all = p;
        if (!subnet_pool(w, subnet, &p->pool))
                p->pool.net.bits = 32;
        return &p->pool;
}

/* Of one that exists, or the one that prepare asks for. */
static bool node_address_choose(
        struct aws_run *w, struct pools_of **pools, const struct node *n, struct ip *ip)
{
        struct thing *t = node_thing(w, KIND_INTERFACE, n);
        const struct aws_interface *e = t->is;
        struct thing *subnet = interface_subnet(t);
        char text[IP_TEXT];
        if (e && e->address && ip_parse(e->address, ip))
                return true;
        if (!subnet || !address_take(pool_of(w, pools, subnet), ip))
                return false;
        t->with = arena_strdup(&w->arena, ip_format(ip, text));
        return true;
}

void nodes_address(struct aws_run *w)
{
        struct cluster *c = w->run->cluster;
        struct pools_of *pools = NULL;
        for (size_t i = 0; i < c->node_count; i++) {
                struct ip ip;
                node_devices(w, &c->nodes[i]);
                if (node_address_choose(w, &pools, &c->nodes[i], &ip))
                        node_set_address(c, &c->nodes[i], &ip);
        }
        if (aws_bastion_node(w))
                node_address_choose(w, &pools, aws_bastion_node(w), &w->bastion.node.ip[0]);
}

/* The endpoint that the file or AWS gives the API. */
void cluster_balance(struct aws_run *w)
{
        struct cluster *c = w->run->cluster;
        const struct thing *t = thing_of(w, KIND_BALANCER, "api");
        const struct aws_balancer *b = t ? t->is : NULL;
        const char *name = w->zone ? dns_record_name(w) : b ? b->dns : NULL;
        if (name && !(c->balancer && streq(c->balancer, name)))
                c->balancer = arena_strdup(c->arena, name);
}

/* What the cloud's controller and CSI driver mark what they make with, and how they find what is
 * the cluster's. They have no credentials but the instance profile. */
void cluster_conf(struct aws_run *w)
{
        struct cluster *c = w->run->cluster;
        const struct cloud_parts *p = &w->config->cloud;
        if (!w->full || !(p->controller || p->csi))
                return;
        c->cloud_name = arena_strdup(c->arena, w->full);
        c->cloud_config = arena_printf(c->arena, "[Global]\nKubernetesClusterID = %s\n", w->full);
}

/* ---- machines ---- */

/* "2026-11-18T00:30:00.000Z" */
static bool instance_is_young(const struct aws_instance *i)
{
        struct tm tm = { 0 };
        const char *end = i->launched ? strptime(i->launched, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
        return end && clock_wall_ms() / 1000 - timegm(&tm) < BOOT_SECONDS;
}

static enum machine_state instance_state(const struct aws_instance *i)
{
        if (!i || instance_is_dead(i))
                return MACHINE_ABSENT;
        return i->state && (streq(i->state, "running") || streq(i->state, "pending"))
                       ? MACHINE_RUNNING
                       : MACHINE_STOPPED;
}

/* Machines with a public address are reached there, others inside their VPC. */
static void machine_target(struct aws_run *w, struct machine *m)
{
        const struct node *n = m->node;
        const struct thing *t = node_thing(w, KIND_ADDRESS, n);
        const struct aws_address *e = t ? t->is : NULL;
        bool bastion = n == &w->bastion.node;
        login_target(w->run, n,
                bastion ? bastion_user(&w->config->bastion, w->config->user) : w->config->user,
                &m->target);
        if (!bastion)
                bastion_way(w->run, &w->bastion, &w->config->bastion, &m->target);
        if (e && e->address && !m->target.bastion)
                m->target.host = arena_strdup(w->run->arena, e->address);
}

void machine_fill(struct aws_run *w, struct machine *m)
{
        struct arena *a = w->run->arena;
        char role[300];
        snprintf(role, sizeof(role), "node/%s", m->node->name);
        const struct thing *t = thing_of(w, KIND_INSTANCE, role);
        const struct aws_instance *i = index_get(&w->lists[LIST_INSTANCES].by_role, role);
        if (!i && t && t->there)
                i = t->is;
        m->state = instance_state(i);
        m->region = arena_strdup(a, w->config->region);
        m->zone = arena_strdup(a, node_zone(w, m->node));
        if (i) {
                m->booting = m->state == MACHINE_RUNNING &&
                             (instance_is_young(i) || w->bastion.machine.booting);
                m->zone = i->zone ? arena_strdup(a, i->zone) : m->zone;
                m->provider_id = arena_printf(a, "aws:///%s/%s", m->zone, i->id);
                m->detail = i->state ? arena_strdup(a, i->state) : NULL;
        }
        machine_target(w, m);
}
