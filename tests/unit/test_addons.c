/* What the addons of a file stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "artifact/catalogue.h"
#include "config/addon.h"
#include "config/minors.h"
#include "config/problem.h"
#include "config/rules/rules.h"

#define HEAD \
        "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: x}\nspec:\n  kubernetes: " KUBERNETES_NEWEST \
        "\n  pools: [{name: c, roles: [control-plane, etcd], count: 1}]\n  services:\n"

static struct cluster *addons_decode(struct arena *a, const char *services, struct problems *p)
{
        struct error err = { 0 };
        struct tree *t;
        const char *text = arena_printf(a, HEAD "%s", services);
        *p = (struct problems){ .arena = a };
        assert_int_equal(tree_parse(a, "cluster.yaml", text, strlen(text), &t, &err), 0);
        return cluster_decode(a, t, p);
}

/* Every row is whole: a template, or a chart with its place. */
static void rows_are_whole(void **state)
{
        for (enum addon_id id = 0; id < ADDON_COUNT; id++) {
                const struct addon_row *row = addon_row(id);
                assert_non_null(addon_names[id]);
                assert_int_equal(addon_named(addon_names[id]), id);
                assert_true(row->version && row->space && row->what && row->home);
                assert_true(!row->template == (row->repository && row->url && row->chart));
                assert_true(!row->template || (!row->values && !row->privileged));
                assert_true(row->template || !row->stays);
        }
        assert_null(addon_names[ADDON_COUNT]);
        assert_int_equal(addon_named("nothing"), ADDON_COUNT);
        assert_int_equal(addon_named(NULL), ADDON_COUNT);
}

/* The values under those of the file are YAML maps. */
static void values_are_maps(void **state)
{
        struct arena a = { 0 };
        struct error err = { 0 };
        struct tree *t;
        for (enum addon_id id = 0; id < ADDON_COUNT; id++) {
                const char *values = addon_row(id)->values;
                if (!values)
                        continue;
                assert_int_equal(tree_parse(&a, "values", values, strlen(values), &t, &err), 0);
                assert_int_equal(t->kind, TREE_MAP);
        }
        arena_release(&a);
}

static void a_built_in_one_is_no_chart(void **state)
{
        struct arena a = { 0 };
        struct problems p;
        struct cluster *c = addons_decode(&a, "    addons: [metrics-server]\n", &p);
        assert_int_equal(p.errors, 0);
        assert_int_equal(c->services.charts.n, 0);
        assert_int_equal(c->services.repositories.n, 0);
        assert_true(cluster_addon(c, ADDON_METRICS_SERVER));
        assert_false(cluster_addon(c, ADDON_LOCAL_PATH));
        assert_true(image_wanted(c, IMG_METRICS_SERVER));
        assert_false(image_wanted(c, IMG_LOCAL_PATH));
        assert_true(image_wanted(c, IMG_COREDNS));
        arena_release(&a);
}

static struct cluster *cloud_decode(struct arena *a, const char *provider)
{
        struct error err = { 0 };
        struct problems p = { .arena = a };
        struct tree *t;
        const char *text = arena_printf(
                a, HEAD "    addons: [metrics-server, local-path]\n  provider: {%s}\n", provider);
        assert_int_equal(tree_parse(a, "cluster.yaml", text, strlen(text), &t, &err), 0);
        struct cluster *c = cluster_decode(a, t, &p);
        assert_int_equal(p.errors, 0);
        return c;
}

