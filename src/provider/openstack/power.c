/* A server that goes with its port, its power and its console. */
#include <event2/event.h>

#include "provider/openstack/openstack.h"

/* ---- destroy: the server, then its floating IP and its port ---- */

struct destroying {
        struct os *os;
        struct machine *m;
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
};

static bool destroy_named(const char *name, const struct machine *m)
{
        return name && streq(name, m->node->name);
}

static void stage_destroy_port(struct os_job *j)
{
        const struct destroying *d = j->arg;
        const struct os_found *f = &j->os->found;
        const struct os_port *ports = f->ports.v;
        const struct os_floating_ip *floating = f->floating.v;
        for (size_t i = 0; i < f->ports.n; i++) {
                struct pair id[] = { { "id", ports[i].id }, { 0 } };
                if (!destroy_named(ports[i].name, d->m) || !os_marked(j->os, ports[i].description))
                        continue;
                job_ask(j,
                        &(struct os_ask){
                                .call = OS_DELETE_PORT, .args = id, .resource = d->m->node->name });
                for (size_t k = 0; k < f->floating.n; k++) {
                        struct pair of[] = { { "id", floating[k].id }, { 0 } };
                        if (floating[k].port && streq(floating[k].port, ports[i].id))
                                job_ask(j, &(struct os_ask){ .call = OS_DELETE_FLOATING_IP,
                                                   .args = of,
                                                   .resource = d->m->node->name });
                }
        }
}

static void on_destroyed_port(struct error *err, void *arg)
{
        struct destroying *d = arg;
        d->fn(d->m, err, d->arg);
}

static void on_server_gone(struct machine *m, struct error *err, void *arg)
{
        static const os_stage stages[] = { stage_node_trunks_gone, stage_node_ports_old,
                stage_destroy_port, stage_node_volumes_gone, NULL };
        struct destroying *d = arg;
        if (err)
                d->fn(d->m, err, d->arg);
        else
                job_start_for(d->os, stages, m->node, false, on_destroyed_port, d);
}

void os_server_end(struct os_wait *w, const struct os_server *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        w->id = s ? arena_strdup(w->os->run->arena, s->id) : NULL;
        w->what = WAIT_GONE;
        if (os_line_async(w->os, &err) < 0)
                os_wait_end(w, &err);
        else if (!s)
                os_wait_end(w, NULL);
        else if (s->status && streq(s->status, "SOFT_DELETED"))
                os_server_call(
                        w, OS_SERVER_ACTION, json_pack("{s:n}", "forceDelete"), os_server_acted);
        else
                os_server_call(w, OS_DELETE_SERVER, NULL, os_server_acted);
}

static void destroy_begin(int fd, short what, void *arg)
{
        struct os_wait *w = arg;
        const struct os_server *all = w->os->found.servers.v, *s = NULL;
        for (size_t i = 0; i < w->os->found.servers.n; i++)
                if (destroy_named(all[i].name, w->m))
                        s = &all[i];
        os_server_end(w, s);
}

void openstack_destroy(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        struct destroying *d = arena_new(run->arena, struct destroying);
        *d = (struct destroying){ .os = run->own, .m = m, .fn = fn, .arg = arg };
        event_base_once(run->base, -1, EV_TIMEOUT, destroy_begin,
                os_wait_new(run, m, on_server_gone, d), &(struct timeval){ 0 });
}

/* ---- power and console ---- */

#define CONSOLE_MS 15000

static const char *power_id(struct os *os, const struct machine *m)
{
        const char *slash = m->provider_id ? strrchr(m->provider_id, '/') : NULL;
        if (slash) /* also of one that this run has made */
                return slash + 1;
        const struct os_server *all = os->found.servers.v;
        for (size_t i = 0; i < os->found.servers.n; i++)
                if (destroy_named(all[i].name, m))
                        return all[i].id;
        return NULL;
}

/* One action on one server, until nova has taken it. */
static int power_act(struct provider_run *run, const struct machine *m, json_t *action,
        json_t **out, struct error *err)
{
        struct os *os;
        struct fault f = { 0 };
        int r = os_of(run, &os, err);
        const char *id = r == 0 ? power_id(os, m) : NULL;
        struct pair args[] = { { "id", id }, { 0 } };
        if (r == 0 && !id)
                r = error_set(err, ENOENT, EXIT_STEP, "node %s has no server", m->node->name);
        if (r == 0 && call_do(os_session(os->sync.session), &os_calls[OS_SERVER_ACTION],
                              &(struct call_args){ .args = args,
                                      .body = action,
                                      .resource = m->node->name,
                                      .timeout_ms = out ? CONSOLE_MS : 0 },
                              out, &f) < 0)
                r = fault_error(&f, err);
        fault_release(&f);
        json_decref(action);
        return r;
}

int openstack_stop(struct provider_run *run, const struct machine *m, bool hard, struct error *err)
{
        return power_act(run, m, json_pack("{s:n}", "os-stop"), NULL, err);
}

int openstack_start(struct provider_run *run, const struct machine *m, struct error *err)
{
        return power_act(run, m, json_pack("{s:n}", "os-start"), NULL, err);
}

int openstack_console(
        struct provider_run *run, const struct machine *m, struct str *out, struct error *err)
{
        json_t *reply = NULL;
        int r = power_act(
                run, m, json_pack("{s:{s:i}}", "os-getConsoleOutput", "length", 1000), &reply, err);
        const char *text = json_string_value(json_object_get(reply, "output"));
        if (r == 0 && text)
                str_add(out, text);
        json_decref(reply);
        return r;
}
