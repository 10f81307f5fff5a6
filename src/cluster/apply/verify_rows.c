/* Verification on its own, with rows as its result: slipway verify. */
#include "cluster/apply/verify.h"
#include "cluster/plan/issuer.h"
#include "kube/wait.h"

#define NODES_PATH "/api/v1/nodes"

/* A new check gets a line here and in enum verify_check. */
static const char *const check_names[CHECK_COUNT] = {
        [CHECK_NODE] = "node is Ready",
        [CHECK_START] = "pod starts",
        [CHECK_POD] = "pod to pod",
        [CHECK_SERVICE] = "service address",
        [CHECK_NAME] = "DNS",
        [CHECK_API] = "API service",
        [CHECK_EXEC] = "exec",
        [CHECK_LOGS] = "logs",
        [CHECK_POLICY] = "network policy",
        [CHECK_LOGIN] = "login",
        [CHECK_METRICS] = "metrics",
        [CHECK_STORAGE] = "storage",
        [CHECK_INGRESS] = "ingress",
        [CHECK_TARGETS] = "targets",
};

/* By check, then by node in the order of the file, then in the order of arrival. */
static json_int_t row_order(const struct verify *v, enum verify_check check, const char *from)
{
        size_t node = 0;
        while (node < v->site->count && !streq(v->site->members[node].node->name, from))
                node++;
        return ((json_int_t)check << 52) | ((json_int_t)node << 32) |
               (json_int_t)json_array_size(v->rows);
}

void verify_row(struct verify *v, enum verify_check check, const char *from, const char *to,
        const char *why)
{
        if (!v->rows)
                return;
        char *text CLEANUP(free_p) = why ? xasprintf("%.300s", why) : NULL;
        json_t *said = json_string(text);
        if (text && !said) /* not UTF-8 */
                said = json_string("its answer is not text");
        json_array_append_new(
                v->rows, json_pack("{s:s, s:s, s:s?, s:b, s:o?, s:I}", "check", check_names[check],
                                 "from", from, "to", to, "works", !why, "why", said, "order",
                                 row_order(v, check, from)));
}

/* ---- the nodes of the file in the API ---- */

static const json_t *verify_node(const json_t *nodes, const char *name)
{
        const json_t *n;
        size_t i;
        json_array_foreach(
                json_object_get(nodes, "items"), i, n) if (streq(object_name(n), name)) return n;
        return NULL;
}

/* ---- the identity provider ---- */

/* Behind a jump host people reach it from elsewhere. */
static bool login_promised(const struct site *s)
{
        return s->cluster->services.dex.host && !s->tunnel_count;
}

static void on_verify_login(const char *why, void *arg)
{
        struct step *step = arg;
        struct verify *v = step->arg;
        v->login = why ? arena_strdup(v->site->arena, why) : NULL;
        step_done(step, NULL);
}

static void step_verify_login(struct step *s)
{
        struct verify *v = s->arg;
        issuer_ask(v->site, on_verify_login, s);
}

static void verify_login(struct verify *v)
{
        const char *issuer = v->site->cluster->auth.oidc.issuer;
        if (!login_promised(v->site))
                return;
        verify_row(v, CHECK_LOGIN, "this computer", issuer, v->login);
        if (v->login)
                verify_failed(v,
                        "see its pods (kubectl -n slipway-dex get pods -o wide), and whether its name leads to them (docs/identity.md)",
                        "login at %s: %s", issuer, v->login);
}

static void step_verify_alone(struct step *s)
{
        struct verify *v = s->arg;
        v->step = s;
        if (!verify_from(v->site)) {
                step_fail(s, EHOSTUNREACH, EXIT_UNREACHABLE, "slipway status says why",
                        "no control-plane node can be reached with ssh, where the checks are run from");
                return;
        }
        verify_login(v);
        for (size_t i = 0; i < v->site->count; i++) {
                struct member *m = &v->site->members[i];
                const char *name = m->node->name;
                if (!(m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER)))
                        continue;
                const json_t *node = verify_node(v->nodes, name);
                const char *why = !node              ? "the API has no Node of this name"
                                  : node_ready(node) ? NULL
                                                     : "its Node is not Ready";
                verify_row(v, CHECK_NODE, name, NULL, why);
                if (why)
                        verify_failed(v, "slipway status says more", "node %s: %s", name, why);
                else
                        verify_add(v, m);
        }
        if (v->count)
                verify_start(v);
        else
                verify_end(v);
}

/* ---- the run ---- */

static int row_compare(const void *a, const void *b)
{
        json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "order")),
                   y = json_integer_value(json_object_get(*(json_t *const *)b, "order"));
        return (x > y) - (x < y);
}

static json_t *rows_sorted(json_t *rows)
{
        size_t n = json_array_size(rows);
        json_t *sorted = json_array(), **all = xcalloc(n + 1, sizeof(json_t *));
        for (size_t i = 0; i < n; i++)
                all[i] = json_array_get(rows, i);
        qsort(all, n, sizeof(json_t *), row_compare);
        for (size_t i = 0; i < n; i++) {
                json_object_del(all[i], "order");
                json_array_append(sorted, all[i]);
        }
        free(all);
        json_decref(rows);
        return sorted;
}

static void verify_steps(struct site *s, struct verify *v)
{
        struct step *verify = run_step(&s->run, "verify", NULL, step_verify_alone, v);
        if (login_promised(s))
                step_after(verify, run_step(&s->run, "login", NULL, step_verify_login, v));
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                if (!(m->node->pool->roles & ROLE_CONTROL_PLANE) ||
                        m->machine->state != MACHINE_RUNNING || !m->machine->target.host)
                        continue;
                m->plan.optional = true;
                m->run.connect = run_step(&s->run, "connect", m->node->name, step_connect, m);
                step_after(verify, m->run.connect);
        }
}

int verify_cluster(struct site *s, json_t **out, struct error *err)
{
        struct verify *v = verify_new(s, NULL);
        struct error ignored CLEANUP(error_release) = { 0 };
        *out = NULL;
        int r = kube_get(s->kube, NODES_PATH, &v->nodes, err);
        if (r < 0)
                return error_wrap(err, "asking for the Nodes");
        v->alone = true;
        v->rows = json_array();
        verify_steps(s, v);
        r = run_execute(&s->run, err);
        if (r == -EINTR) /* so that probes are not left there */
                kube_do(s->kube, "DELETE", VERIFY_NAMESPACE_PATH, NULL, NULL, NULL, &ignored);
        *out = json_pack("{s:s, s:b, s:o}", "cluster", s->cluster->name, "works", r == 0, "checks",
                rows_sorted(v->rows));
        json_decref(v->nodes);
        return r;
}
