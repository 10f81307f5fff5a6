/* The bastion that slipway makes: a server like a node's, with a port and a floating IP of its own,
 * in a security group that opens only ssh. prepare makes it after what it needs, so that nodes are
 * made when there is a way to them, and takes it away when the file wants none. */
#include "provider/openstack/openstack.h"

void os_bastion_begin(struct os *os)
{
        const struct provider_run *run = os->run;
        bastion_begin(&os->bastion, run, &os->options->bastion,
                arena_printf(run->cluster->arena, "%s-bastion",
                        os->name ? os->name : run->cluster->name));
}

bool os_is_bastion_name(const struct os *os, const char *name)
{
        return name && streq(name, os->bastion.node.name);
}

struct os_spot *os_spot_of(const struct os *os, const struct node *n)
{
        const struct cluster *c = os->run->cluster;
        return &os->found.spots[n == &os->bastion.node ? c->node_count : (size_t)(n - c->nodes)];
}

struct os_spot *os_spot_named(const struct os *os, const char *name)
{
        const struct node *n = name ? cluster_node(os->run->cluster, name) : NULL;
        if (n)
                return os_spot_of(os, n);
        return os_is_bastion_name(os, name) ? os_spot_of(os, &os->bastion.node) : NULL;
}

void os_bastion_settle(struct os *os)
{
        const struct os_spot *s = os_spot_of(os, &os->bastion.node);
        struct ip ip = os_port_ip(s->port);
        if (ip.family)
                os->bastion.node.ip[0] = ip;
        os_machine(os, &os->bastion.node, s->server, s->port, s->floating, &os->bastion.machine);
        if (!s->floating)
                os->bastion.machine.target.host = NULL;
}

const struct machine *openstack_bastion(struct provider_run *run)
{
        const struct os *os = run->own;
        return os && os_bastion(os) ? &os->bastion.machine : NULL;
}

bool os_bastion_missing(const struct os *os)
{
        return os_bastion(os) && os->bastion.machine.state != MACHINE_RUNNING;
}

/* ---- what is left of one ---- */

bool os_bastion_is_left(const struct os *os)
{
        const struct os_found *f = &os->found;
        const struct os_server *servers = f->servers.v;
        const struct os_port *ports = f->ports.v;
        if (os->bastion.wanted || !os->mark)
                return false;
        for (size_t i = 0; i < f->servers.n; i++)
                if (os_is_bastion_name(os, servers[i].name))
                        return true;
        for (size_t i = 0; i < f->ports.n; i++)
                if (os_is_bastion_name(os, ports[i].name) && os_marked(os, ports[i].description))
                        return true;
        return f->bastion_group != NULL;
}

/* Before its port: it is found by that. */
static void stage_bastion_floating_gone(struct os_job *j)
{
        const struct os_floating_ip *f = os_spot_of(j->os, &j->os->bastion.node)->floating;
        struct pair id[] = { { "id", f ? f->id : NULL }, { 0 } };
        if (f)
                job_ask(j, &(struct os_ask){ .call = OS_DELETE_FLOATING_IP,
                                   .args = id,
                                   .resource = f->address });
}

/* Last: its port is found by the network, but the group only by its own list. */
static void stage_bastion_group_gone(struct os_job *j)
{
        const struct os_group *g = j->os->found.bastion_group;
        struct pair id[] = { { "id", g ? g->id : NULL }, { 0 } };
        if (g)
                job_ask(j, &(struct os_ask){
                                   .call = OS_DELETE_GROUP, .args = id, .resource = g->name });
}

/* ---- making and removing it ---- */

struct bastioning {
        struct os *os;
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static void on_bastion_over(struct error *err, void *arg)
{
        const struct bastioning *b = arg;
        b->fn(err, b->arg);
}

static void on_bastion_made(struct machine *m, struct error *err, void *arg)
{
        if (err)
                error_wrap(err, "bastion %s", m->node->name);
        on_bastion_over(err, arg);
}

static void on_bastion_gone(struct machine *m, struct error *err, void *arg)
{
        static const os_stage stages[] = { stage_bastion_group_gone, NULL };
        const struct bastioning *b = arg;
        if (err)
                on_bastion_made(m, err, arg);
        else
                job_start(b->os, stages, NULL, on_bastion_over, arg);
}

static void on_bastion_floating_gone(struct error *err, void *arg)
{
        const struct bastioning *b = arg;
        if (err)
                on_bastion_over(err, arg);
        else
                openstack_destroy(b->os->run, &b->os->bastion.machine, on_bastion_gone, arg);
}

void os_bastion_make(struct os *os, void (*fn)(struct error *err, void *arg), void *arg)
{
        static const os_stage gone[] = { stage_bastion_floating_gone, NULL };
        struct bastioning *b = arena_new(os->run->arena, struct bastioning);
        *b = (struct bastioning){ os, fn, arg };
        if (os_bastion_missing(os))
                openstack_create(os->run, &os->bastion.machine, on_bastion_made, b);
        else if (os_bastion_is_left(os))
                job_start(os, gone, NULL, on_bastion_floating_gone, b);
        else
                fn(NULL, arg);
}
