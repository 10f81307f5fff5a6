/* The sources of an item, and the job for each. */
#include <fcntl.h>
#include <sys/file.h>

#include "artifact/fetch_impl.h"
#include "base/file.h"

const char *source_name(enum source s)
{
        static const char *const names[] = { "bundle", "mirror", "upstream", "build" };
        return names[s];
}

const char *source_title(enum source s)
{
        static const char *const titles[] = { "the bundle", "the mirror", "upstream", "a build" };
        return titles[s];
}

static void order_add(struct want *w, enum source s)
{
        for (size_t i = 0; i < w->sources; i++)
                if (w->order[i] == s)
                        return;
        w->order[w->sources++] = s;
}

/* The mirror of the registry an image comes from, or NULL. */
static const char *registry_mirror(const struct cluster *c, const char *reference)
{
        const struct registry *r = &c->registry;
        for (size_t i = 0; i < r->mirrors.n; i++) {
                size_t n = strlen(r->mirrors.v[i].key);
                if (strncmp(reference, r->mirrors.v[i].key, n) == 0 && reference[n] == '/')
                        return r->mirrors.v[i].value;
        }
        return r->mirror;
}

void sources_order(struct fetch *f, struct want *w, const char *preferred)
{
        const struct cluster *c = f->request.cluster;
        static const enum source only[] = { [ARTIFACT_BUNDLE] = FROM_BUNDLE,
                [ARTIFACT_MIRROR] = FROM_MIRROR,
                [ARTIFACT_UPSTREAM] = FROM_UPSTREAM,
                [ARTIFACT_BUILD] = FROM_BUILD };
        if (w->own || c->artifacts.source != ARTIFACT_AUTO) {
                order_add(w, w->own ? FROM_BUILD : only[c->artifacts.source]);
                return;
        }
        bool mirror = w->item->image ? registry_mirror(c, w->item->name) : c->artifacts.mirror;
        const bool there[SOURCE_COUNT] = { [FROM_BUNDLE] = f->bundle,
                [FROM_MIRROR] = mirror,
                [FROM_UPSTREAM] = true,
                [FROM_BUILD] = true };
        if (f->bundle)
                order_add(w, FROM_BUNDLE);
        /* The source of the locked digest is the most likely to have it. */
        for (size_t s = 0; preferred && s < SOURCE_COUNT; s++)
                if (there[s] && streq(source_name((enum source)s), preferred))
                        order_add(w, (enum source)s);
        for (size_t s = 0; s < SOURCE_COUNT; s++)
                if (there[s])
                        order_add(w, (enum source)s);
}

static void job_join(struct fetch *f, struct want *w, const struct job_kind *kind, const char *key)
{
        struct job **p = &f->jobs;
        while (*p && !((*p)->kind == kind && streq((*p)->key, key)))
                p = &(*p)->next;
        if (!*p) {
                *p = xcalloc(1, sizeof(**p));
                **p = (struct job){
                        .fetch = f, .kind = kind, .source = f->source, .key = xstrdup(key)
                };
        }
        struct job *j = *p;
        j->wants = xrealloc(j->wants, (j->count + 1) * sizeof(*j->wants));
        j->wants[j->count++] = w;
}

static int from_bundle(struct fetch *f, struct want *w, struct error *err)
{
        struct lock_entry e;
        if (!f->bundle)
                return error_set(
                        err, ENOENT, EXIT_CONFIG, "there is none: artifacts.bundle is not set");
        if (!locked_get(&f->bundled, w->key, &e)) {
                error_set(err, ENOENT, EXIT_INTERNAL, "%s/bundle.lock does not have it", f->bundle);
                return error_hint(err,
                        "make the bundle again for this cluster and architecture: " BUNDLE_FROM);
        }
        if (*w->pinned && !streq(w->pinned, e.digest)) {
                error_set(err, ESTALE, EXIT_STATE,
                        "%s/bundle.lock has another digest (%.12s…) than %s (%.12s…)", f->bundle,
                        e.digest, f->lock_path, w->pinned);
                return error_hint(err,
                        "if the change is intended, remove the line of %s from %s and run again",
                        w->key, f->lock_path);
        }
        job_join(f, w, &copy_job, e.digest);
        return 0;
}

