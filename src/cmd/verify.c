/* verify: tests from inside pods whether the cluster works; prints a table or JSON. */
#include "base/file.h"
#include "cluster/apply/verify.h"
#include "cmd/reach.h"
#include "ui/lines.h"

static const char *verify_text_of(const json_t *row, const char *key)
{
        const char *s = json_string_value(json_object_get(row, key));
        return s ? s : "";
}

static char *row_path(const json_t *row)
{
        const char *to = verify_text_of(row, "to");
        return xasprintf("%s%s%s", verify_text_of(row, "from"), *to ? " to " : "", to);
}

static void print_rows(const json_t *answer)
{
        const json_t *rows = json_object_get(answer, "checks"), *row;
        int width = (int)strlen("PATH");
        size_t i;
        json_array_foreach(rows, i, row)
        {
                char *path CLEANUP(free_p) = row_path(row);
                width = (int)strlen(path) > width ? (int)strlen(path) : width;
        }
        print("%-17s%-*s%s\n", "CHECK", width + 2, "PATH", "RESULT");
        json_array_foreach(rows, i, row)
        {
                char *path CLEANUP(free_p) = row_path(row);
                print("%-17s%-*s%s\n", verify_text_of(row, "check"), width + 2, path,
                        json_is_true(json_object_get(row, "works")) ? "works"
                                                                    : verify_text_of(row, "why"));
        }
}

/* Takes the lock: a run that changes the cluster and this verb would delete each other's probes. */
static int verify_lock(struct site *s, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(s->identity.dir, "lock");
        return lock_take(path, "verify", &s->identity.lock, err);
}

int cmd_verify(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        struct lines *lines = NULL;
        json_t *answer = NULL;
        int e = reach_api(&r, o, err);
        if (e == 0)
                e = verify_lock(&r.site, err);
        if (e == 0 && !cmd_json(o))
                lines = lines_observe(&r.site.run);
        if (e == 0)
                e = verify_cluster(&r.site, &answer, err);
        if (lines)
                lines_end(lines);
        if (answer && cmd_json(o))
                print_json(answer, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        else if (answer)
                print_rows(answer);
        json_decref(answer);
        return e;
}
