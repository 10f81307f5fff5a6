/* What the cloud has of this cluster, in a handful of calls however many nodes there are, and
 * addresses for what it does not have yet. */
#include "base/clock.h"
#include "cloud/retry.h"
#include "provider/address.h"
#include "provider/login.h"
#include "provider/openstack/openstack.h"

#define BOOT_SECONDS 300

/* ---- helpers ---- */

struct ip os_port_ip(const struct os_port *p)
{
        struct ip ip = { 0 };
        const struct os_fixed_ip *f = p ? p->addresses.v : NULL;
        if (f && p->addresses.n)
                ip_parse(f->address, &ip);
        return ip;
}

void *os_append(struct arena *a, struct answers *list, const struct answer_schema *s)
{
        char *all = arena_alloc(a, (list->n + 1) * s->size);
        if (list->n)
                memcpy(all, list->v, list->n * s->size);
        memset(all + list->n * s->size, 0, s->size);
        list->v = all;
        return all + list->n++ * s->size;
}

/* ---- lists ---- */

static void look_list(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct os_list *l = arg;
        struct arena *a = &j->os->found.arena;
        int r = l->ours ? os_read_ours(j->os, l->call, reply, a, l->into, &err)
                        : call_read_list(&os_calls[l->call], reply, a, l->into, &err);
        if (r < 0)
                job_fail(j, &err);
}

void job_list(struct os_job *j, enum os_call call, const struct pair *args, struct answers *into)
{
        struct os_list *l = arena_new(j->os->run->arena, struct os_list);
        *l = (struct os_list){ call, into, .ours = args && streq(args[0].key, "mark") };
        job_ask(j, &(struct os_ask){ .call = call, .args = args, .fn = look_list, .arg = l });
}

static void look_first(struct os_job *j)
{
        struct os *os = j->os;
        const struct provider_openstack *o = os->options;
        struct os_found *f = &os->found;
        struct pair mark[3];
        bool floating = o->api_floating_ip || os_bastion(os);
        os_mark_args(os, mark);
        for (size_t i = 0; i < os->run->cluster->pools.n; i++)
                floating |= os->run->cluster->pools.v[i].floating_ip;
        arena_release(&f->arena);
        *f = (struct os_found){ 0 };
        f->spots = arena_array(&f->arena, struct os_spot, os->run->cluster->node_count + 1);
        if (!os_look_named(j) && os_managed(os) && os->mark)
                job_list(j, OS_LIST_SUBNETS, mark, &f->subnets);
        if (!os->mark)
                return;
        job_list(j, OS_LIST_SERVERS, mark, &f->servers);
        /* also with groups that exist: a bastion that the file has no longer had one */
        job_list(j, OS_LIST_GROUPS, os_names_groups(os) ? NULL : mark, &f->groups);
        f->floating_asked = floating;
        if (floating)
                job_list(j, OS_LIST_FLOATING_IPS, mark, &f->floating);
        if (os_uses_volumes(os))
                job_list(j, OS_LIST_VOLUMES, mark, &f->volumes);
        if (o->load_balancer == OS_LB_OCTAVIA)
                job_list(j, OS_LIST_BALANCERS, mark, &f->balancers);
}

static void look_groups(struct os *os)
{
        struct os_found *f = &os->found;
        const struct os_group *all = f->groups.v;
        for (size_t i = f->groups.n; i-- > 0;)
                if (!os_marked(os, all[i].description))
                        continue;
                else if (os_is_bastion_name(os, all[i].name))
                        f->bastion_group = &all[i];
                else if (os_own_group(os))
                        f->group = &all[i];
}

