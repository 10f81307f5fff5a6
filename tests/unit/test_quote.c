#include "base/base.h"

#include <setjmp.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "../fuzz/quote_readers.h"
#include "base/tree.h"

static const char *const hostile[] = {
        "",
        " ",
        "plain",
        "yes",
        "No",
        "ON",
        "y",
        "null",
        "~",
        "0x1f",
        "012",
        "1e3",
        ".inf",
        ".5",
        "-1",
        "12:30:45",
        "2001-01-01",
        "1_000",
        "=",
        "<<",
        "-",
        "--",
        "---",
        "--x",
        "? a",
        "a: b",
        "a #b",
        "#a",
        "a:",
        "'",
        "\"",
        "\\",
        "a\\",
        "\\n",
        "$HOME",
        "${HOME}",
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "\"; touch pwned; \"",
        "a\nb",
        "a\\\nb",
        "\n",
        "a\r\nb",
        "\t",
        "%n",
        "%%",
        "%",
        ";",
        "a ; b",
        "&a",
        "*a",
        "!a",
        "{a: b}",
        "[a]",
        "{{name}}",
        "a,b",
        "x\"\n[plugins]\nevil = \"1",
        "\"\"\"",
        "x\nExecStart=/bin/evil",
        "x\nEVIL=1",
        "\xff\xfe",
        "caf\xc3\xa9",
        "caf\xe9",
        "\xc2\x85",
        "\xe2\x80\xa8",
        "\xef\xbb\xbf",
        "\xf0\x9f\x98\x80",
        "\xed\xa0\x80",
        "\xc0\xaf",
        "\x01\x02\x1b[31m",
        "\x7f",
        "--controllers=*,bootstrapsigner",
        "--etcd-servers=https://[fd00::1]:2379",
        "pass'word\"with\\all$of`them%n",
};

static const char *quoted(struct str *s, void (*quote)(struct str *, const char *), const char *v)
{
        str_truncate(s, 0);
        quote(s, v);
        return str_text(s);
}

static void test_round_trips(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
                check_quoting(hostile[i]);
}

/* Every single byte, and every pair of the ones that mean something somewhere. */
static void test_every_byte(void **state)
{
        static const char odd[] = "\"'\\$%`;#!&*?{}[]()<>|~^:,=- \t\n\ra0";
        char v[3] = { 0 };
        for (int c = 1; c < 256; c++) {
                v[0] = (char)c;
                check_quoting(v);
        }
        for (const char *a = odd; *a; a++)
                for (const char *b = odd; *b; b++) {
                        v[0] = *a;
                        v[1] = *b;
                        check_quoting(v);
                }
}

static void test_plain_where_safe(void **state)
{
        struct str s CLEANUP(str_release) = { 0 };
        assert_string_equal(quoted(&s, quote_yaml, "kube-system"), "kube-system");
        assert_string_equal(quoted(&s, quote_yaml, "--secure-port=6443"), "--secure-port=6443");
        assert_string_equal(quoted(&s, quote_yaml, "/etc/kubernetes/pki"), "/etc/kubernetes/pki");
        assert_string_equal(quoted(&s, quote_yaml, "yes"), "\"yes\"");
        assert_string_equal(quoted(&s, quote_yaml, "10.0.0.1"), "\"10.0.0.1\"");
        assert_string_equal(quoted(&s, quote_shell, "a-b_c.d/e"), "a-b_c.d/e");
        assert_string_equal(quoted(&s, quote_shell, "it's"), "'it'\\''s'");
        assert_string_equal(quoted(&s, quote_unit, "50% of $x"), "\"50%% of $$x\"");
        assert_string_equal(quoted(&s, quote_env, "a$b\"c"), "\"a\\$b\\\"c\"");
        assert_string_equal(quoted(&s, quote_conf, "cp-1"), "cp-1");
        assert_string_equal(quoted(&s, quote_conf, "a\nb\"c"), "\"a_b_c\"");
        assert_string_equal(quoted(&s, quote_path, "/a%b\\"), "/a%%b_");
        assert_string_equal(quoted(&s, quote_line, "1\nx = 2"), "1 x = 2");
}

