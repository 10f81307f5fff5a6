/* What carries a mark of slipway's and belongs to nothing: of this cluster, what has the name of no
 * node; of others, everything, because their files are not known here. */
#include <event2/event.h>

#include "provider/openstack/openstack.h"

struct leaks_list {
        const struct sweep_row *row;
        struct answers all;
};

struct leaks_job {
        struct leaks_list lists[OS_SWEEP_COUNT];
};

static void on_leaks_list(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct leaks_list *l = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (!reply->fault && call_read_list(&os_calls[l->row->list], reply, j->os->run->arena,
                                     &l->all, &err) < 0)
                job_fail(j, &err);
}

/* Without a cluster nothing was asked yet: the token says which services there are, and who asks.
 */
static void stage_leaks_login(struct os_job *j)
{
        if (!os_user_id(j->os))
                job_ask(j, &(struct os_ask){ .call = OS_LIST_ZONES });
}

static void stage_leaks_ask(struct os_job *j)
{
        struct leaks_job *all = j->os->leaking;
        for (size_t i = 0; i < OS_SWEEP_COUNT; i++) {
                struct sweep_args args = sweep_args(j, &os_sweep[i], false, NULL);
                all->lists[i].row = &os_sweep[i];
                if (sweep_wanted(j->os, &os_sweep[i]))
                        job_ask(j, &(struct os_ask){ .call = os_sweep[i].list,
                                           .args = args.v,
                                           .fn = on_leaks_list,
                                           .arg = &all->lists[i],
                                           .optional = sweep_optional(j->os, &os_sweep[i]) });
        }
}

/* ---- what belongs to something ---- */

static bool leak_node(const struct os *os, const char *name)
{
        char *api CLEANUP(free_p) = xasprintf("%s-api", os->name);
        return name && (cluster_node(os->run->cluster, name) || streq(name, api) ||
                               (os_bastion(os) && os_is_bastion_name(os, name)));
}

static bool leak_port(const struct os *os, const char *id)
{
        const struct os_port *ports = os->found.ports.v;
        for (size_t i = 0; id && i < os->found.ports.n; i++)
                if (streq(ports[i].id, id))
                        return os_marked(os, ports[i].description) && leak_node(os, ports[i].name);
        return false;
}

static bool leak_pool(const struct os *os, const char *name)
{
        const struct cluster *c = os->run->cluster;
        for (size_t i = 0; i < c->pools.n; i++)
                if (streq(os_server_group_name(os, &c->pools.v[i]), name))
                        return true;
        return false;
}

/* Of this cluster: whether the file has use for it. */
static bool leak_used(const struct os *os, const struct sweep_row *row, const struct swept *s)
{
        if (row->controller)
                return true; /* its Service is the API's to know */
        switch (row->list) {
        case OS_LIST_PORTS:
                return leak_node(os, s->name) && !os_port_is_loose(os, (const struct os_port *)s);
        case OS_LIST_SERVERS:
        case OS_LIST_TRUNKS:
                return leak_node(os, s->name);
        case OS_LIST_VOLUMES:
                return leak_node(os, os_volume_node((const struct os_volume *)s));
        case OS_LIST_UPLOADS:
                return os_image_is_used(os, (const struct os_image *)s);
        case OS_LIST_FLOATING_IPS:
                return leak_port(os, ((const struct os_floating_ip *)s)->port);
        case OS_LIST_SERVER_GROUPS:
                return leak_pool(os, s->name);
        case OS_LIST_GROUPS:
                return os_bastion(os) || !os_is_bastion_name(os, s->name);
        default:
                return true; /* all nodes share it */
        }
}

/* The node it was made for, where that is known: a node in the record keeps what it has. */
static const char *leak_name(
        const struct os *os, const struct sweep_row *row, const struct swept *s)
{
        const struct os_port *ports = os->found.ports.v;
        const char *port =
                row->list == OS_LIST_FLOATING_IPS ? ((const struct os_floating_ip *)s)->port : NULL;
        for (size_t i = 0; port && i < os->found.ports.n; i++)
                if (streq(ports[i].id, port) && ports[i].name && *ports[i].name)
                        return ports[i].name;
        return row->list == OS_LIST_VOLUMES ? os_volume_node((const struct os_volume *)s) : s->name;
}

static const char *leak_mark(
        const struct os *os, const struct sweep_row *row, const struct swept *s)
{
        if (sweep_unmarked(row))
                return os->mark && sweep_takes(os, row, s) ? os->mark : NULL;
        return os_mark_of(row->list, s);
}

