/* programs: upstream's programs for the project's own demo, tests and benchmarks, in the
 * catalogue's versions and by its recipes. Without arguments: a list, as JSON. NAME[@VERSION]
 * builds a program if it is missing and prints its directory; SET (common, previous, hardening,
 * login, services, addons, ingress, fabrics, clouds, volumes, conformance, terraform) builds
 * several. -d DIR PROGRAM copies single programs (kubectl) into DIR, from where clusters get
 * theirs: the cache, upstream or a build. */
#include <event2/event.h>

#include "artifact/blob.h"
#include "artifact/fetch.h"
#include "artifact/origin.h"
#include "base/file.h"
#include "base/print.h"
#include "cmd/operate.h"
#include "config/minors.h"

#define PROGRAM_MAX ((size_t)200 << 20)
#define BAR_COLS    20

struct program_row {
        const char *recipe, *version, *set;
};

struct programs {
        struct arena *arena;
        char *cache;
        struct program_row rows[40];
        size_t count;
};

/* In the order in which they are built: quick ones first. */
static const struct program_row programs_table[] = {
        { "ignition", NULL, "common" },
        { "etcd", NULL, "common" },
        { "containerd", NULL, "common" },
        { "runc", NULL, "common" },
        { "crictl", NULL, "common" },
        { "cni", NULL, "common" },
        { "flannel-cni", NULL, "common" },
        { "flannel", NULL, "common" },
        { "coredns", NULL, "common" },
        { "kubernetes", NULL, "common" },
        { "kubernetes", KUBERNETES_PREVIOUS, "previous" }, /* to upgrade from */
        { "kube-bench", NULL, "hardening" },
        { "kubelogin", NULL, "login" },
        { "dex", NULL, "login" },
        { "helm", NULL, "services" },
        { "calico", NULL, "fabrics" },
        { "local-path-provisioner", NULL, "addons" },
        { "metrics-server", NULL, "addons" },
        { "kube-state-metrics", NULL, "addons" },
        { "node-problem-detector", NULL, "addons" },
        { "kube-vip", NULL, "addons" },
        { "kube-vip-cloud-provider", NULL, "addons" },
        { "registry", NULL, "addons" },
        { "node-exporter", NULL, "addons" },
        { "prometheus", NULL, "addons" },
        { "multus", NULL, "addons" },
        { "traefik", NULL, "ingress" },
        { "openstack-cloud-controller-manager", NULL, "clouds" },
        { "cloud-controller-manager", NULL, "clouds" }, /* of AWS */
        { "csi-attacher", NULL, "volumes" },
        { "csi-resizer", NULL, "volumes" },
        { "csi-provisioner", NULL, "volumes" },
        { "cinder-csi-plugin", NULL, "volumes" },
        { "agnhost", NULL, "conformance" },
        { "e2e", NULL, "conformance" },
        { "terraform-provider-openstack", NULL, "terraform" },
        { "opentofu", NULL, "terraform" },
};

_Static_assert(
        sizeof(programs_table) <= sizeof(((struct programs *)NULL)->rows), "a place for each row");

static void programs_release(struct programs *p) { free(p->cache); }

/* Programs without a version in the table get the catalogue's. */
static int programs_open(struct programs *p, struct catalogue *all, struct error *err)
{
        struct version newest;
        if (!version_parse(catalogue_newest(), &newest) || !catalogue_for(p->arena, &newest, all))
                return error_set(
                        err, EINVAL, EXIT_INTERNAL, "the catalogue has no %s", catalogue_newest());
        for (size_t i = 0; i < ARRAY_SIZE(programs_table); i++) {
                struct program_row *row = &p->rows[p->count++];
                *row = programs_table[i];
                if (!row->version)
                        row->version = recipe_version(row->recipe, all, p->arena);
        }
        return cache_open(&p->cache, err);
}

