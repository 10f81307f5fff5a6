/* Drives src/provider for the tests. Prints one JSON object a line; status 0, or 1 when something
 * failed.
 *
 *   provider_tool CLUSTER.yaml STATE VERB [NODE…]     (no node: all)
 *     list, prepare, create, destroy, cleanup, stop, kill, start
 *     up        prepare and create        down      destroy and cleanup
 *     survey    what a cloud would make, and what stops it; `up` and `prepare` ask it first
 *     replace   makes those anew that the survey calls outdated
 *     others    machines that are not in the file        sweep     destroys them
 *     console, members (the balancer has exactly these nodes)
 *     bastion   the one that the provider makes, if there is one
 *     conf      what the cloud's controller and CSI driver get: cloud.conf, with its secret
 *   The environment's PROVIDER_PREFIX is identity.prefix, PROVIDER_SECRET the secret for clouds.
 *   provider_tool sources ROOT CODENAME|- RELEASE     what the machines' apt sources would be */
#include <event2/event.h>

#include "config/problem.h"
#include "provider/local/local.h"

static struct event_base *base;
static struct provider_run run;
static const struct provider_ops *ops;
static struct machine *machines;
static unsigned left;
static bool failed;

static void print(json_t *line)
{
        char *text = json_dumps(line, JSON_COMPACT);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(line);
}

static void report(const char *node, struct error *err)
{
        failed |= err != NULL;
        print(json_pack("{s:s?, s:b, s:s?, s:s?}", "node", node, "ok", !err, "error",
                err ? err->message : NULL, "hint", err ? err->hint : NULL));
}

static void say(const char *what, int permille, void *arg)
{
        print(json_pack("{s:s, s:i}", "say", what, "permille", permille));
}

static void on_prepared(struct error *err, void *arg)
{
        left--;
        report(NULL, err);
}

static void on_machine(struct machine *m, struct error *err, void *arg)
{
        left--;
        report(m->node->name, err);
}

static void wait_all(void)
{
        while (left && event_base_loop(base, EVLOOP_ONCE) == 0)
                ;
}

static bool wanted(const struct machine *m, char **nodes)
{
        for (char **n = nodes; *n; n++)
                if (streq(*n, m->node->name))
                        return true;
        return !*nodes;
}

static void list_one(const struct machine *m)
{
        static const char *const states[] = { "absent", "stopped", "running" };
        const struct link_target *t = &m->target;
        char ip[IP_TEXT];
        json_t *options = json_array();
        for (size_t i = 0; t->options && i < t->options->n; i++)
                json_array_append_new(options, json_string(t->options->v[i]));
        print(json_pack(
                "{s:s, s:s, s:s?, s:s, s:s?, s:s?, s:b, s:i, s:b, s:s?, s:b, s:o, s:s?, s:s?, s:s?, s:s?, s:s?}",
                "node", m->node->name, "state", states[m->state], "host", t->host, "user", t->user,
                "key", t->key, "bastion", t->bastion, "ownBastion", t->own_bastion, "port",
                (int)t->port, "sudo", t->sudo, "knownHosts", t->known_hosts, "acceptNew",
                t->accept_new, "options", options, "ip",
                m->node->ip[0].family ? ip_format(&m->node->ip[0], ip) : NULL, "providerID",
                m->provider_id, "zone", m->zone, "endpoint", cluster_endpoint_host(run.cluster),
                "balancer", run.cluster->balancer));
}

static void power(const char *verb, struct machine *m)
{
        struct error err CLEANUP(error_release) = { 0 };
        int r = streq(verb, "start") ? ops->start(&run, m, &err)
                                     : ops->stop(&run, m, streq(verb, "kill"), &err);
        report(m->node->name, r < 0 ? &err : NULL);
}

static void console(struct machine *m)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        int r = ops->console(&run, m, &text, &err);
        if (r == 0)
                print(json_pack("{s:s, s:s}", "node", m->node->name, "console", str_text(&text)));
        else
                report(m->node->name, &err);
}

static void all(const char *verb, char **nodes)
{
        for (size_t i = 0; i < run.cluster->node_count; i++) {
                struct machine *m = &machines[i];
                if (!wanted(m, nodes))
                        continue;
                if (streq(verb, "list")) {
                        list_one(m);
                } else if (streq(verb, "console")) {
                        console(m);
                } else if (streq(verb, "create") || streq(verb, "destroy")) {
                        left++;
                        (streq(verb, "create") ? ops->create : ops->destroy)(
                                &run, m, on_machine, NULL);
                } else {
                        power(verb, m);
                }
        }
        wait_all();
}

static void do_prepare(void)
{
        left = 1;
        ops->prepare(&run, say, on_prepared, NULL);
        wait_all();
}

static void do_cleanup(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        int r = ops->cleanup(&run, &err);
        for (size_t i = 0; i < run.kept.n; i++)
                print(json_pack("{s:s}", "kept", run.kept.v[i]));
        report(NULL, r < 0 ? &err : NULL);
}

