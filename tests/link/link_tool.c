/* Drives src/deliver/link/link.h for the tests, which give it a real sshd. Prints one JSON object a
 * line.
 *
 *   link_tool AGENT PLAN.json
 *
 *   { "slots": how many links at once (0: the default),
 *     "specs": { NAME: { "entries": [ {"kind": "file", "path": …, "content": …} … ],
 *                        "items": [ {"name", "version", "image", "digest", "size", "path"} … ] } },
 *     "links": [ { "name", "host", "port", … as in link_target,
 *                  "spec": NAME, "mode": 0, "always": true (apply although nothing is to do),
 *                  "runs": [ {"argv": […], "input": …, "max": …} … ],
 *                  "stop_at": BYTES (of blobs: SIGSTOP to ourselves), "end": "hello"|"free"|"early"
 * } … ] } link_tool AGENT PLAN.json argv [WORD…]: the ssh command of the first link for a person.
 */
#include <event2/event.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/arena.h"
#include "base/file.h"
#include "deliver/link/link.h"
#include "deliver/link/slots.h"

struct spec {
        const char *name;
        struct nodespec spec;
        struct item *items;
        size_t count;
        char digest[65];
};

struct job {
        struct link *link;
        const char *name, *end;
        const json_t *plan;
        struct spec *spec;
        int64_t stop_at;
        size_t runs; /* under way */
        bool applied;
};

static struct arena arena;
static struct str agent;
static struct spec *specs;
static size_t spec_count, open_links;
static int64_t began;

const void *agent_bytes(size_t *n)
{
        *n = agent.len;
        return agent.data;
}

/* The most that was ever resident, of this program alone (getrusage counts what was before exec).
 */
