/* Network, subnet, router and the security group: what the cluster has once. */
#include "provider/openstack/openstack.h"

/* What a creating call answered becomes a part of `found`. */
struct made {
        enum os_call call;
        const void **into;
};

static void on_made_one(struct os_job *j, const struct call_reply *reply, void *arg)
{
        const struct made *m = arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct arena *a = &j->os->found.arena;
        void *one = arena_alloc(a, os_calls[m->call].answer->size);
        memset(one, 0, os_calls[m->call].answer->size);
        if (call_read(&os_calls[m->call], reply, a, one, &err) < 0)
                job_fail(j, &err);
        else
                *m->into = one;
}

/* body is taken. */
void job_make(
        struct os_job *j, enum os_call call, json_t *body, const char *what, const void **into)
{
        struct made *m = arena_new(j->os->run->arena, struct made);
        *m = (struct made){ call, into };
        if (j->say)
                j->say(what, -1, j->arg);
        job_ask(j, &(struct os_ask){ .call = call,
                           .body = body,
                           .resource = what,
                           .fn = on_made_one,
                           .arg = m });
}

static json_t *network_body(const struct os *os)
{
        json_t *o = json_pack("{s:s, s:s}", "name", os->name, "description", os->mark);
        if (os->options->network.mtu)
                json_object_set_new(o, "mtu", json_integer(os->options->network.mtu));
        return o;
}

void stage_network(struct os_job *j)
{
        struct os *os = j->os;
        struct os_found *f = &os->found;
        if (os_managed(os) && !f->network && !f->subnet)
                job_make(j, OS_CREATE_NETWORK, network_body(os), os->name,
                        (const void **)&f->network);
        if (os_managed(os) && os->looked.external && !f->router && !f->interface)
                job_make(j, OS_CREATE_ROUTER,
                        json_pack("{s:s, s:s, s:{s:s}}", "name", os->name, "description", os->mark,
                                "external_gateway_info", "network_id", os->looked.external),
                        os->name, (const void **)&f->router);
        if (os_own_group(os) && !f->group)
                job_make(j, OS_CREATE_GROUP,
                        json_pack("{s:s, s:s}", "name", os->name, "description", os->mark),
                        os->name, (const void **)&f->group);
        if (os_bastion(os) && !f->bastion_group)
                job_make(j, OS_CREATE_GROUP,
                        json_pack("{s:s, s:s}", "name", os_bastion(os)->name, "description",
                                os->mark),
                        os_bastion(os)->name, (const void **)&f->bastion_group);
        for (size_t i = 0; i < os->run->cluster->pools.n; i++)
                stage_server_group(j, &os->run->cluster->pools.v[i]);
}

static json_t *subnet_body(const struct os *os)
{
        const struct os_network_options *n = &os->options->network;
        char text[IP_TEXT + 4];
        json_t *dns = json_array();
        for (size_t i = 0; i < n->dns.n; i++)
                json_array_append_new(dns, json_string(n->dns.v[i]));
        return json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "name", os->name, "description",
                os->mark, "network_id", os->found.network->id, "cidr", cidr_format(&n->cidr, text),
                "ip_version", n->cidr.ip.family == 6 ? 6 : 4, "dns_nameservers", dns);
}

void stage_subnet(struct os_job *j)
{
        struct os *os = j->os;
        if (os_managed(os) && !os->found.subnet && os->found.network)
                job_make(j, OS_CREATE_SUBNET, subnet_body(os), os->name,
                        (const void **)&os->found.subnet);
}

static void on_interface(struct os_job *j, const struct call_reply *reply, void *arg)
{
        j->os->found.interface = true;
}

/* ---- rules ---- */

#define RULE_WORDS "slipway"

struct rule {
        const char *protocol; /* NULL: any */
        long from, to;        /* 0: all */
        const char *prefix;   /* NULL: from a group */
        bool six;
        const char *group; /* NULL: from the group itself */
};

static bool rule_same_text(const char *a, const char *b) { return a && b ? streq(a, b) : !a == !b; }

/* A rule from everywhere may come back without a prefix. */
static bool rule_same_prefix(const char *has, const char *wants)
{
        bool all = streq(wants, "0.0.0.0/0") || streq(wants, "::/0");
        return has && *has ? streq(has, wants) : all;
}

