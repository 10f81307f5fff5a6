/* The record of what was applied, as text: one line per entry, fields separated by tabs, the key
 * last. It is saved before a run changes anything (with everything that the run may change, without
 * the spec's digest) and again at its end. */
#include "agent/agent.h"
#include "base/file.h"

#define RECORD_MAX  ((size_t)64 << 20)
#define RECORD_HEAD "slipway record 1"

struct row *record_find(const struct record *r, enum spec_kind kind, const char *key)
{
        char *id CLEANUP(free_p) = xasprintf("%d %s", (int)kind, key);
        return index_get(&r->index, id);
}

struct row *record_put(struct record *r, enum spec_kind kind, const char *key)
{
        struct row *row = record_find(r, kind, key);
        if (row)
                return row;
        if (r->count == r->cap) {
                r->cap = r->cap ? r->cap * 2 : 64;
                r->rows = xrealloc(r->rows, r->cap * sizeof(*r->rows));
        }
        row = xcalloc(1, sizeof(*row));
        *row = (struct row){ .kind = kind, .id = xasprintf("%d %s", (int)kind, key) };
        row->key = strchr(row->id, ' ') + 1;
        index_put(&r->index, row->id, row);
        return r->rows[r->count++] = row;
}

void row_members_clear(struct row *row)
{
        for (size_t i = 0; i < row->member_count; i++)
                free(row->members[i].path);
        free(row->members);
        row->members = NULL;
        row->member_count = 0;
}

struct row_member *row_member_add(struct row *row, const char *path)
{
        row->members = xrealloc(row->members, (row->member_count + 1) * sizeof(*row->members));
        struct row_member *m = &row->members[row->member_count++];
        *m = (struct row_member){ .path = xstrdup(path) };
        return m;
}

static void row_free(struct row *row)
{
        row_members_clear(row);
        free(row->id);
        free(row->target);
        free(row);
}

void record_drop(struct record *r, struct row *row)
{
        size_t i = 0;
        while (r->rows[i] != row)
                i++;
        memmove(r->rows + i, r->rows + i + 1, (--r->count - i) * sizeof(*r->rows));
        row_free(row);
        index_clear(&r->index);
        for (i = 0; i < r->count; i++)
                index_put(&r->index, r->rows[i]->id, r->rows[i]);
}

void record_release(struct record *r)
{
        index_release(&r->index);
        for (size_t i = 0; i < r->count; i++)
                row_free(r->rows[i]);
        free(r->rows);
        free(r->cluster);
        free(r->node);
        *r = (struct record){ 0 };
}

struct row *record_entry(struct agent *a, const struct entry *e)
{
        struct row *row = record_put(&a->record, e->kind, entry_key(e));
        row->flags = e->flags;
        row->seen = true;
        free(row->target);
        row->target = e->target && e->kind != SPEC_IMAGE ? xstrdup(e->target) : NULL;
        return row;
}

/* ---- text ---- */

static void add_print(struct str *s, const struct print *p)
{
        if (!p->known)
                str_add(s, "-");
        else
                str_addf(s, "%" PRIu64 ":%" PRIu64 ":%" PRId64 ":%o:%u:%u", p->size, p->ino,
                        p->changed, p->mode, p->uid, p->gid);
}

static void read_print(const char *text, struct print *p)
{
        *p = (struct print){ 0 };
        p->known = sscanf(text, "%" SCNu64 ":%" SCNu64 ":%" SCNd64 ":%o:%u:%u", &p->size, &p->ino,
                           &p->changed, &p->mode, &p->uid, &p->gid) == 6;
}

static void row_set_digest(char out[SHA256_HEX], const char *text)
{
        snprintf(out, SHA256_HEX, "%s", sha256_valid(text) ? text : "");
}

static const char *or_dash(const char *s) { return s && *s ? s : "-"; }

int record_save(struct agent *a, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        const struct record *r = &a->record;
        str_addf(&s, RECORD_HEAD "\ncluster\t%s\nnode\t%s\nspec\t%s\n", or_dash(r->cluster),
                or_dash(r->node), or_dash(r->spec));
        for (size_t i = 0; i < r->count; i++) {
                const struct row *row = r->rows[i];
                str_addf(
                        &s, "%s\t%u\t%s\t", kind_name(row->kind), row->flags, or_dash(row->digest));
                add_print(&s, &row->print);
                str_addf(&s, "\t%s\n", row->key);
                if (row->target)
                        str_addf(&s, "target\t%s\n", row->target);
                for (size_t k = 0; k < row->member_count; k++) {
                        str_addf(&s, "member\t%s\t", or_dash(row->members[k].digest));
                        add_print(&s, &row->members[k].print);
                        str_addf(&s, "\t%s\n", row->members[k].path);
                }
        }
        char *path CLEANUP(free_p) = path_join(a->state, "applied");
        return file_write(path, str_text(&s), s.len, 0600, FILE_SYNC, NULL, err);
}

static int kind_by_name(const char *name)
{
        for (int k = 0; k < SPEC_KIND_COUNT; k++)
                if (streq(name, kind_name((enum spec_kind)k)))
                        return k;
        return -1;
}

/* Splits a line at its tabs, into at most `max` fields. */
static size_t record_fields(char *line, char **out, size_t max)
{
        size_t n = 0;
        for (char *p = line; p && n < max; n++) {
                out[n] = p;
                p = n + 1 < max ? strchr(p, '\t') : NULL;
                if (p)
                        *p++ = 0;
        }
        return n;
}

/* False for an unknown line: the record is then not trusted. */
static bool record_line(struct record *r, char *line, struct row **last)
{
        char *f[5];
        size_t n = record_fields(line, f, 5);
        int kind = kind_by_name(f[0]);
        if (n == 2 && streq(f[0], "cluster") && !r->cluster)
                r->cluster = streq(f[1], "-") ? NULL : xstrdup(f[1]);
        else if (n == 2 && streq(f[0], "node") && !r->node)
                r->node = streq(f[1], "-") ? NULL : xstrdup(f[1]);
        else if (n == 2 && streq(f[0], "spec"))
                row_set_digest(r->spec, f[1]);
        else if (n == 2 && streq(f[0], "target") && *last && !(*last)->target)
                (*last)->target = xstrdup(f[1]);
        else if (n == 4 && streq(f[0], "member") && *last) {
                struct row_member *m = row_member_add(*last, f[3]);
                row_set_digest(m->digest, f[1]);
                read_print(f[2], &m->print);
        } else if (n == 5 && kind >= 0) {
                *last = record_put(r, (enum spec_kind)kind, f[4]);
                (*last)->flags = (unsigned)strtoul(f[1], NULL, 10);
                row_set_digest((*last)->digest, f[2]);
                read_print(f[3], &(*last)->print);
        } else
                return false;
        return true;
}

int record_load(struct agent *a, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(a->state, "applied"), *save = NULL;
        struct row *last = NULL;
        record_release(&a->record);
        int r = file_read(path, RECORD_MAX, &s, err);
        /* unreadable without root: treated as missing */
        if (r == -ENOENT || r == -EACCES || r == -ENOTDIR) {
                error_release(err);
                return 0;
        }
        if (r < 0)
                return r;
        char *line = s.len ? strtok_r(s.data, "\n", &save) : NULL;
        bool good = line && streq(line, RECORD_HEAD);
        while (good && (line = strtok_r(NULL, "\n", &save)))
                good = record_line(&a->record, line, &last);
        if (good)
                return 0;
        error_set(err, EBADMSG, EXIT_STATE, "%s is damaged", path);
        return error_hint(err,
                "rename the file on the node and run again: every entry is then compared by content");
}
