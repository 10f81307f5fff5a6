/* src/cloud without a network: limits and backoff by a clock of the test, dates, redaction,
 * answers, faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cloud/answer_rows.h"
#include "cloud/aws/ini.h"
#include "cloud/aws/sigv4.h"
#include "cloud/fault.h"
#include "cloud/limit.h"
#include "cloud/retry.h"
#include "cloud/session.h"

static void limit_is_kept(void **state)
{
        struct limit l;
        int64_t now = 1000000;
        unsigned sent = 0;
        limit_init(&l, 10, 5, 100, now);
        for (int64_t end = now + 10000; now < end; now += 7)
                for (; limit_wait(&l, now) == 0; sent++) {
                        limit_take(&l, now);
                        limit_give(&l);
                }
        assert_in_range(sent, 100, 105);
}

static void limit_waits_exactly(void **state)
{
        struct limit l;
        limit_init(&l, 4, 1, 2, 0);
        assert_int_equal(limit_wait(&l, 0), 0);
        limit_take(&l, 0);
        int64_t wait = limit_wait(&l, 0);
        assert_in_range(wait, 250, 251);
        assert_int_equal(limit_wait(&l, wait), 0);
        limit_take(&l, wait);
        assert_int_equal(limit_wait(&l, 100000), -1); /* two are running */
        limit_give(&l);
        assert_int_equal(limit_wait(&l, 100000), 0);
}

static void throttling_slows_down_once(void **state)
{
        struct limit l;
        limit_init(&l, 16, 16, 100, 0);
        for (int i = 0; i < 10; i++) /* they were sent together */
                limit_throttled(&l, 10, 2000);
        assert_true(l.rate > 7.9 && l.rate < 8.1);
        assert_int_equal(limit_wait(&l, 1000), 1010);
        assert_int_equal(limit_wait(&l, 2010), 0);
        for (int i = 0; i < 50; i++)
                limit_throttled(&l, 3000 + i * 10000, 1);
        assert_true(l.rate >= 1);
        for (int i = 0; i < 100; i++)
                limit_good(&l);
        assert_true(l.rate == 16);
}

static void a_clock_that_stands_still(void **state)
{
        struct limit l;
        limit_init(&l, 1, 1, 1, 500);
        limit_take(&l, 500);
        limit_give(&l);
        assert_true(limit_wait(&l, 500) > 0);
        assert_true(limit_wait(&l, 400) > 0); /* and one that goes back */
}

static void backoff_grows_and_jitters(void **state)
{
        int64_t most = 0;
        for (unsigned n = 1; n < 40; n++) {
                int64_t low = retry_backoff(n, 0), high = 0;
                for (uint32_t r = 0; r <= 20000; r++)
                        high = retry_backoff(n, r) > high ? retry_backoff(n, r) : high;
                assert_true(low * 2 <= high + 1 && high <= 20000 && high >= most);
                most = high;
        }
        assert_int_equal(retry_backoff(1, 0), 125);
        assert_int_equal(most, 20000);
}

