/* Steps on one machine: make it, reach it, make it equal to its NodeSpec. */
#include <event2/event.h>
#include <time.h>

#include "cluster/upgrade.h"

/* ---- artifacts and what the provider needs once ---- */

static void on_fetch_progress(const struct item *item, const char *what, int permille, void *arg)
{
        step_doing(arg, permille, "%s %s%s%s", what, item->name, item->version ? " " : "", item->version ? item->version : "");
}

static void on_fetched(struct error *err, void *arg) { step_done(arg, err); }

void step_artifacts(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        size_t n;
        site->items = fetch_items(site->cluster, site->arena, &site->item_count, &err);
        if (!site->items) {
                step_done(s, &err);
                return;
        }
        struct fetch_request request = { .cluster = site->cluster,
                .arch = "amd64",
                .lock = site->lock_path,
                .items = site->items,
                .count = site->item_count,
                .on_progress = on_fetch_progress,
                .on_done = on_fetched,
                .arg = s };
        request.agent = agent_bytes(&n);
        request.agent_len = n;
        if (fetch_start(site->base, &request, &site->fetch, &err) < 0)
                step_done(s, &err);
}

static void on_prepare_says(const char *what, int permille, void *arg) { step_doing(arg, permille, "%s", what); }
static void on_prepared(struct error *err, void *arg) { step_done(arg, err); }

void step_prepare(struct step *s)
{
        struct site *site = s->arg;
        bool any = false;
        for (size_t i = 0; i < site->count; i++)
                any |= site->members[i].create != NULL;
        if (!any) {
                step_kept(s);
                return;
        }
        site->ops->prepare(&site->provider, on_prepare_says, on_prepared, s);
}

/* ---- machines ---- */

static void on_made(struct machine *machine, struct error *err, void *arg)
{
        struct step *s = arg;
        if (!err)
                step_changed(s, "made the machine");
        step_done(s, err);
}

static void on_started(struct machine *machine, struct error *err, void *arg)
{
        struct step *s = arg;
        if (!err)
                step_changed(s, "the machine was off: started it");
        step_done(s, err);
}

static void on_destroyed(struct machine *machine, struct error *err, void *arg)
{
        struct step *s = arg;
        if (!err)
                step_changed(s, "removed the machine");
        step_done(s, err);
}

static void on_swept(struct machine *machine, struct error *err, void *arg)
{
        if (err)
                step_done(arg, err);
        else
                step_kept(arg);
}

void step_create(struct step *s)
{
        struct member *m = s->arg;
        if (m->machine->state == MACHINE_RUNNING) {
                step_kept(s);
                return;
        }
        m->made = true;
        m->site->ops->create(&m->site->provider, m->machine, m->machine->state == MACHINE_STOPPED ? on_started : on_made, s);
}

void step_destroy(struct step *s)
{
        struct member *m = s->arg;
        bool absent = m->machine->state == MACHINE_ABSENT;
        if (absent && m->fate != FATE_REMOVE)
                step_kept(s);
        else /* also one that is no machine any more: what a killed run left of it would be found again each time */
                m->site->ops->destroy(&m->site->provider, m->machine, absent ? on_swept : on_destroyed, s);
}

/* ---- the link ---- */

#define TRIES 60 /* of a machine that boots, a second apart */

static void open_link(struct member *m);

static void try_again(evutil_socket_t fd, short what, void *arg) { open_link(arg); }

static bool worth_another(const struct member *m, const struct error *err)
{
        static const int codes[] = { ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ECONNRESET, ENETUNREACH };
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                if (err && err->code == codes[i])
                        return (m->made || m->machine->booting) && m->tries < TRIES;
        return false;
}

static void on_hello(struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct member *m = arg;
        struct step *s = m->user;
        json_decref(m->said);
        json_decref(m->drift);
        m->said = json_incref(facts);
        m->drift = json_incref(drift);
        snprintf(m->applied, sizeof(m->applied), "%s", digest);
        m->user = NULL;
        m->answers = true;
        if (s)
                step_done(s, NULL);
}

static void on_new_key(struct link *l, const char *line, void *arg)
{
        struct member *m = arg;
        if (m->user)
                step_changed(m->user, "%s", line);
}

static const char *state_word(enum wire_state state)
{
        static const char *const words[] = { "same", "created", "changed", "restarted", "started", "removed", "failed" };
        return (size_t)state < ARRAY_SIZE(words) ? words[state] : "changed";
}

