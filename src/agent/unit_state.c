/* What systemd says of units, asked once for all of them. */
#include "agent/agent.h"

bool is_unit_file(const char *path)
{
        static const char *const dirs[] = { "/etc/systemd/system/", "/usr/lib/systemd/system/", "/lib/systemd/system/", "/usr/local/lib/systemd/system/",
                "/run/systemd/system/" };
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
                if (has_prefix(path, dirs[i]))
                        return true;
        return false;
}

struct child *units_show(struct agent *a, const struct words *names)
{
        struct words w CLEANUP(words_release) = { 0 };
        words_add(&w, "systemctl");
        words_add(&w, "show");
        words_add(&w, "--property=LoadState,ActiveState,UnitFileState,Type,RemainAfterExit,Result,NeedDaemonReload");
        words_add(&w, "--");
        for (size_t i = 0; i < names->n; i++)
                words_add(&w, names->v[i]);
        return child_start(&a->session, w.v, false);
}

/* "Key=value" of one block. */
static bool is(const char *block, const char *line)
{
        size_t n = strlen(line);
        for (const char *p = block; (p = strstr(p, line)); p += n)
                if ((p == block || p[-1] == '\n') && (p[n] == '\n' || !p[n]))
                        return true;
        return false;
}

static void read_block(const char *b, struct unit_state *u)
{
        static const char *const enabled[] = { "enabled", "enabled-runtime", "static", "alias", "indirect", "generated", "transient" };
        *u = (struct unit_state){ .known = true,
                .found = !is(b, "LoadState=not-found"),
                .masked = is(b, "LoadState=masked") || is(b, "UnitFileState=masked"),
                .active = is(b, "ActiveState=active") || is(b, "ActiveState=activating") || is(b, "ActiveState=reloading"),
                .failed = is(b, "ActiveState=failed"),
                .stale = is(b, "NeedDaemonReload=yes") };
        u->over = !u->active && is(b, "Type=oneshot") && is(b, "RemainAfterExit=no") && is(b, "Result=success");
        for (size_t i = 0; i < ARRAY_SIZE(enabled); i++) {
                char *line CLEANUP(free_p) = xasprintf("UnitFileState=%s", enabled[i]);
                u->enabled |= is(b, line);
        }
}

void units_read(const struct str *text, struct unit_state *out, size_t n)
{
        char *copy CLEANUP(free_p) = xstrdup(str_text(text)), *p = copy;
        memset(out, 0, n * sizeof(*out));
        for (size_t i = 0; i < n && p && *p; i++) {
                char *end = strstr(p, "\n\n");
                if (end)
                        *end = 0;
                read_block(p, &out[i]);
                p = end ? end + 2 : NULL;
        }
}

bool unit_as_wanted(const struct unit_state *u, unsigned flags)
{
        if (!u->known)
                return true; /* nobody to ask */
        if (flags & SPEC_DISABLE)
                return u->masked && !u->active;
        return !u->masked && (u->enabled || !(flags & SPEC_ENABLE)) && (u->active || u->over || !(flags & SPEC_START));
}

/* The digest of everything a unit reads: another one than at its last start means that it has to start again. */
static void reads(const struct agent *a, const char *unit, char out[SHA256_HEX])
{
        struct sha256 sum;
        sha256_init(&sum);
        for (size_t i = 0; i < a->count; i++) {
                const struct entry *e = &a->entries[i];
                if (e->kind == SPEC_UNIT || spec_keeps(e->flags) || !word_in(e->units, unit))
                        continue;
                sha256_add(&sum, e->id, strlen(e->id) + 1);
                sha256_add(&sum, e->digest, sizeof(e->digest));
                if (e->target)
                        sha256_add(&sum, e->target, strlen(e->target) + 1);
        }
        sha256_end(&sum, out);
}

/* The last entry that it reads and that changes; and whether a reload shows it all: not a new program, nor a new unit file. */
static bool changes(const struct agent *a, struct entry *unit)
{
        bool any = false;
        unit->soft = true;
        for (size_t i = 0; i < a->count; i++) {
                const struct entry *e = &a->entries[i];
                if (e->kind == SPEC_UNIT || e->state == STATE_SAME || !word_in(e->units, unit->name))
                        continue;
                any = true;
                unit->after = i;
                unit->soft &= e->kind == SPEC_FILE && !is_unit_file(e->path);
        }
        return any;
}

/* Mounts, targets and slices read nothing: what is new counts from the next time they start. */
static bool restarts(const char *name)
{
        static const char *const never[] = { ".mount", ".automount", ".swap", ".target", ".slice", ".scope", ".device" };
        for (size_t i = 0; i < ARRAY_SIZE(never); i++)
                if (has_suffix(name, never[i]))
                        return false;
        return true;
}

static void check_unit(struct agent *a, struct entry *e)
{
        const struct row *row = record_find(&a->record, SPEC_UNIT, e->name);
        struct unit_state *u = &e->unit;
        reads(a, e->name, e->reads);
        e->after = 0;
        u->over = u->over && row && streq(row->digest, e->reads); /* systemd forgets that it ran: the record knows */
        bool changed = changes(a, e);
        e->soft = e->soft && changed && row && row->digest[0]; /* what an earlier run left undone may be anything */
        e->news = changed || (row && !streq(row->digest, e->reads));
        e->restart = e->news && u->active && restarts(e->name) && !(e->flags & SPEC_DISABLE);
        if (e->restart)
                e->state = STATE_RESTARTED;
        else if (unit_as_wanted(u, e->flags))
                e->state = STATE_SAME;
        else
                e->state = e->flags & SPEC_START && !u->active && !u->over ? STATE_STARTED : STATE_CHANGED;
}

void check_units(struct agent *a)
{
        struct words names CLEANUP(words_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_UNIT)
                        words_add(&names, a->entries[i].name);
        if (!names.n)
                return;
        struct unit_state *states CLEANUP(free_p) = xcalloc(names.n, sizeof(*states));
        struct child *c = units_show(a, &names);
        if (child_wait(&a->session, c, 60, &err) == 0)
                units_read(&c->text[0], states, names.n);
        child_free(&a->session, c);
        for (size_t i = 0, k = 0; i < a->count; i++)
                if (a->entries[i].kind == SPEC_UNIT) {
                        a->entries[i].unit = states[k++];
                        check_unit(a, &a->entries[i]);
                }
}
