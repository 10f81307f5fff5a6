/* What arrives from the node: first the shell's status word, then the agent's frames. */
#include "base/utf8.h"
#include "deliver/link/state.h"

#define DRIFT_MAX  2000   /* maximum of drifted names that are kept */
#define EVENTS_MAX 100000 /* maximum for one apply or reset: a first one has some hundreds */
#define NOISE_MAX  ((size_t)64 << 10) /* maximum of a line that a login shell prints */

/* ---- the shell's word ---- */

static int bad_machine(struct link *l, const char *machine)
{
        error_set(&l->err, ENOEXEC, EXIT_PREFLIGHT,
                "node %s: its architecture is %s, but this slipway has an agent for %s only",
                l->target.name, machine, link_agent_own()->machine);
        if (streq(machine, "aarch64") || streq(machine, "x86_64"))
                error_hint(&l->err,
                        "put agent-%s beside the program: it is built with slipway where %s-linux-gnu-gcc is installed",
                        machine, machine);
        else
                error_hint(&l->err, "use machines of x86_64 or aarch64");
        return link_failed(l);
}

static void word_need(struct link *l, const char *machine)
{
        if (!(l->agent = link_agent(machine))) {
                bad_machine(l, machine);
                return;
        }
        l->phase = PHASE_AGENT;
        link_pump(l);
}

static void word_have(struct link *l, const char *rest) { l->phase = PHASE_HELLO; }

static void word_password(struct link *l, const char *rest)
{
        if (!l->password)
                return;
        proc_write(l->proc, l->password, strlen(l->password));
        proc_write(l->proc, "\n", 1);
        wipe(l->password, strlen(l->password));
        free_p(&l->password);
}

static void word_end(struct link *l, const char *rest)
{
        /* The shell ends by itself, and link_explain knows the word. */
}

static const struct {
        const char *text;
        enum link_word word;
        void (*handle)(struct link *l, const char *rest);
} words[] = {
        { "slipway:have", WORD_HAVE, word_have },
        { "slipway:need", WORD_NEED, word_need },
        { "slipway:password", WORD_PASSWORD, word_password },
        { "slipway:nosudo", WORD_NOSUDO, word_end },
        { "slipway:noroot", WORD_NOROOT, word_end },
        { "slipway:failed", WORD_FAILED, word_end },
        { "slipway:damaged", WORD_DAMAGED, word_end },
        { "slipway:other", WORD_OTHER, link_who_other },
};

/* One complete line. Output of the login shell's own files comes before the word, possibly without
 * a newline at its end. */
static void shell_line(struct link *l, char *line)
{
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                char *at = strstr(line, words[i].text),
                     *rest = at ? at + strlen(words[i].text) : NULL;
                if (!at || (*rest && *rest != ' '))
                        continue;
                l->word = words[i].word;
                /* over a connection that the user has open already, ssh prints nothing */
                gate_leave(&l->gate);
                link_patience(l, 120);
                words[i].handle(l, rest + strspn(rest, " "));
                return;
        }
        link_noise(l, line, strlen(line));
}

static size_t read_shell(struct link *l, size_t at)
{
        char *line = l->in.data + at, *nl = memchr(line, '\n', l->in.len - at);
        if (!nl) {
                size_t left = l->in.len - at;
                /* it may end with the beginning of the word */
                return left > NOISE_MAX ? left - 32 : 0;
        }
        *nl = 0;
        shell_line(l, line);
        return (size_t)(nl - line) + 1;
}

/* ---- frames ---- */

static int nonsense(struct link *l, const char *what)
{
        error_set(&l->err, EPROTO, EXIT_STEP, "node %s: the agent violates the protocol: %s",
                l->target.name, what);
        error_hint(&l->err, "remove %s/agent-* on the node and run again",
                link_state_dir(&l->target, &l->arena));
        return link_failed(l);
}

/* A text of the agent, as one escaped line. NULL: none. */
static char *read_said(const struct wire_frame *f, enum wire_tag tag)
{
        char *raw CLEANUP(free_p) = wire_string(f, tag);
        struct str text = { 0 };
        if (!raw)
                return NULL;
        text_harmless(&text, raw, 4096);
        return str_take(&text);
}

static json_t *drift_list(const struct wire_frame *f)
{
        json_t *list = json_array();
        struct wire_field v;
        size_t n = 0;
        for (size_t at = 0; wire_field(f, &at, &v) > 0;) {
                if (v.tag != TAG_DRIFT || n++ >= DRIFT_MAX)
                        continue;
                char *raw CLEANUP(free_p) = xstrndup((const char *)v.data, v.len);
                struct str name CLEANUP(str_release) = { 0 };
                text_harmless(&name, raw, 4096);
                json_array_append_new(list, json_string(str_text(&name)));
        }
        if (n > DRIFT_MAX) {
                char *rest CLEANUP(free_p) = xasprintf("and %zu more", n - DRIFT_MAX);
                json_array_append_new(list, json_string(rest));
        }
        return list;
}

