/* Trunks of neutron: with ports.trunk each node's port is the parent of one. It exists before the
 * server, because most drivers let a port in use become a parent no more, and goes after the server
 * and before the port. A port itself says which trunk it is the parent of, so that nothing has to
 * be asked for; trunks have our mark for those that are swept. */
#include "provider/openstack/openstack.h"

bool os_trunk_missing(const struct os *os, const struct node *n)
{
        const struct os_spot *s = &os->found.spots[n - os->run->cluster->nodes];
        return os->options->ports.trunk && !s->server && !(s->port && s->port->trunk);
}

static struct os_port *trunk_parent(struct os *os, const char *id)
{
        struct os_port *ports = os->found.ports.v;
        for (size_t i = 0; id && i < os->found.ports.n; i++)
                if (streq(ports[i].id, id))
                        return &ports[i];
        return NULL;
}

static void on_trunk(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_trunk t = { 0 };
        if (call_read(&os_calls[OS_CREATE_TRUNK], reply, &j->os->found.arena, &t, &err) < 0)
                job_fail(j, &err);
        else if (trunk_parent(j->os, t.port))
                trunk_parent(j->os, t.port)->trunk = t.id;
}

static void trunk_make(struct os_job *j, const struct os_port *p)
{
        job_ask(j, &(struct os_ask){ .call = OS_CREATE_TRUNK,
                           .body = json_pack("{s:s, s:s, s:s}", "name", p->name, "description",
                                   j->os->mark, "port_id", p->id),
                           .resource = p->name,
                           .fn = on_trunk });
}

/* Of all nodes: where no server has the port. Of one: its server is gone, whatever the list said.
 */
void stage_trunks(struct os_job *j)
{
        const struct os *os = j->os;
        const struct cluster *c = os->run->cluster;
        for (size_t i = 0; i < c->node_count; i++) {
                const struct os_port *p = os->found.spots[i].port;
                bool one = j->node == &c->nodes[i];
                if (!os->options->ports.trunk || !p || p->trunk || (j->node && !one))
                        continue;
                if (one || !p->device || !*p->device)
                        trunk_make(j, p);
        }
}

/* ---- a node that goes ---- */

static void on_node_trunks(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct answers all = { 0 };
        if (os_read_ours(j->os, OS_LIST_TRUNKS, reply, j->os->run->arena, &all, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        const struct os_trunk *t = all.v;
        for (size_t i = 0; i < all.n; i++) {
                struct pair id[] = { { "id", t[i].id }, { 0 } };
                const struct os_port *p = trunk_parent(j->os, t[i].port);
                if (p && os_marked(j->os, p->description) && p->name &&
                        streq(p->name, j->node->name))
                        job_ask(j,
                                &(struct os_ask){
                                        .call = OS_DELETE_TRUNK, .args = id, .resource = p->name });
        }
}

/* Only if one of its ports is a parent. */
void stage_node_trunks_gone(struct os_job *j)
{
        const struct os_port *ports = j->os->found.ports.v;
        bool any = false;
        for (size_t i = 0; i < j->os->found.ports.n; i++)
                any |= ports[i].trunk && ports[i].name && streq(ports[i].name, j->node->name) &&
                       os_marked(j->os, ports[i].description);
        struct pair mark[] = { { "mark", j->os->mark }, { 0 } };
        if (any)
                job_ask(j, &(struct os_ask){
                                   .call = OS_LIST_TRUNKS, .args = mark, .fn = on_node_trunks });
}
