/* render: every node's NodeSpec as a tree of files, as user-data or as a list. Nodes are rendered
 * one at a time, so memory does not grow with the cluster. */
#include <time.h>

#include "cmd/cmd.h"
#include "deliver/rendered.h"
#include "deliver/userdata.h"
#include "provider/provider.h"

enum format {
        FORMAT_FILES,
        FORMAT_CLOUD_INIT,
        FORMAT_IGNITION,
        FORMAT_USER_DATA /* either format, one file per node */
};
static const char *const format_names[] = { "files", "cloud-init", "ignition", "user-data" };

struct render {
        const struct options *o;
        enum format format;
        struct arena arena;
        struct cluster *cluster;
        struct facts_file *facts;
        const struct node **nodes; /* the wanted ones, in the cluster's order */
        size_t count;
        bool has_identity;
        struct identity identity;
        struct outroot root;  /* of -d */
        struct error unasked; /* why a cloud did not say the addresses; code 0: it did */
};

static void render_release(struct render *r)
{
        if (r->has_identity)
                identity_release(&r->identity);
        outroot_release(&r->root);
        error_release(&r->unasked);
        arena_release(&r->arena);
}

static bool json(const struct render *r) { return r->o->output && streq(r->o->output, "json"); }

static enum format format_of(const char *name)
{
        for (size_t i = 0; name && i < ARRAY_SIZE(format_names); i++)
                if (streq(name, format_names[i]))
                        return (enum format)i;
        return FORMAT_FILES;
}

static bool as_ignition(const struct render *r, const struct node *n)
{
        return r->format == FORMAT_USER_DATA ? userdata_format(r->cluster, n) == USER_DATA_IGNITION
                                             : r->format == FORMAT_IGNITION;
}

static int unknown_node(struct render *r, const char *name, struct error *err)
{
        const char **names = arena_array(&r->arena, const char *, r->cluster->node_count + 1);
        for (size_t i = 0; i < r->cluster->node_count; i++)
                names[i] = r->cluster->nodes[i].name;
        const char *near = nearest(name, names, r->cluster->node_count);
        error_set(err, ENOENT, EXIT_USAGE, "there is no node %s in cluster %s", name,
                r->cluster->name);
        if (near)
                return error_hint(err, "did you mean %s?", near);
        return error_hint(err, "its nodes are %s%s%s%s", names[0],
                r->cluster->node_count > 1 ? ", " : "", r->cluster->node_count > 1 ? names[1] : "",
                r->cluster->node_count > 2 ? " …" : "");
}

static int choose_nodes(struct render *r, struct error *err)
{
        const struct strings *wanted = &r->o->nodes;
        r->nodes = arena_array(&r->arena, const struct node *, r->cluster->node_count + 1);
        for (size_t i = 0; i < wanted->n; i++)
                if (!cluster_node(r->cluster, wanted->v[i]))
                        return unknown_node(r, wanted->v[i], err);
        for (size_t i = 0; i < r->cluster->node_count; i++) {
                bool take = !wanted->n;
                for (size_t k = 0; !take && k < wanted->n; k++)
                        take = streq(wanted->v[k], r->cluster->nodes[i].name);
                if (take)
                        r->nodes[r->count++] = &r->cluster->nodes[i];
        }
        return 0;
}

/* Rendered files contain the addresses of the node, the API servers and etcd. */
static int check_addresses(const struct render *r, struct error *err)
{
        const struct node *first = NULL;
        size_t missing = 0, chosen = 0; /* both lists are in the cluster's order */
        for (size_t i = 0; i < r->cluster->node_count; i++) {
                const struct node *n = &r->cluster->nodes[i];
                bool wanted = chosen < r->count && r->nodes[chosen] == n;
                chosen += wanted;
                if ((!wanted && !(n->pool->roles & (ROLE_CONTROL_PLANE | ROLE_ETCD))) ||
                        n->ip[0].family)
                        continue;
                missing++;
                first = first ? first : n;
        }
        if (!missing)
                return 0;
        if (missing == 1)
                error_set(err, ENOENT, EXIT_USAGE,
                        "node %s has no address yet, and files of nodes name it", first->name);
        else
                error_set(err, ENOENT, EXIT_USAGE,
                        "%zu nodes have no address yet (%s is the first), and files of nodes name them",
                        missing, first->name);
        if (r->unasked.code)
                error_set(err, ENOENT, EXIT_USAGE,
                        "%s; the provider could not be asked for them: %s",
                        arena_strdup(&((struct render *)r)->arena, err->message),
                        r->unasked.message);
        return error_hint(err,
                "give their addresses with --facts FILE, or write the user-data that creates them: --format user-data");
}

static int check_usage(const struct render *r, struct error *err)
{
        if (r->format == FORMAT_FILES)
                return check_addresses(r, err);
        if (r->o->secrets) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "--secrets cannot be used with --format %s: user-data never holds a secret",
                        r->o->format);
                return error_hint(err, "leave it out, or use --format files");
        }
        if (r->o->dir || r->count == 1)
                return 0;
        error_set(err, EINVAL, EXIT_USAGE, "%zu nodes do not fit on standard output", r->count);
        return error_hint(err, "say where to write with -d DIR, or which node with --node NODE");
}

/* Where a cloud has the addresses. */
static void ask_addresses(struct render *r)
{
        struct identity id CLEANUP(identity_release) = { .lock = -1 };
        struct error why CLEANUP(error_release) = { 0 };
        int ret = identity_look(
                r->o->state ? r->o->state : ".slipway", r->cluster, time(NULL), &id, &why);
        if (ret == 0 || ret == -ENOENT) /* who opens it next reports anything else */
                provider_addresses(r->cluster, id.dir, id.prefix, &r->unasked);
}

