/* The link of a member: opening it, sending a NodeSpec over it, closing it. op.h describes how
 * operations wait for it. */
#include <event2/event.h>

#include "cluster/site/op.h"

/* ---- connecting ---- */

#define TRIES    60 /* while a machine boots */
#define TRY_MS   1000
#define CONSOLES 3

struct connecting {
        struct op op;
        struct member *member;
        const char *before; /* the boot before a reboot; NULL: this is the first connection */
};

static void link_start(struct op *o);
static void applying_begin(struct member *m);

static bool member_not_reached(const struct error *err)
{
        static const int codes[] = { ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ECONNRESET,
                ENETUNREACH };
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                if (err && err->code == codes[i])
                        return true;
        return false;
}

static bool worth_another(const struct connecting *c, const struct error *err)
{
        const struct member *m = c->member;
        const struct step *s = c->op.step;
        int64_t wait = m->site->cluster->readiness.wait * 1000;
        if (c->before) /* until the deadline of the step; a connection may be cut as it goes down */
                return !err || err->code == EPIPE || member_not_reached(err);
        return !m->seen.said && member_not_reached(err) && (m->run.made || m->machine->booting) &&
               m->run.tries < TRIES && !(m->plan.spare && run_now(s->run) - s->began >= wait);
}

/* Its sshd may still answer while it goes down. */
static bool boot_is_new(const struct connecting *c, const json_t *facts)
{
        const char *boot = json_string_value(json_object_get(facts, "boot"));
        return boot && !streq(boot, c->before);
}

static void link_again(struct op *o)
{
        member_hang_up(((struct connecting *)o)->member);
        link_start(o);
}

static void on_member_link_hello(
        struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct member *m = arg;
        struct connecting *c = TAKE(m->run.connecting);
        /* reopened: the link has verified that it is the same node in the same state */
        if (!c) {
                applying_begin(m);
                return;
        }
        if (c->before && !boot_is_new(c, facts)) {
                m->run.connecting = c;
                op_unwait(&c->op);
                op_later(&c->op, TRY_MS, link_again);
                return;
        }
        json_decref(m->seen.said);
        json_decref(m->seen.drift);
        m->seen.said = json_incref(facts);
        m->seen.said_at = time(NULL);
        m->seen.drift = json_incref(drift);
        snprintf(m->seen.digest, sizeof(m->seen.digest), "%s", digest);
        snprintf(m->seen.applied, sizeof(m->seen.applied), "%s", digest);
        if (link_host_key(l))
                m->seen.host_key = arena_strdup(m->site->arena, link_host_key(l));
        m->seen.answers = true;
        op_done(&c->op, NULL);
}

static void on_new_key(struct link *l, const char *line, void *arg)
{
        struct member *m = arg;
        if (m->run.connecting)
                step_changed(m->run.connecting->op.step, "%s", line);
}

/* The link's messages start with the node's name, and so does the plan: skip it. */
static const char *after_name(const struct member *m, const char *message)
{
        char *prefix CLEANUP(free_p) = xasprintf("node %s: ", m->node->name);
        return has_prefix(message, prefix) ? message + strlen(prefix) : message;
}

/* Where a machine stopped to boot, its console says. Few are asked: all others wait meanwhile. */
static void add_console(struct member *m, struct error *err)
{
        struct site *s = m->site;
        struct error ignored CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        char *hint CLEANUP(free_p) = TAKE(err->hint);
        if ((m->run.made || m->machine->booting) && s->consoles++ < CONSOLES)
                s->ops->console(&s->provider, m->machine, &text, &ignored);
        while (text.len && (unsigned char)text.data[text.len - 1] <= ' ')
                str_truncate(&text, text.len - 1);
        const char *line = text.len ? strrchr(text.data, '\n') : NULL;
        if (text.len)
                error_set(err, err->code, err->status, "%s; the last line of its console: %.200s",
                        err->message, line ? line + 1 : text.data);
        error_hint(err, "%s%sslipway logs %s console shows how far it has booted", hint ? hint : "",
                hint ? "; " : "", m->node->name);
}

