/* Ports, which have the addresses, and floating IPs. */
#include "config/fabric.h"
#include "provider/openstack/openstack.h"

#define PORTS_AT_ONCE 50 /* in one call */

/* Neutron refuses the same pair twice, and keeps the same group once. */
static bool port_has(const json_t *list, const char *key, const char *text)
{
        const json_t *one;
        size_t i;
        json_array_foreach(list, i, one)
        {
                if (streq(json_string_value(key ? json_object_get(one, key) : one), text))
                        return true;
        }
        return false;
}

static void port_group_add(json_t *groups, const char *id)
{
        if (!port_has(groups, NULL, id))
                json_array_append_new(groups, json_string(id));
}

static void port_pair_add(json_t *pairs, const char *address)
{
        if (!port_has(pairs, "ip_address", address))
                json_array_append_new(pairs, json_pack("{s:s}", "ip_address", address));
}

static json_t *port_groups(const struct os *os, const struct node *n)
{
        json_t *groups = json_array();
        const struct strings *named[] = { os_own_group(os) ? NULL : &os->options->security_groups,
                n ? &os->options->ports.security : NULL };
        if (n && n == os_bastion(os)) {
                json_array_append_new(groups, json_string(os->found.bastion_group->id));
                return groups;
        }
        if (n && os_no_security(os))
                return groups;
        if (os->found.group)
                json_array_append_new(groups, json_string(os->found.group->id));
        for (size_t k = 0; k < ARRAY_SIZE(named); k++)
                for (size_t i = 0; named[k] && i < named[k]->n; i++) {
                        const char *id = os_group_id(os, named[k]->v[i]);
                        if (id)
                                port_group_add(groups, id);
                }
        return groups;
}

/* Neutron drops packets with addresses that it does not know: those of pods that are routed
 * directly, and the address that keepalived moves. */
static json_t *port_pairs(const struct os *os, const struct node *n, bool main)
{
        const struct cluster *c = os->run->cluster;
        char text[IP_TEXT + 4];
        json_t *pairs = json_array();
        const struct cidrs *more = &os->options->ports.pairs;
        if (!main || (n && os_no_security(os)))
                return pairs;
        for (size_t i = 0; n && n != os_bastion(os) && i < more->n; i++)
                port_pair_add(pairs, cidr_format(&more->v[i], text));
        bool routed = cluster_fabric(c)->backends && c->network.fabric.backend == BACKEND_HOST_GW;
        for (size_t i = 0; routed && n && i < c->network.pods.n; i++)
                port_pair_add(pairs, cidr_format(&c->network.pods.v[i], text));
        if (n && n->pool->roles & ROLE_CONTROL_PLANE && os->vip.family &&
                os->options->load_balancer == OS_LB_VIP)
                port_pair_add(pairs, ip_format(&os->vip, text));
        return pairs;
}

/* The addresses that a port may send from, as they are compared. */
static bool pairs_differ(const json_t *wanted, const struct os_port *p)
{
        const struct os_pair *has = p->pairs.v;
        const json_t *one;
        size_t i, same = 0;
        json_array_foreach(wanted, i, one)
        {
                const char *text = json_string_value(json_object_get(one, "ip_address"));
                size_t n = strcspn(text, "/");
                for (size_t k = 0; k < p->pairs.n; k++) /* neutron leaves /32 as it was given */
                        if (streq(has[k].address, text) ||
                                (streq(text + n, strchr(text, ':') ? "/128" : "/32") &&
                                        strlen(has[k].address) == n &&
                                        !strncmp(has[k].address, text, n))) {
                                same++;
                                break;
                        }
        }
        return same != json_array_size(wanted) || same != p->pairs.n;
}

static bool groups_differ(const struct os *os, const json_t *wanted, const struct os_port *p)
{
        const json_t *one;
        size_t i, same = 0;
        json_array_foreach(wanted, i, one) same +=
                strings_contain(&p->groups, json_string_value(one));
        return same != json_array_size(wanted) || same != p->groups.n ||
               (os_no_security(os) && p->security);
}

json_t *os_port_settings(const struct os *os, const struct node *n, const struct os_port *p)
{
        const struct tree *file = os->options->ports.src;
        json_t *o = json_object(), *pairs = port_pairs(os, n, os_is_main_port(os, p)),
               *groups = port_groups(os, n);
        /* without port security it had none, also not those that are always needed */
        bool exact = tree_get(file, "addressPairs") && os_is_main_port(os, p),
             again = tree_get(file, "security") && !p->pairs.n && json_array_size(pairs);
        if (exact || again ? pairs_differ(pairs, p) : os_no_security(os) && p->pairs.n)
                json_object_set(o, "allowed_address_pairs", pairs);
        if (tree_get(file, "security") && groups_differ(os, groups, p)) {
                json_object_set(o, "security_groups", groups);
                if (os_no_security(os) || !p->groups.n) /* it was switched off */
                        json_object_set_new(
                                o, "port_security_enabled", json_boolean(!os_no_security(os)));
        }
        json_decref(pairs);
        json_decref(groups);
        return o;
}

bool os_port_differs(const struct os *os, const struct node *n, const struct os_port *p)
{
        json_t *o = p && os->options->ports.src ? os_port_settings(os, n, p) : NULL;
        bool differs = json_object_size(o) > 0;
        json_decref(o);
        return differs;
}

