#include "base/file.h"
#include "cluster/apply/roll.h"
#include "cluster/etcd/restore/restore.h"

#define ON_KUBE    (ROLE_CONTROL_PLANE | ROLE_WORKER)
#define MARKER_MAX (64 << 10)
#define ROLLBACK   "rollback"

static char *marker_path(const struct site *s)
{
        return path_join(s->identity.dir, "etcd-restore.json");
}

/* ---- unfinished restores ---- */

/* NULL: no restore was begun. A marker that cannot be read is an empty one: a restore was begun. */
static json_t *marker_read(const char *path)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct error none CLEANUP(error_release) = { 0 };
        if (access(path, F_OK) != 0)
                return NULL;
        json_t *o = file_read(path, MARKER_MAX, &text, &none) == 0
                            ? json_loads(str_text(&text), 0, NULL)
                            : NULL;
        return o ? o : json_object();
}

int restore_unfinished(const struct site *s, struct error *err)
{
        char *path CLEANUP(free_p) = marker_path(s);
        json_t *o = marker_read(path);
        const char *snapshot = json_string_value(json_object_get(o, "snapshot"));
        if (o) {
                error_set(err, EBUSY, EXIT_STATE, "a restore of etcd has not finished: %s",
                        json_is_true(json_object_get(o, "restored"))
                                ? "the previous data is still beside the restored data"
                                : "some members may hold the old data and others the new data");
                const char *by = json_string_value(json_object_get(o, "by"));
                if (by && streq(by, ROLLBACK))
                        error_hint(err, "continue it with: slipway rollback");
                else
                        error_hint(err, "continue it with: slipway etcd restore %s",
                                snapshot ? snapshot : "SNAPSHOT");
        }
        json_decref(o);
        return o ? -err->code : 0;
}

bool restore_of_rollback(const struct site *s)
{
        char *path CLEANUP(free_p) = marker_path(s);
        json_t *o = marker_read(path);
        const char *by = json_string_value(json_object_get(o, "by"));
        bool its = by && streq(by, ROLLBACK);
        json_decref(o);
        return its;
}

bool restore_begun(const struct restore *r)
{
        json_t *o = marker_read(r->marker);
        const char *digest = json_string_value(json_object_get(o, "sha256"));
        bool same = digest && streq(digest, r->snapshot->digest);
        json_decref(o);
        return same;
}

static int marker_write(const struct restore *r, bool restored, struct error *err)
{
        json_t *o = json_pack("{s:s, s:s, s:s, s:b, s:s}", "snapshot", r->snapshot->path, "sha256",
                r->snapshot->digest, "token", r->token, "restored", restored, "by",
                r->live ? ROLLBACK : "etcd restore");
        char *text CLEANUP(free_p) = json_dumps(o, JSON_INDENT(2));
        json_decref(o);
        return file_write(r->marker, text, strlen(text), 0600, FILE_SYNC, NULL, err);
}

/* An unfinished restore of this snapshot continues with its token. */
static void restore_was_begun(struct restore *r)
{
        json_t *before = marker_read(r->marker);
        const char *digest = json_string_value(json_object_get(before, "sha256")),
                   *token = json_string_value(json_object_get(before, "token"));
        bool same = digest && token && streq(digest, r->snapshot->digest);
        r->token = same ? arena_strdup(r->site->arena, token)
                        : arena_printf(r->site->arena, "%s-%s-%" PRId64, r->site->cluster->name,
                                  r->site->identity.prefix, (int64_t)time(NULL));
        r->restored = same && json_is_true(json_object_get(before, "restored"));
        json_decref(before);
}

static int restore_begin(struct restore *r, struct error *err)
{
        if (r->survivor) /* the snapshot did not exist before */
                restore_was_begun(r);
        return marker_write(r, r->restored, err);
}

static void step_begin(struct step *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        step_done(s, restore_begin(s->arg, &err) < 0 ? &err : NULL);
}

/* From here on no node is stopped and restored again: all members have the data and have written to
 * it since, and some may have lost their token. */
static void step_restored(struct step *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        step_done(s, marker_write(s->arg, true, &err) < 0 ? &err : NULL);
}

static void step_end(struct step *s)
{
        struct restore *r = s->arg;
        unlink(r->marker);
        if (r->survivor)
                step_changed(s, "etcd was rebuilt from %s", r->survivor->node->name);
        else
                step_changed(s, "etcd holds what %s holds", r->snapshot->path);
        step_done(s, NULL);
}

/* ---- the steps ---- */

void restore_init(struct restore *r, struct site *s, struct snapshot *snapshot)
{
        *r = (struct restore){
                .site = s, .snapshot = snapshot, .marker = marker_path(s), .begun = time(NULL)
        };
        r->nodes = arena_array(s->arena, struct restore_node, s->count + 1);
        for (size_t i = 0; i < s->count; i++)
                r->nodes[i] = (struct restore_node){ .restore = r,
                        .member = &s->members[i],
                        .part = s->members[i].node->pool->roles & ROLE_ETCD };
}

static const char *restore_initial_cluster(const struct restore *r)
{
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < r->site->count; i++) {
                const struct node *n = r->nodes[i].member->node;
                char *url CLEANUP(free_p) = r->nodes[i].part ? etcd_peer_url(n) : NULL;
                if (url)
                        str_addf(&s, "%s%s=%s", s.len ? "," : "", n->name, url);
        }
        return arena_strdup(r->site->arena, str_text(&s));
}

