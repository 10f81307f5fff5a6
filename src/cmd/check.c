/* check: reads the files and lists all problems. Also loads the file for other verbs. */
#include "cluster/apply/fabric.h"
#include "cluster/services/services.h"
#include "cmd/hardening.h"
#include "config/edited.h"

static const char *const usual[] = { "cluster.yaml" };

bool cmd_json(const struct options *o) { return o->output && streq(o->output, "json"); }

static int load(const struct options *o, struct arena *a, struct cluster **out,
        struct problems *problems, struct error *err)
{
        if (o->files.n)
                return cluster_load(a, o->files.v, o->files.n, out, problems, err);
        if (access(usual[0], F_OK) < 0) {
                error_set(err, ENOENT, EXIT_CONFIG, "there is no cluster.yaml here");
                return error_hint(err, "name the file with -f, or write one with: slipway init");
        }
        return cluster_load(a, usual, 1, out, problems, err);
}

/* Maximum of problems in text output; -o json has all. */
#define SHOWN 50

int cmd_load(const struct options *o, struct arena *a, struct cluster **out, struct error *err)
{
        struct problems problems = { .arena = a };
        struct str text CLEANUP(str_release) = { 0 };
        int r = load(o, a, out, &problems, err);
        if (problems.first) {
                problems_text(&problems, SHOWN, &text);
                print_text(stderr, str_text(&text));
                print_err("\n");
        }
        return r;
}

int cmd_edit(const struct options *o, struct arena *a, struct edit *e, struct cluster **out,
        struct error *err)
{
        int r = edit_begin(e, a, o->files.n ? o->files.v : usual, o->files.n ? o->files.n : 1, err);
        return r < 0 ? r : cmd_load(o, a, out, err);
}

int cmd_check(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct cluster *c = NULL;
        if (!cmd_json(o)) {
                int r = cmd_load(o, &a, &c, err);
                if (r == 0)
                        r = fabric_check(c, err);
                if (r == 0)
                        r = services_check(c, err);
                if (r < 0)
                        return r;
                if (o->hardening)
                        return hardening_check(o, c, err);
                print("%s: Kubernetes %s, %zu node%s (%zu control-plane, %zu etcd, %zu worker): no errors\n",
                        c->name, c->kubernetes.text, c->node_count, c->node_count == 1 ? "" : "s",
                        cluster_count(c, ROLE_CONTROL_PLANE), cluster_count(c, ROLE_ETCD),
                        cluster_count(c, ROLE_WORKER));
                return EXIT_OK;
        }
        struct problems problems = { .arena = &a };
        struct str text CLEANUP(str_release) = { 0 };
        int r = load(o, &a, &c, &problems, err);
        /* no problems to list: the file could not be read */
        if (r < 0 && !problems.first)
                return r;
        int files = r == 0 ? fabric_check(c, err) : 0;
        if (files == 0 && r == 0)
                files = services_check(c, err);
        if (files < 0)
                return files;
        if (r == 0 && o->hardening)
                return hardening_check(o, c, err);
        problems_json(&problems, &text);
        str_addc(&text, '\n');
        print_text(stdout, str_text(&text));
        return r < 0 ? EXIT_CONFIG : EXIT_OK;
}
