#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "artifact/catalogue.h"
#include "config/minors.h"

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
        assert_string_equal(c.images[IMG_APISERVER].name, "registry.k8s.io/kube-apiserver:v1.36.3");
        assert_string_equal(c.images[IMG_PAUSE].name, "registry.k8s.io/pause:3.10.2");
        assert_string_equal(c.images[IMG_PROBE].name, PROBE_IMAGE SLIPWAY_VERSION);
        assert_string_equal(c.images[IMG_COREDNS].name, "registry.k8s.io/coredns/coredns:v1.14.6");
        assert_string_equal(c.artifacts[ART_ETCD].version, "3.6.16");
        assert_string_equal(c.artifacts[ART_CONTAINERD].version, "2.4.2");
        arena_release(&a);
}

static void unknown_minors(void **state)
{
        struct arena a = { 0 };
        struct catalogue c;
        assert_false(catalogue_for(&a, &(struct version){ .major = 1, .minor = KUBERNETES_OLDEST_MINOR - 1 }, &c));
        assert_false(catalogue_for(&a, &(struct version){ .major = 1, .minor = KUBERNETES_NEWEST_MINOR + 1 }, &c));
        assert_false(catalogue_for(&a, &(struct version){ .major = 2, .minor = KUBERNETES_NEWEST_MINOR }, &c));
        arena_release(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_minor_is_whole), cmocka_unit_test(newest), cmocka_unit_test(unknown_minors) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
