/* Units: masked, enabled, started, and restarted when something they read has changed; each once,
 * in the order of the spec. Starting does not wait: systemd knows the dependencies. Only mounts are
 * waited for, because later entries are written into them. */
#include "agent/agent.h"

#define CTL_SECONDS  120
#define STOP_SECONDS 300

enum verb { MASK, UNMASK, STOP, ENABLE, RESET, MOUNT, START, RESTART, RELOAD, VERBS };

static const char *const verbs[VERBS][4] = {
        [MASK] = { "--no-reload", "mask" },
        [UNMASK] = { "--no-reload", "unmask" },
        [STOP] = { "stop" },
        [ENABLE] = { "--no-reload", "enable" },
        [RESET] = { "reset-failed" },
        [MOUNT] = { "start" },
        [START] = { "--no-block", "start" },
        [RESTART] = { "--no-block", "restart" },
        [RELOAD] = { "--no-block", "reload-or-restart" },
};

struct batch { /* units for one call of systemctl, in order */
        enum verb verb;
        struct words names;
        struct entry **entries;
        size_t n, cap;
};

static void batch_release(struct batch *b)
{
        words_release(&b->names);
        free(b->entries);
        *b = (struct batch){ 0 };
}

static void batch_add(struct batch *b, struct entry *e)
{
        if (b->n == b->cap) {
                b->cap = b->cap ? b->cap * 2 : 16;
                b->entries = xrealloc(b->entries, b->cap * sizeof(struct entry *));
        }
        b->entries[b->n++] = e;
}

/* The line of systemctl's output that names the unit, not one whose name only ends like it. */
static char *unit_complaint(const struct str *text, const char *unit)
{
        static const char name[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@:_.-\\";
        const char *at = strstr(str_text(text), unit);
        while (at && at > text->data && strchr(name, at[-1]))
                at = strstr(at + 1, unit);
        if (!at)
                return NULL;
        const char *start = at, *end = at + strcspn(at, "\n");
        while (start > text->data && start[-1] != '\n')
                start--;
        return xstrndup(start, end - start < 500 ? (size_t)(end - start) : 500);
}

static int systemctl(struct agent *a, enum verb verb, const struct words *names,
        struct str *complaints, struct error *err)
{
        struct words w CLEANUP(words_release) = { 0 };
        words_add(&w, "systemctl");
        words_add(&w, "--quiet");
        for (const char *const *v = verbs[verb]; *v; v++)
                words_add(&w, *v);
        words_add(&w, "--");
        for (size_t i = 0; i < names->n; i++)
                words_add(&w, names->v[i]);
        struct child *c = child_start(&a->session, w.v, false);
        int r = child_wait(
                &a->session, c, verb == STOP || verb == MOUNT ? STOP_SECONDS : CTL_SECONDS, err);
        str_addn(complaints, str_text(&c->text[1]), c->text[1].len);
        child_free(&a->session, c);
        return r;
}

/* Runs the verb. Units that systemctl's output names have failed, the others have not. If it names
 * none, each unit is tried alone. */
static void batch_run(struct agent *a, struct batch *b)
{
        struct str complaints CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < b->n; i++)
                words_add(&b->names, b->entries[i]->name);
        if (b->n && systemctl(a, b->verb, &b->names, &complaints, &err) < 0 && b->verb != RESET) {
                bool named = false;
                for (size_t i = 0; i < b->n; i++) {
                        char *line CLEANUP(free_p) =
                                unit_complaint(&complaints, b->entries[i]->name);
                        if (line && !b->entries[i]->over) {
                                named = true;
                                error_set(&err, EIO, EXIT_STEP, "%s", line);
                                entry_failed(a, b->entries[i], &err);
                        }
                }
                for (size_t i = 0; i < b->n && (!named || b->verb == ENABLE) && b->n > 1; i++) {
                        struct batch one CLEANUP(batch_release) = { .verb = b->verb };
                        if (b->entries[i]->over)
                                continue;
                        batch_add(&one, b->entries[i]);
                        batch_run(a, &one);
                }
                if (!named && b->n == 1 && !b->entries[0]->over) {
                        error_wrap(&err, "systemctl %s", verbs[b->verb][verbs[b->verb][1] != NULL]);
                        entry_failed(a, b->entries[0], &err);
                }
        }
        enum verb verb = b->verb;
        batch_release(b);
        b->verb = verb;
}

