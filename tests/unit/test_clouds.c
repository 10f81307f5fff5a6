/* The objects of a cloud's controller and CSI driver: the credential is in one Secret each, which
 * only controllers mount, and pods are made anew when it changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "addon/addon.h"
#include "config/minors.h"
#include "config/problem.h"

#define HEAD \
        "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: x}\nspec:\n  kubernetes: " KUBERNETES_NEWEST \
        "\n  pools: [{name: c, roles: [control-plane, etcd], count: 3, os: debian}]\n"
#define CONF "[Global]\napplication-credential-secret = \"hunter2\"\n"
/* of CONF */
#define CONF64 "W0dsb2JhbF0KYXBwbGljYXRpb24tY3JlZGVudGlhbC1zZWNyZXQgPSAiaHVudGVyMiIK"

static struct cluster *clouds_decode(struct arena *a, const char *rest)
{
        struct error err = { 0 };
        struct problems p = { .arena = a };
        struct tree *t;
        const char *text = arena_printf(a, HEAD "%s", rest);
        assert_int_equal(tree_parse(a, "cluster.yaml", text, strlen(text), &t, &err), 0);
        struct cluster *c = cluster_decode(a, t, &p);
        assert_int_equal(p.errors, 0);
        c->cloud_name = "x-ab12c";
        c->cloud_config = CONF;
        return c;
}

static size_t clouds_count(const char *text, const char *word)
{
        size_t n = 0;
        for (; (text = strstr(text, word)); text++)
                n++;
        return n;
}

static void the_credential_is_in_one_secret(void **state)
{
        static const enum addon_id ids[] = { ADDON_OPENSTACK_CLOUD, ADDON_CINDER_CSI };
        struct arena a = { 0 };
        struct cluster *c = clouds_decode(
                &a, "  provider: {openstack: {cloud: {controller: true, csi: true}, image: i}}\n");
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                struct str text = { 0 }, other = { 0 };
                addon_objects(c, ids[i], &text);
                assert_int_equal(clouds_count(str_text(&text), CONF64), 1);
                assert_int_equal(clouds_count(str_text(&text), "secretName:"), 1);
                assert_null(strstr(str_text(&text), "hunter2"));
                assert_null(strstr(str_text(&text), "ca.crt:"));
                assert_non_null(strstr(str_text(&text), "=x-ab12c\n"));
                c->cloud_ca = "PEM";
                addon_objects(c, ids[i], &other);
                assert_non_null(strstr(str_text(&other), "ca.crt:"));
                const char *was = strstr(str_text(&text), "slipway.dev/digest: "),
                           *is = strstr(str_text(&other), "slipway.dev/digest: ");
                assert_true(was && is && strncmp(was, is, 36) != 0);
                c->cloud_ca = NULL;
                str_release(&text);
                str_release(&other);
        }
        arena_release(&a);
}

/* Only the directories that the operating system has; of all, where it is not known. */
static void authorities_of_the_host(void **state)
{
        struct arena a = { 0 };
        struct str text = { 0 };
        struct cluster *c = clouds_decode(
                &a, "  provider: {aws: {region: r, image: ami-1, cloud: {controller: true}}}\n");
        addon_objects(c, ADDON_AWS_CLOUD, &text);
        assert_non_null(strstr(str_text(&text), "path: /usr/share/ca-certificates"));
        assert_null(strstr(str_text(&text), "/etc/pki"));
        c->pools.v[0].os = NULL;
        addon_objects(c, ADDON_AWS_CLOUD, &text);
        assert_non_null(strstr(str_text(&text), "path: /etc/pki/tls/certs"));
        str_release(&text);
        arena_release(&a);
}

/* One class is the default; CoreDNS does not wait for a controller that comes after it. */
static void what_else_depends_on_it(void **state)
{
        static const struct {
                const char *rest, *class;
                bool tolerates;
        } cases[] = { { "", "", false },
                { "  provider: {openstack: {cloud: {csi: true}, image: i}}\n",
                        "is-default-class: \"true\"", false },
                { "  provider: {openstack: {cloud: {csi: true, controller: true}, image: i}}\n"
                  "  services: {addons: [local-path]}\n",
                        "is-default-class: \"false\"", true } };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arena a = { 0 };
                struct str dns = { 0 }, csi = { 0 };
                struct cluster *c = clouds_decode(&a, cases[i].rest);
                addon_dns(c, &dns);
                assert_int_equal(strstr(str_text(&dns),
                                         "node.cloudprovider.kubernetes.io/uninitialized") != NULL,
                        cases[i].tolerates);
                if (*cases[i].class)
                        addon_objects(c, ADDON_CINDER_CSI, &csi);
                assert_non_null(strstr(str_text(&csi), cases[i].class));
                str_release(&dns);
                str_release(&csi);
                arena_release(&a);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(the_credential_is_in_one_secret),
                cmocka_unit_test(authorities_of_the_host),
                cmocka_unit_test(what_else_depends_on_it) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
