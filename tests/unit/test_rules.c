/* Pools → nodes, and the rules where the golden texts (tests/golden/errors) do not reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "config/minors.h"
#include "config/rules/rules.h"

#define HEAD \
        "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: demo}\nspec:\n  kubernetes: " KUBERNETES_NEWEST \
        "\n"

struct loaded {
        struct arena arena;
        struct problems problems;
        struct cluster *c;
};

static struct loaded *load(const char *text)
{
        struct loaded *l = xcalloc(1, sizeof(*l));
        struct error err = { 0 };
        struct tree *t;
        l->problems.arena = &l->arena;
        assert_int_equal(tree_parse(&l->arena, "cluster.yaml", text, strlen(text), &t, &err), 0);
        l->c = cluster_decode(&l->arena, t, &l->problems);
        cluster_expand(l->c, &l->problems);
        cluster_index(l->c);
        cluster_rules(l->c, &l->problems);
        return l;
}

static void unload(struct loaded *l)
{
        arena_release(&l->arena);
        free(l);
}

static void assert_clean(struct loaded *l)
{
        struct str s CLEANUP(str_release) = { 0 };
        problems_text(&l->problems, 0, &s);
        assert_string_equal(str_text(&s), "");
}

static void assert_problem(struct loaded *l, const char *path, const char *words)
{
        for (const struct problem *p = l->problems.first; p; p = p->next)
                if (streq(p->path, path) && strstr(p->message, words))
                        return;
        struct str s CLEANUP(str_release) = { 0 };
        problems_text(&l->problems, 0, &s);
        fail_msg("no problem at %s with \"%s\" in:\n%s", path, words, str_text(&s));
}

static void assert_address(const struct node *n, size_t i, const char *wanted)
{
        char text[IP_TEXT];
        assert_string_equal(ip_format(&n->ip[i], text), wanted);
}

static void names_of_hosts(void **state)
{
        struct loaded *l = load(HEAD
                "  provider: {ssh: {}}\n  pools:\n    - name: c\n      roles: [control-plane, etcd, worker]\n      hosts:\n        - "
                "192.0.2.11\n        - W2.Example.NET\n        - {name: w3, address: "
                "192.0.2.13}\n  network: {hosts: 192.0.2.0/24}\n  api: {names: [k8s.example.net]}\n");
        assert_clean(l);
        assert_int_equal(l->c->node_count, 3);
        assert_string_equal(l->c->nodes[0].name, "ip-192-0-2-11");
        assert_string_equal(l->c->nodes[1].name, "w2.example.net");
        assert_int_equal(l->c->nodes[1].ip[0].family, 0);
        assert_string_equal(l->c->nodes[2].name, "w3");
        assert_address(&l->c->nodes[2], 0, "192.0.2.13");
        assert_int_equal(l->c->nodes[2].index, 3);
        unload(l);
}

static void names_of_six(void **state)
{
        struct loaded *l = load(HEAD
                "  provider: {ssh: {}}\n  network: {pods: \"fd00:10:244::/56\", services: \"fd00:10:96::/112\"}\n  pools:\n    - {name: "
                "c, roles: [control-plane, etcd, worker], hosts: "
                "[\"2001:DB8::11\", \"2001:db8:1::\", \"2001:db8::13\"]}\n  api: {names: [k8s.example.net]}\n");
        assert_clean(l);
        assert_string_equal(l->c->nodes[0].name, "ip-2001-db8--11");
        assert_string_equal(l->c->nodes[1].name, "ip-2001-db8-1--0");
        unload(l);
}

/* Whatever the order in the file, ip[0] is of the cluster's first family. */
static void dual_stack_order(void **state)
{
        struct loaded *l = load(HEAD
                "  provider: {ssh: {}}\n  network: {pods: [10.244.0.0/16, \"fd00:10:244::/56\"], services: [10.96.0.0/16, "
                "\"fd00:10:96::/112\"]}\n  pools:\n    - {name: c, roles: [control-plane, "
                "etcd, worker], hosts: [{address: m1.example.net, ip: [\"2001:db8::11\", 192.0.2.11]}]}\n");
        assert_clean(l);
        assert_address(&l->c->nodes[0], 0, "192.0.2.11");
        assert_address(&l->c->nodes[0], 1, "2001:db8::11");
        unload(l);
}

#define LOCAL(control, worker) \
        HEAD "  pools:\n    - {name: control, roles: [control-plane, etcd], count: " control \
             "}\n    - {name: worker, count: " worker "}\n"