static void on_read_hello(struct link *l, const struct wire_frame *f)
{
        char *text CLEANUP(free_p) = wire_string(f, TAG_FACTS),
                   *digest CLEANUP(free_p) = wire_string(f, TAG_DIGEST);
        json_t *facts = text ? json_loads(text, 0, NULL) : NULL;
        if (l->phase != PHASE_HELLO || wire_value(f, TAG_VERSION, 0) != WIRE_VERSION || !facts) {
                json_decref(facts);
                nonsense(l, facts ? "its HELLO has another version" : "its HELLO has no facts");
                return;
        }
        if (!link_who_hello(l, facts, digest ? digest : "")) {
                json_decref(facts);
                return;
        }
        json_t *drift = drift_list(f);
        l->phase = PHASE_IDLE;
        link_patience(l, 0);
        if (l->events.on_hello)
                l->events.on_hello(l, facts, digest ? digest : "", drift, l->events.arg);
        json_decref(facts);
        json_decref(drift);
        if (l->dead || l->closing || l->err.code)
                return;
        link_run_send(l);
        link_begin(l);
}

static void on_need(struct link *l, const struct wire_frame *f)
{
        char *digest CLEANUP(free_p) = wire_string(f, TAG_DIGEST);
        if (l->phase != PHASE_NEEDS || !digest || !sha256_valid(digest) ||
                link_needs(l, digest, (int64_t)wire_value(f, TAG_OFFSET, 0)) < 0)
                nonsense(l, "it asks for a blob that is not in the spec, or for one twice");
}

static void on_read_ready(struct link *l, const struct wire_frame *f)
{
        if (l->phase == PHASE_NEEDS)
                link_ready(l);
        else
                nonsense(l, "READY came without a spec");
}

/* An entry that is no longer in the spec has its kind and name. */
static void on_read_event(struct link *l, const struct wire_frame *f)
{
        uint64_t index = wire_value(f, TAG_INDEX, UINT64_MAX),
                 kind = wire_value(f, TAG_KIND, SPEC_KIND_COUNT),
                 state = wire_value(f, TAG_STATE, STATE_FAILED + 1);
        char *name CLEANUP(free_p) = read_said(f, TAG_NAME),
                   *detail CLEANUP(free_p) = read_said(f, TAG_DETAIL);
        struct spec_entry gone = {
                .kind = (enum spec_kind)kind, .class = CLASS_MUTABLE, .name = name, .path = name
        };
        bool known = l->job.spec && index < l->job.spec->count;
        if (l->phase != PHASE_APPLY || state > STATE_FAILED ||
                (!known && (index != UINT64_MAX || kind >= SPEC_KIND_COUNT || !name))) {
                nonsense(l, "it tells of an entry that is not in the spec");
                return;
        }
        if (++l->job.events > EVENTS_MAX) {
                nonsense(l, "it tells of more changes than one run can make");
                return;
        }
        if (state != STATE_SAME && l->events.on_entry)
                l->events.on_entry(l, known ? &l->job.spec->entries[index] : &gone,
                        (enum wire_state)state, detail, l->events.arg);
}

static void on_done(struct link *l, const struct wire_frame *f)
{
        if (l->phase != PHASE_APPLY) {
                nonsense(l, "DONE came without an apply");
                return;
        }
        link_job_release(l);
        l->phase = PHASE_IDLE;
        if (l->events.on_applied)
                l->events.on_applied(l, (unsigned)wire_value(f, TAG_COUNT, 0),
                        (unsigned)wire_value(f, TAG_STATUS, 0), l->events.arg);
}

/* The agent stops by itself; its exit status gives the kind of failure. */
static void on_error(struct link *l, const struct wire_frame *f)
{
        char *text CLEANUP(free_p) = read_said(f, TAG_TEXT),
                   *hint CLEANUP(free_p) = read_said(f, TAG_HINT);
        if (l->err.code)
                return;
        error_set(&l->err, EIO, EXIT_STEP, "node %s: the agent stopped: %s", l->target.name,
                text ? text : "it does not say why");
        error_hint(&l->err, "%s", hint ? hint : "check the node and run again");
        link_patience(l, 30);
}

static void (*const handlers[])(struct link *l, const struct wire_frame *f) = {
        [WIRE_HELLO] = on_read_hello,
        [WIRE_NEED] = on_need,
        [WIRE_READY] = on_read_ready,
        [WIRE_EVENT] = on_read_event,
        [WIRE_DONE] = on_done,
        [WIRE_OUT] = link_run_out,
        [WIRE_EXIT] = link_run_exit,
        [WIRE_ERROR] = on_error,
};

static size_t read_frame(struct link *l, size_t at)
{
        struct wire_frame f;
        int r = wire_frame(l->in.data + at, l->in.len - at, &f);
        if (r == 0)
                return 0;
        if (r < 0 || f.type >= ARRAY_SIZE(handlers))
                nonsense(l, "its bytes are not a frame");
        else
                handlers[f.type](l, &f);
        return r < 0 ? l->in.len - at : f.whole;
}

void link_read(struct link *l, const char *data, size_t n)
{
        size_t at = 0, took;
        str_addn(&l->in, data, n);
        while (at < l->in.len && !l->dead && !l->closing && !l->err.code) {
                took = l->phase >= PHASE_HELLO ? read_frame(l, at) : read_shell(l, at);
                if (!took)
                        break;
                at += took;
        }
        if (l->closing || l->err.code)
                at = l->in.len;
        memmove(l->in.data, l->in.data + at, l->in.len - at);
        str_truncate(&l->in, l->in.len - at);
}
