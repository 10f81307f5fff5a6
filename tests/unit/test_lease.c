/* The time of the newest Lease among values as the API server stores them, whole, cut off anywhere,
 * and spoiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cluster/etcd/restore/restore.h"

/* k8s\0, Unknown {typeMeta, raw: Lease {metadata, spec {holder "a", duration 15, acquired
 * 1700000000, renewed T}}} */
#define LEASE(t) \
        "6b387300" \
        "0a020a00" \
        "1219" \
        "0a00" \
        "1215" \
        "0a0161" \
        "100f" \
        "1a0608" \
        "80e2cfaa06" \
        "220608" t
#define AT_1700000000 "80e2cfaa06"
#define AT_1700000002 "82e2cfaa06"

static void newest_of_many(void **state)
{
        assert_int_equal(lease_newest(LEASE(AT_1700000000)), 1700000000);
        assert_int_equal(lease_newest(LEASE(AT_1700000000) "0a" LEASE(AT_1700000002) "0a" LEASE(
                                 AT_1700000000) "0a\n"),
                1700000002);
        assert_int_equal(lease_newest(""), 0);
        assert_int_equal(lease_newest("0a0a\n"), 0);
}

static void cut_off_or_spoiled(void **state)
{
        static const char whole[] = LEASE(AT_1700000000);
        char text[sizeof(whole)];
        for (size_t n = 0; n < sizeof(whole) - 1; n++) {
                memcpy(text, whole, n);
                text[n] = 0;
                assert_int_equal(lease_newest(text), 0);
                memcpy(text, whole, sizeof(whole));
                text[n] = 'f';
                assert_in_range(lease_newest(text), 0, (uint64_t)1 << 40);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(newest_of_many),
                cmocka_unit_test(cut_off_or_spoiled) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
