#include "base/base.h"

#include <setjmp.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/paths.h"
#include "base/index.h"
#include "base/ip.h"
#include "base/tar_header.h"
#include "base/utf8.h"

static void strings(void **state)
{
        struct str s CLEANUP(str_release) = { 0 };
        assert_string_equal(str_text(&s), "");
        str_add(&s, "ab");
        str_addc(&s, 'c');
        str_addf(&s, "%d%s", 12, "x");
        assert_string_equal(str_text(&s), "abc12x");
        str_truncate(&s, 3);
        str_add_hex(&s, "\x01\xff", 2);
        assert_string_equal(str_text(&s), "abc01ff");
        char *taken CLEANUP(free_p) = str_take(&s);
        assert_string_equal(taken, "abc01ff");
        assert_int_equal(s.len, 0);
        static const char *const base64[] = { "", "Zg==", "Zm8=", "Zm9v",
                "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
        for (size_t i = 0; i < ARRAY_SIZE(base64); i++) {
                struct str b CLEANUP(str_release) = { 0 };
                str_add_base64(&b, "foobar", i);
                assert_string_equal(str_text(&b), base64[i]);
                struct str back CLEANUP(str_release) = { 0 };
                assert_true(str_add_from_base64(&back, b.data, b.len));
                assert_int_equal(back.len, i);
                assert_memory_equal(str_text(&back), "foobar", i);
        }
        assert_true(has_prefix("abc", "ab") && !has_prefix("a", "ab") && has_suffix("abc", "bc") &&
                    !has_suffix("c", "bc"));
}

static void base64_that_is_none(void **state)
{
        static const char *const bad[] = { "Z", "Zm9", "Zm9v=", "Zg==Zg==", "Zm 9v", "Zm9v-",
                "Z===" };
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, "as it was");
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_false(str_add_from_base64(&s, bad[i], strlen(bad[i])));
                assert_string_equal(str_text(&s), "as it was");
        }
        assert_true(str_add_from_base64(&s, "Zm9v\r\nYmFy\n", 11));
        assert_string_equal(str_text(&s), "as it wasfoobar");
}

static void last_lines(void **state)
{
        static const char *const cases[][2] = { { "", "" }, { "\n \r\n", "" }, { "one", "one" },
                { "one\n\t two \n\r\n", "two" }, { "a: b\r\n", "a: b" } };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str s CLEANUP(str_release) = { 0 };
                str_add(&s, cases[i][0]);
                char *line CLEANUP(free_p) = str_last_line(&s);
                assert_string_equal(line, cases[i][1]);
        }
}

