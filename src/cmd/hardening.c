/* The table of CIS controls: evaluated from rendered files (check --hardening), and printed
 * (also by status). */
#include "base/print.h"
#include "cmd/hardening.h"

static const char *hardening_text_of(const json_t *o, const char *key)
{
        const char *t = json_string_value(json_object_get(o, key));
        return t ? t : "";
}

static void print_control(struct str *f, const json_t *o)
{
        const json_t *nodes = json_object_get(o, "nodes");
        text_addf(f, "  %-7s %-7s %s%s%s", hardening_text_of(o, "id"),
                hardening_text_of(o, "result"), hardening_text_of(o, "title"),
                *hardening_text_of(o, "why") ? ": " : "", hardening_text_of(o, "why"));
        for (size_t i = 0; i < json_array_size(nodes); i++)
                text_addf(f, "%s%s", i ? ", " : " (", json_string_value(json_array_get(nodes, i)));
        text_addf(f, "%s\n", json_array_size(nodes) ? ")" : "");
}

void hardening_print(struct str *f, const json_t *report, const char *label, bool all)
{
        size_t i;
        const json_t *o;
        text_addf(f,
                "%s%s: %" JSON_INTEGER_FORMAT " pass, %" JSON_INTEGER_FORMAT
                " fail, %" JSON_INTEGER_FORMAT " manual (%s)\n",
                label, hardening_text_of(report, "hardening"),
                json_integer_value(json_object_get(report, "pass")),
                json_integer_value(json_object_get(report, "fail")),
                json_integer_value(json_object_get(report, "manual")),
                hardening_text_of(report, "benchmark"));
        json_array_foreach(json_object_get(report, "controls"), i, o)
        {
                if (all || streq(hardening_text_of(o, "result"), "fail"))
                        print_control(f, o);
        }
}

int hardening_check(const struct options *o, struct cluster *c, struct error *err)
{
        json_t *report = NULL;
        int r = cis_check(c, &report, err);
        if (r == 0 && cmd_json(o)) {
                print_json(report, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        } else if (r == 0) {
                struct str text CLEANUP(str_release) = { 0 };
                hardening_print(&text, report, "hardening ", true);
                print_text(stdout, str_text(&text));
        }
        json_decref(report);
        return r;
}