/* The link could not be opened, or closed before the agent sent HELLO. */
static void on_not_connected(struct op *o, struct error *err)
{
        struct connecting *c = (struct connecting *)o;
        struct member *m = c->member;
        struct error gone CLEANUP(error_release) = { 0 };
        if (worth_another(c, err)) {
                m->run.tries++;
                op_later(o, TRY_MS, link_start);
                return;
        }
        m->run.connecting = NULL;
        /* a node to be removed may be dead already */
        if (m->plan.fate == FATE_REMOVE && !m->seen.said) {
                if (err &&
                        (err->code == EREMCHG || err->code == EKEYREJECTED || err->code == ENOKEY))
                        m->seen.refused = arena_strdup(m->site->arena, after_name(m, err->message));
                op_unchanged(o);
                return;
        }
        if (m->plan.optional && o->step == m->run.connect) {
                step_doing(o->step, -1, "%s",
                        err && err->message ? err->message : "it cannot be reached");
                op_done(o, NULL);
                return;
        }
        if (m->plan.spare && o->step == m->run.connect && member_not_reached(err)) {
                m->run.missing = arena_strdup(m->site->arena, after_name(m, err->message));
                step_changed(o->step, "warning: it is left out of this run: %s", m->run.missing);
                op_done(o, NULL);
                return;
        }
        if (!err)
                error_set(&gone, EPIPE, EXIT_UNREACHABLE, "the connection was closed");
        if (m->site->ops->console && member_not_reached(err))
                add_console(m, err);
        op_done(o, err ? err : &gone);
        api_look(m->site);
}

void member_connect_again(struct member *m, struct step *s, const char *before)
{
        struct connecting *c = arena_new(m->site->arena, struct connecting);
        *c = (struct connecting){ .member = m, .before = before };
        op_begin(&c->op, m->site, s);
        m->run.tries = 0;
        m->run.connecting = c;
        link_start(&c->op);
}

void step_connect(struct step *s) { member_connect_again(s->arg, s, NULL); }

/* ---- applying ---- */

struct applying {
        struct op op;
        struct member *member;
        struct apply_request request;
        bool begun; /* request was passed to the link */
};

static const char *member_link_state_word(enum wire_state state)
{
        static const char *const words[] = { "same", "created", "changed", "restarted", "started",
                "removed", "failed" };
        return (size_t)state < ARRAY_SIZE(words) ? words[state] : "changed";
}

static void change_add(struct member *m, enum spec_kind kind, enum wire_state state,
        const char *name, const char *detail)
{
        struct arena *a = m->site->arena;
        /* the array doubles at every power of two */
        if (!(m->plan.change_count & (m->plan.change_count - 1))) {
                struct change *more = arena_array(
                        a, struct change, m->plan.change_count ? m->plan.change_count * 2 : 1);
                if (m->plan.change_count)
                        memcpy(more, m->plan.changes, m->plan.change_count * sizeof(*more));
                m->plan.changes = more;
        }
        m->plan.changes[m->plan.change_count++] = (struct change){ .kind = kind,
                .state = state,
                .name = arena_strdup(a, name),
                .detail = detail && *detail ? arena_strdup(a, detail) : NULL };
}

static void on_entry(struct link *l, const struct spec_entry *e, enum wire_state state,
        const char *detail, void *arg)
{
        struct member *m = arg;
        struct applying *a = m->run.applying;
        const char *name = e->path ? e->path : e->name;
        if (!a)
                return;
        if (a->request.mode == APPLY_COMPARE) {
                change_add(m, e->kind, state, name, detail);
                return;
        }
        if (state == STATE_FAILED && !m->run.failure && detail && *detail)
                m->run.failure = arena_strdup(m->site->arena, detail);
        step_changed(a->op.step, "%s %s%s%s", member_link_state_word(state), name,
                detail && *detail ? ": " : "", detail ? detail : "");
        step_doing(a->op.step, -1, "%s %s", member_link_state_word(state), name);
}

static void on_member_link_progress(struct link *l, int64_t sent, int64_t total, void *arg)
{
        const struct member *m = arg;
        if (m->run.applying)
                step_doing(m->run.applying->op.step, total ? (int)(sent * 1000 / total) : -1,
                        "sending %" PRId64 " of %" PRId64 " MB", sent >> 20, total >> 20);
}

/* The step is still open: fn or member_applied ends it. */
static void applying_end(struct applying *a, unsigned failed, struct error *cut)
{
        struct member *m = a->member;
        m->run.applying = NULL;
        op_drop(&a->op);
        if (a->request.make)
                member_drop_spec(m);
        if (a->request.fn)
                a->request.fn(m, failed, cut, a->request.arg);
        else
                /* a comparison reports entries that would fail only at its end */
                member_applied(m, a->op.step, a->request.mode == APPLY_COMPARE ? 0 : failed, cut);
}

