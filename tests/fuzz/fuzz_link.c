/* A node that lies: whatever it says, in whatever state the link is, each program's end is told
 * once, the link's end is told once, and nothing grows without end. */
#include "deliver/link/state.h"
#include "pieces.h"

#include "fake_proc.h"

#define RUNS_MAX 40

static struct proc *ssh;
static struct link *lnk;
static char archive[80];
static unsigned run_count, ended[RUNS_MAX], closed;
static uint8_t todo; /* what the next callback does */

static void fake_event(struct proc *p)
{
        ssh = p;
        str_truncate(&p->written, 0);
}

static void fake_forget(struct proc *p) { ssh = ssh == p ? NULL : ssh; }

static struct spec_entry entries[] = {
        { .kind = SPEC_DIR, .class = CLASS_MUTABLE, .path = "/etc/a" },
        { .kind = SPEC_FILE,
                .class = CLASS_SECRET,
                .path = "/etc/a/b",
                .content = "text",
                .len = 4 },
        { .kind = SPEC_ARTIFACT,
                .class = CLASS_MUTABLE,
                .name = "etcd",
                .version = "1",
                .path = "/usr/local/bin/etcd" },
        { .kind = SPEC_UNIT, .class = CLASS_IMMUTABLE, .name = "etcd.service" },
};
static const struct nodespec spec = { .count = ARRAY_SIZE(entries), .entries = entries };
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static struct item items[] = {
        { .name = "etcd", .version = "1", .digest = DIGEST, .size = 3000, .path = archive }
};
static const char *const texts[] = { DIGEST, "{}", "{\"os\":{\"id\":\"debian\"}}", "w1", "",
        "\x1b[2J", DIGEST "0", NULL };

static void act(uint8_t what);

static void on_hello(struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        act(todo);
}
static void on_entry(struct link *l, const struct spec_entry *e, enum wire_state state,
        const char *detail, void *arg)
{
        act(*(e->name ? e->name : e->path) ? todo : 0);
}
static void on_progress(struct link *l, int64_t sent, int64_t total, void *arg)
{
        act(sent > total ? (abort(), 0) : todo);
}
static void on_applied(struct link *l, unsigned changed, unsigned failed, void *arg) { act(todo); }
static void on_new_key(struct link *l, const char *line, void *arg) { act(todo); }

static void on_closed(struct link *l, struct error *err, void *arg)
{
        if (closed++ || (err && !err->message))
                abort();
        lnk = NULL;
}

static void on_run(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        unsigned *count = arg;
        if ((*count)++ || status < -1 || status > 256 || strlen(out) > 100)
                abort();
        act(todo);
}

static void on_sink(struct link *l, const void *data, size_t n, void *arg) { act(n ? todo : 0); }

static void program(bool sink)
{
        const char *const argv[] = { "true", NULL };
        if (run_count < RUNS_MAX)
                link_run_program(lnk, &(struct link_program){ .argv = argv,
                                              .max = 100,
                                              .sink = sink ? on_sink : NULL,
                                              .fn = on_run,
                                              .arg = &ended[run_count++] });
}

/* What the link's owner does, from the loop or in the middle of a callback. */
static void act(uint8_t what)
{
        todo = 0;
        if (!lnk)
                return;
        if (what % 8 == 1)
                program(what & 8);
        else if (what % 8 == 2 && !lnk->job.spec)
                link_apply(lnk, &spec, items, ARRAY_SIZE(items), what >> 3 & 7);
        else if (what % 8 == 3)
                link_close(lnk);
        else if (what % 8 == 4)
                link_free(TAKE(lnk));
}

static void say(struct str *s, bool errors)
{
        if (s->len && ssh)
                (errors ? ssh->spec.on_err : ssh->spec.on_out)(ssh, s->data, s->len, ssh->spec.arg);
}

static void step(struct event_base *base, struct pieces *in)
{
        struct str s CLEANUP(str_release) = { 0 };
        uint8_t what = piece_byte(in), value = piece_byte(in);
        if (what % 8 < 4) {
                piece_frame(&s, in, value, texts);
        } else if (what % 8 < 6) {
                struct pieces text = piece_take(in, value);
                str_addn(&s, text.p, text.n);
        }
        if (what % 8 < 6)
                say(&s, what % 8 == 5);
        else if (what % 8 == 6)
                act(value);
        else
                todo = value;
        if (ssh && (value == 253 || (ssh->ending && what & 128)))
                fake_exit(ssh, value % 160);
        else if (ssh && what & 64)
                ssh->spec.on_drain(ssh, ssh->spec.arg);
        event_base_loop(base, EVLOOP_NONBLOCK);
        if (lnk && (lnk->in.len > WIRE_MAX + 70000 || lnk->job.blob_count > spec.count ||
                           lnk->talk.line.len > 2000))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct link_events events = { on_hello, on_entry, on_progress, on_applied,
                on_new_key, on_closed, NULL };
        struct pieces in = { data, size };
        struct link_target target = { .name = "w1",
                .host = "192.0.2.1",
                .sudo = true,
                .sudo_password = piece_byte(&in) & 1 ? "secret" : NULL };
        struct error err CLEANUP(error_release) = { 0 };
        struct event_base *base = event_base_new();
        if (!*archive) {
                atexit(fuzz_dir_remove);
                snprintf(archive, sizeof(archive), "%s/blob", fuzz_dir());
                fuzz_file(archive, (char[3000]){ 0 }, 3000);
        }
        ssh = NULL;
        closed = run_count = todo = 0;
        memset(ended, 0, sizeof(ended));
        bool opened = link_open(base, &target, &events, &lnk, &err) == 0, freed = !opened;
        while (in.n && lnk)
                step(base, &in);
        freed |= !lnk && !closed;
        if (ssh)
                fake_exit(ssh, 255);
        link_free(TAKE(lnk));
        for (unsigned i = 0; i < run_count; i++)
                if (!freed && closed && !ended[i])
                        abort();
        event_base_free(base);
        return 0;
}
