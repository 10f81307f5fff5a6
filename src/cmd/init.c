/* init: writes a first cluster.yaml (provider/first_file.h). */
#include "base/file.h"
#include "base/quote.h"
#include "cmd/init.h"
#include "config/scalar.h"
#include "provider/first_file.h"

int init_path(const struct options *o, const char **path, struct error *err)
{
        *path = o->files.n ? o->files.v[0] : "cluster.yaml";
        if (o->files.n > 1) {
                error_set(err, EINVAL, EXIT_USAGE, "init writes one file, and -f names %zu",
                        o->files.n);
                return error_hint(err, "give -f once");
        }
        if (o->name && name_fault(o->name)) {
                error_set(err, EINVAL, EXIT_USAGE, "--name: \"%s\" cannot be a cluster's name: %s",
                        o->name, name_fault(o->name));
                return error_hint(err, "a name such as prod or team-a will do");
        }
        if (streq(*path, "-") || o->force || access(*path, F_OK) < 0)
                return 0;
        error_set(err, EEXIST, EXIT_USAGE, "%s exists already and was not changed", *path);
        return error_hint(err, "--force overwrites it; -f writes another file");
}

int init_write(const char *path, const struct str *text, struct error *err)
{
        if (!streq(path, "-"))
                return file_write(path, str_text(text), text->len, 0644, FILE_SYNC, NULL, err);
        print_text(stdout, str_text(text));
        return 0;
}

static void report_json(const char *path, const struct notes *notes)
{
        struct str s CLEANUP(str_release) = { 0 };
        str_add(&s, "{\"file\": ");
        quote_json(&s, path);
        str_add(&s, ", \"notes\": [");
        for (const struct note *n = notes ? notes->first : NULL; n; n = n->next) {
                quote_json(&s, n->text);
                str_add(&s, n->next ? ", " : "");
        }
        str_add(&s, "]}\n");
        print_text(stdout, str_text(&s));
}

void init_report(
        const struct options *o, const char *path, const struct notes *notes, const char *before)
{
        if (streq(path, "-"))
                return;
        if (o->output && streq(o->output, "json")) {
                report_json(path, notes);
                return;
        }
        print("wrote %s\n", path);
        if (notes && notes->count)
                print("%zu setting%s need%s your attention: look for NOTE in the file\n",
                        notes->count, notes->count == 1 ? "" : "s", notes->count == 1 ? "s" : "");
        print("next: %sslipway check%s%s\n", before, streq(path, "cluster.yaml") ? "" : " -f ",
                streq(path, "cluster.yaml") ? "" : path);
}

int cmd_init(const struct options *o, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct error unasked CLEANUP(error_release) = { 0 };
        const char *path, *before;
        if (o->from_kubespray && o->provider) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "--provider and --from-kubespray exclude each other: the machines of an inventory are reached over ssh");
                return error_hint(err, "leave --provider out");
        }
        if (o->from_kubespray)
                return init_from_kubespray(o, err);
        int r = init_path(o, &path, err);
        if (r == 0)
                r = first_file(o->provider ? o->provider : "local", o->name, &text, &before,
                        &unasked, err);
        if (r < 0)
                return r;
        if (unasked.code)
                print_err(
                        "the cloud could not be asked, so the names in the file are examples: %s\n",
                        unasked.message);
        r = init_write(path, &text, err);
        if (r < 0)
                return r;
        init_report(o, path, NULL, before);
        return EXIT_OK;
}
