/* SHA-256 against NIST's vectors (FIPS 180-4 examples and the byte-oriented short messages), with
 * the processor's instructions and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>

#include "base/sha256.h"

static const struct {
        const char *message;
        size_t repeat;
        const char *digest;
} vectors[] = {
        { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
        { "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
        { "\xd3", 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1" },
        { "\x5f\xd4", 1, "7c4fbf484498d21b487b9d61de8914b2eadaf2698712936d47c3ada2558f6788" },
        { "\x74\xba\x25\x21", 1,
                "b16aa56be3880d18cd41e68384cf1ec8c17680c45a02b1575dc1518923ae8b0e" },
};

static void test_vectors(void **state)
{
        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
                struct sha256 s;
                char out[SHA256_HEX];
                sha256_init(&s);
                for (size_t k = 0; k < vectors[i].repeat; k++)
                        sha256_add(&s, vectors[i].message, strlen(vectors[i].message));
                sha256_end(&s, out);
                assert_string_equal(out, vectors[i].digest);
                assert_true(sha256_valid(out));
        }
}

/* However the bytes are cut into pieces, the digest is the same. */
static void test_pieces(void **state)
{
        (void)state;
        char data[300], whole[SHA256_HEX], out[SHA256_HEX];
        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (char)(i * 7);
        for (size_t n = 0; n <= sizeof(data); n++) {
                sha256_hex(data, n, whole);
                for (size_t piece = 1; piece <= 130; piece += 13) {
                        struct sha256 s;
                        sha256_init(&s);
                        for (size_t at = 0; at < n; at += piece)
                                sha256_add(&s, data + at, n - at < piece ? n - at : piece);
                        sha256_end(&s, out);
                        assert_string_equal(out, whole);
                }
        }
}

static void test_file(void **state)
{
        (void)state;
        char out[SHA256_HEX], name[] = "/tmp/test_sha256.XXXXXX";
        int fd CLEANUP(close_p) = mkstemp(name);
        assert_true(fd >= 0 && write(fd, "abc", 3) == 3 && lseek(fd, 0, SEEK_SET) == 0);
        unlink(name);
        assert_int_equal(sha256_fd(fd, out), 0);
        assert_string_equal(out, vectors[1].digest);
        assert_int_equal(sha256_fd(-1, out), -EBADF);
        assert_false(sha256_valid("ABC"));
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_vectors),
                cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_file),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        if (failed || argc > 1)
                return failed;
        setenv("SLIPWAY_SHA256_PLAIN", "1",
                1); /* read once a process: the other way needs another one */
        execl("/proc/self/exe", argv[0], "plain", (char *)NULL);
        return 1;
}