static void retry_after_is_read(void **state)
{
        int64_t at = http_date("Wed, 21 Oct 2015 07:28:00 GMT");
        assert_int_equal(at, 1445412480);
        assert_int_equal(http_date("Wednesday, 21-Oct-15 07:28:00 GMT"), at);
        assert_int_equal(http_date("soon"), -1);
        assert_int_equal(retry_after("3", 0), 3000);
        assert_int_equal(retry_after("0", 0), 0);
        assert_int_equal(retry_after("99999999999999999999", 0), RETRY_AFTER_MAX);
        assert_int_equal(retry_after("-1", 0), -1);
        assert_int_equal(retry_after("3 s", 0), -1);
        assert_int_equal(retry_after("", 0), -1);
        assert_int_equal(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", at - 5), 5000);
        assert_int_equal(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", at + 5), 0);
        assert_int_equal(retry_after("Wed, 21 Oct 2099 07:28:00 GMT", at), RETRY_AFTER_MAX);
}

static void times_are_read(void **state)
{
        assert_int_equal(iso_date("2015-10-21T07:28:00Z"), 1445412480);
        assert_int_equal(iso_date("2015-10-21T07:28:00.000000Z"), 1445412480);
        assert_int_equal(iso_date("2015-10-21T07:28:00+00:00"), 1445412480);
        assert_int_equal(iso_date("2015-10-21T07:28:00+02:00"), -1);
        assert_int_equal(iso_date("yesterday"), -1);
        char date[SIGV4_DATE];
        sigv4_date(1440938160, date);
        assert_string_equal(date, "20150830T123600Z");
        /* renewed when less than five minutes, or half of its life, is left */
        assert_false(renewal_due(3600000, 300001));
        assert_true(renewal_due(3600000, 299999));
        assert_false(renewal_due(60000, 30001));
        assert_true(renewal_due(60000, 29999));
}

static void expect_redacted(const struct secrets *s, const char *text, const char *wanted)
{
        struct str out CLEANUP(str_release) = { 0 };
        redact(&out, s, text, 1000);
        assert_string_equal(str_text(&out), wanted);
}

static void secrets_are_hidden(void **state)
{
        struct secrets s CLEANUP(secrets_release) = { 0 };
        secrets_add(&s, "gAAAAtoken");
        secrets_add(&s, "short");
        expect_redacted(&s, "token gAAAAtoken is bad", "token [hidden] is bad");
        expect_redacted(&s, "short words stay", "short words stay");
        expect_redacted(NULL, "x&X-Amz-Signature=abc123&y=1", "x&X-Amz-Signature=[hidden]&y=1");
        expect_redacted(NULL, "{\"password\": \"a \\\"b\\\" c\", \"x\": 1}",
                "{\"password\":[hidden], \"x\": 1}");
        expect_redacted(NULL, "X-Auth-Token: abc def", "X-Auth-Token:[hidden] def");
        expect_redacted(NULL, "Authorization: AWS4 Credential=x, Signature=y\nHost: z",
                "Authorization:[hidden]\\nHost: z");
        expect_redacted(NULL, "<SecretAccessKey>abc</SecretAccessKey>",
                "<SecretAccessKey>[hidden]</SecretAccessKey>");
        expect_redacted(NULL, "UserData=IyEvYmlu&x", "UserData=[hidden]&x");
        expect_redacted(NULL, "'user_data': 'abc'", "'user_data':[hidden]");
        expect_redacted(NULL, "The signature does not match", "The signature does not match");
        expect_redacted(NULL, "password", "password");
        expect_redacted(NULL, "a\x1b[1m\nb", "a\\u{1b}[1m\\nb");
        for (int i = 0; i < 200; i++) {
                char word[32];
                snprintf(word, sizeof(word), "secret-%d", i);
                secrets_add(&s, word);
        }
        expect_redacted(&s, "secret-199", "[hidden]");
}

struct thing {
        const char *name;
        int64_t size;
        bool on;
        struct strings tags;
        struct pairs labels;
        struct answers parts;
};
struct part {
        const char *id;
};
static const struct answer_field part_fields[] = { FIELD(
        part, id, "id", A_TEXT, .max = 4, .required = true) };
SCHEMA(part, "part");
static const struct answer_field thing_fields[] = {
        NEED(thing, name, "meta.name"),
        FIELD(thing, size, "size", A_NUMBER),
        FIELD(thing, on, "on", A_FLAG),
        FIELD(thing, tags, "tags", A_TEXTS, .max = 3),
        FIELD(thing, labels, "labels", A_PAIRS),
        FIELD(thing, parts, "parts.item", A_MANY, .max = 2, .sub = &part_schema),
};
SCHEMA(thing, "thing");

static int read_thing(const char *text, struct arena *a, struct thing *t, struct error *err)
{
        json_t *j = json_loads(text, 0, NULL);
        assert_non_null(j);
        *t = (struct thing){ 0 };
        int r = answer_read(&thing_schema, j, a, t, err);
        json_decref(j);
        return r;
}

static void answers_are_read(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct thing t;
        assert_int_equal(
                read_thing(
                        "{\"meta\": {\"name\": \"x\"}, \"size\": 7, \"on\": true, \"tags\": [\"a\", 2], \"labels\": {\"k\": \"v\", \"n\": null}, \"parts\": {\"item\": [{\"id\": \"1\"}, {\"id\": 2}]}}",
                        &a, &t, &err),
                0);
        assert_string_equal(t.name, "x");
        assert_int_equal(t.size, 7);
        assert_true(t.on);
        assert_int_equal(t.tags.n, 2);
        assert_string_equal(t.tags.v[1], "2");
        assert_string_equal(t.labels.v[1].value, "");
        assert_string_equal(((struct part *)t.parts.v)[1].id, "2");
        /* XML's texts, and its lists of one */
        assert_int_equal(
                read_thing(
                        "{\"meta\": {\"name\": \"x\"}, \"size\": \"12\", \"on\": \"false\", \"tags\": \"a\", \"labels\": {\"key\": \"k\", \"value\": \"v\"}, \"parts\": {\"item\": {\"id\": \"1\"}}}",
                        &a, &t, &err),
                0);
        assert_int_equal(t.size, 12);
        assert_false(t.on);
        assert_int_equal(t.tags.n, 1);
        assert_int_equal(t.labels.n, 1);
        assert_string_equal(t.labels.v[0].key, "k");
        assert_int_equal(t.parts.n, 1);
        /* nothing where something may be missing */
        assert_int_equal(
                read_thing(
                        "{\"meta\": {\"name\": \"x\"}, \"size\": null, \"tags\": null, \"parts\": \"\"}",
                        &a, &t, &err),
                0);
        assert_int_equal(t.tags.n + t.parts.n + (size_t)t.size, 0);
}

/* What a cloud counts cannot overflow what is computed from it, and 255 characters may be four
 * bytes each. */
static void answers_at_their_bounds(void **state)
{
        static const struct {
                const char *text;
                int64_t size;
        } cases[] = { { "1e300", INT64_C(1) << 50 }, { "-1e300", -(INT64_C(1) << 50) },
                { "9223372036854775807", INT64_C(1) << 50 },
                { "\"-9223372036854775808\"", -(INT64_C(1) << 50) }, { "-1", -1 }, { "7.9", 7 } };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct thing t;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                char *text CLEANUP(free_p) =
                        xasprintf("{\"meta\": {\"name\": \"x\"}, \"size\": %s}", cases[i].text);
                assert_int_equal(read_thing(text, &a, &t, &err), 0);
                assert_int_equal(t.size, cases[i].size);
        }
        for (size_t n = 255; n <= 256; n++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct str s CLEANUP(str_release) = { 0 };
                str_add(&s, "{\"meta\": {\"name\": \"");
                for (size_t i = 0; i < n; i++)
                        str_add(&s, "\xf0\x9f\x9a\xa2");
                str_add(&s, "\"}}");
                assert_int_equal(read_thing(str_text(&s), &a, &t, &err) == 0, n == 255);
        }
}

static void answers_are_bounded(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                { "{}", "thing: meta.name: expected a value" },
                { "[]", "thing: expected an object" },
                { "{\"meta\": {\"name\": [1]}}",
                        "thing: meta.name: expected a text of usual length" },
                { "{\"meta\": {\"name\": \"x\"}, \"size\": \"1x\"}",
                        "thing: size: expected a number" },
                { "{\"meta\": {\"name\": \"x\"}, \"size\": \"99999999999999999999\"}",
                        "thing: size: expected a number" },
                { "{\"meta\": {\"name\": \"x\"}, \"on\": \"yes\"}",
                        "thing: on: expected true or false" },
                { "{\"meta\": {\"name\": \"x\"}, \"tags\": [\"1\", \"2\", \"3\", \"4\"]}",
                        "thing: tags: expected a shorter list" },
                { "{\"meta\": {\"name\": \"x\"}, \"parts\": {\"item\": [{\"id\": \"12345\"}]}}",
                        "thing: part: id: expected a text of usual length" },
                { "{\"meta\": {\"name\": \"x\"}, \"parts\": {\"item\": [{\"id\": \"1\"}, {\"id\": \"1\"}, {\"id\": \"1\"}]}}",
                        "thing: the list of parts has 3 entries, at most 2 are expected" },
                { "{\"meta\": {\"name\": \"x\"}, \"labels\": [{\"value\": \"v\"}]}",
                        "thing: labels: expected names with texts" },
        };
        struct arena a CLEANUP(arena_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct thing t;
                assert_true(read_thing(cases[i].text, &a, &t, &err) < 0);
                assert_string_equal(err.message, cases[i].why);
        }
}

