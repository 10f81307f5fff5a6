/* Reads the inventory directory, and puts the sections one under the other. */
#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "config/kubespray/kubespray_impl.h"
#include "config/minors.h"

#define MAX_VAR_FILES 1000 /* under group_vars and host_vars */

/* ---- files ---- */

struct reader {
        struct inventory *inv;
        struct notes *notes;
        struct spray *spray; /* for notes while reading */
        size_t files;
};

/* Nothing but comments, blank lines and document marks: Kubespray's sample has many of these. */
static bool is_blank(const char *text)
{
        while (*text) {
                text += strspn(text, " \t\r\n");
                bool mark = has_prefix(text, "---") || has_prefix(text, "...");
                if (*text && *text != '#' && !(mark && strcspn(text + 3, " \t\r\n") == 0))
                        return false;
                text += mark ? 3 : strcspn(text, "\n");
        }
        return true;
}

static int read_vars(
        struct reader *r, const char *path, struct inventory_var **vars, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct tree *t;
        if (r->files++ >= MAX_VAR_FILES)
                return error_set(err, E2BIG, EXIT_CONFIG,
                        "the inventory has more than %d files of variables", MAX_VAR_FILES);
        int e = file_read(path, INVENTORY_MAX_FILE, &text, err);
        if (e < 0)
                return e;
        if (is_blank(str_text(&text)))
                return 0;
        if (has_prefix(str_text(&text), "$ANSIBLE_VAULT")) {
                spray_note(r->spray, "%s is an Ansible vault and was not read", path);
                return 0;
        }
        e = tree_parse(r->inv->arena, path, text.data, text.len, &t, err);
        if (e < 0)
                return e;
        inventory_set_map(r->inv, vars, t);
        return 0;
}

static int visible(const struct dirent *d)
{
        return d->d_name[0] != '.' && !has_suffix(d->d_name, "~") &&
               !has_suffix(d->d_name, ".swp") && !has_suffix(d->d_name, ".md");
}

static bool yaml_name(const char *name)
{
        return has_suffix(name, ".yml") || has_suffix(name, ".yaml") || has_suffix(name, ".json") ||
               !strchr(name, '.');
}