/* A pool that grows, or one more at the end, moves nobody. */
static void local_addresses(void **state)
{
        struct loaded *small = load(LOCAL("1", "2")),
                      *large = load(LOCAL("3", "30") "    - {name: gpu, count: 100}\n");
        assert_clean(small);
        assert_clean(large);
        assert_address(&small->c->nodes[0], 0, "10.117.0.10");
        assert_address(&small->c->nodes[1], 0, "10.117.0.40");
        assert_string_equal(small->c->nodes[1].address, "10.117.0.40");
        assert_string_equal(small->c->nodes[2].name, "worker-2");
        assert_address(&large->c->nodes[2], 0, "10.117.0.12");
        assert_address(&large->c->nodes[3], 0, "10.117.0.40");
        assert_address(&large->c->nodes[32], 0, "10.117.0.69");
        assert_address(&large->c->nodes[33], 0, "10.117.0.70");
        assert_address(&large->c->nodes[132], 0, "10.117.0.169");
        unload(small);
        unload(large);
}

/* An address in each network; ip[0] is of the cluster's first family, and slipway connects to the
 * one in the first network. */
static void local_dual_stack(void **state)
{
        struct loaded *l = load(LOCAL("1", "1") "  provider: {local: {network: [10.117.0.0/24, "
                                                "\"fd00:117::/120\"]}}\n"
                                                "  network: {pods: [\"fd00:10:244::/56\", "
                                                "10.244.0.0/16], services: [\"fd00:10:96::/112\", "
                                                "10.96.0.0/16]}\n");
        assert_clean(l);
        assert_string_equal(l->c->nodes[1].address, "10.117.0.40");
        assert_address(&l->c->nodes[1], 0, "fd00:117::28");
        assert_address(&l->c->nodes[1], 1, "10.117.0.40");
        unload(l);
        l = load(LOCAL("1", "1") "  provider: {local: {network: [10.117.0.0/24, "
                                 "\"fd00:117::/124\"]}}\n"
                                 "  network: {pods: [10.244.0.0/16, \"fd00:10:244::/56\"], "
                                 "services: [10.96.0.0/16, \"fd00:10:96::/112\"]}\n");
        assert_problem(l, "provider.local.network", "fd00:117::/124 is too small for machines");
        unload(l);
}

static void local_limits(void **state)
{
        struct loaded *l = load(LOCAL("1", "31") "    - {name: gpu, count: 186}\n");
        assert_problem(l, "pools[1].count", "addresses for 30 machines of this pool, got 31");
        assert_problem(l, "pools[2].count", "addresses for 185 machines of this pool, got 186");
        unload(l);
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, LOCAL("1", "1"));
        for (int i = 0; i < 7; i++)
                str_addf(&s, "    - {name: p%d, count: 1}\n", i);
        l = load(str_text(&s));
        assert_problem(l, "pools[8]", "this is the ninth");
        unload(l);
}

#define DEX(rest) "  services: {dex: {host: dex.example.net, " rest "}}\n"
#define MOCK      "connectors: [{type: mockCallback, id: mock, name: Mock}]"

static void dex_is_the_issuer(void **state)
{
        struct loaded *l = load(LOCAL("1", "1") DEX(MOCK));
        assert_clean(l);
        const struct oidc *o = &l->c->auth.oidc;
        assert_string_equal(o->issuer, "https://dex.example.net");
        assert_string_equal(o->client_id, "kubernetes");
        assert_string_equal(o->username_claim, "email");
        assert_string_equal(o->username_prefix, "oidc:");
        assert_string_equal(o->groups_prefix, "oidc:");
        unload(l);
        l = load(LOCAL("1", "1") DEX(
                "port: 5554, " MOCK) "  auth: {oidc: {issuer: \"https://dex.example.net:5554/dex\", clientID: kubectl, usernameClaim: sub, groupsPrefix: \"dex:\"}}\n");
        assert_clean(l);
        assert_string_equal(l->c->auth.oidc.issuer, "https://dex.example.net:5554/dex");
        assert_string_equal(l->c->auth.oidc.client_id, "kubectl");
        assert_string_equal(l->c->auth.oidc.username_claim, "sub");
        assert_string_equal(l->c->auth.oidc.groups_prefix, "dex:");
        unload(l);
        l = load(LOCAL("1", "1")
                        DEX(MOCK) "  auth: {oidc: {issuer: \"https://dex.example.network\"}}\n");
        assert_problem(l, "auth.oidc.issuer", "services.dex is https://dex.example.net");
        unload(l);
}

