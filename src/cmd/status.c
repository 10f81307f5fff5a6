/* status: the state of the cluster, as a table or as JSON. */
#include "cluster/status/status.h"
#include "cmd/hardening.h"
#include "cmd/status.h"
#include "cmd/table.h"

static const char *status_text_of(const json_t *o, const char *key)
{
        return json_string_value(json_object_get(o, key));
}

/* ---- nodes, with columns as wide as necessary ---- */

enum column {
        COL_NODE,
        COL_ROLES,
        COL_MACHINE,
        COL_READY,
        COL_VERSION,
        COL_DRIFT,
        COL_ADDRESS,
        COL_COUNT
};
static const char *const titles[COL_COUNT] = { "NODE", "ROLES", "MACHINE", "READY", "VERSION",
        "DRIFT", "ADDRESS" };

static const char *join(const json_t *list, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < json_array_size(list); i++)
                str_addf(&s, "%s%s", i ? "," : "", json_string_value(json_array_get(list, i)));
        return arena_strdup(a, str_text(&s));
}

static void status_row_of(const json_t *n, const char **row, struct arena *a)
{
        const json_t *ready = json_object_get(n, "ready"), *drift = json_object_get(n, "drift");
        row[COL_NODE] = status_text_of(n, "name");
        row[COL_ROLES] = join(json_object_get(n, "roles"), a);
        const char *cloud = status_text_of(n, "cloud");
        row[COL_MACHINE] = status_text_of(n, "machine");
        if (cloud)
                row[COL_MACHINE] = arena_printf(a, "%s (%s)", row[COL_MACHINE], cloud);
        row[COL_READY] = json_is_true(ready) ? "yes" : json_is_false(ready) ? "no" : "-";
        row[COL_VERSION] = status_text_of(n, "version");
        row[COL_DRIFT] = json_is_integer(drift) ? arena_printf(a, "%" JSON_INTEGER_FORMAT,
                                                          json_integer_value(drift))
                                                : "-";
        row[COL_ADDRESS] = status_text_of(n, "address");
}

/* ---- the rest, one line each ---- */

static void print_bastion(struct str *f, const json_t *b)
{
        const char *address = status_text_of(b, "address");
        if (b)
                text_addf(f, "bastion       %s%s%s\n", status_text_of(b, "machine"),
                        address ? ", " : "", address ? address : "");
}

static void print_api(struct str *f, const json_t *api)
{
        const char *server = status_text_of(api, "server"),
                   *version = status_text_of(api, "version");
        text_addf(f, "API           %s: ", server ? server : "no address yet");
        if (json_is_true(json_object_get(api, "ready")))
                text_addf(f, "ready%s%s\n", version ? ", " : "", version ? version : "");
        else
                text_addf(f, "not ready\n");
        const json_t *servers = json_object_get(api, "servers"), *s;
        size_t i;
        json_array_foreach(json_array_size(servers) > 1 ? servers : NULL, i, s)
        {
                const char *trouble = status_text_of(s, "trouble");
                text_addf(f, "%-13s %s: %s\n", "", status_text_of(s, "node"),
                        trouble ? trouble : "ready");
        }
}

static void print_etcd(struct str *f, const json_t *list)
{
        size_t i;
        const json_t *e;
        json_array_foreach(list, i, e)
        {
                text_addf(f, "%-13s %s: ", i ? "" : "etcd", status_text_of(e, "node"));
                if (json_is_true(json_object_get(e, "healthy")))
                        text_addf(f, "healthy%s, %s, %.1f MB%s\n",
                                json_is_true(json_object_get(e, "leader")) ? ", leader" : "",
                                status_text_of(e, "version"),
                                (double)json_integer_value(json_object_get(e, "dbSize")) / 1e6,
                                json_is_true(json_object_get(e, "defragment"))
                                        ? ", more than half of it free: slipway etcd defrag"
                                        : "");
                else if (json_array_size(json_object_get(e, "alarms")))
                        text_addf(f, "alarm %s\n",
                                json_string_value(json_array_get(json_object_get(e, "alarms"), 0)));
                else
                        text_addf(f, "not healthy\n");
        }
}

static void print_others(struct str *f, const json_t *list)
{
        size_t i;
        const json_t *n;
        json_array_foreach(list, i, n)
        {
                const char *version = status_text_of(n, "version"),
                           *address = status_text_of(n, "address");
                text_addf(f, "%-13s %s: %s, %s%s%s (%s)\n", i ? "" : "other nodes",
                        status_text_of(n, "name"),
                        json_is_true(json_object_get(n, "ready")) ? "Ready" : "not Ready",
                        version ? version : "no version", address ? ", " : "",
                        address ? address : "", status_text_of(n, "note"));
        }
}

