/* Before the plan: what is missing, what it costs, and all that would stop it. Nothing is asked
 * when nothing is missing. */
#include "provider/openstack/image.h"

#define GIB ((int64_t)1 << 30)

/* ---- look-ups ---- */

const struct os_flavor *os_flavor_of(const struct os *os, const struct pool *p)
{
        const struct os_flavor *all = os->looked.flavors.v;
        for (size_t i = 0; p->flavor && i < os->looked.flavors.n; i++)
                if (streq(all[i].name, p->flavor) || streq(all[i].id, p->flavor))
                        return &all[i];
        return NULL;
}

const char *os_zone_of(const struct os *os, const struct node *n)
{
        const struct strings *z = n->pool->zones.n ? &n->pool->zones : &os->options->zones;
        return z->n ? z->v[(n->index - 1) % z->n] : NULL;
}

const char *os_server_group_name(const struct os *os, const struct pool *p)
{
        return arena_printf(os->run->arena, "%s-%s", os->name ? os->name : "", p->name);
}

const struct os_server_group *os_server_group_of(const struct os *os, const struct pool *p)
{
        const struct os_server_group *all = os->looked.server_groups.v;
        const char *name = os_server_group_name(os, p);
        for (size_t i = 0; p->spread != SPREAD_NONE && i < os->looked.server_groups.n; i++)
                if (all[i].name && streq(all[i].name, name))
                        return &all[i];
        return NULL;
}

static const char *const policies[] = { "soft-anti-affinity", "anti-affinity" };

static void on_server_group(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct os_looked *l = &j->os->looked;
        const struct call_row *row = &os_calls[OS_CREATE_SERVER_GROUP];
        if (call_read(row, reply, &l->arena, os_append(&l->arena, &l->server_groups, row->answer),
                    &err) < 0)
                job_fail(j, &err);
}

/* Only where machines of the pool are missing. */
void stage_server_group(struct os_job *j, const struct pool *p)
{
        struct os *os = j->os;
        const struct cluster *c = os->run->cluster;
        const char *version = os_compute_version(os->sync.session);
        bool missing = false, old = version && streq(version, "2.53");
        for (size_t i = 0; i < c->node_count; i++)
                missing |= c->nodes[i].pool == p && !os->found.spots[i].server;
        if (p->spread == SPREAD_NONE || !missing || os_server_group_of(os, p))
                return;
        const char *name = os_server_group_name(os, p), *policy = policies[p->spread];
        json_t *body = old ? json_pack("{s:s, s:[s]}", "name", name, "policies", policy)
                           : json_pack("{s:s, s:s}", "name", name, "policy", policy);
        job_ask(j, &(struct os_ask){ .call = OS_CREATE_SERVER_GROUP,
                           .body = body,
                           .resource = name,
                           .fn = on_server_group });
}

/* ---- asking ---- */

static void look_up_list(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct os_list *l = arg;
        if (call_read_list(&os_calls[l->call], reply, &j->os->looked.arena, l->into, &err) < 0)
                job_fail(j, &err);
}

void os_look_up(struct os_job *j, enum os_call call, const struct pair *args, struct answers *into)
{
        struct os_list *l = arena_new(j->os->run->arena, struct os_list);
        *l = (struct os_list){ call, into };
        job_ask(j, &(struct os_ask){ .call = call, .args = args, .fn = look_up_list, .arg = l });
}

void stage_server_groups_again(struct os_job *j)
{
        if (j->looking)
                os_look_up(j, OS_LIST_SERVER_GROUPS, NULL, &j->os->looked.server_groups);
}

struct limit_of {
        enum os_call call;
        void *into;
        bool *has;
};

/* A quota that cannot be read stops nothing. */
static void on_limit(struct os_job *j, const struct call_reply *reply, void *arg)
{
        const struct limit_of *l = arg;
        struct error ignored CLEANUP(error_release) = { 0 };
        *l->has = !reply->fault && call_read(&os_calls[l->call], reply, &j->os->looked.arena,
                                           l->into, &ignored) == 0;
}

static void look_up_limit(struct os_job *j, enum os_call call, void *into, bool *has)
{
        struct limit_of *l = arena_new(j->os->run->arena, struct limit_of);
        struct pair project[] = { { "project", os_project(j->line->session) }, { 0 } };
        *l = (struct limit_of){ call, into, has };
        job_ask(j, &(struct os_ask){ .call = call,
                           .args = project,
                           .fn = on_limit,
                           .arg = l,
                           .optional = true });
}