static void dex_of_a_kind(void **state)
{
        static const struct {
                const char *text, *path, *message;
        } cases[] = {
                { "  services: {dex: dex.example.net}\n", "services.dex", "nobody could log in" },
                { DEX("expose: nodePort, " MOCK), "services.dex.port",
                        "a node port is in 30000–32767, got 443" },
                { DEX("port: 6443, " MOCK), "services.dex.port", "port 6443 is used by the API" },
                { DEX("port: 10250, " MOCK), "services.dex.port", "used by the kubelet" },
                { DEX("connectors: {type: x}"), "services.dex.connectors", "not a list" },
                { DEX("connectors: [{type: ldap, id: a}]"), "services.dex.connectors[0]",
                        "name is missing" },
                { DEX(MOCK ", config: {storage: {type: memory}}"), "services.dex.config.storage",
                        "slipway sets this field" },
                { DEX(MOCK ", clients: [{id: kubernetes, name: K}]"), "services.dex.clients[0].id",
                        "the client kubernetes is kubectl's" },
                { DEX(MOCK) "  auth: {oidc: {signingAlgs: [ES256]}}\n", "auth.oidc.signingAlgs",
                        "signs with RS256" },
                { "  services: {namespaces: [slipway-dex], dex: {host: d, " MOCK "}}\n",
                        "services.namespaces", "is deleted with it" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *text = xasprintf("%s%s", LOCAL("1", "1"), cases[i].text);
                struct loaded *l = load(text);
                assert_problem(l, cases[i].path, cases[i].message);
                unload(l);
                free(text);
        }
}

/* The line that is shown ends before the secret, for other problems of that line too. */
static void a_secret_is_not_shown(void **state)
{
        struct loaded *l = load(LOCAL("1", "1")
                        DEX("connectors: [{type: x, id: a, config: {clientSecret: \"hunter2\"}}]"));
        struct str text = { 0 };
        assert_problem(l, "services.dex.connectors[0].config.clientSecret",
                "a secret must not be in the file itself");
        problems_text(&l->problems, 0, &text);
        assert_non_null(strstr(str_text(&text), "clientSecret: ****"));
        assert_null(strstr(str_text(&text), "hunter2"));
        str_release(&text);
        unload(l);
}

static void forwarded_ports(void **state)
{
        struct loaded *l = load(HEAD
                "  provider: {ssh: {}}\n  pools:\n    - name: c\n      roles: [control-plane, etcd, worker]\n      hosts:\n        - "
                "{name: a, address: gate.example.net, port: 2201, ip: 192.0.2.1}\n"
                "        - {name: b, address: gate.example.net, port: 2202, ip: 192.0.2.2}\n        - {name: c, address: "
                "gate.example.net, port: 2202, ip: 192.0.2.3}\n");
        assert_problem(l, "pools[0].hosts[2].address", "already used on line 12");
        assert_int_equal(l->problems.errors, 1);
        unload(l);
}

/* Nothing is assumed of a Cluster whose decoding failed everywhere. */
static void zeroed_cluster(void **state)
{
        struct arena a = { 0 };
        struct problems p = { .arena = &a };
        struct error err = { 0 };
        struct tree *t;
        struct cluster c = { .arena = &a };
        cluster_expand(&c, &p);
        cluster_rules(&c, &p);
        assert_int_equal(p.errors, 0);
        assert_int_equal(tree_parse(&a, "x", "{}", 2, &t, &err), 0);
        struct pool pools[2] = { { .src = t, .roles = ROLE_CONTROL_PLANE | ROLE_ETCD, .count = 2 },
                { .src = t, .roles = ROLE_WORKER } };
        struct host hosts[2] = { { .src = t }, { .src = t } };
        pools[1].hosts = (struct hosts){ 2, hosts };
        c = (struct cluster){ .arena = &a, .src = t, .pools = { 2, pools } };
        for (int kind = PROVIDER_LOCAL; kind <= PROVIDER_AWS; kind++) {
                c.provider.kind = (enum provider_kind)kind;
                cluster_expand(&c, &p);
                cluster_rules(&c, &p);
        }
        arena_release(&a);
}

/* Linear: ten times the hosts must not cost a hundred times the time (with room for a busy
 * machine). */
static double seconds(size_t hosts)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct timespec before, after;
        str_add(&s, HEAD
                "  provider: {ssh: {}}\n  network: {pods: 10.0.0.0/9, services: 172.20.0.0/16}\n  pools:\n    - {name: c, roles: [control-plane, "
                "etcd], hosts: [192.0.2.1]}\n    - name: w\n      hosts:\n");
        for (size_t i = 0; i < hosts; i++)
                str_addf(&s, "        - {name: w%zu, address: 172.%zu.%zu.%zu}\n", i,
                        22 + i / 62500, i / 250 % 250, 1 + i % 250);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        struct loaded *l = load(str_text(&s));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        assert_clean(l);
        assert_int_equal(l->c->node_count, hosts + 1);
        unload(l);
        return (double)(after.tv_sec - before.tv_sec) +
               (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

static void ten_thousand_hosts(void **state)
{
        double one = seconds(1500), ten = seconds(15000);
        if (ten > 0.05)
                assert_true(ten < 40 * one);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_of_hosts),
                cmocka_unit_test(names_of_six),
                cmocka_unit_test(dual_stack_order),
                cmocka_unit_test(local_addresses),
                cmocka_unit_test(local_dual_stack),
                cmocka_unit_test(local_limits),
                cmocka_unit_test(dex_is_the_issuer),
                cmocka_unit_test(dex_of_a_kind),
                cmocka_unit_test(a_secret_is_not_shown),
                cmocka_unit_test(forwarded_ports),
                cmocka_unit_test(zeroed_cluster),
                cmocka_unit_test(ten_thousand_hosts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