/* Something that it reads could not be applied, so it would start with a wrong configuration. */
static bool unit_is_held(struct agent *a, struct entry *e)
{
        for (size_t i = 0; i < a->count; i++) {
                struct entry *r = &a->entries[i];
                if (r->kind != SPEC_UNIT && r->broken && word_in(r->units, e->name)) {
                        struct error err CLEANUP(error_release) = { 0 };
                        error_set(&err, EIO, EXIT_STEP, "not started, because %s %s failed",
                                kind_name(r->kind), entry_key(r));
                        entry_failed(a, e, &err);
                        return true;
                }
        }
        return false;
}

static bool unit_is_stop(const struct entry *e) { return e->flags & SPEC_DISABLE; }

/* Runs one verb for the units that need it. */
static void units_each(struct agent *a, struct entry *e, size_t n, enum verb verb)
{
        struct batch b CLEANUP(batch_release) = { .verb = verb };
        for (size_t i = 0; i < n; i++) {
                const struct unit_state *u = &e[i].unit;
                bool wants = verb == MASK     ? unit_is_stop(&e[i]) && !u->masked
                             : verb == UNMASK ? !unit_is_stop(&e[i]) && u->masked &&
                                                        e[i].flags & (SPEC_ENABLE | SPEC_START)
                             : verb == STOP   ? unit_is_stop(&e[i]) && u->active
                             : verb == ENABLE ? !unit_is_stop(&e[i]) && e[i].flags & SPEC_ENABLE &&
                                                        !u->enabled
                             : verb == RESET ? u->failed && e[i].flags & SPEC_START
                                             : false;
                if (wants && !e[i].over && !(verb == RESET && a->mode == APPLY_PLACE)) {
                        batch_add(&b, &e[i]);
                        e[i].touched = true;
                        a->reload |= verb == MASK || verb == UNMASK || verb == ENABLE;
                }
        }
        batch_run(a, &b);
}

static enum verb unit_verb(const struct entry *e)
{
        const struct unit_state *u = &e->unit;
        if (unit_is_stop(e))
                return VERBS;
        if (e->restart)
                return e->flags & SPEC_RELOAD && e->soft ? RELOAD : RESTART;
        if (e->flags & SPEC_START && !u->active && !u->over)
                return has_suffix(e->name, ".mount") || has_suffix(e->name, ".swap") ? MOUNT
                                                                                     : START;
        return VERBS;
}

void units_reload(struct agent *a)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (!a->reload)
                return;
        a->reload = false;
        if (tool(&a->session, WORDS("systemctl", "daemon-reload"), CTL_SECONDS, NULL, &err) < 0)
                journal(a, "daemon-reload: %s", err.message);
}

/* Starts and restarts in order; neighbours with the same verb are one call. */
static void units_start(struct agent *a, struct entry **e, size_t n)
{
        struct batch b CLEANUP(batch_release) = { .verb = VERBS };
        for (size_t i = 0; i < n; i++) {
                enum verb v = unit_verb(e[i]);
                if (v == VERBS || e[i]->over || a->mode == APPLY_PLACE)
                        continue;
                if (v != b.verb && b.n)
                        batch_run(a, &b);
                b.verb = v;
                batch_add(&b, e[i]);
        }
        if (b.n && !a->session.cut)
                batch_run(a, &b);
}

static void unit_report(struct agent *a, struct entry *e)
{
        enum verb v = unit_verb(e);
        struct row *row = record_entry(a, e);
        if (e->over)
                return;
        if (v != VERBS && a->mode == APPLY_PLACE) {
                entry_done(a, e, e->touched ? STATE_CHANGED : STATE_SAME, "%s",
                        v == START || v == MOUNT ? "not started, as ordered"
                                                 : "not restarted, as ordered");
                return;
        }
        memcpy(row->digest, e->reads, SHA256_HEX);
        entry_done(a, e,
                v == START || v == MOUNT ? STATE_STARTED
                : v != VERBS             ? STATE_RESTARTED
                : e->touched             ? STATE_CHANGED
                                         : STATE_SAME,
                "%s", v == RELOAD ? "reloaded" : "");
}

