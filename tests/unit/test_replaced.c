/* Another host under a node's name, and the name of the VIP: what is refused before anything
 * changes. */
#include "plan_fixture.h"

/* ---- a node under the same name, on another host ---- */

#define OLD_ID "11111111111111111111111111111111"
#define NEW_ID "22222222222222222222222222222222"

/* c2 is at 192.0.2.50 in the file, and says this machine-id; its Node was that of the old host. */
static void moves(const char *id, const char *ready)
{
        static struct host_record row;
        row = (struct host_record){
                .name = "c2", .address = "192.0.2.2", .ip = "192.0.2.2", .machine_id = OLD_ID
        };
        site.found.record = (struct host_records){ .existed = true, .v = &row, .n = 1, .cap = 1 };
        nodes[1].address = "192.0.2.50";
        assert_true(ip_parse("192.0.2.50", &nodes[1].ip[0]));
        json_object_set_new(members[1].seen.said, "machineId", json_string(id));
        json_decref(members[1].seen.object);
        members[1].seen.object = json_pack("{s:{s:{s:s, s:s}, s:[{s:s, s:s}]}}", "status",
                "nodeInfo", "kubeletVersion", "v1.26.3", "machineID", OLD_ID, "conditions", "type",
                "Ready", "status", ready);
}

static void test_moved(void **state)
{
        moves(NEW_ID, "Unknown");
        no_etcd_data(&members[1]);
        members[1].plan.fate = FATE_INSTALL;
        members[1].seen.etcd_healthy = false;
        planned();
        assert_true(members[1].plan.joins);
        assert_int_equal(site.found.removed_count, 0);
        shows("its host was 192.0.2.2 and was replaced: that host is not changed");
}

static void test_moved_refused(void **state)
{
        moves(NEW_ID, "True");
        no_etcd_data(&members[1]);
        members[1].plan.fate = FATE_INSTALL;
        refused(EXIT_PREFLIGHT, "the old one (192.0.2.2) is still Ready in the API");
        moves(OLD_ID, "True");
        json_object_set_new(members[1].seen.said, "etcd", json_object());
        refused(EXIT_PREFLIGHT, "the same host has the address 192.0.2.50 now");
}

/* ---- the VIP's name ---- */

static void test_vip_name(void **state)
{
        static const struct {
                const char *name, *vip, *says;
        } cases[] = {
                { "localhost", "127.0.0.1", NULL },
                { "localhost", "127.0.0.9",
                        "localhost resolves to 127.0.0.1, and api.vip is 127.0.0.9" },
                { "two words", "127.0.0.1", "does not resolve" },
                { NULL, "127.0.0.9", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                cluster.api.vip_name = cases[i].name;
                cluster.api.vip = cases[i].vip;
                int r = endpoint_check(&cluster, &err);
                assert_int_equal(r < 0, cases[i].says != NULL);
                if (r < 0 && !strstr(err.message, cases[i].says))
                        fail_msg("%s", err.message);
                if (r < 0)
                        assert_int_equal(err.status, EXIT_PREFLIGHT);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { T(test_moved), T(test_moved_refused),
                T(test_vip_name) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
