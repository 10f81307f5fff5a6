/* People who leave: who is known to have been given a certificate, and until when the longest of
 * theirs lasts. */
#include "pki_fixture.h"

static void people_ok(time_t now)
{
        struct identity id;
        struct error err CLEANUP(error_release) = { 0 };
        open_ok(&id, now);
        if (identity_people(&id, &cluster, &err) < 0)
                fail_msg("%s", err.message);
        identity_release(&id);
}

static void test_shut_out(void **unused)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct outsider *out;
        struct identity id;
        people_ok(NOW);
        open_ok(&id, NOW);
        assert_int_equal(identity_outsiders(&id, &cluster, &arena, &out), 0);
        cluster.auth.users.n = 0;
        assert_int_equal(identity_outsiders(&id, &cluster, &arena, &out), 2);
        assert_string_equal(out[0].name, "../root: #");
        assert_int_equal(out[0].groups.n, 0);
        assert_string_equal(out[1].name, "alice");
        assert_int_equal(out[1].groups.n, 2);
        assert_string_equal(out[1].groups.v[1], "ops");
        assert_int_equal(out[1].until, NOW + YEAR);
        assert_int_equal(identity_shut_out(&id, &out[1], &err), 0);
        assert_int_equal(identity_outsiders(&id, &cluster, &arena, &out), 1);
        identity_release(&id);
        char *past = path_join(dir, "past/alice.pem");
        struct str text CLEANUP(str_release) = { 0 };
        assert_int_equal(file_read(past, PEM_MAX, &text, &err), 0);
        assert_null(strstr(str_text(&text), "PRIVATE"));
        free(past);
        open_ok(&id, NOW + DAY);
        assert_true(identity_lets_in(&id, str_text(&text)));
        identity_release(&id);
        open_ok(&id, NOW + 2 * YEAR);
        assert_false(identity_lets_in(&id, str_text(&text)));
        identity_release(&id);
}

/* A shorter life for the next certificate does not shorten that of the one before. */
static void test_longest_counts(void **unused)
{
        struct outsider *out;
        struct identity id;
        people_ok(NOW);
        users[0].lifetime = DAY;
        people_ok(NOW + 2 * DAY);
        people_ok(NOW + 4 * DAY);
        cluster.auth.users.n = 0;
        open_ok(&id, NOW + 4 * DAY);
        assert_int_equal(identity_outsiders(&id, &cluster, &arena, &out), 2);
        assert_int_equal(out[1].until, NOW + YEAR);
        identity_release(&id);
}

/* A new authority ends them. */
static void test_rotation_ends_it(void **unused)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_wipe_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(dir, "users/alice.pem");
        struct identity id;
        people_ok(NOW);
        assert_int_equal(file_read(path, PEM_MAX, &text, &err), 0);
        assert_int_equal(identity_rotate(state, &cluster, 1U << ROTATE_CA, NOW, &err), 0);
        for (int phase = 0, r = 1; r == 1; phase++) {
                open_ok(&id, NOW);
                assert_int_equal(identity_lets_in(&id, str_text(&text)), phase < 2);
                r = identity_rotate_on(&id, &cluster, true, &err);
                identity_release(&id);
        }
        open_ok(&id, NOW);
        assert_false(identity_lets_in(&id, str_text(&text)));
        identity_release(&id);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(test_shut_out),
                T(test_longest_counts),
                T(test_rotation_ends_it),
        };
        return cmocka_run_group_tests_name("people", tests, NULL, NULL);
}
