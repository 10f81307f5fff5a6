/* Servers: one call makes one, and one list waits for all of them. */
#include <event2/event.h>

#include "base/clock.h"
#include "deliver/encode.h"
#include "provider/login.h"
#include "provider/openstack/openstack.h"

#define POLL_MS       2000
#define POLL_FIRST_MS 500
#define LOST_MS       5000
#define POSTS_MAX     3
#define UNSEEN_MS     60000        /* a list may not have it at once */
#define DEADLINE_MS   (20 * 60000) /* of one server */

static void wait_begin(struct os_wait *w, enum waits_for what, unsigned ms);
static void server_post(struct os_wait *w);

void os_waits_free(struct os *os)
{
        for (struct os_wait *w; (w = os->waits);) {
                os->waits = w->next;
                free(w);
        }
        if (os->poll)
                event_free(os->poll);
        os->poll = NULL;
}

void os_wait_end(struct os_wait *w, struct error *err)
{
        w->fn(w->m, err, w->arg);
        free(w);
}

static void wait_fault(struct os_wait *w, const struct fault *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        fault_error(f, &err);
        os_wait_end(w, &err);
}

static void wait_failed(struct os_wait *w, const char *hint, const char *fmt, ...) PRINTF(3, 4);
static void wait_failed(struct os_wait *w, const char *hint, const char *fmt, ...)
{
        struct error err CLEANUP(error_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        error_vset(&err, EIO, EXIT_STEP, hint, fmt, ap);
        va_end(ap);
        os_wait_end(w, &err);
}

/* ---- calls ---- */

void os_server_call(struct os_wait *w, enum os_call call, json_t *body, call_fn fn)
{
        struct pair args[] = { { "id", w->id }, { 0 } };
        call_start(os_session(w->os->async.session), &os_calls[call],
                &(struct call_args){ .args = args, .body = body, .resource = w->m->node->name }, fn,
                w);
        json_decref(body);
}

static struct os_spot *wait_spot(const struct os_wait *w)
{
        return os_spot_named(w->os, w->m->node->name);
}

/* ---- what the list says ---- */

static void wait_is_active(struct os_wait *w, const struct os_server *s)
{
        struct os_spot *spot = wait_spot(w);
        struct os_server *kept = arena_new(&w->os->found.arena, struct os_server);
        struct machine m;
        *kept = (struct os_server){ .id = arena_strdup(&w->os->found.arena, s->id),
                .name = w->m->node->name,
                .status = "ACTIVE" };
        if (spot)
                spot->server = kept;
        os_machine(
                w->os, w->m->node, s, spot ? spot->port : NULL, spot ? spot->floating : NULL, &m);
        *w->m = m;
        os_wait_end(w, NULL);
}

/* Where a host may be free when there is none in the node's own zone. Volumes bind it to that. */
static const char *zone_elsewhere(const struct os_wait *w)
{
        const struct pool *p = w->m->node->pool;
        const struct strings *z = p->zones.n ? &p->zones : &w->os->options->zones;
        return z->n > 1 && !p->volumes.n && !p->root_volume.src ? z->v[w->m->node->index % z->n]
                                                                : NULL;
}

static void on_failed_goes(const struct call_reply *reply, void *arg)
{
        wait_begin(arg, WAIT_CLEAR, 0);
}

static void on_failed_deleted(const struct call_reply *reply, void *arg)
{
        struct os_wait *w = arg;
        wait_failed(w, "run 'slipway up' again: its port and address are kept",
                "nova could not make the server: %s", w->why);
}

/* The server goes, or it would stand in the way; what it said is the error. */
static void wait_is_error(struct os_wait *w, const struct os_server *s)
{
        struct pair args[] = { { "id", s->id }, { 0 } };
        bool again = !w->why && s->fault && strstr(s->fault, "No valid host") && zone_elsewhere(w);
        w->why = arena_strdup(w->os->run->arena, s->fault ? s->fault : "it says no reason");
        call_start(os_session(w->os->async.session), &os_calls[OS_DELETE_SERVER],
                &(struct call_args){ .args = args, .resource = w->m->node->name },
                again ? on_failed_goes : on_failed_deleted, w);
}

/* True: the wait is over, or goes on by itself. */
static bool wait_judge(struct os_wait *w, const struct os_server *s)
{
        int64_t now = clock_ms();
        const char *status = s && s->status ? s->status : "";
        if (now < w->not_before)
                return false;
        if (s && !w->id)
                w->id = arena_strdup(w->os->run->arena, s->id);
        if (w->what != WAIT_ACTIVE) {
                if (s && !streq(status, "DELETED"))
                        return false;
                if (w->what == WAIT_GONE)
                        os_wait_end(w, NULL);
                else
                        server_post(w);
                return true;
        }
        if (streq(status, "ACTIVE")) {
                wait_is_active(w, s);
                return true;
        }
        if (streq(status, "ERROR")) {
                wait_is_error(w, s);
                return true;
        }
        if (!s && !w->id) { /* its answer was lost, and it was not made */
                if (now < w->post_after)
                        return false;
                server_post(w);
                return true;
        }
        if (!s && now - w->since > UNSEEN_MS) {
                wait_failed(w, "run 'slipway up' again", "its server is gone from nova's list");
                return true;
        }
        return false;
}

static int wait_rank(const struct os_server *s)
{
        const char *status = s->status ? s->status : "";
        return streq(status, "ACTIVE") ? 0 : streq(status, "ERROR") ? 2 : 1;
}

/* A call that seemed lost may have made a second server of the node: the one that has the port
 * becomes ACTIVE, the other one fails. So one that failed only counts if there is no better one. */
static const struct os_server *wait_find(const struct os_wait *w, const struct answers *list)
{
        const struct os_server *s = list->v, *found = NULL;
        for (size_t i = 0; w->id && i < list->n; i++)
                if (streq(s[i].id, w->id))
                        found = &s[i];
        if (w->id && (!found || w->what != WAIT_ACTIVE || wait_rank(found) < 2))
                return found;
        for (size_t i = 0; i < list->n; i++)
                if (s[i].name && streq(s[i].name, w->m->node->name) &&
                        (!found || wait_rank(&s[i]) < wait_rank(found)))
                        found = &s[i];
        return found;
}

static void poll_schedule(struct os *os, unsigned ms)
{
        if (os->waits && !os->polling && !event_pending(os->poll, EV_TIMEOUT, NULL))
                event_add(
                        os->poll, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
}

static void on_polled(const struct call_reply *reply, void *arg)
{
        struct os *os = arg;
        struct arena a CLEANUP(arena_release) = { 0 };
        struct answers list = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        bool read = !reply->fault && os_read_ours(os, OS_LIST_SERVERS, reply, &a, &list, &err) == 0;
        struct os_wait *all = os->waits;
        os->polling = NULL;
        os->waits = NULL;
        for (struct os_wait *w = all, *next; w; w = next) {
                next = w->next;
                if (read && wait_judge(w, wait_find(w, &list)))
                        continue;
                if (clock_ms() - w->since > DEADLINE_MS) {
                        wait_failed(w, "see `openstack server show`, and run 'slipway up' again",
                                "nova did not finish within %d minutes", DEADLINE_MS / 60000);
                        continue;
                }
                w->next = os->waits;
                os->waits = w;
        }
        poll_schedule(os, POLL_MS);
}

static void on_poll_timer(int fd, short what, void *arg)
{
        struct os *os = arg;
        struct pair mark[] = { { "mark", os->mark }, { 0 } };
        os->polling = call_start(os_session(os->async.session), &os_calls[OS_LIST_SERVERS],
                &(struct call_args){ .args = mark }, on_polled, os);
}

static void wait_begin(struct os_wait *w, enum waits_for what, unsigned ms)
{
        struct os *os = w->os;
        w->what = what;
        w->since = clock_ms();
        w->not_before = w->since + ms;
        w->next = os->waits;
        os->waits = w;
        if (!os->poll)
                os->poll = evtimer_new(os->run->base, on_poll_timer, os);
        poll_schedule(os, POLL_FIRST_MS);
}

/* ---- create ---- */

static json_t *server_metadata(const struct os_wait *w)
{
        const struct pairs *user = &w->os->options->metadata;
        json_t *o = json_object();
        for (size_t i = 0; i < user->n; i++)
                json_object_set_new(o, user->v[i].key, json_string(user->v[i].value));
        json_object_set_new(o, "slipway-cluster", json_string(w->os->run->cluster->name));
        json_object_set_new(o, "slipway-node", json_string(w->m->node->name));
        json_object_set_new(o, OS_META_FLAVOR, json_string(w->m->node->pool->flavor));
        json_object_set_new(o, OS_META_IMAGE, json_string(os_image_name(w->os, w->m->node->pool)));
        if (w->m->node != os_bastion(w->os) && w->os->options->ports.networks.n)
                json_object_set_new(o, OS_META_NETWORKS, json_string(os_networks_text(w->os)));
        json_object_set_new(o, OS_META_ROOT, json_string(os_root_text(w->os, w->m->node->pool)));
        return o;
}

/* NULL: err says why. */
static json_t *server_body(const struct os_wait *w, struct error *err)
{
        const struct os *os = w->os;
        const struct node *n = w->m->node;
        const struct os_flavor *flavor = os_flavor_of(os, n->pool);
        const struct os_image *image = os_image_of(os, n->pool);
        const struct os_server_group *group = os_server_group_of(os, n->pool);
        const struct os_spot *spot = wait_spot(w);
        const char *zone = w->why ? zone_elsewhere(w) : os_zone_of(os, n); /* why: the second try */
        struct str data CLEANUP(str_release) = { 0 }, text CLEANUP(str_release) = { 0 };
        if (!flavor || !image || !spot || !spot->port) {
                error_set(err, ENOENT, EXIT_STEP, "its flavor, image or port is not known");
                return NULL;
        }
        if (provider_user_data(os->run, n, os->options->user_data, w->m->target.user, &data, err) <
                0)
                return NULL;
        str_add_base64(&text, data.data, data.len);
        json_t *o = json_pack("{s:s, s:s, s:s, s:[{s:s}], s:s, s:b, s:o, s:[s]}", "name", n->name,
                "flavorRef", flavor->id, "imageRef", image->id, "networks", "port", spot->port->id,
                "user_data", str_text(&text), "config_drive", (int)os->options->config_drive,
                "metadata", server_metadata(w), "tags", os->mark);
        for (size_t i = 0; n != os_bastion(os) && i < os->options->ports.networks.n; i++) {
                const struct os_port *p = os_further_port(os, n, i);
                if (p)
                        json_array_append_new(
                                json_object_get(o, "networks"), json_pack("{s:s}", "port", p->id));
        }
        json_t *disks = os_block_devices(os, n, image->id);
        if (disks)
                json_object_set_new(o, "block_device_mapping_v2", disks);
        if (n->pool->root_volume.src)
                json_object_del(o, "imageRef");
        if (zone)
                json_object_set_new(o, "availability_zone", json_string(zone));
        if (os->options->keypair)
                json_object_set_new(o, "key_name", json_string(os->options->keypair));
        json_t *whole = json_pack("{s:o}", "server", o);
        if (group)
                json_object_set_new(
                        whole, "os:scheduler_hints", json_pack("{s:s}", "group", group->id));
        return whole;
}

static void on_posted(const struct call_reply *reply, void *arg)
{
        struct os_wait *w = arg;
        const struct fault *f = reply->fault;
        const char *id = json_string_value(answer_at(reply->body, "server.id"));
        if (f && (f->lost || f->kind == FAULT_CONFLICT) && w->posts < POSTS_MAX) {
                /* it may have been made, or hold the port already */
                w->id = NULL;
                wait_begin(w, WAIT_ACTIVE, LOST_MS);
                /* nova may still be at it: a slow one gets as much time as it had, twice */
                w->post_after = w->since + 2 * (w->since - w->sent);
        } else if (f)
                wait_fault(w, f);
        else if (!id)
                wait_failed(w, NULL, "nova's answer has no id");
        else {
                w->id = arena_strdup(w->os->run->arena, id);
                wait_begin(w, WAIT_ACTIVE, 0);
        }
}

static void server_post(struct os_wait *w)
{
        struct error err CLEANUP(error_release) = { 0 };
        json_t *body = server_body(w, &err);
        w->id = NULL;
        if (!body)
                os_wait_end(w, &err);
        else if (w->posts++ >= POSTS_MAX) {
                json_decref(body);
                wait_failed(w, "run 'slipway up' again", "nova's answers were lost %d times",
                        POSTS_MAX);
        } else {
                w->sent = clock_ms();
                os_server_call(w, OS_CREATE_SERVER, body, on_posted);
        }
}

/* A call on an existing server, after which the list decides. */
void os_server_acted(const struct call_reply *reply, void *arg)
{
        struct os_wait *w = arg;
        const struct fault *f = reply->fault;
        if (f && f->kind != FAULT_ABSENT && f->kind != FAULT_CONFLICT && !f->lost)
                wait_fault(w, f);
        else
                wait_begin(w, w->what, 0);
}

static void on_create_volumes(struct error *err, void *arg)
{
        struct os_wait *w = arg;
        if (err)
                os_wait_end(w, err);
        else
                server_post(w);
}

/* What prepare did not make: of a machine that is made anew, the system disk, and the trunk of a
 * port that was in use until now. */
static void create_parts(struct os_wait *w)
{
        const struct os_spot *spot = wait_spot(w);
        bool trunk = w->os->options->ports.trunk && spot && spot->port && !spot->port->trunk;
        static const os_stage stages[] = { stage_trunks, stage_volumes, stage_volumes_ready, NULL };
        int64_t count = 0, gb = 0;
        if (os_volumes_missing(w->os, w->m->node, &count, &gb) || trunk)
                job_start_for(w->os, stages, w->m->node, false, on_create_volumes, w);
        else
                server_post(w);
}

static void create_begin(int fd, short what, void *arg)
{
        struct os_wait *w = arg;
        struct error err CLEANUP(error_release) = { 0 };
        const struct os_spot *spot = wait_spot(w);
        const struct os_server *s = spot ? spot->server : NULL;
        const char *status = s && s->status ? s->status : "";
        int r = os_line_async(w->os, &err);
        w->id = s ? arena_strdup(w->os->run->arena, s->id) : NULL;
        if (r == 0 && w->m->state == MACHINE_ABSENT)
                r = login_forget(w->os->run, w->m->target.host, &err);
        if (r < 0 || w->m->state == MACHINE_RUNNING)
                os_wait_end(w, r < 0 ? &err : NULL);
        else if (!s || streq(status, "DELETED"))
                create_parts(w);
        else if (streq(status, "BUILD"))
                wait_begin(w, WAIT_ACTIVE, 0);
        else if (w->m->state == MACHINE_STOPPED) {
                w->what = WAIT_ACTIVE;
                os_server_call(
                        w, OS_SERVER_ACTION, json_pack("{s:n}", "os-start"), os_server_acted);
        } else { /* it failed: made anew with the same port */
                w->what = WAIT_CLEAR;
                os_server_call(w, OS_DELETE_SERVER, NULL, os_server_acted);
        }
}

struct os_wait *os_wait_new(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        struct os_wait *w = xcalloc(1, sizeof(*w));
        *w = (struct os_wait){ .os = run->own, .m = m, .fn = fn, .arg = arg };
        return w;
}

void openstack_create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        event_base_once(run->base, -1, EV_TIMEOUT, create_begin, os_wait_new(run, m, fn, arg),
                &(struct timeval){ 0 });
}