static void stage_look_up(struct os_job *j)
{
        struct os *os = j->os;
        const struct provider_openstack *o = os->options;
        const struct cluster *c = os->run->cluster;
        struct os_looked *l = &os->looked;
        l->images = arena_array(os->run->arena, struct os_image_of, c->pools.n + 1);
        for (size_t i = 0; i < c->pools.n; i++)
                os_look_up_image(j, &c->pools.v[i]);
        if (os_bastion(os))
                os_look_up_image(j, &os->bastion.pool);
        os_look_up(j, OS_LIST_FLAVORS, NULL, &l->flavors);
        os_look_up(j, OS_LIST_SERVER_GROUPS, NULL, &l->server_groups);
        os_look_up(j, OS_LIST_ZONES, NULL, &l->zones);
        if (o->external_network) {
                bool id = os_is_id(o->external_network);
                struct pair named[] = { { id ? "id" : "name", o->external_network }, { 0 } };
                os_look_up(j, OS_LIST_NETWORKS, named, &l->externals);
        }
        if ((!os_own_group(os) || !os->found.group) && !(os_names_groups(os) && os->mark))
                os_look_up(j, OS_LIST_GROUPS, NULL, &l->named_groups);
        if (os_uses_volumes(os)) {
                os_look_up(j, OS_LIST_VOLUME_TYPES, NULL, &l->volume_types);
                look_up_limit(j, OS_VOLUME_LIMITS, &l->volume, &l->has_volume);
        }
        if (o->ports.trunk || os_no_security(os))
                os_look_up(j, OS_LIST_EXTENSIONS, NULL, &l->extensions);
        look_up_limit(j, OS_COMPUTE_LIMITS, &l->compute, &l->has_compute);
        look_up_limit(j, OS_NETWORK_QUOTA, &l->network, &l->has_network);
}

/* ---- what is missing ---- */

struct needs {
        struct provider_run *run;
        struct survey *out;
        struct os *os;
        int64_t servers, cpus, ram, ports, trunks, floating, volumes, gigabytes, *of_flavor,
                *anew_of_flavor;
};

/* Of an outdated server only the difference: the old one goes before the new one comes. */
static void needs_anew(
        struct needs *n, const struct os_flavor *f, const struct os_server *old, const char *why)
{
        if (!f || !why)
                return;
        n->cpus += old->cpus ? f->cpus - old->cpus : 0;
        n->ram += old->ram ? f->ram - old->ram : 0;
        n->anew_of_flavor[f - (const struct os_flavor *)n->os->looked.flavors.v]++;
}

/* Of one pool, or of the bastion. */
static void needs_machines(struct needs *n, const struct pool *p, int64_t missing)
{
        const struct os *os = n->os;
        const struct os_flavor *f = os_flavor_of(os, p);
        const struct os_image *image = os_image_of(os, p);
        const char *of = p == &os->bastion.pool ? "" : "pool ";
        n->servers += missing;
        if (!f) {
                survey_problem(n->run, n->out, "see `openstack flavor list`",
                        "%s%s: there is no flavor %s", of, p->name, p->flavor ? p->flavor : "");
                return;
        }
        n->cpus += missing * f->cpus;
        n->ram += missing * f->ram;
        if (image && p->root_volume.src && image->min_disk > p->root_volume.size / GIB)
                survey_problem(n->run, n->out, "use a larger rootVolume",
                        "%s%s: image %s needs a disk of %" PRId64 " GB, and rootVolume is smaller",
                        of, p->name, image->name, image->min_disk);
        else if (image && !p->root_volume.src && f->disk && image->min_disk > f->disk)
                survey_problem(n->run, n->out, "use a larger flavor",
                        "%s%s: image %s needs a disk of %" PRId64 " GB, and flavor %s has %" PRId64,
                        of, p->name, image->name, image->min_disk, f->name, f->disk);
        if (image && image->min_ram > f->ram)
                survey_problem(n->run, n->out, "use a larger flavor",
                        "%s%s: image %s needs %" PRId64 " MB of memory, and flavor %s has %" PRId64,
                        of, p->name, image->name, image->min_ram, f->name, f->ram);
        n->of_flavor[f - (const struct os_flavor *)os->looked.flavors.v] += missing;
}

