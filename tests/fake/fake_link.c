/* Links and what runs on the nodes behind them. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/sha256.h"
#include "fake.h"

#define STARTS_MS 500  /* of a kubelet: the first look at it comes too early */
#define DOWN_MS   3000 /* until a machine that is rebooted stops to answer */
#define BOOT_MS   9000 /* until it answers again */
#define SNAPSHOT  "a snapshot of etcd, as far as anybody here knows"

struct run_there {
        struct run_there *next;
        struct link *link;
        struct fake_event *event;
        char **argv;
        struct link_program program;
};

struct link {
        size_t node;
        struct slot slot; /* the real ones: their limit is the scenario's */
        char *digest;     /* that it must have applied last; NULL: any */
        struct link_events events;
        struct fake_event *hello, *apply;
        struct run_there *runs;
        const struct nodespec *spec;
        unsigned mode, frame;
        bool dead;
        unsigned busy;
};

struct nodespec;
int __wrap_link_open(struct event_base *base, const struct link_target *target,
        const struct link_events *events, struct link **out, struct error *err);
void __wrap_link_free(struct link *l);
void __wrap_link_close(struct link *l);
bool __wrap_link_idle(const struct link *l);
bool __wrap_link_queued(const struct link *l);
void __wrap_link_apply(struct link *l, const struct nodespec *spec, const struct item *items,
        size_t count, enum apply_mode mode);
void __wrap_link_run(struct link *l, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg);
void __wrap_link_run_program(struct link *l, const struct link_program *p);
void __wrap_link_digest(
        const struct nodespec *spec, const struct item *items, size_t count, char out[65]);
const char *__wrap_link_host_key(const struct link *l);
const void *agent_bytes(size_t *n);

const void *agent_bytes(size_t *n)
{
        *n = 5;
        return "agent";
}

/* The digest is the version: what a node runs is then what it was given. */
void __wrap_link_digest(
        const struct nodespec *spec, const struct item *items, size_t count, char out[65])
{
        const struct spec_entry *e = nodespec_find(spec, SPEC_FILE, "/version");
        snprintf(out, 65, "%s", e ? e->content : "none");
}

/* ---- lifetime ---- */

static void run_free(struct run_there *r)
{
        fake_forget(r->event);
        for (size_t i = 0; r->argv[i]; i++)
                free(r->argv[i]);
        free(r->argv);
        free(r);
}

static void link_release(struct link *l)
{
        fake_forget(l->hello);
        fake_forget(l->apply);
        while (l->runs) {
                struct run_there *r = l->runs;
                l->runs = r->next;
                run_free(r);
        }
        if (world.nodes[l->node].link == l)
                world.nodes[l->node].link = NULL;
        world.closed++;
        free(l->digest);
        slot_leave(&l->slot);
        free(l);
}

bool __wrap_link_queued(const struct link *l) { return l->slot.waiting; }

bool __wrap_link_idle(const struct link *l)
{
        return l->slot.inside && !l->hello && !l->apply && !l->runs && !l->busy && !l->dead;
}

static void leave(struct link *l)
{
        if (--l->busy)
                return;
        if (l->dead)
                link_release(l);
        else if (l->events.on_idle && __wrap_link_idle(l))
                l->events.on_idle(l, l->events.arg);
}

void __wrap_link_free(struct link *l)
{
        if (!l)
                return;
        l->dead = true;
        if (!l->busy)
                link_release(l);
}

/* As the real one: programs first, those too that are begun meanwhile, then the owner. */
static void link_end(struct link *l, struct error *err)
{
        l->busy++;
        while (l->runs && !l->dead) {
                struct run_there *r = l->runs;
                l->runs = r->next;
                r->program.fn(l, -1, "",
                        err && err->message ? err->message
                                            : "the link was closed before the program ended",
                        r->program.arg);
                run_free(r);
        }
        if (!l->dead && l->events.on_closed)
                l->events.on_closed(l, err, l->events.arg);
        l->dead = true;
        leave(l);
}

static void link_cut(struct link *l, int code)
{
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, code, EXIT_UNREACHABLE, "node %s: the connection was cut",
                fake_names[l->node]);
        link_end(l, &err);
}