static void change_add(struct member *m, enum spec_kind kind, enum wire_state state, const char *name, const char *detail)
{
        struct arena *a = m->site->arena;
        if (!(m->change_count & (m->change_count - 1))) { /* room for twice as many at every power of two */
                struct change *more = arena_array(a, struct change, m->change_count ? m->change_count * 2 : 1);
                if (m->change_count)
                        memcpy(more, m->changes, m->change_count * sizeof(*more));
                m->changes = more;
        }
        m->changes[m->change_count++] =
                (struct change){ .kind = kind, .state = state, .name = arena_strdup(a, name), .detail = detail && *detail ? arena_strdup(a, detail) : NULL };
}

static void on_entry(struct link *l, const struct spec_entry *e, enum wire_state state, const char *detail, void *arg)
{
        struct member *m = arg;
        if (!m->user)
                return;
        const char *name = e->path ? e->path : e->name;
        if (m->comparing) {
                change_add(m, e->kind, state, name, detail);
                return;
        }
        step_changed(m->user, "%s %s%s%s", state_word(state), name, detail && *detail ? ": " : "", detail ? detail : "");
        step_doing(m->user, -1, "%s %s", state_word(state), name);
}

static void on_progress(struct link *l, int64_t sent, int64_t total, void *arg)
{
        struct member *m = arg;
        if (m->user)
                step_doing(m->user, total ? (int)(sent * 1000 / total) : -1, "sending %" PRId64 " of %" PRId64 " MB", sent >> 20, total >> 20);
}

static void on_applied(struct link *l, unsigned changed, unsigned failed, void *arg)
{
        struct member *m = arg;
        struct step *s = m->user;
        struct error err CLEANUP(error_release) = { 0 };
        if (m->on_applied) {
                m->on_applied(m, failed, m->on_applied_arg);
                return;
        }
        m->user = NULL;
        if (!s)
                return;
        if (m->comparing)
                failed = 0; /* what would fail says so when it is done */
        m->comparing = false;
        if (failed && upgrade_member(m)) {
                m->user = s;
                upgrade_back(m, s, "its files to be applied");
                return;
        }
        if (failed) {
                error_set(&err, EIO, EXIT_STEP, "%u entries could not be applied", failed);
                error_hint(&err, "the lines above say which and why; mend it and run again");
        }
        step_done(s, failed ? &err : NULL);
        api_look(m->site);
}

static void on_closed(struct link *l, struct error *err, void *arg)
{
        struct member *m = arg;
        struct step *s = m->user;
        m->link = NULL;
        if (!s)
                return;
        if (!m->said && worth_another(m, err)) {
                static const struct timeval second = { .tv_sec = 1 };
                m->tries++;
                event_base_once(m->site->base, -1, EV_TIMEOUT, try_again, m, &second);
                return;
        }
        struct error gone CLEANUP(error_release) = { 0 };
        m->user = NULL;
        if (m->fate == FATE_REMOVE && !m->said) { /* a node that is to go may be dead already */
                step_kept(s);
                return;
        }
        if (m->optional && s == m->connect) {
                step_doing(s, -1, "%s", err && err->message ? err->message : "it cannot be reached");
                step_done(s, NULL);
                return;
        }
        if (!err)
                error_set(&gone, EPIPE, EXIT_UNREACHABLE, "the connection was closed");
        step_done(s, err ? err : &gone);
        api_look(m->site);
}

static void open_link(struct member *m)
{
        struct link_events events = { on_hello, on_entry, on_progress, on_applied, on_new_key, on_closed, m };
        struct error err CLEANUP(error_release) = { 0 };
        m->machine->target.cluster = m->site->identity.prefix;
        if (link_open(m->site->base, &m->machine->target, &events, &m->link, &err) < 0) {
                struct step *s = m->user;
                m->user = NULL;
                step_done(s, &err);
        }
}

void step_connect(struct step *s)
{
        struct member *m = s->arg;
        m->user = s;
        open_link(m);
}

void step_apply(struct step *s)
{
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (member_render(m, &err) < 0) {
                step_done(s, &err);
                return;
        }
        if (streq(m->wanted, m->applied) && !json_array_size(m->drift)) {
                step_kept(s);
                return;
        }
        if (member_cut(m, s))
                return;
        m->user = s;
        link_apply(m->link, &m->spec, m->site->items, m->site->item_count, 0);
}