static bool rule_is(const struct os_rule *has, const struct rule *r, const char *group)
{
        return has->direction && streq(has->direction, "ingress") && has->ethertype &&
               streq(has->ethertype, r->six ? "IPv6" : "IPv4") &&
               rule_same_text(has->protocol, r->protocol) && has->from == r->from &&
               has->to == r->to &&
               (r->prefix ? !has->group && rule_same_prefix(has->prefix, r->prefix)
                          : has->group && streq(has->group, r->group ? r->group : group));
}

static size_t rules_of(const struct cidrs *from, const char *protocol, long a, long b,
        struct arena *ar, struct rule *out)
{
        char text[IP_TEXT + 4];
        for (size_t i = 0; i < from->n; i++)
                out[i] = (struct rule){ protocol, a, b,
                        arena_strdup(ar, cidr_format(&from->v[i], text)),
                        from->v[i].ip.family == 6 };
        return from->n;
}

static struct rule rule_from_bastion(const struct os *os, long port)
{
        const struct os_group *g = os->found.bastion_group;
        return (struct rule){ "tcp", port, port, .six = os->bastion.node.ip[0].family == 6,
                .group = g ? g->id : "" };
}

/* The range of the machines' own subnet. NULL: it is not known. */
const char *os_own_cidr(const struct os *os)
{
        char text[IP_TEXT + 4];
        if (os_managed(os))
                return arena_strdup(os->run->arena, cidr_format(&os->options->network.cidr, text));
        return os->found.subnet ? os->found.subnet->cidr : NULL;
}

bool os_api_restricted(const struct os *os)
{
        const struct cidrs *from = &os->options->access.api;
        const char *own = os_own_cidr(os);
        int family = own && strchr(own, ':') ? 6 : 4;
        for (size_t i = 0; i < from->n; i++)
                if (!from->v[i].bits && from->v[i].ip.family == family)
                        return false;
        return os->options->load_balancer == OS_LB_OCTAVIA;
}

/* The load balancer asks nodes from an address of the subnet that nobody knows, and has a list of
 * its own of who may use it (balancer.c). */
static size_t rule_from_balancer(const struct os *os, long port, struct rule *out)
{
        const char *own = os_own_cidr(os);
        if (!os_api_restricted(os) || !own)
                return 0;
        *out = (struct rule){ "tcp", port, port, own, strchr(own, ':') != NULL };
        return 1;
}

/* Nodes reach each other without limits: etcd, kubelets, the fabric, VRRP. From outside: ssh, the
 * API and the NodePorts. The bastion reaches ssh and the API. */
static size_t rules_of_nodes(struct os *os, struct rule **out)
{
        const struct os_access *x = &os->options->access;
        struct arena *a = os->run->arena;
        long api = os->run->cluster->api.port;
        size_t n = 0;
        struct rule *all = *out =
                arena_array(a, struct rule, 5 + x->ssh.n + x->api.n + 3 * x->node_ports.n);
        all[n++] = (struct rule){ .six = false };
        all[n++] = (struct rule){ .six = true };
        if (os_bastion(os)) {
                all[n++] = rule_from_bastion(os, 22);
                all[n++] = rule_from_bastion(os, api);
        }
        n += rules_of(&x->ssh, "tcp", 22, 22, a, all + n);
        n += rules_of(&x->api, "tcp", api, api, a, all + n);
        n += rule_from_balancer(os, api, all + n);
        n += rules_of(&x->node_ports, "tcp", 30000, 32767, a, all + n);
        n += rules_of(&x->node_ports, "udp", 30000, 32767, a, all + n);
        return n;
}

static size_t rules_of_bastion(struct os *os, struct rule **out)
{
        const struct os_access *x = &os->options->access;
        *out = arena_array(os->run->arena, struct rule, x->ssh.n + 1);
        return rules_of(&x->ssh, "tcp", 22, 22, os->run->arena, *out);
}

/* Whose rules slipway keeps, and whether it does. */
struct ruled {
        const struct os_group *group;
        size_t (*wanted)(struct os *os, struct rule **out);
        bool ours;
};
#define RULED 2

static void ruled_groups(struct os *os, struct ruled out[RULED])
{
        out[0] = (struct ruled){ os->found.group, rules_of_nodes, os_own_group(os) };
        out[1] =
                (struct ruled){ os->found.bastion_group, rules_of_bastion, os_bastion(os) != NULL };
}

