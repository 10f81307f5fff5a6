/* What `ports` adds to the nodes' ports: one more on each further network, further security groups
 * or none, and addresses that may be sent from. A further port has the name of its node too, and is
 * known by its network. A server's metadata says which networks it was made with: others are a
 * reason to make it anew, because machines set up their interfaces at their first boot. */
#include "provider/openstack/openstack.h"

bool os_no_security(const struct os *os)
{
        const struct strings *s = &os->options->ports.security;
        return s->n == 1 && streq(s->v[0], "none");
}

bool os_names_groups(const struct os *os)
{
        return tree_get(os->options->ports.src, "security") && !os_no_security(os) &&
               (os->options->ports.security.n || !os_own_group(os));
}

static const char *security_group_find(const struct os *os, const char *name, bool *several)
{
        const struct answers *lists[] = { &os->found.groups, &os->looked.named_groups };
        const char *id = NULL;
        for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
                const struct os_group *g = lists[k]->v;
                for (size_t i = 0; i < lists[k]->n; i++) {
                        if (streq(g[i].id, name))
                                return g[i].id;
                        if (!g[i].name || !streq(g[i].name, name))
                                continue;
                        *several |= id && !streq(id, g[i].id);
                        id = g[i].id;
                }
        }
        return *several ? NULL : id;
}

const char *os_group_id(const struct os *os, const char *name)
{
        bool several = false;
        return security_group_find(os, name, &several);
}

void os_survey_groups(
        struct os *os, struct survey *out, const char *field, const struct strings *names)
{
        for (size_t i = 0; i < names->n; i++) {
                bool several = false;
                if (!security_group_find(os, names->v[i], &several))
                        survey_problem(os->run, out,
                                several ? "give its id" : "see `openstack security group list`",
                                several ? "provider.openstack.%s: there are several groups %s"
                                        : "provider.openstack.%s: there is no group %s",
                                field, names->v[i]);
        }
}

const char *os_main_network(const struct os *os)
{
        const struct os_found *f = &os->found;
        return f->network ? f->network->id : f->subnet ? f->subnet->network : NULL;
}

bool os_is_main_port(const struct os *os, const struct os_port *p)
{
        const char *id = os_main_network(os);
        return !id || !p->network || streq(id, p->network);
}

/* The place of the port's network in the file; -1: the file does not have it. */
static int port_place(const struct os *os, const struct os_port *p)
{
        const struct strings *all = &os->options->ports.networks;
        for (size_t i = 0; p->network && i < all->n; i++) {
                const char *id = os_network_id(os, all->v[i]);
                if (id && streq(id, p->network))
                        return (int)i;
        }
        return -1;
}

bool os_port_is_loose(const struct os *os, const struct os_port *p)
{
        return !(p->device && *p->device) && !os_is_main_port(os, p) && port_place(os, p) < 0;
}

void os_settle_further(struct os *os, struct os_spot *s, const struct os_port *p)
{
        int place = port_place(os, p);
        if (!s->further)
                s->further = arena_array(&os->found.arena, const struct os_port *,
                        os->options->ports.networks.n + 1);
        if (place >= 0 &&
                (!s->further[place] || !s->further[place]->device || !*s->further[place]->device))
                s->further[place] = p;
}

const struct os_port *os_further_port(const struct os *os, const struct node *n, size_t place)
{
        const struct os_spot *s = os_spot_of(os, n);
        return s->further ? s->further[place] : NULL;
}

/* ---- what servers were made with ---- */

const char *os_networks_text(const struct os *os)
{
        const struct strings *all = &os->options->ports.networks;
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < all->n; i++)
                str_addf(&s, "%s%s", i ? ", " : "", all->v[i]);
        return os_words(os->run->arena, str_text(&s));
}

bool os_same_networks(const struct os *os, const struct os_server *s)
{
        const char *had = os_pair(&s->metadata, OS_META_NETWORKS);
        return !s->metadata.n || streq(had ? had : "", os_networks_text(os));
}

static bool further_is_loose(const struct os *os, const struct node *n, size_t place)
{
        const struct os_server *s = os_spot_of(os, n)->server;
        const struct os_port *p = os_further_port(os, n, place);
        const char *status = s && s->status ? s->status : "";
        return (streq(status, "ACTIVE") || streq(status, "SHUTOFF")) && os_same_networks(os, s) &&
               !(p && p->device && *p->device);
}

/* What the file names and the cloud does not have. */
static void further_problems(struct os *os, struct survey *out)
{
        const struct os_port_options *o = &os->options->ports;
        if (os_names_groups(os))
                os_survey_groups(os, out, "ports.security", &o->security);
        for (size_t i = 0; i < o->networks.n; i++) {
                const char *name = o->networks.v[i], *id = os_network_id(os, name),
                           *main = os_main_network(os);
                bool twice = id && main && streq(id, main);
                for (size_t k = 0; id && k < i; k++) {
                        const char *other = os_network_id(os, o->networks.v[k]);
                        twice |= other && streq(id, other);
                }
                if (!id)
                        survey_problem(os->run, out,
                                "see `openstack network list`; give its id if several have the name",
                                "provider.openstack.ports.networks: there is not one network %s",
                                name);
                else if (twice)
                        survey_problem(os->run, out, "leave it out",
                                "provider.openstack.ports.networks: machines have a port on %s already",
                                name);
        }
}

