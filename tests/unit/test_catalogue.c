#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "artifact/catalogue.h"
#include "artifact/origin.h"
#include "config/minors.h"
#include "config/problem.h"

static void every_minor_is_whole(void **state)
{
        struct arena a = { 0 };
        char text[16], minor[8];
        for (unsigned m = KUBERNETES_OLDEST_MINOR; m <= KUBERNETES_NEWEST_MINOR; m++) {
                struct catalogue c = { 0 };
                struct version v;
                snprintf(text, sizeof(text), "1.%u.7", m);
                snprintf(minor, sizeof(minor), "1.%u", m);
                assert_true(version_parse(text, &v));
                assert_true(catalogue_for(&a, &v, &c));
                assert_non_null(strstr(catalogue_minors(), minor));
                assert_string_equal(c.artifacts[ART_KUBELET].version, text);
                for (size_t i = 0; i < ART_COUNT; i++) {
                        assert_non_null(c.artifacts[i].name);
                        assert_non_null(c.artifacts[i].version);
                }
                for (size_t i = 0; i < IMG_COUNT; i++) {
                        assert_non_null(c.images[i].name);
                        assert_non_null(strrchr(c.images[i].name, ':'));
                }
        }
        arena_release(&a);
}

static void newest(void **state)
{
        struct arena a = { 0 };
        struct catalogue c;
        struct version v;
        assert_true(version_parse(catalogue_newest(), &v));
        assert_int_equal(v.minor, KUBERNETES_NEWEST_MINOR);
        assert_true(catalogue_for(&a, &v, &c));
        assert_string_equal(
                c.images[IMG_APISERVER].name, "registry.k8s.io/kube-apiserver:v" KUBERNETES_NEWEST);
        assert_string_equal(c.images[IMG_PAUSE].name, "registry.k8s.io/pause:3.10.2");
        assert_string_equal(c.images[IMG_PROBE].name, PROBE_IMAGE SLIPWAY_VERSION);
        assert_string_equal(c.images[IMG_COREDNS].name, "registry.k8s.io/coredns/coredns:v1.14.6");
        assert_string_equal(c.artifacts[ART_ETCD].version, "3.6.16");
        assert_string_equal(c.artifacts[ART_CONTAINERD].version, "2.4.2");
        arena_release(&a);
}

/* artifacts.trustOnFirstUse may name every program that can be downloaded, and nothing else. */
static void programs_can_be_named(void **state)
{
        struct arena a = { 0 };
        struct str yaml = { 0 };
        struct catalogue c;
        struct version v;
        assert_true(version_parse(catalogue_newest(), &v) && catalogue_for(&a, &v, &c));
        str_add(&yaml,
                "apiVersion: slipway.dev/v1alpha1\nkind: Cluster\nmetadata: {name: x}\nspec:\n  kubernetes: " KUBERNETES_NEWEST
                "\n  pools: [{name: c, roles: "
                "[control-plane, etcd], count: 1}]\n  artifacts: {trustOnFirstUse: [");
        size_t count = 0;
        for (size_t i = 0; i < ART_COUNT; i++)
                if (origin_of(c.artifacts[i].name)->url)
                        str_addf(&yaml, "%s%s", count++ ? ", " : "", c.artifacts[i].name);
        str_add(&yaml, "]}\n");
        char path[] = "/tmp/slipway-catalogue-XXXXXX";
        int fd = mkstemp(path);
        assert_int_equal(write(fd, yaml.data, yaml.len), (ssize_t)yaml.len);
        close(fd);
        struct problems problems = { .arena = &a };
        struct error err = { 0 };
        struct cluster *cluster = NULL;
        assert_int_equal(
                cluster_load(&a, (const char *const[]){ path }, 1, &cluster, &problems, &err), 0);
        assert_int_equal(cluster->artifacts.trust.n, count);
        unlink(path);
        str_release(&yaml);
        error_release(&err);
        arena_release(&a);
}

/* Repository of its own, tag of the catalogue's; never silently backwards, never over a digest. */
static void images_follow(void **state)
{
        static const struct {
                const char *image, *wanted;
                bool down;
                const char *after;
        } cases[] = {
                { "registry.k8s.io/etcd:3.6.15-0", "registry.k8s.io/etcd:3.6.16-0", false,
                        "registry.k8s.io/etcd:3.6.16-0" },
                { "mirror:5000/k8s/etcd:3.5.24-0", "registry.k8s.io/etcd:3.6.16-0", false,
                        "mirror:5000/k8s/etcd:3.6.16-0" },
                { "a/coredns:v1.15.0", "registry.k8s.io/coredns/coredns:v1.14.6", false,
                        "a/coredns:v1.15.0" },
                { "a/kube-proxy:v" KUBERNETES_NEWEST,
                        "registry.k8s.io/kube-proxy:v" KUBERNETES_PREVIOUS, true,
                        "a/kube-proxy:v" KUBERNETES_PREVIOUS },
                { "a/kube-proxy:v" KUBERNETES_NEWEST,
                        "registry.k8s.io/kube-proxy:v" KUBERNETES_NEWEST, true,
                        "a/kube-proxy:v" KUBERNETES_NEWEST },
                { "a/kube-proxy:latest", "registry.k8s.io/kube-proxy:v" KUBERNETES_NEWEST, true,
                        "a/kube-proxy:latest" },
                { "mirror:5000/kube-proxy", "registry.k8s.io/kube-proxy:v" KUBERNETES_NEWEST, true,
                        "mirror:5000/kube-proxy" },
                { "a/kube-proxy:v" KUBERNETES_PREVIOUS "@sha256:00",
                        "registry.k8s.io/kube-proxy:v" KUBERNETES_NEWEST, true,
                        "a/kube-proxy:v" KUBERNETES_PREVIOUS "@sha256:00" },
        };
        struct arena a = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(
                        image_follow(&a, cases[i].image, cases[i].wanted, cases[i].down),
                        cases[i].after);
        arena_release(&a);
}

static void unknown_minors(void **state)
{
        struct arena a = { 0 };
        struct catalogue c;
        assert_false(catalogue_for(
                &a, &(struct version){ .major = 1, .minor = KUBERNETES_OLDEST_MINOR - 1 }, &c));
        assert_false(catalogue_for(
                &a, &(struct version){ .major = 1, .minor = KUBERNETES_NEWEST_MINOR + 1 }, &c));
        assert_false(catalogue_for(
                &a, &(struct version){ .major = 2, .minor = KUBERNETES_NEWEST_MINOR }, &c));
        arena_release(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_minor_is_whole),
                cmocka_unit_test(newest), cmocka_unit_test(programs_can_be_named),
                cmocka_unit_test(images_follow), cmocka_unit_test(unknown_minors) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