/* Whatever we leave plain, kubectl's YAML must take for a string. */
static void test_yaml_types(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
                struct arena a CLEANUP(arena_release) = { 0 };
                struct error err CLEANUP(error_release) = { 0 };
                struct str s CLEANUP(str_release) = { 0 };
                struct tree *t;
                str_add(&s, "key: ");
                quote_yaml(&s, hostile[i]);
                if (tree_parse(&a, "quoted", str_text(&s), s.len, &t, &err) < 0)
                        continue; /* characters that a cluster.yaml may not hold */
                assert_int_equal(tree_type(tree_get(t, "key")), TREE_STRING);
        }
}

/* Runs a program and returns what it printed. */
static void output_of(const char *const *argv, struct str *out)
{
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                dup2(pipes[1], STDOUT_FILENO);
                close(pipes[0]);
                close(pipes[1]);
                execvp(argv[0], (char *const *)(uintptr_t)argv);
                _exit(127);
        }
        close(pipes[1]);
        char buf[4096];
        for (ssize_t n; (n = read(pipes[0], buf, sizeof(buf))) > 0;)
                str_addn(out, buf, (size_t)n);
        close(pipes[0]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* sh is the judge of its own words, and of what it sources. */
static void test_shell_judges(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
                struct str script CLEANUP(str_release) = { 0 }, out CLEANUP(str_release) = { 0 };
                str_add(&script, "set -- ");
                quote_shell(&script, hostile[i]);
                str_add(&script, "; printf '%s|%s' $# \"$1\"");
                const char *const argv[] = { "sh", "-c", str_text(&script), NULL };
                output_of(argv, &out);
                assert_true(has_prefix(str_text(&out), "1|"));
                assert_string_equal(str_text(&out) + 2, hostile[i]);
        }
}

static void test_shell_reads_env(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
                struct str script CLEANUP(str_release) = { 0 }, out CLEANUP(str_release) = { 0 },
                                  back CLEANUP(str_release) = { 0 }, q CLEANUP(str_release) = { 0 };
                quote_env(&q, hostile[i]);
                read_env(&back, str_text(&q));
                str_addf(&script, "V=%s\nprintf %%s \"$V\"", str_text(&q));
                const char *const argv[] = { "sh", "-c", str_text(&script), NULL };
                output_of(argv, &out);
                assert_string_equal(str_text(&out), str_text(&back));
        }
}

/* Python's own readers judge TOML and JSON. */
static void test_python_judges(void **state)
{
        static const char program[] =
                "import sys\n"
                "try:\n    import tomllib\nexcept ImportError:\n    sys.exit(0)\n"
                "import json\n"
                "t = tomllib.loads(sys.argv[1])['v']\n"
                "j = json.loads(sys.argv[2])\n"
                "w = [bytes.fromhex(h).decode() for h in sys.argv[3].split(',')]\n"
                "sys.exit(0 if t == w and j == w else 1)\n";
        struct str toml CLEANUP(str_release) = { 0 }, json CLEANUP(str_release) = { 0 },
                        hex CLEANUP(str_release) = { 0 }, out CLEANUP(str_release) = { 0 };
        str_add(&toml, "v = [");
        str_add(&json, "[");
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
                struct str clean CLEANUP(str_release) = { 0 };
                clean_utf8(&clean, hostile[i]);
                str_add(&toml, i ? ", " : "");
                str_add(&json, i ? ", " : "");
                str_add(&hex, i ? "," : "");
                quote_toml(&toml, hostile[i]);
                quote_json(&json, hostile[i]);
                str_add_hex(&hex, str_text(&clean), clean.len);
        }
        str_add(&toml, "]\n");
        str_add(&json, "]");
        if (access("/usr/bin/python3", X_OK) < 0) {
                print_message("skip: python3 is not installed\n");
                skip();
        }
        const char *const argv[] = { "/usr/bin/python3", "-c", program, str_text(&toml),
                str_text(&json), str_text(&hex), NULL };
        output_of(argv, &out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trips),
                cmocka_unit_test(test_every_byte),
                cmocka_unit_test(test_plain_where_safe),
                cmocka_unit_test(test_yaml_types),
                cmocka_unit_test(test_shell_judges),
                cmocka_unit_test(test_shell_reads_env),
                cmocka_unit_test(test_python_judges),
        };
        return cmocka_run_group_tests_name("quote", tests, NULL, NULL);
}
