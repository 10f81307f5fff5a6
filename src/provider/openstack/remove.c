/* Servers and ports that go, and everything when the cluster goes: in an order in which nothing
 * holds what is deleted, each kind until its list is empty. Only what has the mark is deleted, and
 * of what the cloud's controller made, what has the full name of the cluster in it. */
#include <event2/event.h>

#include "provider/login.h"
#include "provider/openstack/openstack.h"

const struct sweep_row os_sweep[OS_SWEEP_COUNT] = {
        { "server", OS_LIST_SERVERS, OS_DELETE_SERVER },
        { "volume", OS_LIST_VOLUMES, OS_DELETE_VOLUME },
        { "image", OS_LIST_UPLOADS, OS_DELETE_IMAGE }, /* after what was made from it */
        /* before anything that their ports are in */
        { "load balancer of a Service", OS_LIST_BALANCERS, OS_DELETE_BALANCER,
                .named = "kube_service_%s_", .controller = true },
        { "floating IP of a Service", OS_LIST_FLOATING_IPS, OS_DELETE_FLOATING_IP,
                .ends = " from cluster %s", .controller = true },
        { "application credential", OS_LIST_CREDENTIALS, OS_DELETE_CREDENTIAL },
        { "load balancer", OS_LIST_BALANCERS, OS_DELETE_BALANCER },
        { "floating IP", OS_LIST_FLOATING_IPS, OS_DELETE_FLOATING_IP },
        { "trunk", OS_LIST_TRUNKS, OS_DELETE_TRUNK },
        { "port", OS_LIST_PORTS, OS_DELETE_PORT },
        { "server group", OS_LIST_SERVER_GROUPS, OS_DELETE_SERVER_GROUP, .named = "%s-" },
        { "security group", OS_LIST_GROUPS, OS_DELETE_GROUP },
        { "router", OS_LIST_ROUTERS, OS_DELETE_ROUTER },
        { "subnet", OS_LIST_SUBNETS, OS_DELETE_SUBNET },
        { "network", OS_LIST_NETWORKS, OS_DELETE_NETWORK },
};

bool sweep_wanted(const struct os *os, const struct sweep_row *row)
{
        if (row->list == OS_LIST_VOLUMES)
                return os_has(os->sync.session, "block-storage");
        if (row->list == OS_LIST_UPLOADS)
                return os_has(os->sync.session, "image");
        if (row->controller)
                return os->options->cloud.controller;
        return row->list != OS_LIST_BALANCERS || os->options->load_balancer == OS_LB_OCTAVIA;
}

/* "kube_service_%s_" with NAME-P in it; malloc'd. */
static char *sweep_word(const struct os *os, const char *form)
{
        const char *at = strstr(form, "%s");
        return xasprintf("%.*s%s%s", (int)(at - form), form, os->name, at + 2);
}

bool sweep_takes(const struct os *os, const struct sweep_row *row, const struct swept *s)
{
        if (!sweep_unmarked(row))
                return true;
        char *word CLEANUP(free_p) = sweep_word(os, row->named ? row->named : row->ends);
        if (row->named)
                return s->name && has_prefix(s->name, word);
        const char *text = ((const struct os_floating_ip *)s)->description;
        return text && has_suffix(text, word);
}

struct sweep_args sweep_args(
        const struct os_job *j, const struct sweep_row *row, bool marked, const char *id)
{
        struct sweep_args a = { 0 };
        size_t n = 0;
        if (row->list == OS_LIST_CREDENTIALS)
                a.v[n++] = (struct pair){ "user", os_user_id(j->os) };
        else if (marked && !sweep_unmarked(row)) {
                os_mark_args(j->os, a.v);
                n = 2;
        }
        if (id)
                a.v[n++] = (struct pair){ "id", id };
        return a;
}

/* Not every user may list their credentials, and not every neutron has trunks; who never asked for
 * one has none to remove. */
bool sweep_optional(const struct os *os, const struct sweep_row *row)
{
        return row->list == OS_LIST_TRUNKS
                       ? !os->options->ports.trunk
                       : row->list == OS_LIST_CREDENTIALS && !os_wants_credential(os);
}

/* Of the rows with a mark, only what has it. */
static int sweep_read(const struct os *os, const struct sweep_row *row,
        const struct call_reply *reply, struct answers *out, struct error *err)
{
        struct arena *a = os->run->arena;
        return sweep_unmarked(row) ? call_read_list(&os_calls[row->list], reply, a, out, err)
                                   : os_read_ours(os, row->list, reply, a, out, err);
}

const struct swept *swept_at(const struct sweep_row *row, const struct answers *all, size_t i)
{
        return (const void *)((const char *)all->v + i * os_calls[row->list].answer->size);
}

/* What stays because something still uses it is seen in the next list. */
static void on_swept_one(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct fault *f = reply->fault;
        if (!f || f->kind == FAULT_ABSENT || f->kind == FAULT_CONFLICT || f->lost)
                return;
        fault_error(f, &err);
        job_fail(j, &err);
}

