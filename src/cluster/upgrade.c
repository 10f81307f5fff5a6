#include <event2/event.h>
#include <jansson.h>

#include "base/file.h"
#include "cluster/roll.h"
#include "cluster/snapshots.h"
#include "cluster/upgrade.h"
#include "kube/drain.h"

const char *upgrade_from(const struct site *s)
{
        struct version oldest = { 0 }, v;
        const char *text = NULL;
        for (size_t i = 0; i < s->count; i++) {
                const char *now = member_version(&s->members[i]);
                if (now && version_parse(now, &v) && (!text || version_compare(&v, &oldest) < 0)) {
                        oldest = v;
                        text = now;
                }
        }
        if (!text)
                text = s->version;
        return text && version_parse(text, &v) && version_compare(&v, &s->cluster->kubernetes) != 0 ? text : NULL;
}

/* ---- APIs that the new version no longer has ---- */

/* The value of a label in a line of metrics; "" when it is not there. In the arena. */
static const char *metric_label(struct site *s, const char *line, size_t len, const char *name)
{
        char *key CLEANUP(free_p) = xasprintf("%s=\"", name);
        const char *at = memmem(line, len, key, strlen(key));
        if (!at)
                return "";
        at += strlen(key);
        return arena_strndup(s->arena, at, strcspn(at, "\""));
}

/* apiserver_requested_deprecated_apis{group="x",removed_release="1.36",resource="y",subresource="",version="v1beta1"} 1 */
static void deprecated_line(struct site *s, const char *line, size_t len, struct str *found)
{
        struct version removed;
        const char *release = metric_label(s, line, len, "removed_release");
        char *full CLEANUP(free_p) = xasprintf("%s.0", release);
        const char *group = metric_label(s, line, len, "group");
        if (!*release || !version_parse(full, &removed) || version_compare(&removed, &s->cluster->kubernetes) > 0)
                return;
        str_addf(found, "%s%s%s%s %s (gone since %s)", found->len ? ", " : "", group, *group ? "/" : "", metric_label(s, line, len, "version"),
                metric_label(s, line, len, "resource"), release);
}

static void on_metrics(const struct kube_reply *reply, void *arg)
{
        static const char name[] = "apiserver_requested_deprecated_apis{";
        struct step *step = arg;
        struct site *s = step->arg;
        struct str found CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        for (const char *p = reply->text; p && (p = strstr(p, name)); p += strlen(name))
                if (p == reply->text || p[-1] == '\n')
                        deprecated_line(s, p, strcspn(p, "\n"), &found);
        if (!found.len || s->force) {
                step_done(step, NULL);
                return;
        }
        error_set(&err, EINVAL, EXIT_PREFLIGHT, "something in the cluster asks for APIs that %s does not have: %s", s->cluster->kubernetes.text, found.data);
        error_hint(&err,
                "move what uses them to a newer version of the API first (the audit log names who asks); --force goes on all the same; nothing was changed");
        step_done(step, &err);
}

void step_deprecated(struct step *step)
{
        struct site *s = step->arg;
        struct version now;
        const char *from = s->api_up ? s->version : NULL;
        struct error err CLEANUP(error_release) = { 0 };
        if (plan_check_version(s, &err) < 0) {
                step_done(step, &err);
                return;
        }
        if (!from || !version_parse(from, &now) || now.minor >= s->cluster->kubernetes.minor)
                step_kept(step);
        else
                kube_request(s->kube, "GET", "/metrics", NULL, NULL, 0, on_metrics, step);
}

/* ---- before the first node changes ---- */

static void step_stage(struct step *s)
{
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (member_cut(m, s))
                return;
        if (member_render(m, &err) < 0) {
                step_done(s, &err);
                return;
        }
        m->user = s;
        link_apply(m->link, &m->spec, m->site->items, m->site->item_count, 4);
}

static char *previous_path(const struct site *s) { return path_join(s->identity.dir, "previous.json"); }

/* name → preferred version */
static json_t *preferred(const json_t *list)
{
        json_t *out = json_object(), *g;
        size_t i;
        json_array_foreach(json_object_get(list, "groups"), i, g)
        {
                json_t *version = json_object_get(json_object_get(g, "preferredVersion"), "version");
                json_object_set(out, json_string_value(json_object_get(g, "name")), version);
        }
        return out;
}

