/* status: how the cluster is, as a table for people or as JSON. */
#include "cluster/status.h"
#include "cmd/status.h"

static const char *text_of(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

/* ---- nodes, in columns as wide as they need to be ---- */

enum column { COL_NODE, COL_ROLES, COL_MACHINE, COL_READY, COL_VERSION, COL_DRIFT, COL_ADDRESS, COL_COUNT };
static const char *const titles[COL_COUNT] = { "NODE", "ROLES", "MACHINE", "READY", "VERSION", "DRIFT", "ADDRESS" };

static const char *join(const json_t *list, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < json_array_size(list); i++)
                str_addf(&s, "%s%s", i ? "," : "", json_string_value(json_array_get(list, i)));
        return arena_strdup(a, str_text(&s));
}

static void row_of(const json_t *n, const char *row[COL_COUNT], struct arena *a)
{
        const json_t *ready = json_object_get(n, "ready"), *drift = json_object_get(n, "drift");
        row[COL_NODE] = text_of(n, "name");
        row[COL_ROLES] = join(json_object_get(n, "roles"), a);
        row[COL_MACHINE] = text_of(n, "machine");
        row[COL_READY] = json_is_true(ready) ? "yes" : json_is_false(ready) ? "no" : "-";
        row[COL_VERSION] = text_of(n, "version");
        row[COL_DRIFT] = json_is_integer(drift) ? arena_printf(a, "%" JSON_INTEGER_FORMAT, json_integer_value(drift)) : "-";
        row[COL_ADDRESS] = text_of(n, "address");
        for (int c = 0; c < COL_COUNT; c++)
                row[c] = row[c] ? row[c] : "-";
}

static void print_row(FILE *f, const char *const row[COL_COUNT], const int width[COL_COUNT])
{
        for (int c = 0; c < COL_COUNT; c++)
                fprintf(f, "%-*s%s", c + 1 < COL_COUNT ? width[c] + 2 : 0, row[c], c + 1 < COL_COUNT ? "" : "\n");
}

static void print_nodes(FILE *f, const json_t *nodes, struct arena *a)
{
        size_t n = json_array_size(nodes);
        const char *(*rows)[COL_COUNT] = (const char *(*)[COL_COUNT])arena_array(a, const char *, (n + 1) * COL_COUNT);
        int width[COL_COUNT] = { 0 };
        memcpy(rows[0], titles, sizeof(titles));
        for (size_t i = 0; i < n; i++)
                row_of(json_array_get(nodes, i), rows[i + 1], a);
        for (size_t i = 0; i <= n; i++)
                for (int c = 0; c < COL_COUNT; c++)
                        width[c] = (int)strlen(rows[i][c]) > width[c] ? (int)strlen(rows[i][c]) : width[c];
        for (size_t i = 0; i <= n; i++)
                print_row(f, rows[i], width);
}

/* ---- the rest, a line each ---- */

static void print_api(FILE *f, const json_t *api)
{
        const char *server = text_of(api, "server"), *version = text_of(api, "version");
        fprintf(f, "API           %s: ", server ? server : "no address yet");
        if (json_is_true(json_object_get(api, "ready")))
                fprintf(f, "ready%s%s\n", version ? ", " : "", version ? version : "");
        else
                fprintf(f, "not ready\n");
        const json_t *servers = json_object_get(api, "servers"), *s;
        size_t i;
        json_array_foreach(json_array_size(servers) > 1 ? servers : NULL, i, s)
        {
                const char *trouble = text_of(s, "trouble");
                fprintf(f, "%-13s %s: %s\n", "", text_of(s, "node"), trouble ? trouble : "ready");
        }
}

static void print_etcd(FILE *f, const json_t *list)
{
        size_t i;
        const json_t *e;
        json_array_foreach(list, i, e)
        {
                fprintf(f, "%-13s %s: ", i ? "" : "etcd", text_of(e, "node"));
                if (json_is_true(json_object_get(e, "healthy")))
                        fprintf(f, "healthy%s, %s, %.1f MB%s\n", json_is_true(json_object_get(e, "leader")) ? ", leader" : "", text_of(e, "version"),
                                (double)json_integer_value(json_object_get(e, "dbSize")) / 1e6,
                                json_is_true(json_object_get(e, "defragment")) ? ", more than half of it free: slipway etcd defrag" : "");
                else if (json_array_size(json_object_get(e, "alarms")))
                        fprintf(f, "alarm %s\n", json_string_value(json_array_get(json_object_get(e, "alarms"), 0)));
                else
                        fprintf(f, "not healthy\n");
        }
}

static void print_others(FILE *f, const json_t *list)
{
        size_t i;
        const json_t *n;
        json_array_foreach(list, i, n)
        {
                const char *version = text_of(n, "version"), *address = text_of(n, "address");
                fprintf(f, "%-13s %s: %s, %s%s%s (%s)\n", i ? "" : "other nodes", text_of(n, "name"),
                        json_is_true(json_object_get(n, "ready")) ? "Ready" : "not Ready", version ? version : "no version", address ? ", " : "",
                        address ? address : "", text_of(n, "note"));
        }
}

static void print_rest(FILE *f, const json_t *o)
{
        const json_t *certificates = json_object_get(o, "certificates"), *kubernetes = json_object_get(o, "kubernetes");
        if (json_is_object(certificates))
                fprintf(f, "certificates  the first expires on %.10s, in %" JSON_INTEGER_FORMAT " days (%s)\n", text_of(certificates, "expires"),
                        json_integer_value(json_object_get(certificates, "days")), text_of(certificates, "what"));
        const json_t *running = json_object_get(kubernetes, "running");
        fprintf(f, "Kubernetes    %s wanted", text_of(kubernetes, "wanted"));
        if (json_is_integer(running)) /* only the API knows */
                fprintf(f, ", %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " nodes run it", json_integer_value(running),
                        json_integer_value(json_object_get(kubernetes, "nodes")));
        fputc('\n', f);
        if (text_of(o, "run"))
                fprintf(f, "run           under way: %s\n", text_of(o, "run"));
}

void status_print(FILE *f, const json_t *o, struct arena *a)
{
        const json_t *problems = json_object_get(o, "problems");
        size_t n = json_array_size(problems);
        print_nodes(f, json_object_get(o, "nodes"), a);
        fputc('\n', f);
        print_api(f, json_object_get(o, "api"));
        print_etcd(f, json_object_get(o, "etcd"));
        print_others(f, json_object_get(o, "others"));
        print_rest(f, o);
        if (n)
                fprintf(f, "\n%s is not healthy:\n", text_of(o, "cluster"));
        else
                fprintf(f, "\n%s is healthy.\n", text_of(o, "cluster"));
        for (size_t i = 0; i < n; i++)
                fprintf(f, "- %s\n", json_string_value(json_array_get(problems, i)));
}

int cmd_status(const struct options *o, struct error *err)
{
        struct reach r CLEANUP(reach_release) = { 0 };
        json_t *answer = NULL;
        bool healthy = false;
        int e = reach_open(&r, o, err);
        if (e == 0 && o->watch)
                return status_follow(&r, o, err);
        if (e == 0)
                e = status_ask(&r.site, &answer, &healthy, err);
        if (e < 0)
                return e;
        if (o->output && streq(o->output, "json")) {
                char *text CLEANUP(free_p) = json_dumps(answer, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
                printf("%s\n", text ? text : "{}");
        } else {
                status_print(stdout, answer, &r.arena);
        }
        json_decref(answer);
        return healthy ? EXIT_OK : EXIT_UNHEALTHY;
}
