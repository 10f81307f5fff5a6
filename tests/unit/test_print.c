/* The one way to the terminal: whatever is said by others is shown, and does nothing else. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/print.h"
#include "base/utf8.h"

static char *captured(void (*fn)(void *arg), void *arg, FILE **stream)
{
        char *text = NULL;
        size_t n = 0;
        FILE *before = *stream, *m = open_memstream(&text, &n);
        *stream = m;
        fn(arg);
        fclose(m);
        *stream = before;
        return text;
}

static void formats(void **state)
{
        struct str mine CLEANUP(str_release) = { 0 }, theirs CLEANUP(str_release) = { 0 };
        const char *fmt = NULL;
#define SAME(...) \
        do { \
                str_truncate(&mine, 0); \
                str_truncate(&theirs, 0); \
                text_addf(&mine, __VA_ARGS__); \
                str_addf(&theirs, __VA_ARGS__); \
                fmt = str_text(&theirs); \
                assert_string_equal(str_text(&mine), fmt); \
        } while (0)
        SAME("plain, %% and %s|%-8s|%8s|%.3s|%-8.2s|%*s|%-*s|%.*s", "a", "ab", "abc", "abcdef",
                "abcdef", 6, "x", 6, "y", 2, "zzz");
        SAME("%d|%5d|%-5d|%05d|%i|%+d|%ld|%lld|%zd", -1, -23, 45, -67, 0, 8, 123456789012L,
                -123456789012LL, (ssize_t)-5);
        SAME("%u|%x|%lu|%llu|%zu|%4zu|%02x", 4000000000u, 255u, 1ul << 40, 1ull << 50, (size_t)9,
                (size_t)10, 10u);
        SAME("%.1f|%7.1f|%f|%.0f|%c|%" PRId64 "|%" PRIu64 "|%" JSON_INTEGER_FORMAT, 1.25, 3.14159,
                2.5, 9.9, 'q', INT64_MIN, UINT64_MAX, (json_int_t)7);
#undef SAME
}

/* Columns are counted as they are seen. */
static void columns(void **state)
{
        struct str s CLEANUP(str_release) = { 0 };
        text_addf(&s, "%-4s|%4s|%-6s|", "\xc3\xa9", "\xe5\xad\x97", "\x1b");
        assert_string_equal(str_text(&s), "\xc3\xa9   |  \xe5\xad\x97|\\u{1b}|");
}

static const struct {
        const char *said, *shown;
} hostile[] = {
        { "\x1b[2J\x1b[1;1H", "\\u{1b}[2J\\u{1b}[1;1H" },
        { "\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}" },
        { "\x1b]52;c;ZXZpbA==\x07", "\\u{1b}]52;c;ZXZpbA==\\u{7}" },
        { "ok\nslipway: all is well", "ok\\nslipway: all is well" },
        { "over\rwritten\b\b", "over\\u{d}written\\u{8}\\u{8}" },
        { "\x9b"
          "31m",
                "\\x9b31m" }, /* C1 as a byte */
        { "\xc2\x9b"
          "31m \xc2\x85",
                "\\u{9b}31m \\u{85}" }, /* and as UTF-8 */
        { "\xe2\x80\xae"
          "drawkcab",
                "\\u{202e}drawkcab" },
        { "\xe2\x80\x8e\xe2\x80\x8f\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c",
                "\\u{200e}\\u{200f}\\u{2066}\\u{2069}\\u{61c}" },
        { "a\xe2\x80\x8b"
          "b\xef\xbb\xbf"
          "c\xe2\x80\x8d",
                "a\\u{200b}b\\u{feff}c\\u{200d}" },
        { "\xe2\x80\xa8line\xe2\x80\xa9", "\\u{2028}line\\u{2029}" },
        { "\xf3\xa0\x81\x81", "\\u{e0041}" }, /* a tag: text that nobody sees */
        { "\xff\xc0\xaf\xed\xa0\x80", "\\xff\\xc0\\xaf\\xed\\xa0\\x80" }, { "\x7f", "\\u{7f}" },
        { "n\xc3\xa9, \xe5\xad\x97 and \xe2\x80\xa6",
                "n\xc3\xa9, \xe5\xad\x97 and \xe2\x80\xa6" }, /* what may be seen is */
};

