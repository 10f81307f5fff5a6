/* Ansible inventories: hosts, ranges, groups in groups, and which variable wins. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "config/kubespray/kubespray.h"
#include "config/minors.h"

struct fixture {
        struct arena arena;
        struct inventory inv;
        struct error err;
};

static void begin(struct fixture *f, const char *ini)
{
        *f = (struct fixture){ 0 };
        inventory_init(&f->inv, &f->arena);
        if (inventory_ini(&f->inv, "hosts.ini", ini, strlen(ini), &f->err) < 0)
                fail_msg("%s", f->err.message);
        inventory_finish(&f->inv);
}

static void end(struct fixture *f)
{
        inventory_release(&f->inv);
        arena_release(&f->arena);
        error_release(&f->err);
}

static const struct inventory_host *host(struct fixture *f, const char *name)
{
        const struct inventory_host *h = index_get(&f->inv.host_index, name);
        if (!h)
                fail_msg("no host %s", name);
        return h;
}

static const char *var(struct fixture *f, const char *name, const char *key)
{
        const struct tree *t = inventory_get(&f->inv, host(f, name), key);
        return t ? t->text : "(none)";
}

static void test_words_of_a_host(void **state)
{
        struct fixture f CLEANUP(end);
        begin(&f,
                "a x=1 y=\"two words\" z='{\"k\": \"v\"}' # w=4\r\n  ; comment\nb x=\"say \\\"hi\\\"\" e=\n");
        assert_string_equal(var(&f, "a", "x"), "1");
        assert_string_equal(var(&f, "a", "y"), "two words");
        assert_string_equal(tree_get(inventory_get(&f.inv, host(&f, "a"), "z"), "k")->text, "v");
        assert_null(inventory_get(&f.inv, host(&f, "a"), "w"));
        assert_string_equal(var(&f, "b", "x"), "say \"hi\"");
        assert_int_equal(inventory_get(&f.inv, host(&f, "b"), "e")->kind, TREE_NULL);
}

static void test_ranges(void **state)
{
        static const char *const names[] = { "n1", "n2", "n3", "r-a-01", "r-a-03", "r-b-01",
                "r-b-03", "2001:db8::1", "plain" };
        struct fixture f CLEANUP(end);
        begin(&f, "n[1:3]\nr-[a:b]-[01:03:2]:2222\n[2001:db8::1]:22\nplain:22\n");
        assert_int_equal(f.inv.host_count, ARRAY_SIZE(names));
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                host(&f, names[i]);
        assert_string_equal(var(&f, "r-b-03", "ansible_port"), "2222");
        assert_string_equal(var(&f, "n1", "ansible_port"), "(none)");
        assert_string_equal(var(&f, "plain", "ansible_port"), "22");
}

static void test_the_nearest_variable_wins(void **state)
{
        struct fixture f CLEANUP(end);
        begin(&f,
                "[all:vars]\nv=all\nw=all\n[parent:vars]\nv=parent\nw=parent\n[parent:children]\nchild\n[child]\na\nb "
                "v=own\n[child:vars]\nv=child\n[other]\nc\n");
        assert_string_equal(var(&f, "a", "v"), "child");
        assert_string_equal(var(&f, "a", "w"), "parent");
        assert_string_equal(var(&f, "b", "v"), "own");
        assert_string_equal(var(&f, "c", "v"), "all");
        assert_true(inventory_in(&f.inv, host(&f, "a"), "parent"));
        assert_false(inventory_in(&f.inv, host(&f, "c"), "parent"));
}

static void test_a_group_in_itself(void **state)
{
        struct fixture f CLEANUP(end);
        begin(&f, "[a:children]\nb\n[b:children]\nc\na\n[c]\nx\n[c:vars]\nv=1\n");
        assert_true(inventory_in(&f.inv, host(&f, "x"), "a"));
        assert_string_equal(var(&f, "x", "v"), "1");
}

static void refused(const char *ini, const char *want)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct inventory inv CLEANUP(inventory_release);
        inventory_init(&inv, &a);
        assert_true(inventory_ini(&inv, "f", ini, strlen(ini), &err) < 0);
        assert_string_equal(err.message, want);
        assert_int_equal(err.status, EXIT_CONFIG);
}

static void test_bounds(void **state)
{
        struct str many CLEANUP(str_release) = { 0 };
        refused("n[0:999999999]\n", "f:1: the inventory has more than 20000 hosts");
        refused("n[0:9][0:9][0:9][0:9][0:9]\n", "f:1: [0:9] is not a range of hosts");
        refused("n[1:99999999999]\n", "f:1: [1:99999999999] is not a range of hosts");
        str_add(&many, "[g]\n");
        for (int i = 0; i < 100; i++)
                str_add(&many, "n[1:19999]\n");
        refused(many.data, "f:52: the inventory's groups have more than 1000000 entries");
        str_truncate(&many, 0);
        for (int i = 0; i < 1001; i++)
                str_addf(&many, "[g%d]\n", i);
        refused(many.data, "f:1001: the inventory has more than 1000 groups");
}

/* One document: the YAML, or the error's text. */
static char *convert(const char *ini, const char *vars)
{
        struct fixture f CLEANUP(end);
        struct str out CLEANUP(str_release) = { 0 };
        struct notes notes = { 0 };
        struct tree *t;
        begin(&f, ini);
        struct inventory_group *all = inventory_group(&f.inv, "all", &f.err);
        if (*vars && tree_parse(&f.arena, "v", vars, strlen(vars), &t, &f.err) == 0)
                inventory_set_map(&f.inv, &all->vars, t);
        assert_int_equal(kubespray_groups(&f.inv, &f.err), 0);
        inventory_finish(&f.inv);
        if (kubespray_convert(&f.arena, &f.inv, "Test Cluster!", &out, &notes, &f.err) < 0)
                return xstrdup(f.err.message);
        return str_take(&out);
}

