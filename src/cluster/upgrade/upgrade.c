#include <event2/event.h>
#include <jansson.h>

#include "base/file.h"
#include "cluster/site/op.h"
#include "cluster/site/proven.h"
#include "cluster/etcd/snapshots.h"
#include "cluster/upgrade/upgrade.h"

const char *upgrade_from(const struct site *s)
{
        struct version oldest = { 0 }, v;
        const char *text = NULL;
        for (size_t i = 0; i < s->count; i++) {
                const char *now = s->members[i].seen.before;
                if (now && version_parse(now, &v) && (!text || version_compare(&v, &oldest) < 0)) {
                        oldest = v;
                        text = now;
                }
        }
        if (!text)
                text = s->found.version;
        return text && version_parse(text, &v) && version_compare(&v, &s->cluster->kubernetes) != 0
                       ? text
                       : NULL;
}

/* ---- APIs that the new version does not serve ---- */

/* The value of a label in a line of metrics, or "". Allocated in the arena. */
static const char *metric_label(struct site *s, const char *line, size_t len, const char *name)
{
        char *key CLEANUP(free_p) = xasprintf("%s=\"", name);
        const char *at = memmem(line, len, key, strlen(key));
        if (!at)
                return "";
        at += strlen(key);
        return arena_strndup(s->arena, at, strcspn(at, "\""));
}

/* A line of the metric apiserver_requested_deprecated_apis:
 * NAME{group="x",removed_release="1.36",resource="y",subresource="",version="v1beta1"} 1 */
static void deprecated_line(struct site *s, const char *line, size_t len, struct str *found)
{
        struct version removed;
        const char *release = metric_label(s, line, len, "removed_release");
        char *full CLEANUP(free_p) = xasprintf("%s.0", release);
        const char *group = metric_label(s, line, len, "group");
        if (!*release || !version_parse(full, &removed) ||
                version_compare(&removed, &s->cluster->kubernetes) > 0)
                return;
        str_addf(found, "%s%s%s%s %s (removed in %s)", found->len ? ", " : "", group,
                *group ? "/" : "", metric_label(s, line, len, "version"),
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
        error_set(&err, EINVAL, EXIT_PREFLIGHT,
                "clients in the cluster use APIs that %s no longer has: %s",
                s->cluster->kubernetes.text, found.data);
        error_hint(&err,
                "change these clients to a newer version of the API first (the audit log names them); --force continues anyway; nothing was changed");
        step_done(step, &err);
}

void step_deprecated(struct step *step)
{
        struct site *s = step->arg;
        struct version now;
        const char *from = s->found.api_up ? s->found.version : NULL;
        struct error err CLEANUP(error_release) = { 0 };
        if (plan_check_version(s, &err) < 0) {
                step_done(step, &err);
                return;
        }
        if (!from || !version_parse(from, &now) || now.minor >= s->cluster->kubernetes.minor)
                step_unchanged(step);
        else
                kube_request(s->kube, "GET", "/metrics", NULL, NULL, 0, on_metrics, step);
}

/* ---- before the first node changes ---- */

void step_stage(struct step *s)
{
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (member_wants(m, &err) < 0)
                step_done(s, &err);
        else
                member_apply(m, s,
                        &(struct apply_request){ .items = member_items(m),
                                .count = m->site->item_count,
                                .mode = APPLY_STAGE,
                                .make = member_render });
}

static char *previous_path(const struct site *s)
{
        return path_join(s->identity.dir, "previous.json");
}

/* name → preferred version */
static json_t *preferred(const json_t *list)
{
        json_t *out = json_object(), *g;
        size_t i;
        json_array_foreach(json_object_get(list, "groups"), i, g)
        {
                json_t *version =
                        json_object_get(json_object_get(g, "preferredVersion"), "version");
                json_object_set(out, json_string_value(json_object_get(g, "name")), version);
        }
        return out;
}

static void on_upgrade_groups(const struct kube_reply *reply, void *arg)
{
        struct step *step = arg;
        struct site *s = step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        char *path CLEANUP(free_p) = previous_path(s);
        json_t *o = json_pack("{s:s, s:s, s:s?, s:o}", "version", upgrade_from(s), "upgradedTo",
                s->cluster->kubernetes.text, "snapshot", s->snapshot_path, "groups",
                preferred(reply->body));
        char *text CLEANUP(free_p) = json_dumps(o, JSON_INDENT(2));
        json_decref(o);
        int r = reply->error ? error_set(&err, EIO, EXIT_STEP,
                                       "the API does not list its groups: %s", reply->error)
                             : file_write(path, text, strlen(text), 0600, FILE_SYNC, NULL, &err);
        if (r < 0)
                error_hint(&err,
                        "an upgrade needs the API: 'slipway status' says why it does not answer; no node was changed");
        step_done(step, r < 0 ? &err : NULL);
}

void step_remember(struct step *step)
{
        struct site *s = step->arg;
        kube_request(s->kube, "GET", "/apis", NULL, NULL, 0, on_upgrade_groups, step);
}

/* A control-plane node already has the new version, or a node was to get it: this run continues an
 * interrupted one, and previous.json is written. */
static bool upgrade_begun(const struct site *s)
{
        struct version v;
        for (size_t i = 0; i < s->count; i++) {
                const char *now = s->members[i].node->pool->roles & ROLE_CONTROL_PLANE
                                          ? member_version(&s->members[i])
                                          : NULL;
                if (member_unproven_wanted(&s->members[i]) ||
                        (now && version_parse(now, &v) &&
                                version_compare(&v, &s->cluster->kubernetes) == 0))
                        return true;
        }
        return false;
}

/* Sending hundreds of megabytes slows the disk that etcd uses: etcd members receive them one after
 * another, so that a majority stays fast. All other nodes receive them at once. */
void stage_steps(struct site *s, struct plan *p, struct plan_step *after)
{
        struct plan_step *last = NULL;
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (m->plan.fate != FATE_CHANGE)
                        continue;
                struct plan_step *stage = plan_add(p, PLAN_STAGE, m);
                if (m->node->pool->roles & ROLE_ETCD) {
                        plan_after(stage, last);
                        last = stage;
                }
                if (after)
                        plan_after(after, stage);
        }
}

