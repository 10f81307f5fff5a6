/* Preflight: what a kernel lacks, and addresses that are not the machine's, are said before
 * anything changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <event2/event.h>
#include <stdlib.h>

#include "cluster/plan/plan.h"

static struct arena arena;
static struct pool pool;
static struct node node;
static struct cluster cluster;
static struct member member;
static struct site site;
static struct str said;
static char prefix[] = "ab12c";
static int64_t its_clock; /* seconds; 0: it does not say */

/* A site opens links; this test does not. */
const void *agent_bytes(size_t *n)
{
        *n = 0;
        return "";
}

static int setup(void **state)
{
        pool = (struct pool){ .name = "worker", .roles = ROLE_WORKER };
        node = (struct node){ .name = "w1", .pool = &pool };
        assert_true(ip_parse("192.0.2.21", &node.ip[0]));
        cluster = (struct cluster){ .name = "demo", .nodes = &node, .node_count = 1 };
        cluster.provider.kind = PROVIDER_SSH;
        member = (struct member){ .site = &site, .node = &node };
        site = (struct site){ .cluster = &cluster,
                .arena = &arena,
                .members = &member,
                .count = 1,
                .identity.prefix = prefix };
        return 0;
}

static int teardown(void **state)
{
        str_release(&said);
        arena_release(&arena);
        return 0;
}

static void on_preflight_change(struct run *r, struct step *s, const char *change, void *arg)
{
        str_addf(&said, "%s\n", change);
}

/* Looks at a machine whose kernel lacks these features; gives back what was said. */
static const char *preflight(const char *lacks)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct event_base *base = event_base_new();
        struct run run;
        str_release(&said);
        member.seen.looked = false;
        member.seen.said = json_pack("{s:b, s:s, s:s, s:s, s:[{s:s, s:[s, s]}], s:{}}", "root",
                true, "os", "debian", "arch", "amd64", "init", "systemd", "interfaces", "name",
                "eth0", "addresses", "192.0.2.21/24", "2001:db8::21/64", "features");
        if (its_clock)
                json_object_set_new(member.seen.said, "time", json_integer(its_clock * 1000000000));
        char *copy CLEANUP(free_p) = xstrdup(lacks), *rest = copy;
        for (char *word; (word = strsep(&rest, " "));)
                json_object_set_new(
                        json_object_get(member.seen.said, "features"), word, json_false());
        run_init(&run, base, &arena, "up", "demo");
        run_observe(&run, &(struct run_observer){ .on_change = on_preflight_change });
        run_step(&run, "preflight", NULL, step_preflight, &site);
        bool failed = run_execute(&run, &err) < 0;
        assert_int_equal(failed, said.len > 0);
        assert_true(!said.len || err.status == EXIT_PREFLIGHT);
        run_release(&run);
        event_base_free(base);
        json_decref(member.seen.said);
        return str_text(&said);
}

#define ALL "vxlan wireguard nftables ipvs"

static void test_kernel(void **state)
{
        struct network *n = &cluster.network;
        assert_string_equal(preflight("wireguard nftables ipvs"), "");
        assert_string_equal(preflight(ALL),
                "w1: its kernel has no vxlan; set network.fabric.backend: host-gw, or boot a kernel that has it\n");
        n->fabric.backend = BACKEND_WIREGUARD;
        assert_string_equal(preflight(ALL),
                "w1: its kernel has no wireguard; set network.fabric.backend: vxlan, or boot a kernel that has it\n");
        n->fabric.backend = BACKEND_HOST_GW;
        assert_string_equal(preflight(ALL), "");
        n->proxy_mode = PROXY_NFTABLES;
        assert_string_equal(preflight(ALL),
                "w1: its kernel has no nftables; set network.proxyMode: iptables, or boot a kernel that has it\n");
        n->proxy_mode = PROXY_IPVS;
        assert_string_equal(preflight(ALL),
                "w1: its kernel has no ipvs; set network.proxyMode: nftables, or boot a kernel that has it\n");
        pool.roles = ROLE_ETCD; /* no pods there */
        assert_string_equal(preflight(ALL), "");
        assert_string_equal(
                preflight("overlay"), "w1: its kernel has no overlay; boot a kernel that has it\n");
}

static void test_addresses(void **state)
{
        assert_true(ip_parse("2001:db8::21", &node.ip[1]));
        assert_string_equal(preflight(""), "");
        assert_true(ip_parse("2001:db8::22", &node.ip[1]));
        assert_string_equal(preflight(""),
                "w1: none of its interfaces has the address 2001:db8::22; give the address the cluster is to use as `ip`\n");
}

/* Compared with the moment in which it was said: another node may have been waited for since. */
static void test_clock(void **state)
{
        member.seen.said_at = its_clock = 1000000;
        assert_string_equal(preflight(""), "");
        its_clock += 61;
        assert_non_null(strstr(preflight(""), "its clock is 61 seconds ahead"));
        its_clock -= 2 * 61;
        assert_non_null(strstr(preflight(""), "its clock is 61 seconds behind"));
        its_clock = 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_kernel, setup, teardown),
                cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
                cmocka_unit_test_setup_teardown(test_clock, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