static void faults_are_sentences(void **state)
{
        static const struct {
                int status;
                const char *body, *sentence;
                enum fault_kind kind;
        } cases[] = {
                { 404, "{\"itemNotFound\": {\"message\": \"No server.\", \"code\": 404}}",
                        "nova: create server w1: status 404: No server (request r1)",
                        FAULT_ABSENT },
                { 403, "{\"forbidden\": {\"message\": \"Quota exceeded for cores\", \"code\": 403}}",
                        "nova: create server w1: status 403: Quota exceeded for cores (request r1)",
                        FAULT_QUOTA },
                { 409, "{\"NeutronError\": {\"type\": \"OverQuota\", \"message\": \"Quota exceeded\", \"detail\": \"\"}}",
                        "nova: create server w1: status 409: OverQuota: Quota exceeded (request r1)",
                        FAULT_QUOTA },
                { 409, "{\"faultcode\": \"Client\", \"faultstring\": \"Immutable\", \"debuginfo\": null}",
                        "nova: create server w1: status 409: Client: Immutable (request r1)",
                        FAULT_CONFLICT },
                { 413, "{\"overLimit\": {\"message\": \"too much\"}}",
                        "nova: create server w1: status 413: too much (request r1)", FAULT_QUOTA },
                { 400, "{\"Errors\": {\"Error\": {\"Code\": \"InvalidVpcID.NotFound\", \"Message\": \"gone\"}}, \"RequestID\": \"x\"}",
                        "nova: create server w1: status 400: InvalidVpcID.NotFound: gone (request r1)",
                        FAULT_ABSENT },
                { 400, "{\"Error\": {\"Code\": \"Throttling\", \"Message\": \"slow\"}, \"RequestId\": \"x\"}",
                        "nova: create server w1: status 400: Throttling: slow (request r1)",
                        FAULT_THROTTLED },
                { 400, "{\"__type\": \"com.amazon#AccessDeniedException\", \"Message\": \"no\"}",
                        "nova: create server w1: status 400: AccessDeniedException: no (request r1)",
                        FAULT_FORBIDDEN },
                { 500, "[]", "nova: create server w1: status 500 (request r1)", FAULT_SERVER },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct fault f = { .status = cases[i].status,
                        .service = xstrdup("nova"),
                        .call = xstrdup("create server"),
                        .resource = xstrdup("w1") };
                json_t *body = json_loads(cases[i].body, 0, NULL);
                fault_read(&f, NULL, body, cases[i].body, NULL, "r1");
                assert_int_equal(f.kind, cases[i].kind);
                assert_true(fault_error(&f, &err) < 0);
                assert_string_equal(err.message, cases[i].sentence);
                json_decref(body);
                fault_release(&f);
        }
        struct fault page = { .status = 502, .service = xstrdup("s"), .call = xstrdup("c") };
        struct error err CLEANUP(error_release) = { 0 };
        fault_read(&page, NULL, NULL, "<html><h1>502</h1>\n<p>Bad  gateway</p></html>", NULL, NULL);
        fault_error(&page, &err);
        assert_string_equal(err.message, "s: c: status 502: 502 Bad gateway");
        fault_release(&page);
}

