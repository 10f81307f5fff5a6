#include "base/file.h"
#include "base/proc.h"
#include "provider/terraform/terraform.h"

#define SAVED      "outputs.json"
#define OUTPUT     "slipway"
#define OUTPUT_MAX ((size_t)8 << 20)

static int output_damaged(const char *source, const char *why, struct error *err)
{
        error_set(err, EINVAL, EXIT_CONFIG, "%s: %s", source, why);
        return error_hint(err, "it must have the output " OUTPUT
                               " of the exported files; docs/terraform.md shows its form");
}

static int output_parse(const struct str *text, const char *source, json_t **out, struct error *err)
{
        if (text->len > OUTPUT_MAX)
                return output_damaged(source, "the outputs are larger than 8 MiB", err);
        json_error_t at;
        json_t *all = json_loadb(str_text(text), text->len, JSON_REJECT_DUPLICATES, &at);
        json_t *mine = json_object_get(all, OUTPUT), *value = json_object_get(mine, "value");
        bool fits = json_is_object(all) && (!mine || json_is_object(value));
        *out = fits ? json_incref(value) : NULL;
        int r = 0;
        if (!all)
                r = output_damaged(source, at.text, err);
        else if (!fits)
                r = output_damaged(source, "the output " OUTPUT " is not an object", err);
        json_decref(all);
        return r;
}

static int output_from_file(
        const char *path, struct arena *a, json_t **out, const char **source, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        int r = file_read(path, OUTPUT_MAX, &text, err);
        *source = arena_strdup(a, path);
        return r < 0 ? r : output_parse(&text, *source, out, err);
}

static int output_failed(
        const char *source, int status, const struct str *errors, struct error *err)
{
        char *line CLEANUP(free_p) = str_last_line(errors);
        error_set(err, EIO, EXIT_CONFIG, "%s failed with status %d%s%s", source, status,
                *line ? ": " : "", line);
        return error_hint(err,
                "run that command to see its full output; if the directory was not set up yet: slipway export terraform, then 'tofu init' and 'tofu apply' there");
}

static int output_no_program(const char *dir, struct error *err)
{
        error_set(err, ENOENT, EXIT_CONFIG,
                "neither tofu nor terraform is in PATH, and %s has no " SAVED, dir);
        return error_hint(err,
                "install one of them, or save the outputs where it is: tofu output -json > " SAVED);
}

static int output_from_program(
        const char *dir, struct arena *a, json_t **out, const char **source, struct error *err)
{
        static const char *const programs[] = { "tofu", "terraform" };
        const char *where = arena_printf(a, "-chdir=%s", dir);
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                struct str text CLEANUP(str_release) = { 0 }, errors CLEANUP(str_release) = { 0 };
                struct error missing CLEANUP(error_release) = { 0 };
                const char *argv[] = { programs[i], where, "output", "-json", "-no-color", NULL };
                int status;
                if (proc_run(argv, NULL, 0, OUTPUT_MAX + 1, &text, &errors, &status, &missing) < 0)
                        continue;
                *source = arena_printf(a, "%s %s output -json", programs[i], where);
                return status ? output_failed(*source, status, &errors, err)
                              : output_parse(&text, *source, out, err);
        }
        return output_no_program(dir, err);
}

int terraform_output(const struct cluster *c, struct arena *a, json_t **out, const char **source,
        struct error *err)
{
        const struct provider_terraform *t = &c->provider.terraform;
        const char *dir = cluster_path(a, tree_get(t->ssh.src, "dir"), t->dir),
                   *saved = arena_printf(a, "%s/" SAVED, dir);
        *out = NULL;
        return access(saved, F_OK) == 0 ? output_from_file(saved, a, out, source, err)
                                        : output_from_program(dir, a, out, source, err);
}
