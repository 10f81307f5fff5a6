/* export: the machines of a cluster as files of another tool. */
#include <jansson.h>

#include "cmd/cmd.h"
#include "deliver/terraform/terraform.h"

static int export_provider(const struct cluster *c, struct error *err)
{
        if (c->provider.kind == PROVIDER_TERRAFORM)
                return 0;
        error_set(err, EINVAL, EXIT_CONFIG,
                "the cluster %s is not one of provider terraform: there is nothing to export",
                c->name);
        return error_hint(err, "set provider.terraform in its file; docs/terraform.md explains it");
}

static void export_say(const struct options *o, const char *dir, const struct terraform_result *r)
{
        json_t *unset = json_array();
        for (size_t i = 0; i < r->unset.n; i++)
                json_array_append_new(unset, json_string(r->unset.v[i]));
        json_t *all = json_pack("{s:s, s:I, s:I, s:I, s:o}", "dir", dir, "files",
                (json_int_t)r->files, "changed", (json_int_t)r->changed, "removed",
                (json_int_t)r->removed, "unset", unset);
        if (cmd_json(o)) {
                print_json(all, JSON_INDENT(2));
        } else {
                print("%s: %zu files, %zu changed, %zu removed\n", dir, r->files, r->changed,
                        r->removed);
                for (size_t i = 0; i < r->unset.n; i++)
                        print("%s: the variable has no value; Terraform will ask for it\n",
                                r->unset.v[i]);
                print("next: tofu -chdir=%s init, tofu -chdir=%s apply, slipway up\n", dir, dir);
        }
        json_decref(all);
}

int cmd_export(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct terraform_result done = { 0 };
        struct cluster *c;
        int r = cmd_load(o, &a, &c, err);
        if (r == 0)
                r = export_provider(c, err);
        if (r < 0)
                return r;
        const struct provider_terraform *t = &c->provider.terraform;
        const char *dir = o->dir ? o->dir : cluster_path(&a, tree_get(t->ssh.src, "dir"), t->dir);
        r = terraform_export(c, dir, &a, &done, err);
        if (r < 0)
                return r;
        export_say(o, dir, &done);
        return EXIT_OK;
}