static bool is_dir(const char *path)
{
        struct stat st;
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One file or a directory of files, in the order of their names, as Ansible does. */
static int read_vars_under(struct reader *r, const char *path, int depth,
        struct inventory_var **vars, struct error *err)
{
        struct dirent **list = NULL;
        if (!is_dir(path))
                return yaml_name(path) ? read_vars(r, path, vars, err) : 0;
        int n = depth < 4 ? scandir(path, &list, visible, alphasort) : 0, e = 0;
        if (n < 0)
                return error_set(err, errno, EXIT_CONFIG, "%s: cannot list the directory: %s", path,
                        strerror(errno));
        for (int i = 0; i < n; i++) {
                char *below CLEANUP(free_p) = path_join(path, list[i]->d_name);
                if (e == 0)
                        e = read_vars_under(r, below, depth + 1, vars, err);
                free(list[i]);
        }
        free(list);
        return e;
}

/* "k8s_cluster" of k8s_cluster.yml */
static char *stem(struct arena *a, const char *name)
{
        static const char *const suffixes[] = { ".yml", ".yaml", ".json" };
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
                if (has_suffix(name, suffixes[i]))
                        return arena_strndup(a, name, strlen(name) - strlen(suffixes[i]));
        return arena_strdup(a, name);
}

/* group_vars/NAME and host_vars/NAME: variables of one group or host. A host that the inventory
 * does not have is passed over. */
static int read_scope(struct reader *r, const char *dir, bool hosts, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(dir, hosts ? "host_vars" : "group_vars");
        struct dirent **list = NULL;
        int n = is_dir(path) ? scandir(path, &list, visible, alphasort) : 0, e = 0;
        if (n < 0)
                return error_set(err, errno, EXIT_CONFIG, "%s: cannot list the directory: %s", path,
                        strerror(errno));
        for (int i = 0; i < n; i++) {
                char *below CLEANUP(free_p) = path_join(path, list[i]->d_name),
                            *name = stem(r->inv->arena, list[i]->d_name);
                struct inventory_host *h = hosts ? index_get(&r->inv->host_index, name) : NULL;
                struct inventory_group *g =
                        hosts || e < 0 ? NULL : inventory_group(r->inv, name, err);
                if (e == 0 && !hosts && !g)
                        e = -err->code;
                if (e == 0 && (h || g))
                        e = read_vars_under(r, below, 0, h ? &h->vars : &g->vars, err);
                free(list[i]);
        }
        free(list);
        return e;
}

/* The hosts file of an inventory directory. */
static char *hosts_file(const char *dir)
{
        static const char *const names[] = { "inventory.ini", "hosts.ini", "inventory.yaml",
                "inventory.yml", "hosts.yaml", "hosts.yml", "inventory.cfg", "hosts", "inventory" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *path = path_join(dir, names[i]);
                if (access(path, F_OK) == 0 && !is_dir(path))
                        return path;
                free(path);
        }
        return NULL;
}

static int read_hosts(struct inventory *inv, const char *path, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct tree *t;
        int e = file_read(path, INVENTORY_MAX_FILE, &text, err);
        if (e < 0)
                return e;
        if (!has_suffix(path, ".yaml") && !has_suffix(path, ".yml") && !has_suffix(path, ".json"))
                return inventory_ini(inv, path, str_text(&text), text.len, err);
        e = tree_parse(inv->arena, path, str_text(&text), text.len, &t, err);
        return e < 0 ? e : inventory_yaml(inv, t, err);
}

/* ---- the document ---- */

int kubespray_groups(struct inventory *inv, struct error *err)
{
        static const char *const nests[][2] = {
                { "kube-master", "kube_control_plane" },
                { "kube-node", "kube_node" },
                { "kube_control_plane", "k8s-cluster" },
                { "kube_node", "k8s-cluster" },
                { "k8s-cluster", "k8s_cluster" },
                { "calico_rr", "k8s_cluster" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(nests); i++) {
                struct inventory_group *child = inventory_group(inv, nests[i][0], err),
                                       *parent = child ? inventory_group(inv, nests[i][1], err)
                                                       : NULL;
                if (!parent || inventory_join(inv, child, parent, err) < 0)
                        return -err->code;
        }
        return 0;
}

static const struct inventory_host *first_in(struct inventory *inv, const char *group)
{
        for (const struct inventory_host *h = inv->hosts; h; h = h->next)
                if (inventory_in(inv, h, group))
                        return h;
        return NULL;
}

/* A version this slipway installs; what the inventory had, if it is one. */
static void version(struct spray *k)
{
        const char *text = spray_text(k, "kube_version");
        struct version v;
        const char *bare = text && *text == 'v' ? text + 1 : text;
        if (bare && version_parse(bare, &v) && v.major == 1 && v.minor >= KUBERNETES_OLDEST_MINOR &&
                v.minor <= KUBERNETES_NEWEST_MINOR) {
                k->same_version = true;
                return spray_field(k, "kubernetes", bare);
        }
        if (text)
                spray_note(k,
                        "kube_version was %s: this slipway installs " KUBERNETES_MINORS
                        "; an existing cluster must be upgraded one minor version at a time",
                        text);
        else
                spray_note(k,
                        "the inventory names no Kubernetes version: this is the newest supported one");
        spray_field(k, "kubernetes", KUBERNETES_NEWEST);
}

static void (*const sections[])(struct spray *k) = {
        version,
        spray_provider,
        spray_api,
        spray_network,
        spray_pools,
        spray_images,
        spray_access,
        spray_parts,
        spray_addons,
        spray_leftovers,
};

static const char *cluster_name(struct arena *a, const char *text)
{
        char *name = arena_strndup(a, text, 63), *end;
        for (char *p = name; *p; p++)
                *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
        for (end = name + strlen(name); end > name && end[-1] == '-'; end--)
                end[-1] = 0;
        name += strspn(name, "-");
        return *name ? name : "cluster";
}

int kubespray_convert(struct arena *a, struct inventory *inv, const char *name, struct str *out,
        struct notes *notes, struct error *err)
{
        struct spray k = { .arena = a, .inv = inv, .out = out, .notes = notes };
        notes->arena = a;
        notes->end = notes->end ? notes->end : &notes->first;
        k.seat[0] = first_in(inv, "kube_control_plane");
        k.seat[1] = first_in(inv, "etcd");
        k.seat[2] = first_in(inv, "kube_node");
        if (!k.seat[0]) {
                error_set(err, EINVAL, EXIT_CONFIG,
                        "the inventory has no host in the group kube_control_plane (or kube-master)");
                return error_hint(err,
                        "give the directory with the inventory's hosts file, such as inventory/mycluster");
        }
        str_add(out, "apiVersion: slipway.dev/v1alpha1\n"
                     "kind: Cluster\n"
                     "metadata: {name: ");
        spray_value(out, cluster_name(a, name));
        str_add(out, "}\nspec:\n");
        k.indent = 2;
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
                sections[i](&k);
        index_release(&k.asked);
        index_release(&k.said);
        return 0;
}

/* The directory's own name: inventory/prod/ is called prod, and so is prod/inventory/. */
static char *dir_name(struct arena *a, const char *dir)
{
        char *real CLEANUP(free_p) = realpath(dir, NULL), *slash = real ? strrchr(real, '/') : NULL;
        if (slash && slash > real && streq(slash + 1, "inventory")) {
                *slash = 0;
                slash = strrchr(real, '/');
        }
        return arena_strdup(a, slash ? slash + 1 : "cluster");
}

static int kubespray_read_all(
        struct reader *r, const char *hosts, const char *dir, struct error *err)
{
        int e = read_hosts(r->inv, hosts, err);
        e = e < 0 ? e : kubespray_groups(r->inv, err);
        e = e < 0 ? e : read_scope(r, dir, false, err);
        return e < 0 ? e : read_scope(r, dir, true, err);
}

int kubespray_import(struct arena *a, const char *path, const char *name, struct str *out,
        struct notes *notes, struct error *err)
{
        struct inventory inv CLEANUP(inventory_release);
        struct str early CLEANUP(str_release) = { 0 };
        struct spray spray = { .arena = a, .inv = &inv, .out = &early, .notes = notes };
        struct reader r = { .inv = &inv, .notes = notes, .spray = &spray };
        bool dir = is_dir(path);
        char *hosts CLEANUP(free_p) = dir ? hosts_file(path) : xstrdup(path),
                    *slash = dir ? NULL : strrchr(path, '/');
        char *base CLEANUP(free_p) = dir     ? xstrdup(path)
                                     : slash ? xstrndup(path, (size_t)(slash - path))
                                             : xstrdup(".");
        inventory_init(&inv, a);
        *notes = (struct notes){ .arena = a, .end = &notes->first };
        if (!hosts) {
                error_set(err, ENOENT, EXIT_USAGE,
                        "%s: no inventory here: neither inventory.ini, hosts.ini nor hosts.yaml",
                        path);
                return error_hint(err,
                        "give the directory with the inventory, such as inventory/mycluster, or the file itself");
        }
        int e = kubespray_read_all(&r, hosts, *base ? base : "/", err);
        index_release(&spray.said);
        if (e < 0)
                return e;
        inventory_finish(&inv);
        str_addf(out,
                "# Converted from a Kubespray inventory. Please check the lines with NOTE.\n%s",
                str_text(&early));
        return kubespray_convert(
                a, &inv, name ? name : dir_name(a, *base ? base : "/"), out, notes, err);
}
