/* An inventory's hosts file and, after a line "%%", the variables of all hosts. A file that begins
 * with "---" is YAML, else INI. What comes out must be YAML: nothing of the input may break out of
 * its place. */
#include "config/kubespray/kubespray.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_yaml(struct arena *a, const struct str *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct tree *t;
        if (tree_parse(a, "cluster.yaml", str_text(out), out->len, &t, &err) < 0 ||
                t->kind != TREE_MAP || t->count != 4) {
                fprintf(stderr, "%s\n%s\n", err.message ? err.message : "no Cluster",
                        str_text(out));
                abort();
        }
}

static int read_vars(struct inventory *inv, const char *text, size_t len, struct error *err)
{
        struct inventory_group *all = inventory_group(inv, "all", err);
        struct tree *t;
        if (!all || tree_parse(inv->arena, "all.yml", text, len, &t, err) < 0)
                return -1;
        inventory_set_map(inv, &all->vars, t);
        return 0;
}

static int read_hosts(struct inventory *inv, const char *text, size_t len, struct error *err)
{
        struct tree *t;
        if (len < 3 || memcmp(text, "---", 3))
                return inventory_ini(inv, "hosts.ini", text, len, err);
        return tree_parse(inv->arena, "hosts.yaml", text, len, &t, err) < 0
                       ? -1
                       : inventory_yaml(inv, t, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        struct inventory inv CLEANUP(inventory_release);
        struct notes notes = { 0 };
        char *text CLEANUP(free_p) = xmalloc(size + 1);
        memcpy(text, data, size);
        text[size] = 0;
        char *mark = memmem(text, size, "\n%%\n", 4);
        size_t len = mark ? (size_t)(mark + 1 - text) : size;
        inventory_init(&inv, &a);
        if (read_hosts(&inv, text, len, &err) < 0 ||
                (mark && read_vars(&inv, mark + 4, size - len - 3, &err) < 0) ||
                kubespray_groups(&inv, &err) < 0)
                return 0;
        inventory_finish(&inv);
        if (kubespray_convert(&a, &inv, "fuzz", &out, &notes, &err) == 0)
                must_be_yaml(&a, &out);
        return 0;
}
