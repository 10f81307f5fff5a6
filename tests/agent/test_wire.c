/* The wire protocol: what is written is read back, and no stream of bytes, cut or bent anywhere, is
 * taken for more than it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "deliver/wire.h"

static void sample(struct str *s)
{
        size_t b = wire_begin(s, WIRE_ENTRY);
        wire_number(s, TAG_KIND, 1);
        wire_text(s, TAG_PATH, "/etc/x");
        wire_text(s, TAG_NAME, NULL);
        wire_bytes(s, TAG_CONTENT, "a\0b", 3);
        wire_text(s, TAG_UNITS, "");
        wire_end(s, b);
        wire_end(s, wire_begin(s, WIRE_SPEC_END));
        b = wire_begin(s, WIRE_RUN);
        wire_text(s, TAG_ARG, "one");
        wire_text(s, TAG_ARG, "two");
        wire_number(s, TAG_ID, UINT64_MAX);
        wire_end(s, b);
}

static void test_round_trip(void **state)
{
        (void)state;
        struct str s CLEANUP(str_release) = { 0 };
        struct wire_frame f;
        struct wire_field v;
        sample(&s);
        assert_int_equal(wire_frame(s.data, s.len, &f), 1);
        assert_int_equal(f.type, WIRE_ENTRY);
        assert_int_equal(wire_value(&f, TAG_KIND, 9), 1);
        assert_int_equal(wire_value(&f, TAG_CLASS, 9), 9);
        assert_int_equal(wire_value(&f, TAG_PATH, 9), 9); /* not a number */
        char *path CLEANUP(free_p) = wire_string(&f, TAG_PATH),
                   *units CLEANUP(free_p) = wire_string(&f, TAG_UNITS);
        assert_string_equal(path, "/etc/x");
        assert_string_equal(units, "");
        assert_null(wire_string(&f, TAG_NAME));
        assert_null(wire_string(&f, TAG_CONTENT)); /* has a NUL */
        assert_true(wire_find(&f, TAG_CONTENT, &v));
        assert_int_equal(v.len, 3);
        assert_memory_equal(v.data, "a\0b", 3);

        size_t at = f.whole;
        assert_int_equal(wire_frame(s.data + at, s.len - at, &f), 1);
        assert_int_equal(f.type, WIRE_SPEC_END);
        assert_int_equal(f.len, 0);
        at += f.whole;
        assert_int_equal(wire_frame(s.data + at, s.len - at, &f), 1);
        assert_int_equal(wire_value(&f, TAG_ID, 0), UINT64_MAX);
        size_t args = 0;
        for (size_t i = 0; wire_field(&f, &i, &v) > 0;)
                args += v.tag == TAG_ARG;
        assert_int_equal(args, 2);
        assert_int_equal(at + f.whole, s.len);
}

/* Cut anywhere: whole frames before the cut, "more is needed" at it, never an error. */
static void test_every_truncation(void **state)
{
        (void)state;
        struct str s CLEANUP(str_release) = { 0 };
        sample(&s);
        for (size_t cut = 0; cut <= s.len; cut++) {
                char *copy CLEANUP(free_p) = xmalloc(
                        cut); /* of its own size, so that the sanitizer sees a read past it */
                memcpy(copy, s.data, cut);
                size_t at = 0, frames = 0;
                struct wire_frame f;
                int r;
                while ((r = wire_frame(copy + at, cut - at, &f)) > 0) {
                        at += f.whole;
                        frames++;
                }
                assert_int_equal(r, 0);
                assert_true(at <= cut && (cut < s.len || frames == 3));
        }
}

static void test_what_cannot_be_a_frame(void **state)
{
        (void)state;
        struct wire_frame f;
        static const struct {
                const char *bytes;
                size_t n;
        } bad[] = {
                { "SSH-2.0", 7 }, /* a length beyond the maximum: some other program speaks */
                { "\x01\x00\x10\x00", 4 }, /* one more than the maximum */
                { "\0\0\0\0\0", 5 },       /* type 0 */
                { "\0\0\0\0\x09", 5 },     /* between the two halves */
                { "\0\0\0\0\xff", 5 },     /* past the end */
                { "\x03\0\0\0\x21"         /* a field that is too short to be one */
                  "\x01\0\0",
                        8 },
                { "\x05\0\0\0\x21" /* one that is longer than the frame */
                  "\x01\x01\0\0\0",
                        10 },
                { "\x05\0\0\0\x21"
                  "\x01\xff\xff\xff\xff",
                        10 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(wire_frame(bad[i].bytes, bad[i].n, &f), -EPROTO);
        assert_int_equal(wire_frame("\0\0\x10\0\x01", 5, &f), 0); /* the maximum itself */
}

/* Every byte bent in every way that one bit can: an answer, and no field outside the frame. */
static void test_bent(void **state)
{
        (void)state;
        struct str s CLEANUP(str_release) = { 0 };
        sample(&s);
        for (size_t bit = 0; bit < s.len * 8; bit++) {
                char *copy CLEANUP(free_p) = xmalloc(s.len);
                memcpy(copy, s.data, s.len);
                copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
                struct wire_frame f;
                struct wire_field v;
                for (size_t at = 0; at < s.len && wire_frame(copy + at, s.len - at, &f) > 0;
                        at += f.whole)
                        for (size_t i = 0; wire_field(&f, &i, &v) > 0;)
                                assert_true(
                                        v.data >= f.payload && v.data + v.len <= f.payload + f.len);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_every_truncation),
                cmocka_unit_test(test_what_cannot_be_a_frame),
                cmocka_unit_test(test_bent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
