/* The state of units, from one call of systemctl for all. */
#include "agent/agent.h"

bool is_unit_file(const char *path)
{
        static const char *const dirs[] = { "/etc/systemd/system/", "/usr/lib/systemd/system/",
                "/lib/systemd/system/", "/usr/local/lib/systemd/system/", "/run/systemd/system/" };
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
        words_add(&w,
                "--property=LoadState,ActiveState,UnitFileState,Type,RemainAfterExit,Result,NeedDaemonReload");
        words_add(&w, "--");
        for (size_t i = 0; i < names->n; i++)
                words_add(&w, names->v[i]);
        struct child *c = child_start(&a->session, w.v, false);
        c->whole = CHILD_WHOLE;
        return c;
}

/* Whether the block of one unit has the line "Key=value". */
static bool block_has(const char *block, const char *line)
{
        size_t n = strlen(line);
        for (const char *p = block; (p = strstr(p, line)); p += n)
                if ((p == block || p[-1] == '\n') && (p[n] == '\n' || !p[n]))
                        return true;
        return false;
}

static void unit_read_block(const char *b, struct unit_state *u)
{
        static const char *const enabled[] = { "enabled", "enabled-runtime", "static", "alias",
                "indirect", "generated", "transient" };
        *u = (struct unit_state){ .known = true,
                .found = !block_has(b, "LoadState=not-found"),
                .masked = block_has(b, "LoadState=masked") || block_has(b, "UnitFileState=masked"),
                .active = block_has(b, "ActiveState=active") ||
                          block_has(b, "ActiveState=activating") ||
                          block_has(b, "ActiveState=reloading"),
                .failed = block_has(b, "ActiveState=failed"),
                .stale = block_has(b, "NeedDaemonReload=yes") };
        u->over = !u->active && block_has(b, "Type=oneshot") &&
                  block_has(b, "RemainAfterExit=no") && block_has(b, "Result=success");
        for (size_t i = 0; i < ARRAY_SIZE(enabled); i++) {
                char *line CLEANUP(free_p) = xasprintf("UnitFileState=%s", enabled[i]);
                u->enabled |= block_has(b, line);
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
                unit_read_block(p, &out[i]);
                p = end ? end + 2 : NULL;
        }
}

bool unit_as_wanted(const struct unit_state *u, unsigned flags)
{
        if (!u->known)
                return true; /* systemctl did not answer */
        if (flags & SPEC_DISABLE)
                return u->masked && !u->active;
        return !u->masked && (u->enabled || !(flags & SPEC_ENABLE)) &&
               (u->active || u->over || !(flags & SPEC_START));
}

/* The digest of all that a unit reads: it must restart when the digest differs from the one of its
 * last start. */
static void unit_reads(const struct agent *a, const char *unit, char out[SHA256_HEX])
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

/* Finds the last changed entry that it reads, and whether a reload is enough: not for a new program
 * or unit file. */
static bool unit_changes(const struct agent *a, struct entry *unit)
{
        bool any = false;
        unit->soft = true;
        for (size_t i = 0; i < a->count; i++) {
                const struct entry *e = &a->entries[i];
                if (e->kind == SPEC_UNIT || e->state == STATE_SAME ||
                        !word_in(e->units, unit->name))
                        continue;
                any = true;
                unit->after = i;
                unit->soft &= e->kind == SPEC_FILE && !is_unit_file(e->path);
        }
        return any;
}

/* Mounts, targets and slices are never restarted: changes take effect at their next start. */
static bool unit_may_restart(const char *name)
{
        static const char *const never[] = { ".mount", ".automount", ".swap", ".target", ".slice",
                ".scope", ".device" };
        for (size_t i = 0; i < ARRAY_SIZE(never); i++)
                if (has_suffix(name, never[i]))
                        return false;
        return true;
}

static void check_unit(struct agent *a, struct entry *e)
{
        const struct row *row = record_find(&a->record, SPEC_UNIT, e->name);
        struct unit_state *u = &e->unit;
        unit_reads(a, e->name, e->reads);
        e->after = 0;
        /* systemd forgets that it ran, the record does not */
        u->over = u->over && row && streq(row->digest, e->reads);
        bool changed = unit_changes(a, e);
        /* an earlier run may have left any change undone */
        e->soft = e->soft && changed && row && row->digest[0];
        e->news = changed || (row && !streq(row->digest, e->reads));
        e->restart =
                e->news && u->active && unit_may_restart(e->name) && !(e->flags & SPEC_DISABLE);
        if (e->restart)
                e->state = STATE_RESTARTED;
        else if (unit_as_wanted(u, e->flags))
                e->state = STATE_SAME;
        else
                e->state = e->flags & SPEC_START && !u->active && !u->over ? STATE_STARTED
                                                                           : STATE_CHANGED;
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