static void needs_pool(struct needs *n, const struct pool *p, struct machine *machines)
{
        struct os *os = n->os;
        const struct cluster *c = n->run->cluster;
        const struct os_flavor *f = os_flavor_of(os, p);
        int64_t missing = 0, anew = 0;
        for (size_t i = 0; i < c->node_count; i++) {
                const struct os_server *s = os->found.spots[i].server;
                if (c->nodes[i].pool != p)
                        continue;
                missing += machines[i].state == MACHINE_ABSENT && !s;
                machines[i].outdated = s ? os_outdated(os, &c->nodes[i]) : NULL;
                anew += s && os_may_be_outdated(os, &c->nodes[i]);
                needs_anew(n, f, s, machines[i].outdated);
        }
        if (missing || anew)
                needs_machines(n, p, missing);
}

/* What the servers cost: one line a flavor, whatever the number of pools. */
static void survey_flavors(struct needs *n, const int64_t *counts, const char *verb)
{
        const struct os_flavor *f = n->os->looked.flavors.v;
        for (size_t i = 0; i < n->os->looked.flavors.n; i++)
                if (counts[i])
                        survey_line(n->run, n->out,
                                "%s%" PRId64 " server%s %s: %" PRId64 " CPUs, %" PRId64
                                " MB of memory each",
                                verb, counts[i], counts[i] == 1 ? "" : "s", f[i].name, f[i].cpus,
                                f[i].ram);
}

static void needs_type(struct needs *n, const struct pool *p, const char *type)
{
        const struct os_volume_type *all = n->os->looked.volume_types.v;
        for (size_t i = 0; i < n->os->looked.volume_types.n; i++)
                if (!type || streq(all[i].id, type) || (all[i].name && streq(all[i].name, type)))
                        return;
        if (type)
                survey_problem(n->run, n->out, "see `openstack volume type list`",
                        "pool %s: there is no volume type %s", p->name, type);
}

static void needs_types(struct needs *n)
{
        const struct cluster *c = n->run->cluster;
        for (size_t i = 0; i < c->pools.n; i++) {
                const struct pool *p = &c->pools.v[i];
                needs_type(n, p, p->root_volume.type);
                for (size_t k = 0; k < p->volumes.n; k++)
                        needs_type(n, p, p->volumes.v[k].type);
        }
}

static void needs_zones(struct needs *n)
{
        const struct os_zone *all = n->os->looked.zones.v;
        const struct cluster *c = n->run->cluster;
        for (size_t i = 0; i < c->node_count; i++) {
                const char *zone = os_zone_of(n->os, &c->nodes[i]);
                bool there = !zone;
                for (size_t k = 0; zone && k < n->os->looked.zones.n; k++)
                        there |= streq(all[k].name, zone) && all[k].available;
                if (there)
                        continue;
                survey_problem(n->run, n->out, "see `openstack availability zone list`",
                        "node %s: there is no availability zone %s", c->nodes[i].name, zone);
                return;
        }
}

static void needs_extensions(struct needs *n)
{
        const struct os_extension *all = n->os->looked.extensions.v;
        bool trunk = !n->os->options->ports.trunk;
        for (size_t i = 0; i < n->os->looked.extensions.n; i++)
                trunk |= streq(all[i].alias, "trunk");
        if (!trunk)
                survey_problem(n->run, n->out, "leave it out, or ask for the extension",
                        "provider.openstack.ports.trunk: this neutron has no trunks");
}

static void needs_named(struct needs *n)
{
        struct os *os = n->os;
        const struct provider_openstack *o = os->options;
        struct os_looked *l = &os->looked;
        const struct os_network *x = l->externals.v;
        if (o->external_network && l->externals.n == 1 && x->external)
                l->external = x->id;
        else if (o->external_network)
                survey_problem(n->run, n->out, "see `openstack network list --external`",
                        "provider.openstack.externalNetwork: %s is no external network",
                        o->external_network);
        if (!os_own_group(os))
                os_survey_groups(os, n->out, "securityGroups", &o->security_groups);
}

/* ---- quotas ---- */

static void needs_quota(
        struct needs *n, const char *what, int64_t need, int64_t limit, int64_t used)
{
        if (need <= 0 || limit < 0 || used + need <= limit)
                return;
        survey_problem(n->run, n->out, "ask for a larger quota, or delete what is not needed",
                "quota: %" PRId64 " %s are needed, and %" PRId64 " of %" PRId64 " are free", need,
                what, limit > used ? limit - used : 0, limit);
}