static void words_are_split_as_a_shell_does(void **state)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        size_t n;
        const char **w = words_split(&a, " a 'b c' \"d \\\" e\"f g\\ h '' ", &n);
        assert_int_equal(n, 5);
        assert_string_equal(w[1], "b c");
        assert_string_equal(w[2], "d \" ef");
        assert_string_equal(w[3], "g h");
        assert_string_equal(w[4], "");
        assert_null(words_split(&a, "a 'b", &n));
        assert_null(words_split(&a, "a\\", &n));
        assert_non_null(words_split(&a, "", &n));
        assert_int_equal(n, 0);
}

static void ini_errors_name_the_line(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                { "a = b\n", "f:1: expected a section [NAME] before the first option" },
                { "[a]\nb\n", "f:2: expected NAME = VALUE" },
                { "[a]\n[a]\n", "f:2: the section is there twice" },
                { "[a]\nb=1\n\nB=2\n", "f:4: the option is there twice" },
                { "[a]\n = 1\n", "f:2: the option has no name" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arena a CLEANUP(arena_release) = { 0 };
                struct error err CLEANUP(error_release) = { 0 };
                struct ini ini;
                assert_true(
                        ini_parse(&a, "f", cases[i].text, strlen(cases[i].text), &ini, &err) < 0);
                assert_string_equal(err.message, cases[i].why);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(limit_is_kept),
                cmocka_unit_test(limit_waits_exactly),
                cmocka_unit_test(throttling_slows_down_once),
                cmocka_unit_test(a_clock_that_stands_still),
                cmocka_unit_test(backoff_grows_and_jitters),
                cmocka_unit_test(retry_after_is_read),
                cmocka_unit_test(times_are_read),
                cmocka_unit_test(secrets_are_hidden),
                cmocka_unit_test(answers_are_read),
                cmocka_unit_test(answers_at_their_bounds),
                cmocka_unit_test(answers_are_bounded),
                cmocka_unit_test(faults_are_sentences),
                cmocka_unit_test(words_are_split_as_a_shell_does),
                cmocka_unit_test(ini_errors_name_the_line),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