/* The sum of a header, put in. */
static void tar_sum(uint8_t *h)
{
        unsigned sum = 0;
        memset(h + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
                sum += h[i];
        snprintf((char *)h + 148, 7, "%06o", sum);
}

static void tar_headers(void **state)
{
        uint8_t h[TAR_BLOCK] = "./bin/ctr";
        struct tar_header got;
        memcpy(h + 100, "0000755", 8);
        memcpy(h + 124, "00000000017", 12);
        memcpy(h + 257, "ustar", 6);
        assert_false(tar_header_read(h, &got));
        tar_sum(h);
        assert_true(tar_header_read(h, &got));
        assert_string_equal(got.name, "bin/ctr");
        assert_true(got.mode == 0755 && got.size == 15 && got.type == '0');
        memcpy(h + 345, "a/b", 3);
        h[156] = '5';
        tar_sum(h);
        assert_true(tar_header_read(h, &got));
        assert_true(streq(got.name, "a/b/./bin/ctr") && got.type == '5');
        h[124] = 0x80; /* a number in binary */
        tar_sum(h);
        assert_true(tar_header_read(h, &got) && got.size == UINT64_MAX);
        h[124] = '9';
        tar_sum(h);
        assert_false(tar_header_read(h, &got));
        assert_true(tar_padded(0) == 0 && tar_padded(1) == 512 && tar_padded(512) == 512);
}

static void arenas(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        char *last = NULL;
        for (size_t n = 1; n < 200000; n += 97) {
                char *p = arena_alloc(&a, n);
                assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
                for (size_t i = 0; i < n; i += 1000)
                        assert_int_equal(p[i], 0);
                memset(p, 'x', n);
                assert_ptr_not_equal(p, last);
                last = p;
        }
        assert_string_equal(arena_printf(&a, "%s-%d", "a", 5), "a-5");
        assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
}

static void errors(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        assert_int_equal(error_set(&err, ENOENT, EXIT_STATE, "no %s", "file"), -ENOENT);
        assert_int_equal(error_wrap(&err, "node %s", "w2"), -ENOENT);
        assert_int_equal(error_hint(&err, "make it"), -ENOENT);
        assert_string_equal(err.message, "node w2: no file");
        assert_string_equal(err.hint, "make it");
        assert_int_equal(error_set(&err, 0, EXIT_CONFIG, "x"), -EINVAL);
        assert_null(err.hint);
}

static void nearest_words(void **state)
{
        static const char *const names[] = { "control-plane", "etcd", "worker", "count" };
        assert_string_equal(nearest("contorl-plane", names, 4), "control-plane");
        assert_string_equal(nearest("Worker", names, 4), "worker");
        assert_string_equal(nearest("ectd", names, 4), "etcd");
        assert_null(nearest("something", names, 4));
        char long_word[200];
        memset(long_word, 'a', sizeof(long_word) - 1);
        long_word[sizeof(long_word) - 1] = 0;
        assert_null(nearest(long_word, names, 4));
}

static void indexes(void **state)
{
        struct index x CLEANUP(index_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        int values[5000];
        assert_null(index_get(&x, "a"));
        for (int i = 0; i < 5000; i++)
                assert_null(index_put(&x, arena_printf(&a, "key%d", i), &values[i]));
        assert_ptr_equal(index_put(&x, "key7", &values[0]), &values[7]);
        for (int i = 0; i < 5000; i++) {
                char key[32];
                snprintf(key, sizeof(key), "key%d", i);
                assert_ptr_equal(index_get(&x, key), &values[i]);
        }
        assert_null(index_get(&x, "key5000"));
        index_clear(&x);
        assert_null(index_get(&x, "key7"));
        assert_null(index_put(&x, "key7", &values[1]));
        index_clear(&x);
        assert_null(index_get(&x, "key7"));
}

static void characters(void **state)
{
        uint32_t cp = 0, line, col;
        static const char *const bad[] = { "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80",
                "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xff", "" };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &cp), 0);
        assert_int_equal(utf8_decode("\xf4\x8f\xbf\xbf", 4, &cp), 4);
        assert_int_equal(cp, 0x10ffff);
        assert_int_equal(utf8_decode("\xe2\x82\xac", 3, &cp), 3);
        assert_int_equal(cp, 0x20ac);
        assert_true(utf8_width(0x5b57) == 2 && utf8_width(0x301) == 0 && utf8_width('a') == 1);
        assert_false(utf8_visible(0x1b) || utf8_visible(0x9b) || utf8_visible(0x202e) ||
                     utf8_visible(0x200b) || utf8_visible(0x7f));
        static const char text[] = "a\r\nb\xc3\xa9\rc\xe2\x80\xa8"
                                   "d\n";
        line_place(text, sizeof(text) - 1, 6, &line, &col);
        assert_true(line == 2 && col == 3);
        line_place(text, sizeof(text) - 1, 11, &line, &col);
        assert_true(line == 4 && col == 1);
        struct str s CLEANUP(str_release) = { 0 };
        text_harmless(&s, "a\n\t\x1b[0m\xff\xe2\x80\xae\xc3\xa9zzz", 9);
        assert_string_equal(str_text(&s), "a\\n\\t\\u{1b}[0m\\xff\\u{202e}...");
}

static void addresses(void **state)
{
        struct ip ip;
        struct cidr c, d;
        char buf[IP_TEXT + 4];
        bool host_bits;
        assert_true(ip_parse("2001:DB8:0:0::1", &ip));
        assert_string_equal(ip_format(&ip, buf), "2001:db8::1");
        assert_string_equal(ip_host(&ip, buf), "[2001:db8::1]");
        static const char *const bad[] = { "", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4 ", "::g",
                "a", "[::1]", "1.2.3.4/8" };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(ip_parse(bad[i], &ip));
        static const char *const bad_nets[] = { "10.0.0.0", "10.0.0.0/", "10.0.0.0/33",
                "10.0.0.0/-1", "10.0.0.0/08", "::/129", "/8", "10.0.0.0/8x", "x/8" };
        for (size_t i = 0; i < ARRAY_SIZE(bad_nets); i++)
                assert_false(cidr_parse(bad_nets[i], &c, NULL));
        assert_true(cidr_parse("10.233.64.1/18", &c, &host_bits) && host_bits);
        assert_string_equal(cidr_format(&c, buf), "10.233.64.0/18");
        assert_true(cidr_parse("10.233.0.0/16", &d, &host_bits) && !host_bits &&
                    cidr_overlaps(&c, &d) && cidr_overlaps(&d, &c));
        assert_true(cidr_parse("10.232.0.0/16", &d, NULL) && !cidr_overlaps(&c, &d));
        assert_true(cidr_parse("fd00::/8", &d, NULL) && !cidr_overlaps(&c, &d));
        assert_true(cidr_nth(&c, 300, &ip) && cidr_contains(&c, &ip));
        assert_string_equal(ip_format(&ip, buf), "10.233.65.44");
        assert_true(cidr_parse("10.0.0.8/29", &c, NULL) && cidr_host_bits(&c) == 3);
        assert_true(cidr_nth(&c, 7, &ip) && !cidr_nth(&c, 8, &ip));
        assert_string_equal(ip_format(&ip, buf), "10.0.0.15");
}