/* False: something stops it. */
static bool do_survey(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct survey s = { 0 };
        if (!ops->survey)
                return true;
        if (ops->survey(&run, machines, &s, &err) < 0)
                report(NULL, &err);
        for (size_t i = 0; i < s.lines.n; i++)
                print(json_pack("{s:s}", "line", s.lines.v[i]));
        for (size_t i = 0; i < s.problem_count; i++)
                print(json_pack(
                        "{s:s, s:s?}", "problem", s.problems[i].what, "hint", s.problems[i].hint));
        for (size_t i = 0; i < run.cluster->node_count; i++)
                if (machines[i].outdated)
                        print(json_pack("{s:s, s:s}", "outdated", machines[i].node->name, "why",
                                machines[i].outdated));
        print(json_pack("{s:b}", "changes", s.changes));
        failed |= s.problem_count > 0;
        return !failed;
}

static void replace_one(struct machine *m)
{
        left = 1;
        ops->retire(&run, m, on_machine, NULL);
        wait_all();
        if (failed)
                return;
        left = 1;
        ops->create(&run, m, on_machine, NULL);
        wait_all();
}

/* One after the other, as `up` does it. */
static void do_replace(void)
{
        for (size_t i = 0; !failed && i < run.cluster->node_count; i++)
                if (machines[i].outdated)
                        replace_one(&machines[i]);
}

static void sweep_one(const char *name)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct node *n = arena_new(run.arena, struct node);
        struct machine *m = arena_new(run.arena, struct machine);
        *n = (struct node){ .name = name };
        if (ops->find(&run, n, m, &err) < 0) {
                report(name, &err);
                return;
        }
        left++;
        ops->destroy(&run, m, on_machine, NULL);
}

static void do_others(bool sweep)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct strings names = { 0 };
        if (ops->others(&run, &names, &err) < 0)
                report(NULL, &err);
        for (size_t i = 0; i < names.n; i++) {
                print(json_pack("{s:s}", "other", names.v[i]));
                if (sweep)
                        sweep_one(names.v[i]);
        }
        wait_all();
}

static void do_members(char **nodes)
{
        const struct node *v[64];
        size_t n = 0;
        for (char **name = nodes; *name && n < 64; name++)
                v[n++] = cluster_node(run.cluster, *name);
        left = 1;
        ops->members(&run, v, n, on_prepared, NULL);
        wait_all();
}

static void do_conf(void)
{
        const struct cluster *c = run.cluster;
        print(json_pack("{s:s?, s:s?, s:s?}", "name", c->cloud_name, "config", c->cloud_config,
                "ca", c->cloud_ca));
}

static void verb(const char *v, char **nodes)
{
        if (streq(v, "conf")) {
                do_conf();
                return;
        }
        if (streq(v, "bastion")) {
                const struct machine *m = ops->bastion ? ops->bastion(&run) : NULL;
                if (m)
                        list_one(m);
                return;
        }
        if (streq(v, "survey") || streq(v, "prepare") || streq(v, "up") || streq(v, "replace"))
                if (!do_survey())
                        return;
        if (streq(v, "others") || streq(v, "sweep"))
                do_others(streq(v, "sweep"));
        if (streq(v, "members"))
                do_members(nodes);
        if (streq(v, "prepare") || streq(v, "up") || streq(v, "replace"))
                do_prepare();
        if ((streq(v, "up") || streq(v, "replace")) && !failed)
                all("create", nodes);
        else if (streq(v, "down"))
                all("destroy", nodes);
        else if (!streq(v, "prepare") && !streq(v, "cleanup") && !streq(v, "up") &&
                 !streq(v, "survey") && !streq(v, "others") && !streq(v, "sweep") &&
                 !streq(v, "members") && !streq(v, "replace"))
                all(v, nodes);
        if (streq(v, "replace"))
                do_replace();
        if (streq(v, "cleanup") || (streq(v, "down") && !failed))
                do_cleanup();
}

static int sources(char **argv)
{
        struct str out CLEANUP(str_release) = { 0 };
        sources_read(argv[2], streq(argv[3], "-") ? NULL : argv[3], argv[4], &out);
        fputs(str_text(&out), stdout);
        return 0;
}

int main(int argc, char **argv)
{
        int status;
        struct arena arena CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct problems problems = { .arena = &arena };
        if (provider_keeper(argc, argv, &status))
                return status;
        if (argc == 5 && streq(argv[1], "sources"))
                return sources(argv);
        if (argc < 4)
                return 2;
        const char *file = argv[1];
        run = (struct provider_run){ .state = argv[2],
                .arena = &arena,
                .prefix = getenv("PROVIDER_PREFIX"),
                .secret = getenv("PROVIDER_SECRET") };
        if (cluster_load(&arena, &file, 1, &run.cluster, &problems, &err) < 0) {
                report(NULL, &err);
                return 1;
        }
        ops = provider_for(run.cluster);
        if (!ops) {
                print(json_pack("{s:b}", "provider", 0));
                return 1;
        }
        base = run.base = event_base_new();
        machines = arena_array(&arena, struct machine, run.cluster->node_count);
        if (ops->list(&run, machines, &err) < 0)
                report(NULL, &err);
        else
                verb(argv[3], argv + 4);
        if (ops->close)
                ops->close(&run);
        event_base_free(base);
        return failed;
}
