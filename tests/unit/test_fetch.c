/* The tables and formats behind a fetch. Whole fetches against a server: tests/artifact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "artifact/catalogue.h"
#include "artifact/lock.h"
#include "artifact/origin.h"
#include "artifact/tar.h"
#include "base/file.h"
#include "config/minors.h"

static void expands_to(const char *name, const char *version, const char *url, const char *sums)
{
        const struct origin *o = origin_of(name);
        char *got = origin_expand(o->url, version, "arm64"),
             *got_sums = o->sums ? origin_expand(o->sums, version, "arm64") : NULL;
        assert_string_equal(got, url);
        if (sums)
                assert_string_equal(got_sums, sums);
        else
                assert_null(got_sums);
        free(got);
        free(got_sums);
}

static void urls(void **state)
{
        expands_to("kubelet", KUBERNETES_NEWEST,
                "https://dl.k8s.io/release/v" KUBERNETES_NEWEST "/bin/linux/arm64/kubelet",
                "https://dl.k8s.io/release/v" KUBERNETES_NEWEST "/bin/linux/arm64/kubelet.sha256");
        expands_to("etcdctl", "3.6.16",
                "https://github.com/etcd-io/etcd/releases/download/v3.6.16/etcd-v3.6.16-linux-arm64.tar.gz",
                "https://github.com/etcd-io/etcd/releases/download/v3.6.16/SHA256SUMS");
        expands_to("runc", "1.5.2",
                "https://github.com/opencontainers/runc/releases/download/v1.5.2/runc.arm64",
                "https://github.com/opencontainers/runc/releases/download/v1.5.2/runc.sha256sum");
        expands_to("crun", "1.29.1",
                "https://github.com/containers/crun/releases/download/1.29.1/crun-1.29.1-linux-arm64",
                NULL);
        char *member = origin_expand(origin_of("etcd")->member, "3.6.16", "amd64");
        assert_string_equal(member, "etcd-v3.6.16-linux-amd64/etcd");
        free(member);
        char *flags = origin_expand("{major}.{minor} {v} {x}", KUBERNETES_NEWEST, "amd64");
        assert_string_equal(flags, "1.36 " KUBERNETES_NEWEST " {x}");
        free(flags);
        char *m = origin_mirrored("http://m.example/k8s//", "https://dl.k8s.io/release/x");
        assert_string_equal(m, "http://m.example/k8s/dl.k8s.io/release/x");
        free(m);
}

/* Images that are fetched, and cannot be built. */
static bool is_only_fetched(size_t i)
{
        static const enum image_id ids[] = { IMG_HAPROXY, IMG_KEEPALIVED, IMG_CINDER_CSI,
                IMG_EBS_CSI, IMG_CSI_REGISTRAR, IMG_CSI_LIVENESS };
        for (size_t k = 0; k < ARRAY_SIZE(ids); k++)
                if (ids[k] == i)
                        return true;
        return i >= IMG_KUBE_PROXY;
}

/* Whatever the catalogue names has a place, and what is built has a recipe. */
static void every_item_has_an_origin(void **state)
{
        struct arena a = { 0 };
        struct catalogue c;
        struct version v;
        assert_true(version_parse(catalogue_newest(), &v));
        assert_true(catalogue_for(&a, &v, &c));
        for (size_t i = 0; i < ART_COUNT; i++) {
                const struct origin *o = origin_of(c.artifacts[i].name);
                assert_non_null(o);
                assert_true(!o->recipe || recipe_of(o->recipe));
                assert_true(!o->recipe == !o->file);
        }
        for (size_t i = 0; i < IMG_COUNT; i++) {
                char *name, *version;
                assert_true(image_words(c.images[i].name, &name, &version));
                const struct image_origin *o = image_origin_of(name);
                assert_true(o ? recipe_of(o->recipe) && o->path[0] == '/' : is_only_fetched(i));
                free(name);
                free(version);
        }
        arena_release(&a);
}

static void references(void **state)
{
        static const struct {
                const char *text, *name, *version;
        } good[] = {
                { "registry.k8s.io/kube-apiserver:v" KUBERNETES_NEWEST, "kube-apiserver",
                        KUBERNETES_NEWEST },
                { "localhost:5000/pause:3.10", "pause", "3.10" },
                { "pause:x", "pause", "x" },
                { "registry.k8s.io/etcd:3.6.16-0", "etcd", "3.6.16" },
                { "docker.io/library/haproxy:3.2.4-alpine", "haproxy", "3.2.4-alpine" },
                { "ghcr.io/flannel-io/flannel-cni-plugin:v1.6.2-flannel1", "flannel-cni-plugin",
                        "1.6.2-flannel1" },
        };
        static const char *const bad[] = { "localhost:5000/pause", "pause", "pause:", "a/:x",
                "a/b@sha256:00" };
        char *name, *version;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_true(image_words(good[i].text, &name, &version));
                assert_string_equal(name, good[i].name);
                assert_string_equal(version, good[i].version);
                free(name);
                free(version);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(image_words(bad[i], &name, &version));
}

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void sums(void **state)
{
        char out[65];
        assert_true(sums_find(HEX_A, "any", out));
        assert_string_equal(out, HEX_A);
        assert_true(sums_find("# SHA256\n" HEX_A "  one\n" HEX_B " *./dir/two\r\n", "two", out));
        assert_string_equal(out, HEX_B);
        assert_true(
                sums_find("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA  one",
                        "one", out));
        assert_string_equal(out, HEX_A);
        assert_false(sums_find(HEX_A "  one\n", "on", out));
        assert_false(sums_find(HEX_A "  one\n", "none", out));
        assert_false(sums_find("<html>no</html>", "one", out));
        assert_false(sums_find(HEX_A "a\n", "one", out));
        assert_false(sums_find("", "one", out));
}