void fake_cut(size_t node)
{
        if (world.nodes[node].link && !world.nodes[node].link->busy)
                link_cut(world.nodes[node].link, EPIPE);
}

const char *__wrap_link_host_key(const struct link *l) { return NULL; }

void __wrap_link_close(struct link *l) { link_end(l, NULL); }

/* ---- hello ---- */

static json_t *facts_of(size_t i)
{
        const struct fake_node *n = &world.nodes[i];
        char *address CLEANUP(free_p) = xasprintf("192.0.2.%zu/24", 11 + i);
        json_t *o = json_pack("{s:b, s:s, s:s, s:s, s:s, s:s, s:[{s:s, s:[s]}]}", "root", true,
                "arch", "amd64", "init", "systemd", "machineId", fake_names[i], "productUuid",
                fake_names[i], "hostname", fake_names[i], "interfaces", "name", "eth0", "addresses",
                address);
        json_object_set_new(o, "boot", json_sprintf("boot %u", n->boots));
        if (n->outdated)
                json_object_set_new(o, "reboot", json_string("linux-image changed"));
        if (!n->fresh && !n->reset)
                json_object_update_new(
                        o, json_pack("{s:s, s:s}", "cluster", "ab12c", "node", fake_names[i]));
        if (!n->fresh && !n->reset && i < 3)
                json_object_set_new(o, "etcd", json_object());
        return o;
}

/* Its sshd answers until it goes down, and again when it is back. */
static bool fake_is_down(struct fake_node *n)
{
        int64_t since = n->goes_down ? fake_now() - n->goes_down : -1;
        if (since < 0)
                return false;
        if (since < BOOT_MS)
                return true;
        n->goes_down = 0;
        n->boots++;
        n->outdated = false;
        return false;
}

static void on_hello(void *self, enum how how)
{
        struct link *l = self;
        fake_forget(TAKE(l->hello));
        if (how != HOW_PLAIN || world.nodes[l->node].away || fake_is_down(&world.nodes[l->node])) {
                link_cut(l, how == HOW_LOST ? EPIPE : ECONNREFUSED);
                return;
        }
        const char *digest = world.nodes[l->node].fresh ? "" : world.nodes[l->node].given;
        if (l->digest && !streq(l->digest, digest)) {
                link_cut(l, EREMCHG);
                return;
        }
        json_t *facts = facts_of(l->node), *drift = json_array();
        l->busy++;
        l->events.on_hello(l, facts, digest, drift, l->events.arg);
        json_decref(facts);
        json_decref(drift);
        leave(l);
}

static void on_slot(void *arg)
{
        struct link *l = arg;
        size_t open = 0;
        l->hello = fake_post(10, on_hello, l);
        for (size_t i = 0; i < FAKE_NODES; i++)
                open += world.nodes[i].link && world.nodes[i].link->slot.inside;
        assert_true(!world.slots || open <= world.slots);
}

int __wrap_link_open(struct event_base *base, const struct link_target *target,
        const struct link_events *events, struct link **out, struct error *err)
{
        struct link *l = xcalloc(1, sizeof(*l));
        *l = (struct link){ .node = fake_index(target->name), .events = *events };
        l->digest = target->digest ? xstrdup(target->digest) : NULL;
        l->slot = (struct slot){ .open = on_slot, .arg = l, .urgent = target->urgent };
        assert_null(world.nodes[l->node].link);
        world.nodes[l->node].link = l;
        world.opened++;
        slot_wait(&l->slot);
        *out = l;
        return 0;
}

/* ---- applying: needs, progress, an entry, the end ---- */

static void etcd_started(size_t node)
{
        for (size_t i = 0; i < world.peer_count; i++) {
                struct fake_peer *p = &world.peers[i];
                char *host CLEANUP(free_p) = xasprintf("https://192.0.2.%zu:", 11 + node);
                if (!has_prefix(p->peer, host))
                        continue;
                snprintf(p->name, sizeof(p->name), "%s", fake_names[node]);
                snprintf(p->client, sizeof(p->client), "%s", p->peer);
        }
}