static void say_out(void *arg) { print("node %s: %s\n", (char *)arg, "x"); }
static void say_err(void *arg) { print_err("%s\n", (char *)arg); }
static void say_lines(void *arg) { print_text(stdout, arg); }

static void everywhere(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
                char *said = (char *)(uintptr_t)hostile[i].said;
                char *out CLEANUP(free_p) = captured(say_out, said, &stdout),
                          *errors CLEANUP(free_p) = captured(say_err, said, &stderr);
                char *want CLEANUP(free_p) = xasprintf("node %s: x\n", hostile[i].shown),
                           *line CLEANUP(free_p) = xasprintf("%s\n", hostile[i].shown);
                assert_string_equal(out, want);
                assert_string_equal(errors, line);
                struct error err CLEANUP(error_release) = { 0 };
                error_set(&err, EIO, EXIT_STEP, "%s", said);
                error_hint(&err, "%s", said);
                assert_string_equal(err.message, hostile[i].shown);
                assert_string_equal(err.hint, hostile[i].shown);
                error_wrap(&err, "%s", said);
                assert_true(has_prefix(err.message, hostile[i].shown) &&
                            has_suffix(err.message, hostile[i].shown));
        }
        char *lines CLEANUP(free_p) =
                captured(say_lines, (char *)(uintptr_t) "a\tb\n\x1b[0m\n", &stdout);
        assert_string_equal(lines, "a\tb\n\\u{1b}[0m\n");
}

static bool is_harmless(const char *text, bool lines)
{
        for (size_t i = 0, n, len = strlen(text); i < len; i += n) {
                uint32_t cp;
                n = utf8_decode(text + i, len - i, &cp);
                if (!n || (!utf8_visible(cp) && !(lines && (cp == '\n' || cp == '\t'))))
                        return false;
        }
        return true;
}

/* Any bytes: of a generator that is the same each time. */
static void any_bytes(void **state)
{
        static const unsigned char heads[] = { 0x1b, 0x9b, 0xc2, 0xe2, 0x80, 0xae, 0xef, 0xf3, 0xd8,
                '\n', '%', 0xff };
        uint64_t x = 88172645463325252u;
        for (size_t round = 0; round < 20000; round++) {
                char said[48];
                size_t n = 0;
                for (; n < sizeof(said) - 1; n++) {
                        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                        said[n] = (char)(x >> 20 & 1 ? heads[(x >> 24) % sizeof(heads)]
                                                     : (x >> 32 & 0xff));
                }
                said[n] = 0;
                struct str s CLEANUP(str_release) = { 0 }, t CLEANUP(str_release) = { 0 };
                text_addf(&s, "%s%-9s", said, said);
                assert_true(is_harmless(str_text(&s), false));
                text_lines_harmless(&t, said, strlen(said));
                assert_true(is_harmless(str_text(&t), true));
                json_t *j = json_text(said);
                assert_non_null(j);
                char *dump CLEANUP(free_p) = json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
                assert_non_null(dump);
                for (const char *p = dump; *p; p++)
                        assert_true(*p >= 0x20 && *p <= 0x7f);
                json_decref(j);
        }
}

static void say_json(void *arg) { print_json(arg, JSON_COMPACT); }

static void json(void **state)
{
        json_t *o = json_object();
        json_object_set_new(o, "a",
                json_text("\x7f\xc2\x9b"
                          "31m\xe2\x80\xae\xff"));
        char *text CLEANUP(free_p) = captured(say_json, o, &stdout);
        assert_string_equal(text, "{\"a\":\"\\u007f\\u009B31m\\u202E\\\\xff\"}\n");
        json_decref(o);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(formats),
                cmocka_unit_test(columns),
                cmocka_unit_test(everywhere),
                cmocka_unit_test(any_bytes),
                cmocka_unit_test(json),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