static int from_network(struct fetch *f, struct want *w, struct error *err)
{
        const struct cluster *c = f->request.cluster;
        bool mirror = f->source == FROM_MIRROR;
        char *dead = f->dead[f->source];
        /* An image's mirror is a registry of its own, so the mirror of files says
         * nothing about it. */
        if (dead && !(w->item->image && mirror))
                return error_set(err, EHOSTUNREACH, EXIT_UNREACHABLE, "%s", dead);
        if (w->item->image) {
                const char *at = mirror ? registry_mirror(c, w->item->name) : NULL,
                           *path = strchr(w->item->name, '/');
                char *from CLEANUP(free_p) =
                        at && path
                                ? xasprintf("%s%s%s", at, has_suffix(at, "/") ? "" : "/", path + 1)
                                : xstrdup(w->item->name);
                job_join(f, w, &pull_job, from);
                return 0;
        }
        const struct origin *o = origin_of(w->item->name);
        if (!o || !o->url)
                return error_set(
                        err, ENOENT, EXIT_INTERNAL, "no place is known for %s", w->item->name);
        if (mirror && !c->artifacts.mirror)
                return error_set(
                        err, ENOENT, EXIT_CONFIG, "there is none: artifacts.mirror is not set");
        char *url CLEANUP(free_p) = origin_expand(o->url, w->item->version, f->request.arch);
        char *mirrored CLEANUP(free_p) = mirror ? origin_mirrored(c->artifacts.mirror, url) : NULL;
        job_join(f, w, &download_job, mirrored ? mirrored : url);
        return 0;
}

const struct recipe *want_recipe(const struct fetch *f, const struct want *w, char **version)
{
        const struct item *item = w->item;
        char *word CLEANUP(free_p) = NULL;
        if (!item->image) {
                const struct origin *o = origin_of(item->name);
                const struct recipe *own = o && o->recipe ? recipe_of(o->recipe) : NULL;
                *version = xstrdup(own && own->builds ? own->builds : item->version);
                return own;
        }
        const char *pause = f->request.cluster->runtime.pause;
        if (!image_words(item->name, &word, version))
                *version = xstrdup("");
        const struct image_origin *i = image_origin_of(pause && streq(pause, item->name) ? "pause"
                                                       : word                            ? word
                                                                                         : "");
        const struct recipe *r = i ? recipe_of(i->recipe) : NULL;
        if (r && r->builds) {
                free(*version);
                *version = xstrdup(r->builds);
        }
        return r;
}

static int from_build(struct fetch *f, struct want *w, struct error *err)
{
        char *version CLEANUP(free_p) = NULL;
        const struct recipe *r = want_recipe(f, w, &version);
        if (!r)
                return error_set(err, ENOTSUP, EXIT_INTERNAL, "%s cannot be built from Go modules",
                        w->item->name);
        char *key CLEANUP(free_p) = xasprintf("%s %s", r->name, version);
        job_join(f, w, &build_job, key);
        return 0;
}

int want_job(struct fetch *f, struct want *w, struct error *err)
{
        switch (f->source) {
        case FROM_BUNDLE:
                return from_bundle(f, w, err);
        case FROM_BUILD:
                return from_build(f, w, err);
        default:
                return from_network(f, w, err);
        }
}

/* If there is a choice of sources, one request checks each, so that items do not time out
 * one by one. */
char *source_probe(const struct fetch *f)
{
        const struct artifacts *a = &f->request.cluster->artifacts;
        if (a->source != ARTIFACT_AUTO || (f->source != FROM_MIRROR && f->source != FROM_UPSTREAM))
                return NULL;
        for (size_t i = 0; i < f->request.count; i++) {
                const struct want *w = &f->wants[i];
                const struct origin *o = w->item->image ? NULL : origin_of(w->item->name);
                if (w->done || w->order[w->at] != f->source ||
                        (w->item->image && f->source == FROM_MIRROR) || (o && !o->url))
                        continue;
                const char *url = o ? o->url : "https://registry.k8s.io/v2/",
                           *host = strstr(url, "://") + 3;
                return f->source == FROM_MIRROR
                               ? xstrdup(a->mirror)
                               : xasprintf("https://%.*s/", (int)strcspn(host, "/"), host);
        }
        return NULL;
}

bool want_built(const struct fetch *f, const struct want *w)
{
        char *version CLEANUP(free_p) = NULL;
        const struct recipe *r = want_recipe(f, w, &version);
        char *dir CLEANUP(free_p) = r ? recipe_dir(f, r->name, version) : NULL;
        return !r || !r->packages[0] || dir;
}

static bool all_built(const struct fetch *f)
{
        for (size_t i = 0; i < f->request.count; i++) {
                const struct want *w = &f->wants[i];
                if (!w->done && w->order[w->at] == FROM_BUILD && !want_built(f, w))
                        return false;
        }
        return true;
}

bool build_lock_take(struct fetch *f)
{
        if (f->build_lock >= 0 || all_built(f))
                return true;
        char *path CLEANUP(free_p) = cache_path(f->cache, "artifacts", ".lock");
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return true; /* the build itself reports problems with the cache */
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                close(fd);
                return false;
        }
        f->build_lock = fd;
        builds_clean(f->cache);
        return true;
}
