/* cluster/services/: the digest that a chart repository's index announces, and which helm fits. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/file.h"
#include "cluster/services/services.h"

/* Finding charts opens links; this test does not. */
const void *agent_bytes(size_t *n)
{
        *n = 0;
        return "";
}

#define ONE "1111111111111111111111111111111111111111111111111111111111111111"
#define TWO "abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd"

static const char index_text[] =
        "apiVersion: v1\n"
        "entries:\n"
        "  web:\n"
        "  - {version: 1.0.0, digest: " ONE ", urls: [\"https://h.example/web-1.0.0.tgz?x=/y\"]}\n"
        "  - version: 2.0.0\n"
        "    digest: sha256:ABCDEFabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd\n"
        "    urls: [charts/web-2.0.0.tgz, https://other.example/web-2.0.0.tgz]\n"
        "  - {version: 3.0.0, digest: short, urls: [web-3.0.0.tgz]}\n"
        "  - {version: 4.0.0, urls: web-4.0.0.tgz}\n"
        "  none: nothing\n";

static void digest_of(void **state)
{
        static const struct {
                const char *chart, *file, *digest;
        } rows[] = { { "web", "web-1.0.0.tgz", ONE }, { "web", "web-2.0.0.tgz", TWO },
                { "web", "web-3.0.0.tgz", NULL }, { "web", "web-4.0.0.tgz", NULL },
                { "web", "eb-1.0.0.tgz", NULL }, { "none", "web-1.0.0.tgz", NULL },
                { "other", "web-1.0.0.tgz", NULL } };
        struct error err CLEANUP(error_release) = { 0 };
        char *dir = NULL, said[SHA256_HEX];
        assert_int_equal(scratch_make("slipway-test-", &dir, &err), 0);
        char *path CLEANUP(free_p) = path_join(dir, "index.yaml");
        assert_false(index_digest(path, "web", "web-1.0.0.tgz", said));
        assert_int_equal(file_write(path, index_text, strlen(index_text), 0600, 0, NULL, &err), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                bool known = index_digest(path, rows[i].chart, rows[i].file, said);
                assert_int_equal(known, rows[i].digest != NULL);
                if (known)
                        assert_string_equal(said, rows[i].digest);
        }
        assert_int_equal(file_write(path, "{", 1, 0600, 0, NULL, &err), 0);
        assert_false(index_digest(path, "web", "web-1.0.0.tgz", said));
        scratch_remove(&dir);
}

/* Those in PATH that are too old, or of the next generation, are not used. */
static void helm_versions(void **state)
{
        static const struct {
                const char *version;
                bool fits;
        } rows[] = { { "v3.13.0", true }, { "v3.22.0", true }, { "v3.12.3", false },
                { "v3.2.1", false }, { "v4.0.1", false }, { "v2.17.0", false }, { "", false } };
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(helm_fits(rows[i].version), rows[i].fits);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(digest_of),
                cmocka_unit_test(helm_versions) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