static char *programs_dir(const struct programs *p, const char *recipe, const char *version)
{
        return arena_printf(p->arena, "%s/artifacts/%s-%s", p->cache, recipe, version);
}

/* "pause": "registry.k8s.io/pause:3.10.2", … */
static json_t *programs_images(const struct catalogue *all)
{
        json_t *images = json_object();
        for (size_t i = 0; i < IMG_COUNT; i++) {
                char *name CLEANUP(free_p) = NULL, *version CLEANUP(free_p) = NULL;
                if (image_words(all->images[i].name, &name, &version))
                        json_object_set_new(images, name, json_string(all->images[i].name));
        }
        return images;
}

static int programs_list(const struct programs *p, const struct catalogue *all)
{
        json_t *list = json_array();
        for (size_t i = 0; i < p->count; i++) {
                const struct program_row *row = &p->rows[i];
                const char *dir = programs_dir(p, row->recipe, row->version);
                json_array_append_new(
                        list, json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", row->recipe, "version",
                                      row->version, "set", row->set, "dir", dir, "built",
                                      (int)(access(dir, X_OK) == 0)));
        }
        json_t *out = json_pack("{s:{s:s, s:s}, s:o, s:o}", "kubernetes", "newest",
                catalogue_newest(), "previous", KUBERNETES_PREVIOUS, "programs", list, "images",
                programs_images(all));
        print_json(out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        json_decref(out);
        return EXIT_OK;
}

/* ---- fetching, with progress ---- */

struct programs_run {
        struct event_base *base;
        const struct item *items;
        size_t count;
        const struct item *shown; /* without a terminal: the last item that got a line, */
        int quarter;              /* and its progress then */
        struct error error;
};

static void programs_notice(const char *text, void *arg) { print_err("programs: %s\n", text); }

/* One line that is updated on a terminal. */
static void programs_bar(
        const struct programs_run *run, size_t turn, const char *what, int permille)
{
        struct str out CLEANUP(str_release) = { 0 };
        str_addf(&out, "\r\x1b[Kprograms (%zu of %zu): ", turn, run->count);
        for (int i = 0; permille >= 0 && i < BAR_COLS; i++)
                str_add(&out, permille * BAR_COLS > i * 1000 ? "█" : "░");
        text_addf(&out, " %s", what);
        print_bytes(stderr, out.data, out.len);
}

static void programs_progress(const struct item *item, const char *what, int permille, void *arg)
{
        struct programs_run *run = arg;
        int quarter = permille < 0 ? 0 : permille / 250;
        size_t turn = (size_t)(item - run->items) + 1;
        if (isatty(STDERR_FILENO)) {
                programs_bar(run, turn, what, permille);
                return;
        }
        if (permille >= 0 && item == run->shown && quarter == run->quarter)
                return;
        run->shown = item;
        run->quarter = quarter;
        print_err("programs (%u of %u): %s\n", (unsigned)turn, (unsigned)run->count, what);
}

static void programs_done(struct error *err, void *arg)
{
        struct programs_run *run = arg;
        if (err) {
                run->error = *err;
                *err = (struct error){ 0 };
        }
        event_base_loopbreak(run->base);
}

static int programs_fetch(
        struct programs *p, struct item *items, size_t n, bool build, struct error *err)
{
        struct event_base *base CLEANUP(base_free) = event_base_new();
        struct cluster *c = arena_new(p->arena, struct cluster);
        struct programs_run run = { .base = base, .items = items, .count = n };
        struct fetch *f = NULL;
        c->arena = p->arena;
        c->artifacts.source = build ? ARTIFACT_BUILD : ARTIFACT_AUTO;
        struct fetch_request request = { .cluster = c,
                .arch = arch_own(),
                .items = items,
                .count = n,
                .programs = build,
                .on_progress = programs_progress,
                .on_notice = programs_notice,
                .on_done = programs_done,
                .arg = &run };
        int r = fetch_start(base, &request, &f, err);
        if (r == 0)
                event_base_dispatch(base);
        fetch_free(f);
        if (r == 0 && isatty(STDERR_FILENO))
                print_bytes(stderr, "\r\x1b[K", 4);
        if (run.error.code) {
                *err = run.error;
                r = -err->code;
        }
        return r;
}

