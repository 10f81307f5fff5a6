/* What etcdctl on a node prints: a look at two members, whose agents answer each question with
 * the next part of the input. Parts end with a line "%%"; one that begins with "!" is an error,
 * and without any the connection is cut. */
#include "cluster/etcd/etcd.h"
#include "pieces.h"

#include "fake_proc.h"

static struct pieces answers;

struct pending { /* an event that is to come */
        struct proc *proc;
        bool there;
};

static void fake_forget(struct proc *p)
{
        struct pending *later = p->user;
        if (later && later->there)
                later->proc = NULL;
        else
                free(later);
}

static void answer(struct str *out, const struct wire_frame *f)
{
        struct pieces text = piece_part(&answers);
        bool bad = text.n && *text.p == '!';
        size_t begin = wire_begin(out, WIRE_OUT);
        wire_number(out, TAG_ID, wire_value(f, TAG_ID, 0));
        wire_number(out, TAG_STREAM, bad ? 2 : 1);
        wire_bytes(out, TAG_BYTES, text.p, text.n);
        wire_end(out, begin);
        begin = wire_begin(out, WIRE_EXIT);
        wire_number(out, TAG_ID, wire_value(f, TAG_ID, 0));
        wire_number(out, TAG_STATUS, bad);
        wire_end(out, begin);
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
        struct pending *later = arg;
        struct proc *p = later->proc;
        later->there = false;
        if (!p) {
                free(later);
                return;
        }
        struct str out CLEANUP(str_release) = { 0 };
        struct wire_frame f;
        size_t at = 0;
        bool asked = p->written.len, cut = false;
        for (; asked && !cut && wire_frame(p->written.data + at, p->written.len - at, &f) > 0;
                at += f.whole)
                if (!(cut = !answers.n))
                        answer(&out, &f);
        if (!asked && !p->ending) {
                str_add(&out, "slipway:have\n");
                size_t begin = wire_begin(&out, WIRE_HELLO);
                wire_number(&out, TAG_VERSION, WIRE_VERSION);
                wire_text(&out, TAG_FACTS, "{}");
                wire_end(&out, begin);
        }
        str_truncate(&p->written, 0);
        if (p->ending || cut)
                fake_exit(p, cut ? 255 : 0);
        else
                p->spec.on_out(p, out.data, out.len, p->spec.arg);
}

static void fake_event(struct proc *p)
{
        struct pending *later = p->user;
        if (!later)
                p->user = later = xcalloc(1, sizeof(*later));
        later->proc = p;
        if (!later->there)
                event_base_once(p->base, -1, EV_TIMEOUT, on_later, later, &(struct timeval){ 0 });
        later->there = true;
}

static const struct pool pool = { .name = "control", .roles = ROLE_CONTROL_PLANE | ROLE_ETCD };
static struct node nodes[] = {
        { .name = "c1", .pool = &pool, .ip = { { .family = 4, .b = { 192, 0, 2, 1 } } } },
        { .name = "c2", .pool = &pool, .ip = { { .family = 4, .b = { 192, 0, 2, 2 } } } }
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct machine machines[ARRAY_SIZE(nodes)];
        struct member members[ARRAY_SIZE(nodes)];
        struct cluster c = {
                .name = "test", .arena = &a, .nodes = nodes, .node_count = ARRAY_SIZE(nodes)
        };
        struct site s = { .base = event_base_new(),
                .arena = &a,
                .cluster = &c,
                .members = members,
                .count = ARRAY_SIZE(nodes),
                .identity.prefix = (char *)"abcde" };
        struct etcd_view v;
        for (size_t i = 0; i < s.count; i++) {
                machines[i] = (struct machine){ .node = &nodes[i],
                        .state = MACHINE_RUNNING,
                        .target = { .name = nodes[i].name, .host = "192.0.2.1" } };
                members[i] =
                        (struct member){ .site = &s, .node = &nodes[i], .machine = &machines[i] };
        }
        answers = (struct pieces){ data, size };
        int r = size % 2 ? etcd_wake(&s, &v, &err) : etcd_look(&s, &v, &err);
        if (r < 0)
                abort();
        json_t *o = etcd_view_json(&v);
        char *text = json_dumps(o, 0);
        if (!text || !json_is_array(json_object_get(o, "members")))
                abort();
        free(text);
        json_decref(o);
        etcd_view_release(&v);
        event_base_free(s.base);
        return 0;
}