void os_survey_further(struct os *os, struct survey *out, int64_t *ports)
{
        const struct cluster *c = os->run->cluster;
        size_t sets = 0;
        if (os->mark) /* otherwise groups are asked for later */
                further_problems(os, out);
        for (size_t i = 0; i < c->node_count; i++) {
                sets += os_port_differs(os, &c->nodes[i], os->found.spots[i].port);
                for (size_t k = 0; k < os->options->ports.networks.n; k++) {
                        const struct os_port *p = os_further_port(os, &c->nodes[i], k);
                        *ports += !p;
                        sets += os_port_differs(os, &c->nodes[i], p);
                        if (further_is_loose(os, &c->nodes[i], k))
                                survey_line(os->run, out, "attach the port of %s on %s",
                                        c->nodes[i].name, os->options->ports.networks.v[k]);
                }
        }
        if (sets)
                survey_line(os->run, out, "security and addresses of %zu port%s", sets,
                        sets == 1 ? "" : "s");
}

void os_needs_further(struct os *os, struct survey *out)
{
        const struct os_extension *all = os->looked.extensions.v;
        bool can = !os_no_security(os);
        if (!os->mark)
                further_problems(os, out);
        for (size_t i = 0; i < os->looked.extensions.n; i++)
                can |= streq(all[i].alias, "port-security");
        if (!can)
                survey_problem(os->run, out, "leave it out, or ask for the extension port-security",
                        "provider.openstack.ports.security: this neutron cannot switch it off");
}

/* ---- changes ---- */

/* A port of a machine that was made with it, and has lost it. */
void stage_further_attach(struct os_job *j)
{
        const struct cluster *c = j->os->run->cluster;
        for (size_t i = 0; i < c->node_count; i++)
                for (size_t k = 0; k < j->os->options->ports.networks.n; k++) {
                        const struct os_port *p = os_further_port(j->os, &c->nodes[i], k);
                        if (!p || !further_is_loose(j->os, &c->nodes[i], k))
                                continue;
                        struct pair id[] = { { "id", j->os->found.spots[i].server->id }, { 0 } };
                        job_ask(j, &(struct os_ask){ .call = OS_ATTACH_PORT,
                                           .args = id,
                                           .body = json_pack("{s:s}", "port_id", p->id),
                                           .resource = c->nodes[i].name });
                }
}

static void on_port_set(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (call_read(&os_calls[OS_SET_PORT], reply, &j->os->found.arena, arg, &err) < 0)
                job_fail(j, &err);
}

static void port_set(struct os_job *j, const struct node *n, const struct os_port *p)
{
        struct pair id[] = { { "id", p ? p->id : NULL }, { 0 } };
        if (os_port_differs(j->os, n, p))
                job_ask(j, &(struct os_ask){ .call = OS_SET_PORT,
                                   .args = id,
                                   .body = os_port_settings(j->os, n, p),
                                   .resource = n->name,
                                   .fn = on_port_set,
                                   .arg = (void *)p });
}

void stage_ports_set(struct os_job *j)
{
        const struct cluster *c = j->os->run->cluster;
        for (size_t i = 0; i < c->node_count; i++) {
                port_set(j, &c->nodes[i], j->os->found.spots[i].port);
                for (size_t k = 0; k < j->os->options->ports.networks.n; k++)
                        port_set(j, &c->nodes[i], os_further_port(j->os, &c->nodes[i], k));
        }
}

/* ---- a server that goes ---- */

static void on_node_ports(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct answers all = { 0 };
        if (os_read_ours(j->os, OS_LIST_PORTS, reply, j->os->run->arena, &all, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        const struct os_port *p = all.v;
        for (size_t i = 0; i < all.n; i++) {
                struct pair id[] = { { "id", p[i].id }, { 0 } };
                if (p[i].name && streq(p[i].name, j->node->name) &&
                        !os_is_main_port(j->os, &p[i]) && port_place(j->os, &p[i]) < 0)
                        job_ask(j, &(struct os_ask){ .call = OS_DELETE_PORT,
                                           .args = id,
                                           .resource = p[i].name });
        }
}

/* Its ports on networks that the file has no longer are in no list that was read. Its server says
 * whether it had others; without a server, an interrupted run may have left them. */
void stage_node_ports_old(struct os_job *j)
{
        const struct os_server *all = j->os->found.servers.v;
        struct pair ours[] = { { "mark", j->os->mark }, { "?name", j->node->name }, { 0 } };
        bool other = true;
        for (size_t i = 0; i < j->os->found.servers.n; i++)
                if (all[i].name && streq(all[i].name, j->node->name))
                        other = !os_same_networks(j->os, &all[i]);
        if (other)
                job_ask(j, &(struct os_ask){
                                   .call = OS_LIST_PORTS, .args = ours, .fn = on_node_ports });
}
