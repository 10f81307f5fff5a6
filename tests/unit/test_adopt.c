/* What adopt reads of a kubeconfig's server. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "cluster/adopt/adopt_files.h"

/* adopt opens links; this test does not. */
const void *agent_bytes(size_t *n)
{
        *n = 0;
        return "";
}

static void test_server(void **state)
{
        static const struct {
                const char *url, *host;
                long port;
        } cases[] = {
                { "https://192.0.2.1:6443", "192.0.2.1", 6443 },
                { "https://[fd00::1]:6443", "fd00::1", 6443 },
                { "https://[::1]", "::1", 443 },
                { "https://[fd00::1]:6443/", "fd00::1", 6443 },
                { "https://api.example:8443/path", "api.example", 8443 },
                { "https://api.example", "api.example", 443 },
                { "http://api.example", NULL, 0 },
                { "https://[fd00::1", NULL, 0 },
                { NULL, NULL, 0 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char host[HOST_MAX] = "";
                long port = 0;
                assert_int_equal(adopt_server(cases[i].url, host, &port), cases[i].host != NULL);
                if (!cases[i].host)
                        continue;
                assert_string_equal(host, cases[i].host);
                assert_int_equal(port, cases[i].port);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_server) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