static json_t *port_on(
        const struct os *os, const struct node *n, const char *name, const char *network)
{
        json_t *o = json_pack(
                "{s:s, s:s, s:s}", "name", name, "description", os->mark, "network_id", network);
        bool main = streq(network, os_main_network(os));
        json_t *pairs = port_pairs(os, n, main), *groups = port_groups(os, n);
        if (n && n != os_bastion(os) && os_no_security(os))
                json_object_set_new(o, "port_security_enabled", json_false());
        else if (json_array_size(groups))
                json_object_set(o, "security_groups", groups);
        if (json_array_size(pairs))
                json_object_set(o, "allowed_address_pairs", pairs);
        json_decref(groups);
        json_decref(pairs);
        return o;
}

/* n NULL: the API's address. */
static json_t *port_body(
        const struct os *os, const struct node *n, const char *name, const struct ip *ip)
{
        char text[IP_TEXT];
        json_t *fixed = json_pack("{s:s}", "subnet_id", os->found.subnet->id);
        if (!os->any_address && ip->family)
                json_object_set_new(fixed, "ip_address", json_string(ip_format(ip, text)));
        json_t *o = port_on(os, n, name, os_main_network(os));
        json_object_set_new(o, "fixed_ips", json_pack("[o]", fixed));
        return o;
}

static void on_ports(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_found *f = &j->os->found;
        struct answers made = { 0 };
        const struct call_row *row = &os_calls[OS_CREATE_PORTS];
        if (reply->fault) {
                /* an address is taken: by whom need not be visible. The cloud chooses then. */
                j->os->any_address |= reply->fault->kind == FAULT_CONFLICT;
                j->again |= reply->fault->kind == FAULT_CONFLICT || reply->fault->lost;
                fault_error(reply->fault, &err);
        } else if (call_read_list(row, reply, &f->arena, &made, &err) == 0) {
                const struct os_port *p = made.v;
                for (size_t i = 0; i < made.n; i++)
                        *(struct os_port *)os_append(&f->arena, &f->ports, row->answer) = p[i];
                os_settle(j->os);
        }
        if (err.code)
                job_fail(j, &err);
}

static void ports_send(struct os_job *j, json_t *body, size_t n)
{
        char what[64];
        snprintf(what, sizeof(what), "%zu ports", n);
        if (j->say)
                j->say(what, -1, j->arg);
        job_ask(j, &(struct os_ask){ .call = OS_CREATE_PORTS,
                           .body = body,
                           .resource = arena_strdup(j->os->run->arena, what),
                           .fn = on_ports,
                           .optional = true });
}

/* Takes one more; sends them when they are enough. */
static void ports_add(struct os_job *j, json_t **body, json_t *port)
{
        json_array_append_new(*body, port);
        if (json_array_size(*body) < PORTS_AT_ONCE)
                return;
        ports_send(j, *body, PORTS_AT_ONCE);
        *body = json_array();
}

static void ports_of_node(struct os_job *j, json_t **body, const struct node *n)
{
        const struct os *os = j->os;
        const struct strings *further = &os->options->ports.networks;
        if (os->found.subnet && !os_spot_of(os, n)->port)
                ports_add(j, body, port_body(os, n, n->name, &n->ip[0]));
        for (size_t k = 0; n != os_bastion(os) && k < further->n; k++) {
                const char *id = os_network_id(os, further->v[k]);
                if (id && !os_further_port(os, n, k))
                        ports_add(j, body, port_on(os, n, n->name, id));
        }
}

void stage_ports(struct os_job *j)
{
        struct os *os = j->os;
        const struct cluster *c = os->run->cluster;
        json_t *body = json_array();
        if (os_wants_vip(os) && !os->found.vip && os->found.subnet)
                json_array_append_new(
                        body, port_body(os, NULL, arena_printf(os->run->arena, "%s-api", os->name),
                                      &os->vip));
        if (os_bastion(os))
                ports_of_node(j, &body, os_bastion(os));
        for (size_t i = 0; i < c->node_count; i++)
                ports_of_node(j, &body, &c->nodes[i]);
        if (json_array_size(body))
                ports_send(j, body, json_array_size(body));
        else
                json_decref(body);
}

/* ---- floating IPs ---- */

static void on_floating(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_found *f = &j->os->found;
        const struct call_row *row = &os_calls[OS_CREATE_FLOATING_IP];
        struct os_floating_ip *one = os_append(&f->arena, &f->floating, row->answer);
        if (call_read(row, reply, &f->arena, one, &err) < 0) {
                f->floating.n--;
                job_fail(j, &err);
        } else
                os_settle(j->os);
}

static void floating_for(struct os_job *j, const struct os_port *p, const char *name)
{
        struct os *os = j->os;
        if (!p || !os->looked.external)
                return;
        job_ask(j, &(struct os_ask){ .call = OS_CREATE_FLOATING_IP,
                           .body = json_pack("{s:s, s:s, s:s}", "floating_network_id",
                                   os->looked.external, "port_id", p->id, "description", os->mark),
                           .resource = name,
                           .fn = on_floating });
}

void stage_floating(struct os_job *j)
{
        const struct os *os = j->os;
        const struct cluster *c = os->run->cluster;
        if (os->options->api_floating_ip && !os->found.vip_floating)
                floating_for(j, os->found.vip, "of the API");
        for (size_t i = 0; i < c->node_count; i++)
                if (c->nodes[i].pool->floating_ip && !os->found.spots[i].floating)
                        floating_for(j, os->found.spots[i].port, c->nodes[i].name);
        const struct node *bastion = os_bastion(os);
        if (bastion && !os_spot_of(os, bastion)->floating)
                floating_for(j, os_spot_of(os, bastion)->port, bastion->name);
}