static void print_releases(struct str *f, const json_t *list)
{
        size_t i;
        const json_t *r;
        json_array_foreach(list, i, r)
        {
                const char *chart = status_text_of(r, "chart");
                text_addf(f, "%-13s %s/%s: %s, %s, revision %" JSON_INTEGER_FORMAT ", %s%s\n",
                        i ? "" : "releases", status_text_of(r, "namespace"),
                        status_text_of(r, "name"), chart ? chart : "-", status_text_of(r, "state"),
                        json_integer_value(json_object_get(r, "revision")),
                        json_is_true(json_object_get(r, "ready")) ? "ready" : "not ready",
                        json_is_true(json_object_get(r, "drift"))
                                ? ", changed by others: slipway plan shows it"
                                : "");
        }
}

static void print_addons(struct str *f, const json_t *list)
{
        size_t i;
        const json_t *a;
        json_array_foreach(list, i, a)
        {
                const char *drift = status_text_of(a, "drift");
                json_int_t wanted = json_integer_value(json_object_get(a, "wanted"));
                text_addf(f, "%-13s %s %s", i ? "" : "addons", status_text_of(a, "name"),
                        status_text_of(a, "version"));
                if (wanted)
                        text_addf(f,
                                ": %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " pods ready",
                                json_integer_value(json_object_get(a, "ready")), wanted);
                text_addf(f, "%s%s\n", drift ? ", " : "", drift ? drift : "");
        }
}

static void print_login(struct str *f, const json_t *login)
{
        if (login)
                text_addf(f, "login         %s: %s\n", status_text_of(login, "issuer"),
                        json_is_true(json_object_get(login, "works")) ? "works" : "does not work");
}

/* No problem: the node works, and somebody chooses the time. */
static void print_reboots(struct str *f, const json_t *nodes)
{
        size_t i, shown = 0;
        const json_t *n;
        json_array_foreach(nodes, i, n) if (status_text_of(n, "reboot")) text_addf(f,
                "%-13s %s needs one: %.200s (slipway reboot)\n", shown++ ? "" : "reboot",
                status_text_of(n, "name"), status_text_of(n, "reboot"));
}

static void print_rest(struct str *f, const json_t *o)
{
        const json_t *certificates = json_object_get(o, "certificates"),
                     *kubernetes = json_object_get(o, "kubernetes");
        if (json_is_object(certificates))
                text_addf(f,
                        "certificates  the first expires on %.10s, in %" JSON_INTEGER_FORMAT
                        " days (%s)\n",
                        status_text_of(certificates, "expires"),
                        json_integer_value(json_object_get(certificates, "days")),
                        status_text_of(certificates, "what"));
        const json_t *running = json_object_get(kubernetes, "running");
        text_addf(f, "Kubernetes    %s wanted", status_text_of(kubernetes, "wanted"));
        if (json_is_integer(running)) /* only the API knows */
                text_addf(f, ", %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " nodes run it",
                        json_integer_value(running),
                        json_integer_value(json_object_get(kubernetes, "nodes")));
        str_addc(f, '\n');
        if (status_text_of(o, "run"))
                text_addf(f, "run           under way: %s\n", status_text_of(o, "run"));
}

void status_print(struct str *f, const json_t *o, bool all, struct arena *a)
{
        const json_t *problems = json_object_get(o, "problems");
        size_t n = json_array_size(problems);
        table_text(f, titles, COL_COUNT, json_object_get(o, "nodes"), status_row_of, a);
        str_addc(f, '\n');
        print_bastion(f, json_object_get(o, "bastion"));
        print_api(f, json_object_get(o, "api"));
        print_etcd(f, json_object_get(o, "etcd"));
        print_others(f, json_object_get(o, "others"));
        print_releases(f, json_object_get(o, "releases"));
        print_addons(f, json_object_get(o, "addons"));
        print_login(f, json_object_get(o, "login"));
        print_rest(f, o);
        print_reboots(f, json_object_get(o, "nodes"));
        if (json_object_get(o, "hardening"))
                hardening_print(f, json_object_get(o, "hardening"), "hardening     ", all);
        if (n)
                text_addf(f, "\n%s is not healthy:\n", status_text_of(o, "cluster"));
        else
                text_addf(f, "\n%s is healthy.\n", status_text_of(o, "cluster"));
        for (size_t i = 0; i < n; i++)
                text_addf(f, "- %s\n", json_string_value(json_array_get(problems, i)));
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
                print_json(answer, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        } else {
                struct str text CLEANUP(str_release) = { 0 };
                status_print(&text, answer, o->hardening, &r.arena);
                print_text(stdout, str_text(&text));
        }
        json_decref(answer);
        return healthy ? EXIT_OK : EXIT_UNHEALTHY;
}