static void on_groups(const struct kube_reply *reply, void *arg)
{
        struct step *step = arg;
        struct site *s = step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = previous_path(s);
        json_t *o = json_pack("{s:s, s:s, s:s?, s:o}", "version", upgrade_from(s), "upgradedTo", s->cluster->kubernetes.text, "snapshot", s->snapshot_path,
                "groups", preferred(reply->body));
        char *text CLEANUP(free_p) = json_dumps(o, JSON_INDENT(2));
        json_decref(o);
        int r = reply->error ? error_set(&err, EIO, EXIT_STEP, "the API does not list its groups: %s", reply->error)
                             : file_write(path, text, strlen(text), 0600, 0, NULL, &err);
        step_done(step, r < 0 ? &err : NULL);
}

static void step_remember(struct step *step)
{
        struct site *s = step->arg;
        kube_request(s->kube, "GET", "/apis", NULL, NULL, 0, on_groups, step);
}

/* Some control-plane node is there already: this run goes on with one that was stopped, and what is to be returned to is written down. */
static bool begun(const struct site *s)
{
        struct version v;
        for (size_t i = 0; i < s->count; i++) {
                const char *now = s->members[i].node->pool->roles & ROLE_CONTROL_PLANE ? member_version(&s->members[i]) : NULL;
                if (now && version_parse(now, &v) && version_compare(&v, &s->cluster->kubernetes) == 0)
                        return true;
        }
        return false;
}

/* Hundreds of megabytes slow the disk that etcd is on: its members get them one after another, so that a majority stays quick. All others at once. */
void stage_steps(struct site *s, struct step *after)
{
        struct step *last = NULL;
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (m->fate != FATE_CHANGE)
                        continue;
                struct step *stage = run_step(&s->run, "stage", m->node->name, step_stage, m);
                step_after(stage, s->artifacts);
                if (m->node->pool->roles & ROLE_ETCD) {
                        step_after(stage, last);
                        last = stage;
                }
                if (after)
                        step_after(after, stage);
        }
}

static void step_gather(struct step *s) { step_done(s, NULL); }

struct step *upgrade_steps(struct site *s)
{
        struct run *r = &s->run;
        struct error err CLEANUP(error_release) = { 0 };
        struct step *ready = run_step(r, "all is there", NULL, step_gather, s), *remember = NULL;
        struct snapshot *snapshot = arena_new(s->arena, struct snapshot);
        if (!begun(s) && s->live && !s->allow_down) {
                remember = run_step(r, "remember", NULL, step_remember, s);
                if (snapshot_name(snapshot, s, NULL, NULL, &err) == 0) {
                        s->snapshot_path = snapshot->path;
                        step_after(remember, run_step(r, "snapshot", NULL, step_snapshot, snapshot));
                }
                step_after(ready, remember);
        }
        stage_steps(s, ready);
        return ready;
}

static int previous_read(struct site *s, json_t **out, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = previous_path(s);
        int r = file_read(path, 1 << 20, &text, err);
        if (r < 0)
                return r;
        *out = json_loads(str_text(&text), 0, NULL);
        return json_string_value(json_object_get(*out, "version")) ? 0 : error_set(err, EINVAL, EXIT_STATE, "%s is damaged", path);
}

int upgrade_groups_changed(struct site *s, struct str *out, struct error *err)
{
        json_t *previous = NULL, *list = NULL, *now, *version;
        const char *group;
        int r = previous_read(s, &previous, err);
        if (r == 0)
                r = kube_get(s->kube, "/apis", &list, err);
        now = preferred(list);
        json_object_foreach(json_object_get(previous, "groups"), group, version)
        {
                const json_t *is = json_object_get(now, group);
                if (r == 0 && is && !json_equal(is, version))
                        str_addf(out, "%s%s (%s, was %s)", out->len ? ", " : "", group, json_string_value(is), json_string_value(version));
        }
        json_decref(now);
        json_decref(list);
        json_decref(previous);
        return r;
}

int upgrade_previous(struct site *s, const char **version, const char **snapshot, struct error *err)
{
        json_t *o = NULL;
        int r = previous_read(s, &o, err);
        const char *p = json_string_value(json_object_get(o, "snapshot"));
        if (r == 0) {
                *version = arena_strdup(s->arena, json_string_value(json_object_get(o, "version")));
                *snapshot = p ? arena_strdup(s->arena, p) : NULL;
        }
        json_decref(o);
        return r;
}

/* ---- a node that does not become well goes back ---- */