static int64_t kilobytes(void)
{
        char line[256];
        long n = 0;
        FILE *f CLEANUP(fclose_p) = fopen("/proc/self/status", "re");
        while (f && fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %ld", &n) != 1)
                ;
        return n;
}

static double since(void) { return (double)(clock_ms() - began); }

static void print(const struct job *j, const char *event, json_t *line)
{
        json_object_set_new(line, "event", json_string(event));
        json_object_set_new(line, "link", json_string(j->name));
        json_object_set_new(line, "ms", json_real(since()));
        char *text = json_dumps(line, JSON_COMPACT | JSON_ENCODE_ANY);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(line);
}

/* ---- the plan ---- */

static const char *text_of(const json_t *o, const char *key)
{
        return json_string_value(json_object_get(o, key));
}
static int64_t number_of(const json_t *o, const char *key)
{
        return json_integer_value(json_object_get(o, key));
}
static bool bool_of(const json_t *o, const char *key)
{
        return json_is_true(json_object_get(o, key));
}

static enum spec_kind kind_of(const char *name)
{
        static const char *const names[] = { "dir", "file", "link", "unit", "artifact", "image",
                "sysctl", "module", "mount", "package" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(names[i], name))
                        return (enum spec_kind)i;
        abort();
}

static struct spec_entry entry_of(const json_t *o)
{
        const char *content = text_of(o, "content");
        return (struct spec_entry){
                .kind = kind_of(text_of(o, "kind")),
                .class = CLASS_MUTABLE,
                .flags = (unsigned)number_of(o, "flags"),
                .path = text_of(o, "path"),
                .name = text_of(o, "name"),
                .target = text_of(o, "target"),
                .version = text_of(o, "version"),
                .mode = (unsigned)number_of(o, "mode"),
                .content = content,
                .len = content ? strlen(content) : 0,
                .units = text_of(o, "units"),
        };
}

static void spec_of(const char *name, const json_t *o, struct spec *out)
{
        const json_t *entries = json_object_get(o, "entries"), *items = json_object_get(o, "items");
        out->name = name;
        out->spec.count = json_array_size(entries);
        out->spec.entries = arena_array(&arena, struct spec_entry, out->spec.count + 1);
        for (size_t i = 0; i < out->spec.count; i++)
                out->spec.entries[i] = entry_of(json_array_get(entries, i));
        out->count = json_array_size(items);
        out->items = arena_array(&arena, struct item, out->count + 1);
        for (size_t i = 0; i < out->count; i++) {
                const json_t *m = json_array_get(items, i);
                out->items[i] = (struct item){ .name = text_of(m, "name"),
                        .version = text_of(m, "version"),
                        .image = bool_of(m, "image"),
                        .size = number_of(m, "size") };
                out->items[i].path = arena_strdup(&arena, text_of(m, "path"));
                snprintf(out->items[i].digest, sizeof(out->items[i].digest), "%s",
                        text_of(m, "digest"));
        }
        link_digest(&out->spec, out->items, out->count, out->digest);
}

static struct link_target target_of(const json_t *o)
{
        const json_t *options = json_object_get(o, "options");
        struct strings *s = arena_new(&arena, struct strings);
        *s = (struct strings){ .n = json_array_size(options),
                .v = arena_array(&arena, const char *, json_array_size(options) + 1) };
        for (size_t i = 0; i < s->n; i++)
                s->v[i] = json_string_value(json_array_get(options, i));
        return (struct link_target){
                .name = text_of(o, "name"),
                .cluster = text_of(o, "cluster"),
                .host = text_of(o, "host"),
                .user = text_of(o, "user"),
                .key = text_of(o, "key"),
                .bastion = text_of(o, "bastion"),
                .port = (long)number_of(o, "port"),
                .options = s,
                .sudo = bool_of(o, "sudo"),
                .sudo_password = text_of(o, "sudo_password"),
                .known_hosts = text_of(o, "known_hosts"),
                .own_bastion = bool_of(o, "own_bastion"),
                .accept_new = bool_of(o, "accept_new"),
                .strict = bool_of(o, "strict"),
                .host_key = text_of(o, "host_key"),
                .machine_id = text_of(o, "machine_id"),
                .digest = text_of(o, "digest"),
                .urgent = bool_of(o, "urgent"),
                .root = text_of(o, "root"),
        };
}

/* ---- a link's life ---- */

static void on_run(struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct job *j = arg;
        print(j, "run",
                json_pack("{s:i, s:s, s:s}", "status", status, "out", out, "errors", errors));
        if (--j->runs == 0 && status >= 0)
                link_close(l);
}

static void start_runs(struct job *j)
{
        const json_t *runs = json_object_get(j->plan, "runs");
        j->runs = json_array_size(runs);
        for (size_t i = 0; i < json_array_size(runs); i++) {
                const json_t *r = json_array_get(runs, i), *words = json_object_get(r, "argv");
                const char **argv = arena_array(&arena, const char *, json_array_size(words) + 1);
                for (size_t k = 0; k < json_array_size(words); k++)
                        argv[k] = json_string_value(json_array_get(words, k));
                link_run(
                        j->link, argv, text_of(r, "input"), (size_t)number_of(r, "max"), on_run, j);
        }
        if (!j->runs)
                link_close(j->link);
}

static void freed(struct job *j)
{
        link_free(j->link);
        open_links--;
        print(j, "freed", json_object());
}

static void on_hello(struct link *l, json_t *facts, const char *digest, json_t *drift, void *arg)
{
        struct job *j = arg;
        bool same = j->spec && streq(digest, j->spec->digest) && !json_array_size(drift);
        print(j, "hello",
                json_pack("{s:O, s:s, s:O, s:b, s:s?}", "facts", facts, "digest", digest, "drift",
                        drift, "same", (int)same, "hostKey", link_host_key(l)));
        if (j->end && streq(j->end, "hello"))
                link_close(l);
        else if (j->end && streq(j->end, "free"))
                freed(j);
        else if (!j->spec || (same && !bool_of(j->plan, "always")))
                start_runs(j);
        else
                link_apply(l, &j->spec->spec, j->spec->items, j->spec->count,
                        (enum apply_mode)number_of(j->plan, "mode"));
}

static void on_entry(struct link *l, const struct spec_entry *e, enum wire_state state,
        const char *detail, void *arg)
{
        static const char *const names[] = { "same", "created", "changed", "restarted", "started",
                "removed", "failed" };
        print(arg, "entry",
                json_pack("{s:s, s:s, s:s?}", "key", e->path ? e->path : e->name, "state",
                        names[state], "detail", detail));
}

static void on_progress(struct link *l, int64_t sent, int64_t total, void *arg)
{
        struct job *j = arg;
        if (sent == 0 || sent == total)
                print(j, "progress",
                        json_pack("{s:I, s:I}", "sent", (json_int_t)sent, "total",
                                (json_int_t)total));
        if (j->stop_at && sent >= j->stop_at) {
                j->stop_at = 0;
                raise(SIGSTOP);
        }
}

static void on_applied(struct link *l, unsigned changed, unsigned failed, void *arg)
{
        struct job *j = arg;
        print(j, "applied",
                json_pack("{s:i, s:i}", "changed", (int)changed, "failed", (int)failed));
        start_runs(j);
}

static void on_new_key(struct link *l, const char *line, void *arg)
{
        print(arg, "key", json_pack("{s:s}", "line", line));
}

static void on_closed(struct link *l, struct error *err, void *arg)
{
        json_t *line = err ? json_pack("{s:s, s:s?, s:i, s:i}", "error", err->message, "hint",
                                     err->hint, "code", err->code, "exit", (int)err->status)
                           : json_object();
        open_links--;
        print(arg, "closed", line);
}

static void start(struct event_base *base, const json_t *plan)
{
        struct job *j = arena_new(&arena, struct job);
        struct error err CLEANUP(error_release) = { 0 };
        struct link_target t = target_of(plan);
        const char *spec = text_of(plan, "spec");
        *j = (struct job){ .name = t.name,
                .plan = plan,
                .end = text_of(plan, "end"),
                .stop_at = number_of(plan, "stop_at") };
        for (size_t i = 0; spec && i < spec_count; i++)
                if (streq(specs[i].name, spec))
                        j->spec = &specs[i];
        struct link_events events = { on_hello, on_entry, on_progress, on_applied, on_new_key,
                on_closed, j };
        if (link_open(base, &t, &events, &j->link, &err) < 0) {
                print(j, "closed",
                        json_pack("{s:s, s:s?, s:i, s:i}", "error", err.message, "hint", err.hint,
                                "code", err.code, "exit", (int)err.status));
                return;
        }
        open_links++;
        if (j->end && streq(j->end, "early"))
                link_close(j->link);
}

static void print_argv(const json_t *plan, char **words)
{
        struct link_target t = target_of(plan);
        for (const char **v = link_argv(&t, (const char *const *)words, &arena); *v; v++)
                puts(*v);
}

int main(int argc, char **argv)
{
        struct error err CLEANUP(error_release) = { 0 };
        json_t *plan = argc > 2 ? json_load_file(argv[2], 0, NULL) : NULL;
        if (!plan || file_read(argv[1], (size_t)16 << 20, &agent, &err) < 0) {
                fprintf(stderr, "link_tool: %s\n",
                        err.message ? err.message : "usage: link_tool AGENT PLAN.json");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        began = clock_ms();
        json_t *all = json_object_get(plan, "specs"), *links = json_object_get(plan, "links"), *o;
        const char *name;
        specs = arena_array(&arena, struct spec, json_object_size(all) + 1);
        json_object_foreach(all, name, o) spec_of(name, o, &specs[spec_count++]);
        if (argc > 3) {
                print_argv(json_array_get(links, 0), argv + 4);
        } else {
                struct event_base *base = event_base_new();
                slots_limit((unsigned)number_of(plan, "slots"), false);
                for (size_t i = 0; i < json_array_size(links); i++)
                        start(base, json_array_get(links, i));
                while (open_links && event_base_loop(base, EVLOOP_ONCE) == 0)
                        ;
                event_base_free(base);
                print(&(struct job){ .name = "" }, "end",
                        json_pack("{s:I}", "kilobytes", (json_int_t)kilobytes()));
        }
        json_decref(plan);
        arena_release(&arena);
        str_release(&agent);
        return 0;
}
