/* Addresses for machines that a cloud does not have yet, and their host keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"
#include "provider/address.h"
#include "provider/login.h"

static void takes(struct address_pool *p, const char *expected)
{
        struct ip ip;
        char text[IP_TEXT];
        assert_true(address_take(p, &ip));
        assert_string_equal(ip_format(&ip, text), expected);
}

static void test_first_free(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct address_pool p = { .arena = &a };
        struct ip ip;
        assert_true(cidr_parse("10.160.0.0/28", &p.net, NULL));
        assert_true(ip_parse("10.160.0.11", &ip));
        address_taken(&p, &ip);
        address_taken(&p, &ip);
        takes(&p, "10.160.0.10");
        takes(&p, "10.160.0.12");
        takes(&p, "10.160.0.13");
        takes(&p, "10.160.0.14");
        assert_false(address_take(&p, &ip)); /* .15 is for everybody */
}

static void test_range(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct address_pool p = { .arena = &a };
        struct ip ip;
        assert_true(cidr_parse("fd00::/64", &p.net, NULL));
        assert_true(ip_parse("fd00::100", &p.from) && ip_parse("fd00::101", &p.to));
        takes(&p, "fd00::100");
        takes(&p, "fd00::101");
        assert_false(address_take(&p, &ip));
}

static void test_many(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct address_pool p = { .arena = &a };
        struct ip ip;
        assert_true(cidr_parse("10.0.0.0/16", &p.net, NULL));
        for (uint64_t i = 300; i-- > 10;) {
                assert_true(cidr_nth(&p.net, i, &ip));
                address_taken(&p, &ip);
        }
        takes(&p, "10.0.1.44");
}

#define KEY "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINrSCXdzq2f/qvfPYPR1m6XKRvG94lCjLoemibFlYsaR"
/* 10.0.0.1, as ssh writes it with HashKnownHosts */
#define HASHED "|1|fqP7OWIMuhlCAprlZ0Epo4F2tzM=|Wk2Umc47VvUlfOJf0Q+tlNVoWjc="

static void test_forget(void **state)
{
        char dir[] = "/tmp/slipway-login-XXXXXX";
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        assert_non_null(mkdtemp(dir));
        struct provider_run run = { .state = dir };
        char *path CLEANUP(free_p) = path_join(dir, "known_hosts");
        static const char all[] = "10.0.0.1 " KEY "\n" HASHED " " KEY "\n10.0.0.11 " KEY "\n";
        assert_int_equal(login_forget(&run, "10.0.0.1", &err), 0); /* there is no file */
        assert_int_equal(file_write(path, all, strlen(all), 0644, 0, NULL, &err), 0);
        assert_int_equal(login_forget(&run, "10.0.0.1", &err), 0);
        assert_int_equal(file_read(path, 4096, &text, &err), 0);
        assert_string_equal(str_text(&text), "10.0.0.11 " KEY "\n");
        assert_int_equal(login_remove(&run, &err), 0);
        assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_free),
                cmocka_unit_test(test_range), cmocka_unit_test(test_many),
                cmocka_unit_test(test_forget) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
