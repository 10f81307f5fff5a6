/* Where programs and images come from. Everything ends as a blob: a file named by its sha-256 in
 * the cache, so that it is fetched or built once, verified once, and sent to a node only when the
 * node does not have that digest.
 *
 *   CACHE/blobs/sha256/HEX    a program (one static binary), a set (an uncompressed tar: the CNI
 * plugins), or an image (a docker archive) CACHE/index.json          item@version/arch and source →
 * digest, size: what was resolved before CACHE/artifacts/RECIPE-VERSION    the programs that a
 * build made, as they are CACHE/partial, tmp, logs  downloads to go on with; what is under way;
 * what builds said bundle.lock               beside cluster.yaml: the same, for the items of one
 * cluster; what it names must come out with that digest BUNDLE/bundle.lock, BUNDLE/blobs/sha256/HEX
 * a bundle: the whole offline install in one directory
 *
 * CACHE is $SLIPWAY_CACHE, or $XDG_CACHE_HOME/slipway, or ~/.cache/slipway. */
#ifndef SLIPWAY_FETCH_H
#define SLIPWAY_FETCH_H

#include "artifact/catalogue.h"
#include "base/error.h"

struct event_base;

/* One thing wanted. `name` and `version` as in the catalogue; images have their whole reference as
 * name and version NULL. */
struct item {
        const char *name, *version;
        bool image;
        /* filled in: */
        char digest[65]; /* hex, "" until resolved */
        int64_t size;
        char *path;         /* of the blob; malloc'd: items_free */
        const char *source; /* "cache", "bundle", "mirror", "upstream", "build", or "computer": this
                               computer's own program */
};

#define FETCH_FILE_MAX  ((int64_t)2 << 30)
#define FETCH_TOTAL_MAX ((int64_t)16 << 30)

struct fetch_request {
        const struct cluster *cluster; /* artifacts.*, registry.*, runtime.pause */
        const char *arch;              /* "amd64", "arm64" */
        const char *lock; /* path of bundle.lock; it is written when something new was resolved.
                             NULL: none */
        struct item *items;
        size_t count;
        bool programs; /* only CACHE/artifacts is filled, by builds one after the other: no blob is
                          made, no digest resolved, and other runs are kept from building alone */
        /* The static agent, which is the pause program too: for the pause image where it is built.
         */
        const void *agent;
        size_t agent_len;
        /* Progress, from the loop: what happens to an item ("downloading from the mirror",
         * "building kubernetes 1.36.1", "taken from the bundle"), how far (0–1000, -1: unknown).
         * May be NULL. */
        void (*on_progress)(const struct item *item, const char *what, int permille, void *arg);
        /* What must be seen: that an image or a program without a checksum was pinned at first use.
         * May be NULL. */
        void (*on_pinned)(const struct item *item, const char *how, void *arg);
        /* What will be built and about how long that takes, beforehand; and when each is built. May
         * be NULL. */
        void (*on_notice)(const char *text, void *arg);
        int64_t file_max, total_max; /* bytes of one download and of all; 0: FETCH_FILE_MAX,
                                        FETCH_TOTAL_MAX */
        /* The end: err is NULL on success; else the first failure (others were stopped). fetch_free
         * may be called from it. */
        void (*on_done)(struct error *err, void *arg);
        void *arg;
};

struct fetch;

/* This computer's architecture as Go and Kubernetes name it; "amd64" when it is none that we know.
 */
const char *arch_own(void);

/* Starts resolving everything at once; warm, all is answered from the cache before this returns and
 * on_done comes in the next turn of the loop. The request is copied; cluster, items, agent and the
 * strings must stay until on_done or fetch_free. */
int fetch_start(struct event_base *base, const struct fetch_request *request, struct fetch **out,
        struct error *err);
/* Stops what is under way (downloads stay resumable, builds are ended). NULL is fine. */
void fetch_free(struct fetch *f);

/* The items of one cluster's nodes, without doubles. Returned array is malloc'd: items_free. */
struct item *fetch_items(
        const struct cluster *c, struct arena *a, size_t *count, struct error *err);
void items_free(struct item *items, size_t count);

/* ---- bundles ---- */

/* How people make one, for hints. */
#define BUNDLE_FROM \
        "it is the bundle.lock that `slipway up` wrote beside cluster.yaml, and blobs/ of that computer's ~/.cache/slipway"

/* Writes resolved items into a bundle directory, beside what it holds already (another
 * architecture, another version). Blocks while it copies. */
int bundle_write(const char *dir, const char *arch, const struct item *items, size_t count,
        struct error *err);
/* Reads every blob of a bundle and compares it with the bundle's lock. The sentence names the first
 * that is wrong or missing. */
int bundle_verify(const char *dir, size_t *items, int64_t *bytes, struct error *err);

#endif
