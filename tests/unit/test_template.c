#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>

#include "base/embed.h"
#include "node/template.h"

static void check(
        const char *text, enum template_format format, const char *values, const char *want)
{
        struct str out CLEANUP(str_release) = { 0 };
        json_error_t e;
        json_t *v = json_loads(values, 0, &e);
        assert_non_null(v);
        template_text(text, format, v, &out);
        json_decref(v);
        assert_string_equal(str_text(&out), want);
}

static void test_values(void **state)
{
        check("a {{x}} b", TEMPLATE_RAW, "{\"x\": \"1\"}", "a 1 b");
        check("{{ x }}", TEMPLATE_RAW, "{\"x\": 7}", "7");
        check("{{x}}", TEMPLATE_YAML, "{\"x\": true}", "true");
        check("{{x}}", TEMPLATE_YAML, "{\"x\": \"true\"}", "\"true\"");
        check("{{a.b.c}}", TEMPLATE_RAW, "{\"a\": {\"b\": {\"c\": \"deep\"}}}", "deep");
        check("{{{x}}}", TEMPLATE_YAML, "{\"x\": \"a: b\"}", "a: b");
        check("{{x|base64}}", TEMPLATE_YAML, "{\"x\": \"foo\"}", "Zm9v");
        check("k: |\n  {{x|indent 2}}\n", TEMPLATE_YAML, "{\"x\": \"a\\nb\\n\\nc\"}",
                "k: |\n  a\n  b\n\n  c\n");
        check("What={{x|path}}", TEMPLATE_UNIT, "{\"x\": \"/dev/a b%c\\n[Unit]\"}",
                "What=/dev/a b%%c_[Unit]");
}

static void test_formats(void **state)
{
        static const struct {
                enum template_format format;
                const char *want;
        } table[] = {
                { TEMPLATE_RAW, "a\"b $c" },
                { TEMPLATE_YAML, "\"a\\\"b $c\"" },
                { TEMPLATE_JSON, "\"a\\\"b $c\"" },
                { TEMPLATE_TOML, "\"a\\\"b $c\"" },
                { TEMPLATE_UNIT, "\"a\\\"b $$c\"" },
                { TEMPLATE_ENV, "\"a\\\"b \\$c\"" },
                { TEMPLATE_SHELL, "'a\"b $c'" },
                { TEMPLATE_CONF, "\"a_b _c\"" },
                { TEMPLATE_LINE, "a\"b $c" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                check("{{x}}", table[i].format, "{\"x\": \"a\\\"b $c\"}", table[i].want);
}

static void test_sections(void **state)
{
        check("{{#x}}yes{{/x}}{{^x}}no{{/x}}", TEMPLATE_RAW, "{\"x\": true}", "yes");
        check("{{#x}}yes{{/x}}{{^x}}no{{/x}}", TEMPLATE_RAW, "{\"x\": false}", "no");
        check("{{#x}}yes{{/x}}{{^x}}no{{/x}}", TEMPLATE_RAW, "{}", "no");
        check("{{#x}}yes{{/x}}{{^x}}no{{/x}}", TEMPLATE_RAW, "{\"x\": \"\"}", "no");
        check("{{#x}}yes{{/x}}{{^x}}no{{/x}}", TEMPLATE_RAW, "{\"x\": []}", "no");
        check("{{#x}}yes{{/x}}{{^x}}no{{/x}}", TEMPLATE_RAW, "{\"x\": 0}", "no");
        check("{{#x}}{{.}},{{/x}}", TEMPLATE_RAW, "{\"x\": [\"a\", \"b\"]}", "a,b,");
        check("{{#x}}{{n}}{{outer}};{{/x}}", TEMPLATE_RAW,
                "{\"x\": [{\"n\": 1}, {\"n\": 2, \"outer\": \"i\"}], \"outer\": \"o\"}", "1o;2i;");
        check("{{#x}}{{#y}}{{z}}{{/y}}{{/x}}", TEMPLATE_RAW,
                "{\"x\": {\"y\": [{\"z\": 1}, {\"z\": 2}]}}", "12");
}

static void test_lines(void **state)
{
        check("a\n{{#x}}\nb\n{{/x}}\nc\n", TEMPLATE_RAW, "{\"x\": true}", "a\nb\nc\n");
        check("a\n{{#x}}\nb\n{{/x}}\nc\n", TEMPLATE_RAW, "{\"x\": false}", "a\nc\n");
        check("  {{#x}}\n  - {{.}}\n  {{/x}}\nc\n", TEMPLATE_RAW, "{\"x\": [\"a\", \"b\"]}",
                "  - a\n  - b\nc\n");
        check("{{#x}}\n{{#y}}\nb\n{{/y}}\n{{/x}}\n{{^x}}\nc\n{{/x}}\n", TEMPLATE_RAW,
                "{\"x\": true, \"y\": true}", "b\n");
        check("a {{#x}}b{{/x}}\nc", TEMPLATE_RAW, "{\"x\": true}", "a b\nc");
        check("{{#x}}\nb\n{{/x}}", TEMPLATE_RAW, "{\"x\": true}", "b\n");
}

/* Braces in a value are only a value. */
static void test_values_are_not_templates(void **state)
{
        check("{{x}} {{y}}", TEMPLATE_RAW, "{\"x\": \"{{y}}\", \"y\": \"{{#y}}\"}", "{{y}} {{#y}}");
}

/* Every embedded template has an ending that says how values are quoted, and parses. */
static void test_embedded(void **state)
{
        assert_true(templates.count > 30);
        for (size_t i = 0; i < templates.count; i++)
                assert_int_not_equal(template_format_of(templates.files[i].name), TEMPLATE_RAW);
        struct str out CLEANUP(str_release) = { 0 };
        json_t *v = json_object();
        template_render("policy.json", v, &out);
        template_render("policy.json", v, &out);
        json_decref(v);
        assert_non_null(strstr(str_text(&out), "insecureAcceptAnything"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values),
                cmocka_unit_test(test_formats),
                cmocka_unit_test(test_sections),
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_values_are_not_templates),
                cmocka_unit_test(test_embedded),
        };
        return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