static void node_applied(struct link *l)
{
        struct fake_node *n = &world.nodes[l->node];
        const struct spec_entry *e = nodespec_find(l->spec, SPEC_FILE, "/version");
        if (l->mode == APPLY_RESET)
                n->reset = true;
        if (n->reset && fake_outside_there())
                world.early = true;
        if (l->mode != APPLY_ALL || !e)
                return;
        if (n->fresh) /* its kubelet registers */
                n->gone = n->cordoned = n->moved = false;
        n->fresh = false;
        snprintf(n->given, sizeof(n->given), "%s", e->content);
        n->starts = fake_now() + STARTS_MS;
        etcd_started(l->node);
}

/* A control-plane node's own parts start again, and so does its etcd. The kubelet's program is
 * another one only if what was given last is another version, not other files. */
static void tell_entries(struct link *l)
{
        struct version had;
        const char *const paths[] = { "/etc/kubernetes/manifests/kube-apiserver.yaml",
                "etcd.service", "kubelet.service",
                version_parse(world.nodes[l->node].given, &had) ? FAKE_KUBELET : "" };
        for (size_t i = 0; i < l->spec->count && !l->dead; i++)
                for (size_t k = 0; k < ARRAY_SIZE(paths) && !l->dead; k++) {
                        const struct spec_entry *e = &l->spec->entries[i];
                        if (streq(e->path ? e->path : e->name, paths[k]))
                                l->events.on_entry(l, e,
                                        e->kind == SPEC_UNIT ? STATE_RESTARTED : STATE_CHANGED, "",
                                        l->events.arg);
                }
}

static void on_apply_frame(void *self, enum how how)
{
        struct link *l = self;
        fake_forget(TAKE(l->apply));
        bool last = l->frame == 3;
        if (last && how != HOW_REFUSED)
                node_applied(l);
        if (how == HOW_LOST) {
                link_cut(l, EPIPE);
                return;
        }
        l->busy++;
        if (l->frame == 1)
                l->events.on_progress(l, 1 << 20, 2 << 20, l->events.arg);
        if (l->frame == 2)
                tell_entries(l);
        l->frame++;
        if (!last)
                l->apply = fake_post(20, on_apply_frame, l);
        else
                l->events.on_applied(l, 3, how == HOW_REFUSED, l->events.arg);
        leave(l);
}

void __wrap_link_apply(struct link *l, const struct nodespec *spec, const struct item *items,
        size_t count, enum apply_mode mode)
{
        assert_null(l->apply);
        l->spec = spec;
        l->mode = mode;
        l->frame = 0;
        l->apply = fake_post(20, on_apply_frame, l);
}

/* ---- programs ---- */

static void on_program(void *self, enum how how)
{
        struct run_there *r = self;
        struct link *l = r->link;
        struct str out CLEANUP(str_release) = { 0 }, errors CLEANUP(str_release) = { 0 };
        int status = fake_program(l->node, (const char *const *)r->argv, how, &out, &errors);
        if (how == HOW_LOST) {
                link_cut(l, EPIPE);
                return;
        }
        for (struct run_there **p = &l->runs; *p; p = &(*p)->next)
                if (*p == r) {
                        *p = r->next;
                        break;
                }
        l->busy++;
        if (r->program.sink && out.len) {
                r->program.sink(l, out.data, out.len, r->program.arg);
                str_truncate(&out, 0);
        }
        if (!l->dead)
                r->program.fn(l, status, str_text(&out), str_text(&errors), r->program.arg);
        run_free(r);
        leave(l);
}

void __wrap_link_run_program(struct link *l, const struct link_program *p)
{
        size_t n = 0;
        while (p->argv[n])
                n++;
        struct run_there *r = xcalloc(1, sizeof(*r)), **end = &l->runs;
        *r = (struct run_there){ .link = l, .argv = xcalloc(n + 1, sizeof(char *)), .program = *p };
        for (size_t i = 0; i < n; i++)
                r->argv[i] = xstrdup(p->argv[i]);
        r->program.argv = NULL;
        r->event = fake_post(15, on_program, r);
        while (*end)
                end = &(*end)->next;
        *end = r;
}

void __wrap_link_run(struct link *l, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg)
{
        __wrap_link_run_program(
                l, &(struct link_program){ .argv = argv, .max = max, .fn = fn, .arg = arg });
}

/* ---- etcdctl ---- */