static void contains(const char *vars, const char *want)
{
        char *yaml CLEANUP(free_p) = convert("[kube-master]\nm ip=192.0.2.1\n", vars);
        if (!strstr(yaml, want))
                fail_msg("%s is not in:\n%s", want, yaml);
}

static void test_translations(void **state)
{
        contains("", "metadata: {name: test-cluster}\n");
        contains("kube_version: v" KUBERNETES_PREVIOUS, "  kubernetes: " KUBERNETES_PREVIOUS "\n");
        contains("kube_version: v1.9.0", "# NOTE: kube_version was v1.9.0: ");
        contains("{a: b.c, dns_domain: \"x.{{ a }}\"}", "    domain: x.b.c\n");
        contains("dns_domain: \"{{ a | default('x') }}\"",
                "# NOTE: dns_domain is a Jinja expression that only Ansible can evaluate: {{ a | default('x') }}\n");
        contains("{a: \"{{ b }}\", b: \"{{ a }}\", dns_domain: \"{{ a }}\"}",
                "# NOTE: dns_domain is a Jinja");
        contains("container_manager: rkt",
                "# NOTE: the container runtime was rkt, which Kubernetes no longer supports");
        contains("kube_apiserver_port: 99999",
                "# NOTE: kube_apiserver_port was 99999, which is not a valid value of port\n");
        contains("{kube_encrypt_secret_data: yes, kube_encryption_algorithm: aescbc}",
                "  encryption: aescbc\n");
        contains("kubelet_custom_flags: [--v=1, --v=2]",
                "        v: \"1\"\n        # NOTE: v was set twice, also to 2\n");
        contains("no_such_thing: 1",
                "no equivalent in cluster.yaml: see the end of the file\n  #   no_such_thing\n");
        contains("\"bad\\nname\": 1", "bad\\nname\n");
}

static void test_no_control_plane(void **state)
{
        char *text CLEANUP(free_p) = convert("[kube_node]\nw\n", "");
        assert_string_equal(
                text, "the inventory has no host in the group kube_control_plane (or kube-master)");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words_of_a_host),
                cmocka_unit_test(test_ranges),
                cmocka_unit_test(test_the_nearest_variable_wins),
                cmocka_unit_test(test_a_group_in_itself),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_translations),
                cmocka_unit_test(test_no_control_plane),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