/* ---- directories of programs ---- */

/* Adds what a word means: NAME, NAME@VERSION or a SET. */
static int programs_word(const struct programs *p, const char *word, struct program_row *out,
        size_t *n, struct error *err)
{
        size_t len = strcspn(word, "@"), before = *n;
        const char *name = arena_strndup(p->arena, word, len);
        if (word[len] && word[len + 1] && recipe_origin(name))
                out[(*n)++] = (struct program_row){ .recipe = name, .version = word + len + 1 };
        for (size_t i = 0; !word[len] && i < p->count; i++) {
                const struct program_row *row = &p->rows[i];
                bool named = *n == before && streq(row->recipe, word);
                if (named || streq(row->set, word))
                        out[(*n)++] = *row;
        }
        if (*n > before)
                return 0;
        error_set(err, ENOENT, EXIT_USAGE, "there is no recipe for '%s'", word);
        return error_hint(err, "without a name it lists those there are");
}

static int programs_build(struct programs *p, const struct strings *words, struct error *err)
{
        size_t n = 0, lacking = 0;
        struct program_row *rows =
                arena_array(p->arena, struct program_row, words->n * ARRAY_SIZE(p->rows));
        for (size_t i = 0; i < words->n; i++)
                if (programs_word(p, words->v[i], rows, &n, err) < 0)
                        return -err->code;
        struct item *items = arena_array(p->arena, struct item, n);
        for (size_t i = 0; i < n; i++)
                if (access(programs_dir(p, rows[i].recipe, rows[i].version), X_OK) < 0)
                        items[lacking++] =
                                (struct item){ .name = recipe_origin(rows[i].recipe)->name,
                                        .version = rows[i].version };
        if (lacking && programs_fetch(p, items, lacking, true, err) < 0)
                return -err->code;
        for (size_t i = 0; i < n; i++)
                print("%s\n", programs_dir(p, rows[i].recipe, rows[i].version));
        return EXIT_OK;
}

/* ---- single programs ---- */

static int programs_copy(const struct item *item, const char *dir, struct error *err)
{
        struct str data CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(dir, item->name);
        int r = file_read(item->path, PROGRAM_MAX, &data, err);
        return r < 0 ? r : file_write(path, data.data, data.len, 0755, 0, NULL, err);
}

static int programs_into(struct programs *p, const struct catalogue *all, const char *dir,
        const struct strings *words, struct error *err)
{
        struct item *items = xcalloc(words->n, sizeof(*items));
        int r = 0;
        for (size_t i = 0; r == 0 && i < words->n; i++) {
                for (size_t k = 0; k < ART_COUNT; k++)
                        if (streq(all->artifacts[k].name, words->v[i]))
                                items[i] = (struct item){ .name = all->artifacts[k].name,
                                        .version = all->artifacts[k].version };
                if (!items[i].name)
                        r = error_set(err, ENOENT, EXIT_USAGE, "the catalogue has no program '%s'",
                                words->v[i]);
        }
        if (r == 0)
                r = programs_fetch(p, items, words->n, false, err);
        for (size_t i = 0; r == 0 && i < words->n; i++)
                r = programs_copy(&items[i], dir, err);
        items_free(items, words->n);
        return r;
}

int cmd_programs(const struct options *o, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct programs p CLEANUP(programs_release) = { .arena = &a };
        struct catalogue all;
        int r = programs_open(&p, &all, err);
        if (r < 0)
                return r;
        if (o->dir)
                return programs_into(&p, &all, o->dir, &o->args, err);
        return o->args.n ? programs_build(&p, &o->args, err) : programs_list(&p, &all);
}