/* With the network known: its ports, which are ours, the taken addresses and the router's. */
static void look_second(struct os_job *j)
{
        struct os *os = j->os;
        struct os_found *f = &os->found;
        struct error err CLEANUP(error_release) = { 0 };
        struct pair mark[] = { { "mark", os->mark }, { 0 } };
        if (os_look_network(os, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        f->subnet = os_managed(os) && f->subnets.n ? f->subnets.v : NULL;
        look_groups(os);
        f->balancer = f->balancers.n ? f->balancers.v : NULL;
        const struct strings *further = &os->options->ports.networks;
        struct pair *on = arena_array(os->run->arena, struct pair, further->n + 2);
        size_t n = 0;
        if (os_main_network(os))
                on[n++] = (struct pair){ "?network_id", os_main_network(os) };
        for (size_t i = 0; n && i < further->n; i++)
                if (os_network_id(os, further->v[i]))
                        on[n++] = (struct pair){ "?network_id", os_network_id(os, further->v[i]) };
        if (n)
                job_list(j, OS_LIST_PORTS, on, &f->ports);
        os_look_credentials(j);
        if (os_managed(os) && os->mark && !f->subnet &&
                !f->network) /* a run was interrupted, or it is new */
                job_list(j, OS_LIST_NETWORKS, mark, &f->networks);
        const struct os_pool *pool = f->balancer ? f->balancer->pools.v : NULL;
        if (pool && f->balancer->pools.n) {
                struct pair members[] = { { "pool", pool->id }, { 0 } };
                job_list(j, OS_LIST_MEMBERS, members, &f->members);
        }
}

static bool look_missing_port(const struct os *os)
{
        const struct os_port *all = os->found.ports.v;
        char *vip CLEANUP(free_p) = xasprintf("%s-api", os->name ? os->name : "");
        size_t ours = 0;
        for (size_t i = 0; i < os->found.ports.n; i++)
                ours += os_marked(os, all[i].description) && all[i].name &&
                        os_is_main_port(os, &all[i]) &&
                        (os_spot_named(os, all[i].name) || streq(all[i].name, vip));
        return ours < os->run->cluster->node_count + os_wants_vip(os) + os->bastion.wanted;
}

/* Only if something is missing: the subnet that addresses are chosen from, and the router. */
static void look_third(struct os_job *j)
{
        struct os *os = j->os;
        struct os_found *f = &os->found;
        struct pair mark[] = { { "mark", os->mark }, { 0 } };
        const struct os_port *all = f->ports.v;
        if (os_managed(os) && !f->network && f->networks.n)
                f->network = f->networks.v;
        for (size_t i = 0; i < f->ports.n; i++)
                f->interface |=
                        all[i].owner && (has_prefix(all[i].owner, "network:router_interface") ||
                                                has_prefix(all[i].owner, "network:ha_router"));
        if (!os_managed(os) && (look_missing_port(os) || os_api_restricted(os))) {
                struct pair in[] = { { "network", f->network->id }, { "name", os->options->subnet },
                        { 0 } };
                job_list(j, OS_LIST_SUBNETS, in, &f->subnets);
        }
        if (os_managed(os) && f->network && !f->subnet && os_has_names(os)) {
                f->subnet = look_missing_port(os) ? NULL : os_subnet_of_ports(os);
                if (!f->subnet)
                        job_list(j, OS_LIST_SUBNETS, mark, &f->subnets);
        }
        if (os_managed(os) && os->mark && os->options->external_network && !f->interface)
                job_list(j, OS_LIST_ROUTERS, mark, &f->routers);
        if (!f->floating_asked && os_bastion_is_left(os))
                job_list(j, OS_LIST_FLOATING_IPS, mark, &f->floating);
}

static void look_last(struct os_job *j)
{
        struct os *os = j->os;
        struct os_found *f = &os->found;
        struct error err CLEANUP(error_release) = { 0 };
        const struct os_subnet *all = f->subnets.v;
        f->router = f->routers.n ? f->routers.v : NULL;
        if (os_managed(os) && !f->subnet && f->subnets.n)
                f->subnet = all;
        for (size_t i = 0; !os_managed(os) && !f->subnet && i < f->subnets.n; i++)
                if (all[i].version == 4 || f->subnets.n == 1)
                        f->subnet = &all[i];
        if (os_managed(os) || f->subnet || !look_missing_port(os))
                return;
        error_set(&err, ENOENT, EXIT_PREFLIGHT, "provider.openstack.network: %s has no subnet%s%s",
                os->options->network.name, os->options->subnet ? " called " : "",
                os->options->subnet ? os->options->subnet : "");
        error_hint(&err, "see `openstack subnet list`, and set provider.openstack.subnet");
        job_fail(j, &err);
}

const os_stage os_look_stages[] = { look_first, stage_look_own, look_second, look_third, look_last,
        stage_server_groups_again, NULL };

/* ---- addresses ---- */

static bool server_has_port(const struct os_server *s, const struct os_spot *spot)
{
        return spot->port && spot->port->device && streq(spot->port->device, s->id);
}

bool os_is_twin(const struct os *os, const struct os_server *s)
{
        const struct os_spot *spot = os_spot_named(os, s->name);
        return spot && spot->server && !streq(spot->server->id, s->id) &&
               !server_has_port(s, spot) && s->status && streq(s->status, "ERROR") && s->power != 1;
}

static void settle_spots(struct os *os)
{
        struct os_found *f = &os->found;
        const struct os_port *ports = f->ports.v;
        const struct os_server *servers = f->servers.v;
        const struct os_floating_ip *floating = f->floating.v;
        char *vip CLEANUP(free_p) = xasprintf("%s-api", os->name ? os->name : "");
        memset(f->spots, 0, (os->run->cluster->node_count + 1) * sizeof(*f->spots));
        os_settle_volumes(os);
        for (size_t i = 0; i < f->ports.n; i++) {
                if (!os_marked(os, ports[i].description) || !ports[i].name)
                        continue;
                struct os_spot *s = os_spot_named(os, ports[i].name);
                if (s && !os_is_main_port(os, &ports[i]))
                        os_settle_further(os, s, &ports[i]);
                else if (s && (!s->port || !s->port->device || !*s->port->device))
                        s->port = &ports[i];
                if (streq(ports[i].name, vip))
                        f->vip = &ports[i];
        }
        for (size_t i = 0; i < f->servers.n; i++) {
                struct os_spot *s = os_spot_named(os, servers[i].name);
                if (s && (!s->server || server_has_port(&servers[i], s)))
                        s->server = &servers[i];
        }
        for (size_t i = 0; i < f->floating.n; i++) {
                for (size_t k = 0; k <= os->run->cluster->node_count; k++)
                        if (f->spots[k].port && floating[i].port &&
                                streq(floating[i].port, f->spots[k].port->id))
                                f->spots[k].floating = &floating[i];
                if (f->vip && floating[i].port && streq(floating[i].port, f->vip->id))
                        f->vip_floating = &floating[i];
        }
}

/* The subnet's range, and what is taken there. */
static bool settle_range(struct os *os, struct address_pool *p)
{
        const struct os_found *f = &os->found;
        const struct os_port *ports = f->ports.v;
        const struct os_range *range =
                f->subnet && f->subnet->ranges.n ? f->subnet->ranges.v : NULL;
        struct ip ip;
        *p = (struct address_pool){ .arena = os->run->arena };
        if (f->subnet ? !f->subnet->cidr || !cidr_parse(f->subnet->cidr, &p->net, NULL)
                      : !(p->net = os->options->network.cidr).ip.family)
                return false;
        if (range) {
                ip_parse(range->start, &p->from);
                ip_parse(range->end, &p->to);
        }
        if (f->subnet && f->subnet->gateway && ip_parse(f->subnet->gateway, &ip))
                address_taken(p, &ip);
        for (size_t i = 0; i < f->ports.n; i++)
                for (size_t k = 0; k < ports[i].addresses.n; k++)
                        if (ip_parse(((const struct os_fixed_ip *)ports[i].addresses.v)[k].address,
                                    &ip))
                                address_taken(p, &ip);
        return true;
}

/* A balancer's address is that of its port; with a floating IP, that one: not known until it was
 * made, unless the cluster has the port's already. Keepalived holds the address itself: then it is
 * api.vip. */
static void settle_api(struct os *os)
{
        struct cluster *c = os->run->cluster;
        char text[IP_TEXT];
        const struct os_floating_ip *f = os->found.vip_floating;
        if (!os->vip.family)
                return;
        ip_format(&os->vip, text);
        bool vip = os->options->load_balancer == OS_LB_VIP;
        const char **to = vip ? &c->api.vip : &c->balancer;
        if (!*to || !streq(*to, text))
                *to = arena_strdup(c->arena, text);
        if (f && !vip)
                c->balancer = arena_strdup(c->arena, f->address);
        else if (os->options->api_floating_ip && !vip && !os->found.vip)
                c->balancer = NULL; /* known when it was made */
}

void os_settle(struct os *os)
{
        struct cluster *c = os->run->cluster;
        struct address_pool pool;
        settle_spots(os);
        bool range = settle_range(os, &pool);
        if (os->found.vip)
                os->vip = os_port_ip(os->found.vip);
        else if (os_wants_vip(os) && range && c->api.vip && ip_parse(c->api.vip, &os->vip))
                address_taken(&pool, &os->vip);
        else if (os_wants_vip(os) && range && !os->vip.family)
                address_take(&pool, &os->vip);
        settle_api(os);
        for (size_t i = 0; i < c->node_count; i++) {
                const struct os_spot *s = &os->found.spots[i];
                struct ip ip = os_port_ip(s->port);
                if (!s->port && c->nodes[i].ip[0].family)
                        address_taken(&pool, &c->nodes[i].ip[0]);
                if (s->port ? ip.family
                            : !c->nodes[i].ip[0].family && range && address_take(&pool, &ip))
                        node_set_address(c, &c->nodes[i], &ip);
                if (s->floating && !streq(c->nodes[i].address, s->floating->address))
                        c->nodes[i].address = arena_strdup(c->arena, s->floating->address);
        }
        os_bastion_settle(os);
        if (os_bastion(os) && range && !os_spot_of(os, os_bastion(os))->port)
                address_take(&pool, &os->bastion.node.ip[0]);
}

/* ---- machines ---- */

/* A server that nova gave up on, and one that is being made, are made by create. */
static enum machine_state os_state(const struct os_server *s)
{
        static const struct {
                const char *status;
                enum machine_state state;
        } states[] = { { "BUILD", MACHINE_ABSENT }, { "DELETED", MACHINE_ABSENT },
                { "SOFT_DELETED", MACHINE_ABSENT }, { "SHUTOFF", MACHINE_STOPPED },
                { "PAUSED", MACHINE_STOPPED }, { "SUSPENDED", MACHINE_STOPPED },
                { "SHELVED", MACHINE_STOPPED }, { "SHELVED_OFFLOADED", MACHINE_STOPPED } };
        if (!s || !s->status)
                return MACHINE_ABSENT;
        if (streq(s->status, "ERROR")) /* a node that lives is not taken away */
                return s->power == 1 ? MACHINE_RUNNING : MACHINE_ABSENT;
        for (size_t i = 0; i < ARRAY_SIZE(states); i++)
                if (streq(states[i].status, s->status))
                        return states[i].state;
        return MACHINE_RUNNING;
}

void os_machine(struct os *os, const struct node *n, const struct os_server *s,
        const struct os_port *p, const struct os_floating_ip *f, struct machine *m)
{
        struct arena *a = os->run->arena;
        struct ip ip = p ? os_port_ip(p) : n->ip[0];
        char text[IP_TEXT];
        *m = (struct machine){ .node = n, .state = os_state(s) };
        bool bastion = n == &os->bastion.node;
        login_target(os->run, n,
                bastion ? bastion_user(&os->options->bastion, os->options->user)
                        : os->options->user,
                &m->target);
        if (!bastion)
                bastion_way(os->run, &os->bastion, &os->options->bastion, &m->target);
        if (m->target.own_bastion) /* its group reaches their own addresses */
                m->target.host = ip.family ? arena_strdup(a, ip_format(&ip, text)) : NULL;
        else if (f)
                m->target.host = arena_strdup(a, f->address);
        else if (!m->target.host && ip.family)
                m->target.host = arena_strdup(a, ip_format(&ip, text));
        m->region = os_region(os);
        if (!s)
                return;
        int64_t made = s->created ? iso_date(s->created) : -1;
        m->booting = (made > 0 && clock_wall_ms() / 1000 - made < BOOT_SECONDS) ||
                     (!bastion && os->bastion.machine.booting);
        m->provider_id = arena_printf(a, "openstack:///%s", s->id);
        m->zone = s->zone && *s->zone ? arena_strdup(a, s->zone) : NULL;
        m->detail = s->status ? arena_strdup(a, s->status) : NULL;
}

int openstack_list(struct provider_run *run, struct machine *out, struct error *err)
{
        struct os *os;
        int r = os_of(run, &os, err);
        if (r == 0)
                r = job_run(os, os_look_stages, err);
        if (r < 0)
                return r;
        os_settle(os);
        if ((r = os_conf(os, err)) < 0)
                return r;
        for (size_t i = 0; i < run->cluster->node_count; i++) {
                const struct os_spot *s = &os->found.spots[i];
                os_machine(os, &run->cluster->nodes[i], s->server, s->port, s->floating, &out[i]);
        }
        return 0;
}

/* From the lists that were read: it is asked for inside steps. */
int openstack_find(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err)
{
        struct os *os;
        int r = os_of(run, &os, err);
        if (r < 0)
                return r;
        const struct os_port *ports = os->found.ports.v, *port = NULL;
        const struct os_server *servers = os->found.servers.v, *server = NULL;
        const struct os_floating_ip *floating = os->found.floating.v, *f = NULL;
        for (size_t i = 0; i < os->found.ports.n; i++)
                if (os_marked(os, ports[i].description) && ports[i].name &&
                        streq(ports[i].name, n->name) && os_is_main_port(os, &ports[i]))
                        port = &ports[i];
        for (size_t i = 0; i < os->found.servers.n; i++)
                if (servers[i].name && streq(servers[i].name, n->name))
                        server = &servers[i];
        for (size_t i = 0; port && i < os->found.floating.n; i++)
                if (floating[i].port && streq(floating[i].port, port->id))
                        f = &floating[i];
        os_machine(os, n, server, port, f, out);
        return 0;
}

static void others_add(struct os *os, const char *name, struct strings *out)
{
        char *vip CLEANUP(free_p) = xasprintf("%s-api", os->name);
        if (name && *name && !streq(name, vip) && !os_is_bastion_name(os, name) &&
                !cluster_node(os->run->cluster, name) && !strings_contain(out, name))
                strings_add(os->run->arena, out, arena_strdup(os->run->arena, name));
}

int openstack_others(struct provider_run *run, struct strings *out, struct error *err)
{
        struct os *os;
        int r = os_of(run, &os, err);
        if (r < 0 || !os->mark)
                return r;
        const struct os_port *ports = os->found.ports.v;
        const struct os_server *servers = os->found.servers.v;
        for (size_t i = 0; i < os->found.ports.n; i++)
                if (os_marked(os, ports[i].description))
                        others_add(os, ports[i].name, out);
        for (size_t i = 0; i < os->found.servers.n; i++)
                others_add(os, servers[i].name, out);
        return 0;
}