struct shared { /* steps that all nodes share */
        struct step *artifacts, *prepare, *save, *checked, *ready, *stopped, *put, *api, *objects,
                *dns, *restored, *clean;
};

static void step_meet(struct step *s) { step_done(s, NULL); }

/* An etcd or control-plane node is stopped, restored and started. */
static void store_steps(struct restore_node *n, const struct shared *all)
{
        struct member *m = n->member;
        struct run *r = &m->site->run;
        const char *name = m->node->name;
        n->place = run_step(r, "place", name, step_restore_place, n);
        step_after(n->place, all->checked);
        step_after(n->place, all->artifacts);
        if (n->part) {
                struct step *room = run_step(r, "room", name, step_restore_room, n);
                step_after(room, m->run.connect);
                step_after(room, all->save);
                step_after(all->checked, room);
                n->send = run_step(r, "send", name, step_restore_send, n);
                step_after(n->send, n->place);
                step_after(all->ready, n->send);
                n->put = run_step(r, "data", name, step_restore_put, n);
                step_after(n->put, all->stopped);
                step_after(all->put, n->put);
        }
        step_after(all->checked, m->run.connect);
        step_after(all->ready, n->place);
        n->stop = run_step(r, "stop", name, step_restore_stop, n);
        n->stop->disrupts = "the API does not answer until etcd runs again";
        step_after(n->stop, all->ready);
        step_after(all->stopped, n->stop);
        n->start = run_step(r, "start", name, step_restore_start, n);
        step_after(n->start, all->put);
        step_after(all->api, n->start);
        m->run.apply = n->start;
}

/* Any other node is applied as in `up`, and its kubelet is restarted. */
static void worker_steps(struct restore_node *n, const struct shared *all)
{
        struct member *m = n->member;
        m->run.apply = run_step(&m->site->run, "apply", m->node->name, step_apply, m);
        step_after(m->run.apply, m->run.connect);
        step_after(m->run.apply, all->api);
}

static void node_steps(struct restore_node *n, const struct shared *all)
{
        struct member *m = n->member;
        struct run *r = &m->site->run;
        const char *name = m->node->name;
        m->run.create = run_step(r, "machine", name, step_create, m);
        step_after(m->run.create, all->prepare);
        m->run.connect = run_step(r, "connect", name, step_connect, m);
        step_after(m->run.connect, m->run.create);
        /* machines are created only after the snapshot was verified */
        step_after(m->run.create, all->save);
        bool store = m->node->pool->roles & (ROLE_ETCD | ROLE_CONTROL_PLANE);
        /* its agent reports the architecture */
        if (store && m->machine->state == MACHINE_RUNNING)
                step_after(all->artifacts, m->run.connect);
        if (store)
                store_steps(n, all);
        else
                worker_steps(n, all);
        if (m->node->pool->roles & ON_KUBE) {
                struct step *kubelet = run_step(r, "kubelet", name, step_restore_kubelet, n);
                step_after(kubelet, m->run.apply);
                step_after(kubelet, all->objects);
                m->run.ready = run_step(r, "Ready", name, step_node_ready, m);
                step_after(m->run.ready, kubelet);
                if (store)
                        step_after(all->dns, m->run.ready);
        }
        if (n->part) {
                struct step *clean = run_step(r, "clean", name, step_restore_clean, n);
                step_after(clean, all->restored);
                step_after(all->clean, clean);
        }
}

void restore_steps(struct restore *r)
{
        struct site *s = r->site;
        struct run *run = &s->run;
        if (!r->survivor)
                restore_was_begun(r);
        struct shared all = { .artifacts = run_step(run, "artifacts", NULL, step_artifacts, s),
                .prepare = run_step(run, "prepare", NULL, step_prepare, s) };
        if (r->survivor) {
                struct step *connect =
                        run_step(run, "reach", r->survivor->node->name, step_connect, r->survivor);
                all.save =
                        run_step(run, "newest data", r->survivor->node->name, step_recover_save, r);
                step_after(all.save, connect);
        }
        r->initial = restore_initial_cluster(r);
        all.checked = run_step(run, "checked", NULL, step_meet, r);
        all.ready = run_step(run, "begin", NULL, step_begin, r);
        all.stopped = run_step(run, "all stopped", NULL, step_meet, r);
        all.put = run_step(run, "all restored", NULL, step_meet, r);
        all.api = run_step(run, "API", NULL, step_api, s);
        all.objects = run_step(run, "objects", NULL, step_objects, s);
        all.dns = run_step(run, "DNS", NULL, step_dns, s);
        all.restored = run_step(run, "restored", NULL, step_restored, r);
        all.clean = run_step(run, "end", NULL, step_end, r);
        step_after(all.objects, all.api);
        step_after(all.dns, all.objects);
        step_after(all.restored, all.dns);
        step_after(all.clean, all.restored);
        for (size_t i = 0; i < s->count; i++)
                if (!r->nodes[i].left)
                        node_steps(&r->nodes[i], &all);
}

void restore_release(struct restore *r) { free(r->marker); }