static void needs_network_quota(
        struct needs *n, const char *what, int64_t need, const struct os_quota *q)
{
        needs_quota(n, what, need, q->limit, q->used + q->reserved);
}

/* What is deleted first leaves room. */
static void needs_volume_quota(struct needs *n)
{
        const struct os *os = n->os;
        const struct os_volume_limits *v = &os->looked.volume;
        const struct os_volume *all = os->found.volumes.v;
        int64_t count = n->volumes, gb = n->gigabytes;
        for (size_t i = 0; i < os->found.volumes.n; i++)
                if (os_volume_is_spare(os, &all[i])) {
                        count--;
                        gb -= all[i].size;
                }
        if (!os->looked.has_volume)
                return;
        needs_quota(n, "volumes", count, v->volumes, v->volumes_used);
        needs_quota(n, "GB of volumes", gb, v->gigabytes, v->gigabytes_used);
}

static void needs_quotas(struct needs *n)
{
        const struct os *os = n->os;
        const struct os_found *f = &os->found;
        const struct os_compute_limits *c = &os->looked.compute;
        const struct os_network_quota *q = &os->looked.network;
        bool managed = os_managed(os);
        if (os->looked.has_compute) {
                needs_quota(n, "servers", n->servers, c->servers, c->servers_used);
                needs_quota(n, "CPUs", n->cpus, c->cpus, c->cpus_used);
                needs_quota(n, "MB of memory", n->ram, c->ram, c->ram_used);
        }
        needs_volume_quota(n);
        if (!os->looked.has_network)
                return;
        needs_network_quota(n, "networks", managed && !f->network && !f->subnet, &q->network);
        needs_network_quota(n, "subnets", managed && !f->subnet, &q->subnet);
        needs_network_quota(n, "routers",
                managed && os->options->external_network && !f->router && !f->interface,
                &q->router);
        needs_network_quota(n, "ports", n->ports, &q->port);
        needs_network_quota(n, "floating IPs", n->floating, &q->floating_ip);
        needs_network_quota(n, "security groups",
                (os_own_group(os) && !f->group) + (os_bastion(os) && !f->bastion_group), &q->group);
}

/* ---- what will be made ---- */

static void survey_volumes(struct needs *n)
{
        const struct os *os = n->os;
        const struct cluster *c = n->run->cluster;
        const struct os_volume *all = os->found.volumes.v;
        for (size_t i = 0; i < os->found.volumes.n; i++)
                if (os_volume_is_spare(os, &all[i]))
                        survey_line(n->run, n->out, "delete the unused volume %s, %s",
                                all[i].name ? all[i].name : "", all[i].id);
        if (n->volumes)
                survey_line(n->run, n->out, "%" PRId64 " volume%s, %" PRId64 " GB", n->volumes,
                        n->volumes == 1 ? "" : "s", n->gigabytes);
        for (size_t i = 0; i < c->node_count; i++)
                for (size_t k = 1; k <= c->nodes[i].pool->volumes.n; k++)
                        if (os_volume_detached(os, &c->nodes[i], k))
                                survey_line(n->run, n->out, "attach volume %zu of %s", k,
                                        c->nodes[i].name);
}

static void survey_bastion(struct needs *n)
{
        const struct os *os = n->os;
        const struct machine *m = &os->bastion.machine;
        const char *name = os->bastion.node.name;
        if (os_bastion_is_left(os))
                survey_line(n->run, n->out, "delete the bastion %s", name);
        else if (os_bastion_missing(os) && m->state == MACHINE_STOPPED)
                survey_line(n->run, n->out, "start the bastion %s", name);
        else if (os_bastion_missing(os))
                survey_line(
                        n->run, n->out, "bastion %s, flavor %s", name, os->options->bastion.flavor);
}