/* What a provider's section asks for: the addons, before those of the file, and their images. */
static void clouds_ask_for_theirs(void **state)
{
        static const struct {
                const char *provider, *names[2];
                bool controller, provisioner;
        } cases[] = {
                { "openstack: {cloud: mine, image: i}", { NULL }, false, false },
                { "openstack: {cloud: {controller: true}, image: i}",
                        { "openstack-cloud-controller" }, true, false },
                { "openstack: {cloud: {name: mine, controller: true, csi: true}, image: i}",
                        { "openstack-cloud-controller", "cinder-csi" }, true, true },
                { "aws: {region: r, image: ami-1, cloud: {controller: true, csi: true}}",
                        { "aws-cloud-controller", "ebs-csi" }, true, true },
                { "aws: {region: r, image: ami-1, cloud: {csi: true}}", { "ebs-csi" }, false,
                        true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arena a = { 0 };
                size_t n = 0;
                struct cluster *c = cloud_decode(&a, cases[i].provider);
                for (; n < 2 && cases[i].names[n]; n++) {
                        assert_string_equal(c->services.addons.v[n].name, cases[i].names[n]);
                        assert_non_null(addon_row(addon_named(cases[i].names[n]))->asked);
                        assert_true(addon_named(cases[i].names[n]) >= ADDON_LISTED);
                }
                assert_int_equal(c->services.addons.n, n + 2);
                assert_string_equal(c->services.addons.v[n].name, "metrics-server");
                assert_int_equal(cluster_cloud_controller(c), cases[i].controller);
                assert_int_equal(image_wanted(c, IMG_CSI_PROVISIONER), cases[i].provisioner);
                assert_int_equal(image_wanted(c, IMG_OPENSTACK_CLOUD),
                        cases[i].controller && has_prefix(cases[i].provider, "openstack"));
                arena_release(&a);
        }
}

/* Each value is checked when the file is read, and appears in what is applied. */
static void values_of_built_in_ones(void **state)
{
        static const struct {
                const char *addons, *problem; /* NULL: none */
        } cases[] = {
                { "{name: kube-vip, values: {addresses: [10.9.0.5-10.9.0.9, 10.8.0.0/30]}}", NULL },
                { "kube-vip", "kube-vip needs values.addresses" },
                { "{name: kube-vip, values: {addresses: ~}}", "kube-vip needs values.addresses" },
                { "{name: kube-vip, values: {addresses: [[1]]}}", "neither FIRST-LAST nor a CIDR" },
                { "{name: kube-vip, values: {addresses: 10.9.0.5}}", "a list of 1 to 32 ranges" },
                { "{name: kube-vip, values: {addresses: [10.9.0.9-10.9.0.5]}}",
                        "neither FIRST-LAST nor a CIDR" },
                { "{name: kube-vip, values: {addresses: [10.244.1.0/24]}}",
                        "in the range of pods or services" },
                { "{name: kube-vip, values: {addresses: [10.9.0.0/24]}}, metallb",
                        "kube-vip and metallb would both answer" },
                { "{name: nodelocaldns, values: {address: 169.254.20.11}}", NULL },
                { "{name: nodelocaldns, values: {adress: 169.254.20.11}}", "has no value" },
                { "{name: nodelocaldns, values: {address: here}}", "must be an IP address" },
                { "{name: nodelocaldns, values: {address: 10.96.0.10}}",
                        "in the range of pods, services or hosts" },
                { "{name: nodelocaldns, values: {address: \"fd00::10\"}}",
                        "no address of the family" },
                { "metrics-server, {name: dns-autoscaler, values: {min: 3, max: 5}}", NULL },
                { "metrics-server, {name: dns-autoscaler, values: {min: 11}}", "larger than max" },
                { "dns-autoscaler", "which is not in the file" },
                { "{name: registry, values: {storage: 50Gi, port: 5001}}", NULL },
                { "{name: registry, values: {storage: much}}", "must be a size" },
                { "{name: registry, values: {port: 80}}", "a number from 1024 to 29999" },
                { "{name: registry, values: 5}", "must be a map" },
                { "{name: node-problem-detector, values: {a: 1}}", "it has no values" },
                { "{name: ingress, values: {replicas: 3}}, {name: prometheus, values: {days: 2}}",
                        NULL },
                { "{name: ingress, values: {replicas: 0}}", "a number from 1 to 100" },
                { "traefik, ingress", "would both have the IngressClass traefik" },
                { "prometheus, kube-prometheus", "would both run node-exporter" },
                { "multus", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arena a = { 0 };
                struct problems p;
                struct cluster *c = addons_decode(
                        &a, arena_printf(&a, "    addons: [%s]\n", cases[i].addons), &p);
                rules_addons(c, &p);
                if (p.errors != !!cases[i].problem ||
                        (p.errors && !strstr(p.first->message, cases[i].problem)))
                        fail_msg("%s: %s", cases[i].addons, p.first ? p.first->message : "good");
                arena_release(&a);
        }
}

static void values_have_fallbacks(void **state)
{
        struct arena a = { 0 };
        struct problems p;
        struct cluster *c = addons_decode(&a,
                "    addons: [{name: kube-vip, values: {addresses: [10.9.0.5-10.9.0.9, 10.8.0.0/30]}},\n"
                "      {name: registry, values: {port: 5001}}, nodelocaldns]\n",
                &p);
        assert_int_equal(p.errors, 0);
        assert_string_equal(
                addon_value(c, ADDON_KUBE_VIP, "addresses"), "10.9.0.5-10.9.0.9,10.8.0.0/30");
        assert_string_equal(addon_value(c, ADDON_KUBE_VIP, "interface"), "");
        assert_string_equal(addon_value(c, ADDON_REGISTRY, "port"), "5001");
        assert_string_equal(addon_value(c, ADDON_REGISTRY, "storage"), "10Gi");
        assert_string_equal(addon_value(c, ADDON_NODELOCALDNS, "address"), "169.254.20.10");
        arena_release(&a);
}

/* The DNS cache is the CoreDNS that every node has. */
static void the_cache_is_coredns(void **state)
{
        struct arena a = { 0 };
        struct version newest;
        struct catalogue all;
        assert_true(version_parse(KUBERNETES_NEWEST, &newest));
        assert_true(catalogue_for(&a, &newest, &all));
        assert_non_null(
                strstr(all.images[IMG_COREDNS].name, addon_row(ADDON_NODELOCALDNS)->version));
        arena_release(&a);
}

static void a_chart_becomes_rows(void **state)
{
        struct arena a = { 0 };
        struct problems p;
        struct cluster *c = addons_decode(&a,
                "    charts: [{name: web, chart: ./web, after: [metallb]}]\n"
                "    addons: [ceph-csi-rbd, {name: metallb, values: {a: 1}}, ceph-csi-cephfs]\n",
                &p);
        const struct services *s = &c->services;
        assert_int_equal(p.errors, 0);
        assert_int_equal(s->charts.n, 4);
        assert_int_equal(s->repositories.n, 2); /* both of Ceph have one */
        const struct chart *h = &s->charts.v[2];
        assert_string_equal(s->charts.v[0].name, "web");
        assert_string_equal(h->name, "metallb");
        assert_string_equal(h->chart, "metallb/metallb");
        assert_string_equal(h->version, addon_row(ADDON_METALLB)->version);
        assert_string_equal(h->namespace, "metallb-system");
        assert_true(h->create_namespace && h->wait && h->atomic && h->timeout > 0);
        assert_non_null(tree_get(h->values, "a"));
        assert_string_equal(s->repositories.v[1].url, addon_row(ADDON_METALLB)->url);
        assert_int_equal(s->namespaces.n, 3); /* of privileged ones, so that they get their label */
        assert_true(addon_privileged(c, "metallb-system"));
        assert_false(addon_privileged(c, "monitoring"));
        arena_release(&a);
}

/* A mirror, a login, a directory: the file's own repository of that name is used. */
static void the_files_repository_comes_first(void **state)
{
        struct arena a = { 0 };
        struct problems p;
        struct cluster *c = addons_decode(&a,
                "    repositories: [{name: jetstack, url: ./charts}]\n"
                "    addons: [cert-manager]\n",
                &p);
        assert_int_equal(p.errors, 0);
        assert_int_equal(c->services.repositories.n, 1);
        assert_string_equal(c->services.repositories.v[0].url, "./charts");
        assert_string_equal(c->services.charts.v[0].values_text, "crds: {enabled: true}\n");
        arena_release(&a);
}

/* The second of two is a list where a word must be. */
static void values_of_any_kind_are_survived(void **state)
{
        struct arena a = { 0 };
        struct problems p;
        struct cluster *c = addons_decode(&a,
                "    addons: [nodelocaldns, {name: nodelocaldns, values: {address: [1, 2]}},\n"
                "      {name: kube-vip, values: {addresses: [[1], 10.9.0.0/30]}}]\n",
                &p);
        rules_addons(c, &p);
        assert_true(p.errors > 0);
        assert_string_equal(addon_value(c, ADDON_NODELOCALDNS, "address"), "169.254.20.10");
        assert_string_equal(addon_value(c, ADDON_KUBE_VIP, "addresses"), "10.9.0.0/30");
        arena_release(&a);
}

/* What is wrong in the file is complained about, and nothing is made of it. */
static void holes_are_survived(void **state)
{
        struct arena a = { 0 };
        struct problems p;
        struct cluster *c = addons_decode(&a,
                "    namespaces: [{}, UPPER]\n    repositories: [{url: x}, 3]\n"
                "    addons: [nothing, 7, {values: 1}, metallb]\n",
                &p);
        assert_true(p.errors > 0);
        assert_int_equal(c->services.charts.n, 1);
        arena_release(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(rows_are_whole),
                cmocka_unit_test(values_are_maps), cmocka_unit_test(a_built_in_one_is_no_chart),
                cmocka_unit_test(clouds_ask_for_theirs), cmocka_unit_test(values_of_built_in_ones),
                cmocka_unit_test(values_have_fallbacks),
                cmocka_unit_test(values_of_any_kind_are_survived),
                cmocka_unit_test(the_cache_is_coredns), cmocka_unit_test(a_chart_becomes_rows),
                cmocka_unit_test(the_files_repository_comes_first),
                cmocka_unit_test(holes_are_survived) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