static void sweep_delete(struct os_job *j, const struct sweep_row *row, const struct swept *s)
{
        struct pair id[] = { { "id", s->id }, { 0 } };
        if (row->list == OS_LIST_VOLUMES) {
                os_volume_delete(j, (const struct os_volume *)s);
                return;
        }
        if (row->list == OS_LIST_ROUTERS && j->os->found.subnet)
                job_ask(j, &(struct os_ask){ .call = OS_REMOVE_INTERFACE,
                                   .args = id,
                                   .body = json_pack("{s:s}", "subnet_id", j->os->found.subnet->id),
                                   .resource = s->name,
                                   .fn = on_swept_one,
                                   .optional = true });
        struct sweep_args args = sweep_args(j, row, false, s->id);
        job_ask(j, &(struct os_ask){ .call = row->delete,
                           .args = args.v,
                           .resource = s->name,
                           .fn = on_swept_one,
                           .optional = true });
}

void stage_twins(struct os_job *j)
{
        const struct answers *all = &j->os->found.servers;
        const struct os_server *servers = all->v;
        for (size_t i = 0; i < all->n; i++)
                if (os_is_twin(j->os, &servers[i]))
                        sweep_delete(j, &os_sweep[0], swept_at(&os_sweep[0], all, i));
}

static void on_sweep_list(struct os_job *j, const struct call_reply *reply, void *arg)
{
        const struct sweep_row *row = &os_sweep[j->row];
        struct error err CLEANUP(error_release) = { 0 };
        struct answers all = { 0 };
        size_t n = 0;
        if (!reply->fault && sweep_read(j->os, row, reply, &all, &err) < 0) {
                job_fail(j, &err);
                return;
        }
        for (size_t i = 0; i < all.n; i++)
                if (sweep_takes(j->os, row, swept_at(row, &all, i))) {
                        sweep_delete(j, row, swept_at(row, &all, i));
                        n++;
                }
        if (!n) {
                j->row++;
                j->at--;
                j->tries = 0;
        } else if (!job_later(j, j->tries++ ? 1000 : 100)) {
                const struct swept *first = swept_at(row, &all, 0);
                error_set(&err, EBUSY, EXIT_STEP, "%zu %s%s left, %s is the first", n, row->kind,
                        n == 1 ? " is" : "s are", first->id);
                error_hint(&err, "see what uses it, and run 'slipway down' again");
                job_fail(j, &err);
        }
}

static void stage_sweep(struct os_job *j)
{
        struct os *os = j->os;
        while (j->row < OS_SWEEP_COUNT && !sweep_wanted(os, &os_sweep[j->row]))
                j->row++;
        if (j->row == OS_SWEEP_COUNT)
                return;
        struct sweep_args args = sweep_args(j, &os_sweep[j->row], true, NULL);
        job_ask(j, &(struct os_ask){ .call = os_sweep[j->row].list,
                           .args = args.v,
                           .fn = on_sweep_list,
                           .optional = sweep_optional(os, &os_sweep[j->row]) });
}

/* ---- the proof ---- */

struct proof {
        struct answers lists[OS_SWEEP_COUNT];
};

static void on_proof_list(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        const struct sweep_row *row = arg;
        if (!reply->fault &&
                sweep_read(j->os, row, reply, &j->os->proof->lists[row - os_sweep], &err) < 0)
                job_fail(j, &err);
}

static void stage_proof_ask(struct os_job *j)
{
        struct os *os = j->os;
        os->proof = arena_new(os->run->arena, struct proof);
        for (size_t i = 0; i < OS_SWEEP_COUNT; i++) {
                struct sweep_args args = sweep_args(j, &os_sweep[i], true, NULL);
                if (sweep_wanted(os, &os_sweep[i]))
                        job_ask(j, &(struct os_ask){ .call = os_sweep[i].list,
                                           .args = args.v,
                                           .fn = on_proof_list,
                                           .arg = (void *)&os_sweep[i],
                                           .optional = sweep_optional(os, &os_sweep[i]) });
        }
}

static void stage_proof(struct os_job *j)
{
        const struct os *os = j->os;
        const struct proof *p = os->proof;
        struct str left CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < OS_SWEEP_COUNT; i++)
                for (size_t k = 0; k < p->lists[i].n; k++) {
                        const struct swept *s = swept_at(&os_sweep[i], &p->lists[i], k);
                        if (sweep_takes(os, &os_sweep[i], s))
                                str_addf(&left, "%s%s %s", left.len ? ", " : "", os_sweep[i].kind,
                                        s->id);
                }
        if (!left.len)
                return;
        error_set(&err, EBUSY, EXIT_STEP, "something of the cluster is left: %s", left.data);
        error_hint(&err, "run 'slipway down' again");
        job_fail(j, &err);
}

int openstack_cleanup(struct provider_run *run, struct error *err)
{
        static const os_stage stages[] = { stage_sweep, stage_proof_ask, stage_proof, NULL };
        struct os *os;
        int r = os_of(run, &os, err);
        if (r == 0 && os->mark)
                r = job_run(os, stages, err);
        return r == 0 ? login_remove(run, err) : r;
}
