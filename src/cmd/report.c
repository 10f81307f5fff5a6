/* report: earlier runs as pages for a browser. */
#include <jansson.h>

#include "base/print.h"
#include "base/proc.h"
#include "cmd/operate.h"
#include "ui/reports.h"

static void report_print(const struct options *o, const struct report_file *all, size_t n)
{
        json_t *list = json_array();
        bool json = o->output && streq(o->output, "json");
        for (size_t i = 0; i < n; i++) {
                const struct report_file *r = &all[i];
                if (json)
                        json_array_append_new(
                                list, json_pack("{s:I, s:s, s:s, s:s, s:s}", "number",
                                              (json_int_t)r->number, "began", r->when, "verb",
                                              r->verb, "result", r->result, "path", r->path));
                else
                        print("%4lu  %s UTC  %-20s %s\n", r->number, r->when, r->verb, r->result);
        }
        if (json)
                print_json(list, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        else if (!n)
                print_err(
                        "there are no reports yet: every up, upgrade, scale or other change writes one\n");
        json_decref(list);
}

/* Opens the page in the desktop's browser, if there is a desktop; always prints the path. */
static int report_open(const struct report_file *r, struct error *err)
{
        const char *const argv[] = { "xdg-open", r->path, NULL };
        struct str out CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        print("%s\n", r->path);
        if (isatty(STDOUT_FILENO) && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")))
                proc_must(argv, &out, &ignored);
        return EXIT_OK;
}

int cmd_report(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c = NULL;
        int r = cmd_load(o, &a, &c, err);
        if (r < 0)
                return r;
        size_t n;
        char *end = NULL;
        const struct report_file *all =
                reports_list(arena_printf(&a, "%s/%s", operate_state(o), c->name), &a, &n);
        if (!o->args.n) {
                report_print(o, all, n);
                return EXIT_OK;
        }
        const char *wanted = o->args.v[0];
        unsigned long number = strtoul(wanted, &end, 10);
        for (size_t i = 0; i < n; i++)
                if (*wanted && !*end && all[i].number == number)
                        return report_open(&all[i], err);
        error_set(err, ENOENT, EXIT_USAGE, "cluster %s has no report '%s'", c->name, wanted);
        return n ? error_hint(err, "there are reports %lu to %lu: 'slipway report' lists them",
                           all[0].number, all[n - 1].number)
                 : error_hint(
                           err, "every 'slipway up', 'slipway upgrade' or other change writes one");
}
