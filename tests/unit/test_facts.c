#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/file.h"
#include "node/facts.h"

static struct pool pool = { .name = "w", .roles = ROLE_WORKER };
static struct node node = { .pool = &pool, .name = "w1" };

static int load(const char *json, struct arena *a, struct facts_file **f, struct error *err)
{
        char path[] = "/tmp/slipway-facts-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, json, strlen(json)), (ssize_t)strlen(json));
        close(fd);
        int rc = facts_load(path, a, f, err);
        unlink(path);
        return rc;
}

static void test_usual(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct facts f;
        pool.os = NULL;
        assert_int_equal(facts_for(NULL, &node, &f, &err), 0);
        assert_string_equal(f.os_id, "debian");
        assert_string_equal(f.os_version, "12");
        assert_int_equal(f.family, OS_DEBIAN);
        assert_string_equal(f.arch, "amd64");
        assert_int_equal(f.cgroup, 2);
        assert_true(f.systemd && f.sys_nice && f.sys_resource && f.ipvs);
        assert_string_equal(f.interface, "eth0");
}

static void test_families(void **state)
{
        static const struct {
                const char *id;
                enum os_family family;
        } table[] = {
                { "debian", OS_DEBIAN },
                { "ubuntu", OS_DEBIAN },
                { "raspbian", OS_DEBIAN },
                { "rhel", OS_RHEL },
                { "centos", OS_RHEL },
                { "rocky", OS_RHEL },
                { "almalinux", OS_RHEL },
                { "ol", OS_RHEL },
                { "amzn", OS_RHEL },
                { "fedora", OS_RHEL },
                { "sles", OS_SUSE },
                { "opensuse-leap", OS_SUSE },
                { "opensuse-tumbleweed", OS_SUSE },
                { "flatcar", OS_FLATCAR },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct facts f;
                pool.os = table[i].id;
                assert_int_equal(facts_for(NULL, &node, &f, &err), 0);
                assert_int_equal(f.family, table[i].family);
                assert_string_equal(f.os_id, table[i].id);
        }
        pool.os = NULL;
}

static void test_file(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct facts_file *file;
        struct facts f;
        assert_int_equal(
                load("{\"nodes\": {\"w1\": {\"os\": {\"id\": \"rocky\", \"version\": \"9.4\"}, \"arch\": \"aarch64\", \"cgroup\": 1, "
                     "\"capabilities\": [\"CAP_NET_ADMIN\", \"CAP_SYS_NICE\"]}},"
                     " \"default\": {\"interface\": \"ens3\", \"ipvs\": false, \"os\": \"ubuntu\", \"cgroup\": 2}}",
                        &a, &file, &err),
                0);
        assert_int_equal(facts_for(file, &node, &f, &err), 0);
        assert_string_equal(f.os_id, "rocky");
        assert_string_equal(f.os_version, "9.4");
        assert_string_equal(f.arch, "arm64");
        assert_int_equal(f.cgroup, 1);
        assert_true(f.sys_nice && !f.sys_resource);
        assert_false(f.ipvs);
        assert_string_equal(f.interface, "ens3");
        struct node other = { .pool = &pool, .name = "w2" };
        assert_int_equal(facts_for(file, &other, &f, &err), 0);
        assert_string_equal(f.os_id, "ubuntu");
        assert_true(f.sys_nice && f.sys_resource);
}

static void test_addresses(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct facts_file *file;
        struct cidr pods[2];
        struct node nodes[] = { { .pool = &pool, .name = "a" }, { .pool = &pool, .name = "b" },
                { .pool = &pool, .name = "c" } };
        struct cluster c = { .nodes = nodes, .node_count = 3, .network.pods = { 2, pods } };
        char text[IP_TEXT];
        cidr_parse("10.0.0.0/16", &pods[0], NULL);
        cidr_parse("fd00::/56", &pods[1], NULL);
        assert_int_equal(
                load("{\"nodes\": {\"a\": {\"address\": \"192.0.2.1\"}, \"b\": {\"address\": \"host.example.net\", \"ip\": [\"fd00::2\", \"192.0.2.2\"]}}}",
                        &a, &file, &err),
                0);
        facts_addresses(file, &c);
        facts_addresses(NULL, &c);
        assert_string_equal(ip_format(&nodes[0].ip[0], text), "192.0.2.1");
        assert_string_equal(nodes[1].address, "host.example.net");
        assert_string_equal(ip_format(&nodes[1].ip[0], text), "192.0.2.2");
        assert_string_equal(ip_format(&nodes[1].ip[1], text), "fd00::2");
        assert_int_equal(nodes[2].ip[0].family, 0);
}

static void refused(const char *json, const char *message, const char *hint)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct facts_file *file;
        struct facts f;
        int rc = load(json, &a, &file, &err);
        if (rc == 0)
                rc = facts_for(file, &node, &f, &err);
        assert_true(rc < 0);
        if (!strstr(err.message, message))
                fail_msg("\"%s\" has no \"%s\"", err.message, message);
        if (hint)
                assert_string_equal(err.hint, hint);
}

static void test_refused(void **state)
{
        refused("{\"default\": {\"os\": \"windows\"}}", "node w1: Windows is not supported", NULL);
        refused("{\"default\": {\"os\": {\"id\": \"Windows Server 2022\"}}}",
                "node w1: Windows is not supported", NULL);
        refused("{\"default\": {\"os\": \"plan9\"}}",
                "node w1: the operating system plan9 is not supported", NULL);
        refused("{\"default\": {\"arch\": \"riscv64\"}}",
                "node w1: the processor architecture riscv64 is not supported",
                "supported are amd64 and arm64");
        refused("{\"default\": {\"init\": \"openrc\"}}", "the init system is openrc", NULL);
        refused("{\"default\": {\"cgroup\": 3}}", "default: cgroup: must be 1 or 2", NULL);
        refused("{\"default\": {\"ip\": [\"1.2.3.4\", \"1.2.3.5\"]}}",
                "default: ip: must have at most one address of each family", NULL);
        refused("{\"default\": {\"ip\": [\"x\"]}}", "must be an address or a list of addresses",
                NULL);
        refused("{\"default\": {\"capabilities\": \"all\"}}",
                "capabilities: must be a list of names", NULL);
        refused("{\"nodes\": {\"w1\": {\"interfaces\": \"eth0\"}}}", "w1: interfaces: unknown fact",
                "did you mean interface?");
        refused("{\"nodes\": []}", "nodes: must be an object with one entry per node", NULL);
        refused("{\"nodes\": {\"w1\": 3}}", "w1: must be an object of facts", NULL);
        refused("[]", "must be an object", NULL);
        refused("{", ":1:", NULL);
        refused("{\"nodes\": {\"w1\": {}, \"w1\": {}}}", "duplicate", NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_usual),
                cmocka_unit_test(test_families),
                cmocka_unit_test(test_file),
                cmocka_unit_test(test_addresses),
                cmocka_unit_test(test_refused),
        };
        return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