static bool rule_there(const struct os_group *g, const struct rule *r)
{
        const struct os_rule *has = g ? g->rules.v : NULL;
        for (size_t i = 0; g && i < g->rules.n; i++)
                if (rule_is(&has[i], r, g->id))
                        return true;
        return false;
}

static bool rule_unwanted(
        const struct os_rule *has, const struct rule *all, size_t n, const char *group)
{
        if (!has->description || !streq(has->description, RULE_WORDS))
                return false; /* somebody else's */
        for (size_t i = 0; i < n; i++)
                if (rule_is(has, &all[i], group))
                        return false;
        return true;
}

static size_t rules_differ(struct os *os, const struct ruled *r)
{
        struct rule *all;
        const struct os_group *g = r->group;
        size_t n = r->wanted(os, &all), missing = 0;
        for (size_t i = 0; i < n; i++)
                missing += !rule_there(g, &all[i]);
        for (size_t i = 0; g && i < g->rules.n; i++)
                missing += rule_unwanted(&((const struct os_rule *)g->rules.v)[i], all, n, g->id);
        return missing;
}

size_t os_rules_missing(struct os *os)
{
        struct ruled groups[RULED];
        size_t missing = 0;
        ruled_groups(os, groups);
        for (size_t i = 0; i < RULED; i++)
                missing += groups[i].ours ? rules_differ(os, &groups[i]) : 0;
        return missing;
}

static json_t *rule_body(const struct rule *r, const char *group)
{
        json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "security_group_id", group, "direction",
                "ingress", "ethertype", r->six ? "IPv6" : "IPv4", "description", RULE_WORDS);
        if (r->protocol)
                json_object_set_new(o, "protocol", json_string(r->protocol));
        if (r->from) {
                json_object_set_new(o, "port_range_min", json_integer(r->from));
                json_object_set_new(o, "port_range_max", json_integer(r->to));
        }
        json_object_set_new(o, r->prefix ? "remote_ip_prefix" : "remote_group_id",
                json_string(r->prefix  ? r->prefix
                            : r->group ? r->group
                                       : group));
        return o;
}

static void rules_make(struct os_job *j, const struct ruled *r)
{
        struct rule *all;
        const struct os_group *g = r->group;
        size_t n = r->wanted(j->os, &all);
        json_t *missing = json_array();
        for (size_t i = 0; i < n; i++)
                if (!rule_there(g, &all[i]))
                        json_array_append_new(missing, rule_body(&all[i], g->id));
        if (json_array_size(missing))
                job_ask(j, &(struct os_ask){
                                   .call = OS_CREATE_RULES, .body = missing, .resource = g->name });
        else
                json_decref(missing);
}

static void rules_delete(struct os_job *j, const struct ruled *r)
{
        struct rule *all;
        const struct os_group *g = r->group;
        const struct os_rule *has = g->rules.v;
        size_t n = r->wanted(j->os, &all);
        for (size_t i = 0; i < g->rules.n; i++) {
                struct pair id[] = { { "id", has[i].id }, { 0 } };
                if (rule_unwanted(&has[i], all, n, g->id))
                        job_ask(j, &(struct os_ask){ .call = OS_DELETE_RULE,
                                           .args = id,
                                           .resource = has[i].id });
        }
}

/* The router's interface, and the rules of the groups. */
void stage_rules(struct os_job *j)
{
        struct os *os = j->os;
        struct os_found *f = &os->found;
        struct ruled groups[RULED];
        if (f->router && f->subnet && !f->interface) {
                struct pair id[] = { { "id", f->router->id }, { 0 } };
                job_ask(j, &(struct os_ask){ .call = OS_ADD_INTERFACE,
                                   .args = id,
                                   .body = json_pack("{s:s}", "subnet_id", f->subnet->id),
                                   .resource = os->name,
                                   .fn = on_interface });
        }
        ruled_groups(os, groups);
        for (size_t i = 0; i < RULED; i++)
                if (groups[i].ours && groups[i].group)
                        rules_make(j, &groups[i]);
}

/* A quota that refused the new rules must not cut off who used the old ones. */
void stage_rules_old(struct os_job *j)
{
        struct ruled groups[RULED];
        ruled_groups(j->os, groups);
        for (size_t i = 0; i < RULED; i++)
                if (groups[i].ours && groups[i].group)
                        rules_delete(j, &groups[i]);
}
