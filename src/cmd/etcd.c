/* etcd: the members of the cluster's store; snapshots taken, tested and restored. */
#include "cmd/etcd.h"
#include "cmd/reach.h"
#include "cmd/table.h"

/* ---- members ---- */

enum column {
        COL_NAME,
        COL_ID,
        COL_ADDRESS,
        COL_STATE,
        COL_VERSION,
        COL_SIZE,
        COL_USE,
        COL_INDEX,
        COL_ALARMS,
        COL_COUNT
};
static const char *const titles[COL_COUNT] = { "NAME", "ID", "ADDRESS", "STATE", "VERSION", "SIZE",
        "IN USE", "INDEX", "ALARMS" };

static const char *etcd_text_of(const json_t *o, const char *key)
{
        return json_string_value(json_object_get(o, key));
}

static const char *megabytes(const json_t *v, struct arena *a)
{
        return json_is_integer(v) ? arena_printf(a, "%.1f MB", (double)json_integer_value(v) / 1e6)
                                  : NULL;
}

static const char *state_of(const json_t *m)
{
        return !etcd_text_of(m, "id") && etcd_text_of(m, "trouble") ? "unknown"
               : !etcd_text_of(m, "id")                             ? "no member"
               : !json_is_true(json_object_get(m, "started"))       ? "not started"
               : etcd_text_of(m, "trouble")                         ? "not healthy"
               : !etcd_text_of(m, "node")                           ? "not in file"
               : json_is_true(json_object_get(m, "learner"))        ? "learner"
               : json_is_true(json_object_get(m, "leader"))         ? "leader"
                                                                    : "follower";
}

static void etcd_row_of(const json_t *m, const char **row, struct arena *a)
{
        const json_t *index = json_object_get(m, "raftIndex");
        row[COL_NAME] = etcd_text_of(m, "name");
        row[COL_ID] = etcd_text_of(m, "id");
        row[COL_ADDRESS] = etcd_text_of(m, "address");
        row[COL_STATE] = state_of(m);
        row[COL_VERSION] = etcd_text_of(m, "version");
        row[COL_SIZE] = megabytes(json_object_get(m, "dbSize"), a);
        row[COL_USE] = megabytes(json_object_get(m, "inUse"), a);
        row[COL_INDEX] = json_is_integer(index) ? arena_printf(a, "%" JSON_INTEGER_FORMAT,
                                                          json_integer_value(index))
                                                : NULL;
        row[COL_ALARMS] = json_string_value(json_array_get(json_object_get(m, "alarms"), 0));
}

static void print_members(const json_t *v, struct arena *a)
{
        const json_t *problems = json_object_get(v, "problems");
        struct str text CLEANUP(str_release) = { 0 };
        table_text(&text, titles, COL_COUNT, json_object_get(v, "members"), etcd_row_of, a);
        print_text(stdout, str_text(&text));
        for (size_t i = 0; i < json_array_size(problems); i++)
                print("- %s\n", json_string_value(json_array_get(problems, i)));
}

static int etcd_members_cmd(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        struct etcd_view v CLEANUP(etcd_view_release) = { 0 };
        int e = reach_open(&r, o, err);
        if (e == 0)
                e = etcd_look(&r.site, &v, err);
        if (e < 0)
                return e;
        json_t *answer = etcd_view_json(&v);
        bool healthy = !json_array_size(json_object_get(answer, "problems"));
        if (cmd_json(o))
                print_json(answer, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        else
                print_members(answer, &r.arena);
        json_decref(answer);
        return healthy ? EXIT_OK : EXIT_UNHEALTHY;
}

/* ---- the verb ---- */

static const struct {
        const char *name;
        size_t max_args; /* including its own name */
        int (*run)(const struct options *o, struct error *err);
} actions[] = {
        { "members", 1, etcd_members_cmd },
        { "snapshot", 1, etcd_snapshot_run },
        { "drill", 2, etcd_drill_run },
        { "restore", 2, etcd_restore_run },
        { "recover", 1, etcd_recover_run },
        { "defrag", 1, etcd_defrag_run },
};

int cmd_etcd(const struct options *o, struct error *err)
{
        for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
                if (!streq(actions[i].name, o->args.v[0]))
                        continue;
                if (o->args.n <= actions[i].max_args)
                        return actions[i].run(o, err);
                error_set(err, EINVAL, EXIT_USAGE,
                        "'slipway etcd %s' does not take the argument '%s'", actions[i].name,
                        o->args.v[actions[i].max_args]);
                return error_hint(err, "see 'slipway help etcd'");
        }
        return -EINVAL; /* options_parse refused every other word */
}