int openstack_leaks(struct provider_run *run, struct leaks *out, struct error *err)
{
        static const os_stage stages[] = { stage_leaks_login, stage_leaks_ask, NULL };
        struct os *os;
        size_t most = 0;
        int r = os_of(run, &os, err);
        if (r < 0)
                return r;
        struct leaks_job *all = os->leaking = arena_new(run->arena, struct leaks_job);
        if ((r = job_run(os, stages, err)) < 0)
                return r;
        for (size_t i = 0; i < OS_SWEEP_COUNT; i++)
                most += all->lists[i].all.n;
        *out = (struct leaks){ .v = arena_array(run->arena, struct leak, most + 1) };
        for (size_t i = 0; i < OS_SWEEP_COUNT; i++)
                for (size_t k = 0; k < all->lists[i].all.n; k++) {
                        const struct swept *s = swept_at(&os_sweep[i], &all->lists[i].all, k);
                        const char *mark = leak_mark(os, &os_sweep[i], s);
                        bool ours = os_marked(os, mark);
                        if (!mark || (ours && !run->abandoned && leak_used(os, &os_sweep[i], s)))
                                continue;
                        out->v[out->n++] = (struct leak){ .kind = os_sweep[i].kind,
                                .id = s->id,
                                .name = leak_name(os, &os_sweep[i], s),
                                .prefix = mark + strlen(OS_MARK),
                                .ours = ours };
                }
        return 0;
}

#define TRUNK_TRIES 60 /* a second each: nova lets go of a port when its server is gone */

static void leak_pause(struct os *os)
{
        event_base_loopexit(os->sync.base, &(struct timeval){ .tv_sec = 1 });
        event_base_dispatch(os->sync.base);
}

/* The trunk of a port that is in use stays until it no longer is. */
static int leak_call(struct os *os, const struct sweep_row *row, const struct pair *args,
        const struct leak *l, struct error *err)
{
        for (unsigned tries = 0;; tries++) {
                struct fault f = { 0 };
                int r = call_do(os_session(os->sync.session), &os_calls[row->delete],
                        &(struct call_args){ .args = args, .resource = l->id }, NULL, &f);
                bool again = r < 0 && f.kind == FAULT_CONFLICT && row->list == OS_LIST_TRUNKS &&
                             tries < TRUNK_TRIES;
                r = r < 0 && f.kind != FAULT_ABSENT && !again ? fault_error(&f, err) : 0;
                fault_release(&f);
                if (!again)
                        return r;
                leak_pause(os);
        }
}

/* One of those that openstack_leaks listed as ours. */
int openstack_leak_delete(struct provider_run *run, const struct leak *l, struct error *err)
{
        struct os *os;
        int r = os_of(run, &os, err);
        struct pair id[] = { { "id", l->id }, { "user", r == 0 ? os_user_id(os) : NULL }, { 0 } };
        for (size_t i = 0; r == 0 && i < OS_SWEEP_COUNT; i++)
                if (l->ours && streq(os_sweep[i].kind, l->kind))
                        r = leak_call(os, &os_sweep[i], id, l, err);
        return r;
}

/* ---- another cluster of this name ---- */

int os_same_name(const struct os *os, struct error *err)
{
        const struct answers *all =
                os_names_groups(os) && os->mark ? &os->found.groups : &os->looked.named_groups;
        const struct os_group *g = all->v;
        const struct os_found *f = &os->found;
        const char *name = os->run->cluster->name;
        size_t n = strlen(name);
        for (size_t i = 0; !f->group && !f->servers.n && i < all->n; i++) {
                const char *mark = os_mark_of(OS_LIST_GROUPS, &g[i]);
                const char *prefix = mark ? mark + strlen(OS_MARK) : "";
                if (!mark || os_marked(os, mark) || !g[i].name || strncmp(g[i].name, name, n) ||
                        g[i].name[n] != '-' || !streq(g[i].name + n + 1, prefix))
                        continue;
                error_set(err, EEXIST, EXIT_STATE,
                        "the cloud has another cluster %s, with the prefix %s, that this state directory does not know",
                        name, prefix);
                return error_hint(err,
                        "give its state directory with --state, choose another metadata.name, or delete it with 'slipway leaks --prefix %s --delete'",
                        prefix);
        }
        return 0;
}
