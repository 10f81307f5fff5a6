/* init --from-kubespray: reads the inventory, writes cluster.yaml, lists what could not be
 * converted, and checks the result. */
#include "cmd/init.h"

static void print_notes(const struct notes *notes)
{
        for (const struct note *n = notes->first; n; n = n->next)
                print_err("note: %s\n", n->text);
}

/* Prints what `slipway check` would report; returns what to do before running it. */
static const char *check_result(const char *path, struct arena *a)
{
        struct problems problems = { .arena = a };
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        struct cluster *c;
        if (cluster_load(a, &path, 1, &c, &problems, &err) == 0)
                return "";
        problems_text(&problems, 20, &text);
        print_text(stderr, str_text(&text));
        print_err("\n");
        return arena_printf(a, "correct the %zu problem%s above, then: ", problems.errors,
                problems.errors == 1 ? "" : "s");
}

int init_from_kubespray(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        struct notes notes;
        const char *path;
        int r = init_path(o, &path, err);
        if (r < 0)
                return r;
        r = kubespray_import(&a, o->from_kubespray, o->name, &text, &notes, err);
        if (r < 0)
                return r;
        r = init_write(path, &text, err);
        if (r < 0)
                return r;
        if (!o->output || streq(o->output, "text"))
                print_notes(&notes);
        init_report(o, path, &notes, streq(path, "-") ? "" : check_result(path, &a));
        return EXIT_OK;
}