static int to_str(void *arg, const void *data, size_t n, struct error *err)
{
        str_addn(arg, data, n);
        return 0;
}

static void tar_bytes(void **state)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct tar t = { to_str, &s };
        assert_int_equal(tar_member(&t, "bin/", 0755, 0, &err), 0);
        assert_int_equal(tar_data(&t, "bin/x", 0755, "hello", 5, &err), 0);
        assert_int_equal(tar_end(&t, &err), 0);
        assert_int_equal(s.len, tar_room(0) + tar_room(5) + TAR_END);
        assert_string_equal(s.data, "bin/");
        assert_int_equal(s.data[156], '5');
        const char *h = s.data + 512;
        assert_string_equal(h, "bin/x");
        assert_string_equal(h + 100, "0000755");
        assert_string_equal(h + 124, "00000000005");
        assert_string_equal(h + 136, "00000000000");
        assert_memory_equal(h + 257,
                "ustar\0"
                "00",
                8);
        unsigned sum = 0;
        for (size_t i = 0; i < 512; i++)
                sum += i >= 148 && i < 156 ? ' ' : (unsigned char)h[i];
        assert_int_equal(strtoul(h + 148, NULL, 8), sum);
        assert_string_equal(h + 512, "hello");

        char name[102];
        memset(name, 'n', 101);
        name[101] = 0;
        assert_int_equal(tar_member(&t, name, 0644, 0, &err), -EINVAL);
        name[100] = 0;
        assert_int_equal(tar_member(&t, name, 0644, 0, &err), 0);
        assert_int_equal(tar_member(&t, "big", 0644, (int64_t)8 << 30, &err), -EINVAL);
}

static void lock_round_trip(void **state)
{
        char dir[] = "/tmp/slipway-test.XXXXXX";
        assert_non_null(mkdtemp(dir));
        char *path = path_join(dir, "bundle.lock");
        struct error err CLEANUP(error_release) = { 0 };
        struct locked l = { 0 };
        struct lock_entry a = { .digest = HEX_A, .size = 1, .source = "build" },
                          b = { .digest = HEX_B, .size = (int64_t)5 << 30, .source = "upstream" },
                          got;
        assert_int_equal(locked_read(&l, path, &err), 0); /* not there: empty */
        locked_put(&l, "z@1/amd64", &a);
        locked_put(&l, "a@1/amd64", &b);
        assert_int_equal(locked_write(&l, path, &err), 0);
        struct str one CLEANUP(str_release) = { 0 }, two CLEANUP(str_release) = { 0 };
        assert_int_equal(file_read(path, 4096, &one, &err), 0);
        assert_true(strstr(one.data, "a@1/amd64") < strstr(one.data, "z@1/amd64"));

        assert_int_equal(locked_read(&l, path, &err), 0);
        assert_true(locked_get(&l, "a@1/amd64", &got));
        assert_string_equal(got.digest, HEX_B);
        assert_true(got.size == (int64_t)5 << 30);
        assert_string_equal(got.source, "upstream");
        assert_false(locked_get(&l, "b", &got));
        snprintf(a.source, sizeof(a.source),
                "bundle"); /* the same digest from elsewhere is no change */
        locked_put(&l, "z@1/amd64", &a);
        assert_false(l.changed);
        assert_int_equal(locked_write(&l, path, &err), 0);
        assert_int_equal(file_read(path, 4096, &two, &err), 0);
        assert_string_equal(one.data, two.data);
        locked_release(&l);

        static const char *const damaged[] = { "{", "[]", "{\"version\": 2, \"items\": {}}",
                "{\"version\": 1, \"items\": {\"a\": {\"sha256\": \"x\"}}}",
                "{\"version\": 1, \"items\": {\"a\": {\"sha256\": \"" HEX_A
                "\", \"size\": -1, \"source\": \"build\"}}}" };
        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                assert_int_equal(
                        file_write(path, damaged[i], strlen(damaged[i]), 0644, 0, NULL, &err), 0);
                assert_int_equal(locked_read(&l, path, &err), -EBADMSG);
                assert_non_null(strstr(err.message, "damaged"));
                locked_release(&l);
        }
        assert_int_equal(dir_remove(dir, &err), 0);
        free(path);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(urls),
                cmocka_unit_test(every_item_has_an_origin), cmocka_unit_test(references),
                cmocka_unit_test(sums), cmocka_unit_test(tar_bytes),
                cmocka_unit_test(lock_round_trip) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