void apply_units(struct agent *a, struct entry *e, size_t n)
{
        struct entry **now CLEANUP(free_p) = xcalloc(n, sizeof(struct entry *));
        size_t count = 0;
        static const enum verb before[] = { MASK, UNMASK, ENABLE };
        if (a->recheck) /* packages bring units and start them */
                check_units(a);
        a->recheck = false;
        for (size_t i = 0; i < n; i++)
                unit_is_held(a, &e[i]);
        for (size_t i = 0; i < ARRAY_SIZE(before) && session_alive(&a->session); i++)
                units_each(a, e, n, before[i]);
        for (size_t i = 0; i < n; i++)
                a->reload |= e[i].unit.stale;
        units_reload(a);
        if (session_alive(&a->session)) {
                units_each(a, e, n, STOP);
                units_each(a, e, n, RESET);
        }
        for (size_t i = 0; i < n; i++)
                if (e[i].after <= e[i].index)
                        now[count++] = &e[i];
        units_start(a, now, count);
        for (size_t i = 0; i < count && !a->session.cut; i++)
                unit_report(a, now[i]);
}

/* Checks the started units: an immediate failure is reported now. */
static void units_look_again(struct agent *a)
{
        struct words names CLEANUP(words_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_UNIT && !a->entries[i].broken &&
                        unit_verb(&a->entries[i]) != VERBS)
                        words_add(&names, a->entries[i].name);
        if (!names.n || a->mode == APPLY_PLACE || a->session.cut)
                return;
        struct unit_state *now CLEANUP(free_p) = xcalloc(names.n, sizeof(*now));
        struct child *c = units_show(a, &names);
        if (child_wait(&a->session, c, CTL_SECONDS, &err) == 0)
                units_read(&c->text[0], now, names.n);
        child_free(&a->session, c);
        for (size_t i = 0, k = 0; i < a->count && k < names.n; i++) {
                struct entry *e = &a->entries[i];
                if (e->kind != SPEC_UNIT || names.v[k] != e->name)
                        continue;
                if (!now[k++].failed)
                        continue;
                record_entry(a, e)->digest[0] = 0;
                error_set(&err, EIO, EXIT_STEP, "it failed to start");
                error_hint(&err, "check `journalctl -u %s` on the node", e->name);
                entry_failed(a, e, &err);
        }
}

void units_rest(struct agent *a)
{
        units_reload(a); /* for unit files after the last unit */
        for (size_t i = 0; i < a->count && session_alive(&a->session); i++) {
                struct entry *e = &a->entries[i];
                if (e->kind != SPEC_UNIT || e->over)
                        continue;
                if (!unit_is_held(a, e))
                        units_start(a, &e, 1);
                if (!a->session.cut)
                        unit_report(a, e);
        }
        units_look_again(a);
}

void units_premask(struct agent *a)
{
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_UNIT && unit_is_stop(&a->entries[i])) {
                        units_each(a, &a->entries[i], 1, MASK);
                        a->entries[i].unit.masked = true;
                }
}

void unit_keep(struct agent *a, const struct entry *e)
{
        const struct unit_state *u = &e->unit;
        char *words CLEANUP(free_p) = xasprintf("%s%s%s", u->masked ? "masked " : "",
                u->found && u->enabled ? "enabled " : "", u->found && u->active ? "active " : "");
        if (u->known)
                before_value(a, "unit", e->name, *words ? words : "-");
}

static void unit_ctl(struct agent *a, const char *verb, const char *unit, int seconds)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (tool(&a->session, WORDS("systemctl", "--quiet", verb, "--", unit), seconds, NULL,
                    &err) < 0)
                journal(a, "%s %s: %s", verb, unit, err.message ? err.message : "failed");
}

/* Restores the state before the first run. A unit that was active stays so; it reads its restored
 * files at its next start. */
void unit_remove(struct agent *a, const struct row *row)
{
        bool active = before_unit_was(a, row->key, "active");
        if (row->flags & SPEC_DISABLE) {
                if (!before_unit_was(a, row->key, "masked"))
                        unit_ctl(a, "unmask", row->key, CTL_SECONDS);
                if (active)
                        unit_ctl(a, "start", row->key, STOP_SECONDS);
        } else {
                if (!active)
                        unit_ctl(a, "stop", row->key, STOP_SECONDS);
                if (row->flags & SPEC_ENABLE && !before_unit_was(a, row->key, "enabled"))
                        unit_ctl(a, "disable", row->key, CTL_SECONDS);
        }
        a->reload = true;
}