static void on_member_link_applied(struct link *l, unsigned changed, unsigned failed, void *arg)
{
        struct member *m = arg;
        if (m->run.applying && !op_over(&m->run.applying->op))
                applying_end(m->run.applying, failed, NULL);
        else
                m->run.applying = NULL;
}

static void on_apply_cut(struct op *o, struct error *err)
{
        struct error gone CLEANUP(error_release) = { 0 };
        if (!err)
                error_set(&gone, EPIPE, EXIT_UNREACHABLE, "the connection was closed");
        applying_end((struct applying *)o, 0, err ? err : &gone);
}

void member_applied(struct member *m, struct step *s, unsigned failed, struct error *cut)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (failed) {
                error_set(&err, EIO, EXIT_STEP, "%u %s could not be applied%s%s", failed,
                        failed == 1 ? "entry" : "entries",
                        !m->run.failure ? ""
                        : failed == 1   ? ": "
                                        : "; the first: ",
                        m->run.failure ? m->run.failure : "");
                error_hint(&err,
                        "the lines above name each entry and the reason; fix it and run again");
        }
        step_done(s, cut ? cut : failed ? &err : NULL);
        api_look(m->site);
}

/* The step ended (deadline) before the link could start the request. */
static void applying_forget(struct member *m)
{
        if (m->run.applying && !m->run.applying->begun && op_over(&m->run.applying->op))
                m->run.applying = NULL;
}

void member_apply(struct member *m, struct step *s, const struct apply_request *request)
{
        if (member_cut(m, s))
                return;
        applying_forget(m);
        /* the agent applies one spec at a time: this is a bug in slipway */
        if (m->run.applying) {
                step_fail(s, EBUSY, EXIT_INTERNAL, NULL,
                        "another step still applies something there");
                return;
        }
        struct applying *a = arena_new(m->site->arena, struct applying);
        *a = (struct applying){ .member = m, .request = *request };
        m->run.failure = NULL;
        op_begin(&a->op, m->site, s);
        op_wait(&a->op, m, on_apply_cut);
        m->run.applying = a;
        bool open = m->run.link != NULL;
        if (request->make && !open)
                member_drop_spec(m);
        if (!member_link(m))
                on_apply_cut(&a->op, NULL);
        else if (open)
                applying_begin(m);
}

/* The link is open, possibly reopened just now. */
static void applying_begin(struct member *m)
{
        struct applying *a = m->run.applying;
        struct error err CLEANUP(error_release) = { 0 };
        applying_forget(m);
        if (!m->run.applying || a->begun)
                return;
        if (a->request.make && a->request.make(m, &err) < 0) {
                applying_end(a, 0, &err);
                return;
        }
        a->begun = true;
        m->run.touched |= a->request.mode != APPLY_COMPARE;
        link_apply(m->run.link, &m->plan.spec, a->request.items, a->request.count, a->request.mode);
}

/* ---- opening and closing ---- */

/* A connect operation waits like all others; before HELLO it is the only one that waits. */
static void on_member_link_closed(struct link *l, struct error *err, void *arg)
{
        struct member *m = arg;
        if (m->run.applying && op_over(&m->run.applying->op))
                m->run.applying = NULL;
        member_closed(m, err);
}

static void on_link_idle(struct link *l, void *arg) { member_idle(arg); }

/* A reopened link must lead to the same machine as the first time, and nobody else may have changed
 * that machine in between. A rebooted machine must be the same. */
int member_open(struct member *m, struct error *err)
{
        struct link_events events = { on_member_link_hello, on_entry, on_member_link_progress,
                on_member_link_applied, on_new_key, on_member_link_closed, m, on_link_idle };
        struct link_target target = m->machine->target;
        target.cluster = m->site->identity.prefix;
        target.urgent = m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD);
        bool again = m->run.connecting && m->run.connecting->before;
        if ((m->run.parked || again) && !target.root && member_machine_id(m))
                target.machine_id = member_machine_id(m);
        if (m->run.parked)
                target.digest = m->run.touched ? NULL : m->seen.digest;
        m->run.parked = false;
        m->run.pooled = true;
        return link_open(m->site->base, &target, &events, &m->run.link, err);
}

static void link_start(struct op *o)
{
        struct member *m = ((struct connecting *)o)->member;
        struct error err CLEANUP(error_release) = { 0 };
        m->run.parked = false;
        if (member_open(m, &err) < 0) {
                m->run.connecting = NULL;
                op_done(o, &err);
        } else
                op_wait(o, m, on_not_connected);
}