struct back {
        struct member *m;
        struct step *step;
        struct cluster cluster; /* as it was, but for the version */
        struct item *items;
        size_t count;
        struct fetch *fetch;
        const char *why, *from;
        struct event *timer;
};

static void over(struct back *b, const char *trouble)
{
        struct member *m = b->m;
        struct step *step = b->step;
        struct error err CLEANUP(error_release) = { 0 };
        error_set(&err, EIO, EXIT_STEP, "it did not become well with %s (it waited for %s), and %s%s%s%s", m->site->cluster->kubernetes.text, b->why,
                trouble ? "cannot be taken back to " : "was taken back to ", b->from, trouble ? ": " : "", trouble ? trouble : "");
        error_hint(&err, "'slipway logs %s' says why; the nodes after it were not touched; run again to try it once more", m->node->name);
        if (b->timer)
                event_free(b->timer);
        fetch_free(b->fetch);
        items_free(b->items, b->count);
        step_done(step, &err);
}

static void on_back_uncordoned(const char *error, void *arg) { over(arg, error); }

/* Its API server may be the only one, and is only starting again. */
static void on_back_api(void *arg)
{
        struct back *b = arg;
        struct site *s = b->m->site;
        s->wait = NULL;
        event_del(b->timer);
        kube_cordon(s->kube, b->m->node->name, false, on_back_uncordoned, b);
}

static void on_back_late(evutil_socket_t fd, short what, void *arg)
{
        struct back *b = arg;
        struct site *s = b->m->site;
        kube_cancel(s->wait);
        s->wait = NULL;
        over(b, "the API does not answer; the node is still cordoned");
}

static void back_uncordon(struct back *b)
{
        struct site *s = b->m->site;
        b->timer = evtimer_new(s->base, on_back_late, b);
        event_add(b->timer, &(struct timeval){ .tv_sec = s->cluster->upgrade.health_timeout });
        if (s->wait)
                kube_cancel(s->wait);
        s->wait = kube_wait_ready(s->kube, 300, on_back_api, b);
}

static void on_back_applied(struct member *m, unsigned failed, void *arg)
{
        struct back *b = arg;
        m->on_applied = NULL;
        if (failed)
                over(b, "some entries could not be applied");
        else if (m->cordoned && m->site->kube)
                back_uncordon(b);
        else
                over(b, NULL);
}

static void on_back_fetched(struct error *err, void *arg)
{
        struct back *b = arg;
        struct member *m = b->m;
        struct error failed CLEANUP(error_release) = { 0 };
        struct spec_input in = { .cluster = &b->cluster, .identity = &m->site->identity, .leaves = &m->leaves, .node = m->node, .facts = &m->facts };
        if (err || !m->link) {
                over(b, err ? err->message : "the connection was cut");
                return;
        }
        member_forget_spec(m);
        if (node_render(&in, &m->spec, &failed) < 0) {
                over(b, failed.message);
                return;
        }
        m->rendered = true;
        m->on_applied = on_back_applied;
        m->on_applied_arg = b;
        link_apply(m->link, &m->spec, b->items, b->count, 0);
}

bool upgrade_member(const struct member *m) { return m->fate == FATE_CHANGE && m->before && !streq(m->before, m->site->cluster->kubernetes.text); }

void upgrade_back(struct member *m, struct step *step, const char *why)
{
        struct site *s = m->site;
        struct back *b = arena_new(s->arena, struct back);
        struct error err CLEANUP(error_release) = { 0 };
        const char *from = m->before;
        size_t n;
        *b = (struct back){
                .m = m, .step = step, .cluster = *s->cluster, .why = arena_strdup(s->arena, why), .from = from ? arena_strdup(s->arena, from) : ""
        };
        step_doing(step, -1, "not well: going back to %s", b->from);
        if (!from || !version_parse(from, &b->cluster.kubernetes) || version_compare(&b->cluster.kubernetes, &s->cluster->kubernetes) == 0) {
                over(b, "the version before is not known");
                return;
        }
        b->cluster.kubernetes.text = b->from;
        b->items = fetch_items(&b->cluster, s->arena, &b->count, &err);
        struct fetch_request request = { .cluster = &b->cluster, .arch = "amd64", .items = b->items, .count = b->count, .on_done = on_back_fetched, .arg = b };
        request.agent = agent_bytes(&n);
        request.agent_len = n;
        if (!b->items || fetch_start(s->base, &request, &b->fetch, &err) < 0)
                over(b, err.message);
}