static void members_json(struct str *out)
{
        json_t *list = json_array();
        for (size_t i = 0; i < world.peer_count; i++) {
                const struct fake_peer *p = &world.peers[i];
                json_t *client = *p->client ? json_pack("[s]", p->client) : json_array();
                json_array_append_new(
                        list, json_pack("{s:I, s:s, s:[s], s:o, s:b}", "ID", (json_int_t)p->id,
                                      "name", p->name, "peerURLs", p->peer, "clientURLs", client,
                                      "isLearner", p->learner));
        }
        json_t *o = json_pack("{s:o}", "members", list);
        char *text CLEANUP(free_p) = json_dumps(o, JSON_COMPACT);
        str_add(out, text);
        json_decref(o);
}

static struct fake_peer *peer_by_id(const char *hex)
{
        for (size_t i = 0; i < world.peer_count; i++)
                if (world.peers[i].id == strtoull(hex, NULL, 16))
                        return &world.peers[i];
        return NULL;
}

static int say_no(struct str *errors, const char *why)
{
        str_addf(errors, "Error: %s\n", why);
        return 1;
}

static int member_change(const char *const *w, struct str *out, struct str *errors)
{
        if (streq(w[1], "add")) {
                struct fake_peer *p = &world.peers[world.peer_count++];
                assert_true(world.peer_count < FAKE_PEERS);
                *p = (struct fake_peer){ .id = ++world.last_id, .learner = true };
                snprintf(p->peer, sizeof(p->peer), "%s", strchr(w[4], '=') + 1);
                str_add(out, "{}");
                return 0;
        }
        struct fake_peer *p = peer_by_id(w[2]);
        if (!p)
                return say_no(errors, "etcdserver: member not found");
        if (streq(w[1], "promote") && !p->tried) {
                p->tried = true;
                return say_no(errors,
                        "etcdserver: can only promote a learner member which is in sync with leader");
        }
        if (streq(w[1], "promote"))
                p->learner = false;
        else
                memmove(p, p + 1, (size_t)(&world.peers[--world.peer_count] - p) * sizeof(*p));
        str_add(out, "{}");
        return 0;
}

static int etcdctl(size_t node, const char *const *w, struct str *out, struct str *errors)
{
        if (streq(w[0], "member") && streq(w[1], "list")) {
                members_json(out);
                return 0;
        }
        if (streq(w[0], "member"))
                return member_change(w, out, errors);
        if (streq(w[1], "status"))
                str_addf(out,
                        "[{\"Status\":{\"header\":{\"member_id\":%zu,\"cluster_id\":7,\"revision\":9},\"leader\":%zu,\"dbSize\":4096,\"raftIndex\":%" PRIu64
                        ",\"raftAppliedIndex\":%" PRIu64 "}}]",
                        node + 1, world.no_leader & 1U << node ? 0 : world.leader + 1,
                        world.applied[node], world.applied[node]);
        else
                str_add(out, "[{\"health\":true}]");
        return 0;
}

/* Scripts are known by the word that stands for their name. */
int fake_program(
        size_t node, const char *const *argv, enum how how, struct str *out, struct str *errors)
{
        if (how == HOW_REFUSED)
                return say_no(errors, "refused");
        if (how == HOW_NOT_YET)
                return say_no(errors, "etcdserver: unhealthy cluster");
        const char *name = argv[1] && argv[2] && argv[3] ? argv[3] : "";
        if (streq(name, "etcdctl"))
                return etcdctl(node, argv + 7, out, errors);
        if (streq(name, "snapshot")) {
                char digest[SHA256_HEX];
                sha256_hex(SNAPSHOT, strlen(SNAPSHOT), digest);
                world.snapshot_from = fake_names[node];
                str_addf(out, "{\"revision\":9,\"totalKey\":3}\n%s  f\n%zu\n", digest,
                        strlen(SNAPSHOT));
        } else if (streq(argv[0], "systemctl") && streq(argv[1], "reboot")) {
                world.nodes[node].goes_down = fake_now() + DOWN_MS;
        } else if (streq(argv[0], "cat")) {
                str_add(out, SNAPSHOT);
        } else if (streq(name, "carry") && strstr(argv[2], "exit 10")) {
                return 10; /* it has to be sent */
        } else if (strstr(argv[argv[1] && argv[2] ? 2 : 0], "date +%s")) {
                str_add(out, "1800000000\n");
        }
        return 0;
}