static int prepare(struct render *r, struct error *err)
{
        int ret = cmd_load(r->o, &r->arena, &r->cluster, err);
        if (ret == 0 && r->o->facts)
                ret = facts_load(r->o->facts, &r->arena, &r->facts, err);
        if (ret < 0)
                return ret;
        facts_addresses(r->facts, r->cluster);
        if (r->format == FORMAT_FILES && !r->o->facts)
                ask_addresses(r);
        if ((ret = choose_nodes(r, err)) < 0 || (ret = check_usage(r, err)) < 0)
                return ret;
        if (r->o->dir && (ret = outroot_open(r->o->dir, &r->root, err)) < 0)
                return ret;
        if (r->format != FORMAT_FILES)
                return 0;
        ret = identity_open(
                r->o->state ? r->o->state : ".slipway", r->cluster, time(NULL), &r->identity, err);
        r->has_identity = ret == 0;
        return ret;
}

static int render_spec(
        struct render *r, const struct node *n, struct nodespec *out, struct error *err)
{
        struct node_identity leaves CLEANUP(node_identity_release) = { 0 };
        struct facts facts = { 0 };
        struct spec_input in = { .cluster = r->cluster, .node = n, .facts = &facts };
        int ret = facts_for(r->facts, n, &facts, err);
        if (ret < 0)
                return ret;
        if (r->format != FORMAT_FILES)
                return node_render_immutable(&in, out, err);
        ret = identity_node(&r->identity, r->cluster, n, &leaves, err);
        in.identity = &r->identity;
        in.leaves = &leaves;
        return ret < 0 ? ret : node_render(&in, out, err);
}

static int write_userdata(const struct render *r, const struct nodespec *s, struct error *err)
{
        struct str data CLEANUP(str_release) = { 0 };
        bool ignition = as_ignition(r, s->node);
        int ret = userdata_fit(r->cluster, s, ignition ? USER_DATA_IGNITION : USER_DATA_CLOUD_INIT,
                r->cluster->provider.kind, &data, err);
        if (ret < 0)
                return ret;
        if (!r->o->dir && isatty(STDOUT_FILENO) && has_prefix(str_text(&data), "\x1f\x8b")) {
                error_set(err, EINVAL, EXIT_USAGE,
                        "the user-data is compressed and cannot be shown on a terminal");
                return error_hint(err, "pipe it into gzip -d, or write it to a file with -d DIR");
        }
        if (!r->o->dir) {
                print_bytes(stdout, data.data, data.len);
                return 0;
        }
        return rendered_userdata(&r->root, s->node->name, ignition, &data, err);
}

static const char *entry_subject(const struct spec_entry *e)
{
        return e->path ? e->path : e->name ? e->name : "";
}

static void list_entries(const struct render *r, const struct nodespec *s)
{
        int width = (int)strlen("PATH");
        for (size_t i = 0; i < s->count; i++) {
                int n = (int)strlen(entry_subject(&s->entries[i]));
                width = n > width ? n : width;
        }
        if (r->count > 1)
                print("%s:\n", s->node->name);
        print("%-9s %-10s %-5s %-*s  %s\n", "KIND", "CLASS", "MODE", width, "PATH", "UNITS");
        for (size_t i = 0; i < s->count; i++) {
                const struct spec_entry *e = &s->entries[i];
                char mode[8] = "";
                if (e->mode)
                        snprintf(mode, sizeof(mode), "%04o", e->mode & 07777);
                int pad = e->units && *e->units ? width : 0;
                print("%-9s %-10s %-5s %-*s%s%s\n", spec_kind_name(e->kind),
                        spec_class_name(e->class), mode, pad, entry_subject(e), pad ? "  " : "",
                        pad ? e->units : "");
        }
}

static void print_spec(const struct render *r, const struct nodespec *s, size_t i)
{
        struct str text CLEANUP(str_release) = { 0 };
        if (!json(r)) {
                print(i ? "\n" : "");
                list_entries(r, s);
                return;
        }
        nodespec_json(s, &text);
        while (text.len && text.data[text.len - 1] == '\n')
                str_truncate(&text, text.len - 1);
        print(i ? ",\n" : "[");
        print_text(stdout, str_text(&text));
        print(i + 1 == r->count ? "]\n" : "");
}

static int render_node(struct render *r, size_t i, struct error *err)
{
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        int ret = render_spec(r, r->nodes[i], &s, err);
        if (ret < 0)
                return ret;
        if (r->format != FORMAT_FILES)
                return write_userdata(r, &s, err);
        if (r->o->dir)
                return rendered_tree(&r->root, &s, r->o->secrets, err);
        print_spec(r, &s, i);
        return 0;
}

int cmd_render(const struct options *o, struct error *err)
{
        struct render r CLEANUP(render_release) = { .o = o, .format = format_of(o->format) };
        int ret = prepare(&r, err);
        for (size_t i = 0; ret == 0 && i < r.count; i++)
                ret = render_node(&r, i, err);
        if (r.has_identity) { /* also keeps what was issued before a failure */
                struct error late CLEANUP(error_release) = { 0 };
                int synced = identity_sync(&r.identity, ret < 0 ? &late : err);
                ret = ret < 0 ? ret : synced;
        }
        if (ret < 0)
                return ret;
        if (o->dir)
                print(json(&r)         ? "{\"nodes\": %zu, \"format\": \"%s\"}\n"
                        : r.count == 1 ? "wrote %zu node as %s\n"
                                       : "wrote %zu nodes as %s\n",
                        r.count, format_names[r.format]);
        return EXIT_OK;
}