void step_staged(struct step *s) { step_done(s, NULL); }

/* If the snapshot cannot be created, the upgrade stops: without it there is no way back. */
void step_upgrade_snapshot(struct step *step)
{
        struct site *s = step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct snapshot *snapshot = arena_new(s->arena, struct snapshot);
        if (snapshot_name(snapshot, s, NULL, NULL, &err) < 0) {
                error_wrap(&err, "no snapshot can be taken before the upgrade");
                step_done(step, &err);
                return;
        }
        s->snapshot_path = snapshot->path;
        step->arg = snapshot;
        step_snapshot(step);
}

struct plan_step *upgrade_steps(struct site *s, struct plan *p)
{
        struct plan_step *staged = plan_add(p, PLAN_STAGED, NULL);
        if (!upgrade_begun(s) && s->found.live && !s->allow_down) {
                struct plan_step *remember = plan_add(p, PLAN_REMEMBER, NULL);
                plan_after(remember, plan_add(p, PLAN_SNAPSHOT, NULL));
                plan_after(staged, remember);
        }
        stage_steps(s, p, staged);
        return staged;
}

static int previous_read(struct site *s, json_t **out, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = previous_path(s);
        int r = file_read(path, 1 << 20, &text, err);
        if (r < 0)
                return r;
        *out = json_loads(str_text(&text), 0, NULL);
        return json_string_value(json_object_get(*out, "version"))
                       ? 0
                       : error_set(err, EINVAL, EXIT_STATE, "%s is damaged", path);
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
                        str_addf(out, "%s%s (%s, was %s)", out->len ? ", " : "", group,
                                json_string_value(is), json_string_value(version));
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