static void survey_once(struct needs *n)
{
        struct os *os = n->os;
        const struct os_found *f = &os->found;
        const char *name = os->name ? os->name : n->run->cluster->name;
        char text[IP_TEXT + 4];
        bool lb = os->options->load_balancer == OS_LB_OCTAVIA;
        if (os_managed(os) && !f->subnet)
                survey_line(n->run, n->out, "network %s, %s%s%s", name,
                        cidr_format(&os->options->network.cidr, text),
                        os->options->external_network ? ", with a router to " : "",
                        os->options->external_network ? os->options->external_network : "");
        else if (os_managed(os) && os->options->external_network && !f->interface)
                survey_line(n->run, n->out, "router to %s", os->options->external_network);
        survey_bastion(n);
        if (os_rules_missing(os))
                survey_line(n->run, n->out,
                        (os_own_group(os) ? f->group : f->bastion_group)
                                ? "rules of the security group %s"
                                : "security group %s, with its rules",
                        os_own_group(os) ? name : os->bastion.node.name);
        const struct os_server *servers = f->servers.v;
        for (size_t i = 0; i < f->servers.n; i++)
                if (os_is_twin(os, &servers[i]))
                        survey_line(n->run, n->out, "delete the second server %s, %s",
                                servers[i].name, servers[i].id);
        survey_volumes(n);
        if (n->ports)
                survey_line(
                        n->run, n->out, "%" PRId64 " port%s", n->ports, n->ports == 1 ? "" : "s");
        if (n->trunks)
                survey_line(n->run, n->out, "%" PRId64 " trunk%s", n->trunks,
                        n->trunks == 1 ? "" : "s");
        if (n->floating)
                survey_line(n->run, n->out, "%" PRId64 " floating IP%s from %s", n->floating,
                        n->floating == 1 ? "" : "s", os->options->external_network);
        if (lb && !f->balancer)
                survey_line(n->run, n->out, "load balancer %s", name);
        else if (os_members_differ(os))
                survey_line(n->run, n->out, "members of the load balancer %s", name);
        if (os_clients_differ(os))
                survey_line(n->run, n->out, "networks that may use the load balancer %s", name);
        if (os_credential_missing(os))
                survey_line(n->run, n->out,
                        "application credential for the cloud's controller and CSI driver");
}

static void needs_ports(struct needs *n)
{
        const struct os *os = n->os;
        const struct cluster *c = n->run->cluster;
        n->ports = os_wants_vip(os) && !os->found.vip;
        n->floating = os->options->api_floating_ip && !os->found.vip_floating;
        if (os_bastion(os)) {
                const struct os_spot *s = os_spot_of(os, os_bastion(os));
                n->ports += !s->port;
                n->floating += !s->floating;
        }
        for (size_t i = 0; i < c->node_count; i++) {
                n->ports += !os->found.spots[i].port;
                n->trunks += os_trunk_missing(os, &c->nodes[i]);
                os_volumes_missing(os, &c->nodes[i], &n->volumes, &n->gigabytes);
                n->floating += c->nodes[i].pool->floating_ip && !os->found.spots[i].floating;
        }
}

int openstack_survey(
        struct provider_run *run, struct machine *machines, struct survey *out, struct error *err)
{
        static const os_stage stages[] = { stage_look_up, NULL };
        struct os *os;
        struct needs n = { .run = run, .out = out };
        int r = os_of(run, &os, err);
        if (r < 0)
                return r;
        n.os = os;
        needs_ports(&n);
        os_survey_further(os, out, &n.ports);
        survey_once(&n);
        out->changes = out->lines.n > 0;
        bool any = out->changes;
        for (size_t i = 0; i < run->cluster->node_count; i++) {
                any |= machines[i].state == MACHINE_ABSENT ||
                       os_may_be_outdated(os, &run->cluster->nodes[i]);
                if (!run->cluster->nodes[i].ip[0].family)
                        survey_problem(run, out, "use a larger network",
                                "node %s: the network has no free address",
                                run->cluster->nodes[i].name);
        }
        if (!any)
                return 0;
        if ((r = job_run(os, stages, err)) < 0 || (r = os_same_name(os, err)) < 0)
                return r;
        for (size_t i = 0; i < os->looked.image_count; i++)
                os_image_survey(os, out, &os->looked.images[i]);
        n.of_flavor = arena_array(run->arena, int64_t, os->looked.flavors.n + 1);
        n.anew_of_flavor = arena_array(run->arena, int64_t, os->looked.flavors.n + 1);
        for (size_t i = 0; i < run->cluster->pools.n; i++)
                needs_pool(&n, &run->cluster->pools.v[i], machines);
        if (os_bastion(os) && !os_spot_of(os, os_bastion(os))->server)
                needs_machines(&n, &os->bastion.pool, 1);
        survey_flavors(&n, n.of_flavor, "");
        survey_flavors(&n, n.anew_of_flavor, "made anew, one after the other: ");
        needs_types(&n);
        needs_zones(&n);
        needs_extensions(&n);
        os_needs_further(os, out);
        needs_named(&n);
        needs_quotas(&n);
        return 0;
}