static void files(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str s CLEANUP(str_release) = { 0 };
        char dir[] = "/tmp/slipway-test-XXXXXX";
        bool changed;
        struct stat st;
        assert_non_null(mkdtemp(dir));
        char *sub CLEANUP(free_p) = path_join(dir, "a/b"),
                  *file CLEANUP(free_p) = path_join(sub, "f");
        assert_int_equal(dir_make(sub, 0700, &err), 0);
        assert_int_equal(dir_make(sub, 0700, &err), 0);
        assert_int_equal(file_write(file, "abc", 3, 0600, FILE_SYNC, &changed, &err), 0);
        assert_true(changed && stat(file, &st) == 0 && (st.st_mode & 07777) == 0600);
        assert_int_equal(file_write(file, "abc", 3, 0600, 0, &changed, &err), 0);
        assert_false(changed);
        assert_int_equal(file_write(file, "abd", 3, 0644, 0, &changed, &err), 0);
        assert_true(changed);
        assert_int_equal(file_read(file, 10, &s, &err), 0);
        assert_string_equal(str_text(&s), "abd");
        assert_int_equal(file_read(file, 2, &s, &err), -EFBIG);
        assert_int_equal(file_read(dir, 10, &s, &err), -EISDIR);
        assert_int_equal(dir_make(file, 0700, &err), -ENOTDIR);
        int fd CLEANUP(close_p) = -1, second CLEANUP(close_p) = -1;
        char *lock CLEANUP(free_p) = path_join(dir, "lock");
        assert_int_equal(lock_take(lock, "a test", &fd, &err), 0);
        assert_true(lock_take(lock, "another", &second, &err) < 0);
        assert_int_equal(err.status, EXIT_STATE);
        assert_non_null(strstr(err.message, "a test, process "));
        assert_int_equal(dir_remove(dir, &err), 0);
        assert_int_equal(dir_remove(dir, &err), 0);
        assert_true(stat(dir, &st) < 0);
}

/* ---- paths ---- */

static void paths(void **state)
{
        static const struct {
                const char *path;
                enum path_use use;
                const char *why; /* NULL: it may be used */
        } cases[] = {
                { "/var/lib/etcd", PATH_ETCD, NULL },
                { "/var/lib/etcd/data", PATH_ETCD, NULL },
                { "/var/lib/etcd-data", PATH_ETCD, NULL },
                { "/etcd", PATH_ETCD, NULL },
                { "/srv/etcd", PATH_ETCD, NULL },
                { "/home/ann/etcd", PATH_ETCD, NULL },
                { "/var/lib/kubelet", PATH_MOUNT, NULL },
                { "/var/lib/etcd", PATH_RUNTIME, "another program" },
                { "/var/lib/containerd/x", PATH_ETCD, "another program" },
                { "/var/lib/containers/storage", PATH_RUNTIME, NULL },
                { "/var/lib/slipway", PATH_AUDIT, "another program" },
                { "/", PATH_MOUNT, "directory of the system" },
                { "/home", PATH_ETCD, "directory of the system" },
                { "/home/ann", PATH_ETCD, "home directory" },
                { "/root", PATH_COPY, "directory of the system" },
                { "/root/x", PATH_COPY, "home directory" },
                { "/srv", PATH_COPY, "directory of the system" },
                { "/var/log", PATH_AUDIT, "directory of the system" },
                { "/var/lib", PATH_MOUNT, "directory of the system" },
                { "/usr/local/share/x", PATH_ETCD, "programs" },
                { "/run/x", PATH_MOUNT, "each boot" },
                { "/var/tmp/x", PATH_ETCD, "removed" },
                { "/srv/../etc", PATH_ETCD, "plain path" },
                { "/srv/.", PATH_ETCD, "plain path" },
                { "srv", PATH_ETCD, "plain path" },
                { "/srv/..x", PATH_ETCD, NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *of, *why = path_refused(cases[i].path, cases[i].use, &of);
                if (!why != !cases[i].why || (why && !strstr(why, cases[i].why)))
                        fail_msg("%s: %s", cases[i].path, why ? why : "may be used");
        }
        static const char *const clean[][2] = { { "/", "/" }, { "//", "/" }, { "/a//b/", "/a/b" },
                { "", "" }, { "/a", "/a" } };
        for (size_t i = 0; i < ARRAY_SIZE(clean); i++) {
                char *path CLEANUP(free_p) = path_clean(clean[i][0]);
                assert_string_equal(path, clean[i][1]);
        }
        assert_true(path_within("/a", "/a/b") && path_within("/a", "/a") && path_within("/", "/a"));
        assert_false(path_within("/a", "/ab") || path_within("/a/b", "/a"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(strings),
                cmocka_unit_test(base64_that_is_none),
                cmocka_unit_test(last_lines),
                cmocka_unit_test(tar_headers),
                cmocka_unit_test(arenas),
                cmocka_unit_test(errors),
                cmocka_unit_test(nearest_words),
                cmocka_unit_test(indexes),
                cmocka_unit_test(characters),
                cmocka_unit_test(addresses),
                cmocka_unit_test(files),
                cmocka_unit_test(paths),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
