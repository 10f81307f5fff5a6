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

/* One wanted item. `name` and `version` as in the catalogue; an image has its whole reference as
 * name, and version NULL. */
struct item {
        const char *name, *version;
        bool image;
        /* filled in: */
        char digest[65]; /* hex, "" until resolved */
        int64_t size;
        char *path; /* of the blob; malloc'd: items_free */
        /* "cache", "bundle", "mirror", "upstream", "build", or "computer" (a program
         * of this computer) */
        const char *source;
};

#define FETCH_FILE_MAX  ((int64_t)2 << 30)
#define FETCH_TOTAL_MAX ((int64_t)16 << 30)

struct fetch_request {
        const struct cluster *cluster; /* artifacts.*, registry.*, runtime.pause */
        const char *arch;              /* "amd64", "arm64" */
        /* path of bundle.lock, written if something new was resolved; NULL: none */
        const char *lock;
        struct item *items;
        size_t count;
        /* only fills CACHE/artifacts, by builds one after the other: makes no blob, resolves no
         * digest, and blocks only other builds */
        bool programs;
        /* The static agent, which is also the pause program: for the pause image if it is built. */
        const void *agent;
        size_t agent_len;
        /* Progress, from the loop: what happens to an item ("downloading from the mirror",
         * "building kubernetes 1.36.1", "taken from the bundle"), and how far (0–1000, -1:
         * unknown). May be NULL. */
        void (*on_progress)(const struct item *item, const char *what, int permille, void *arg);
        /* An image or a program without a checksum was pinned at first use, which the user must
         * see. May be NULL. */
        void (*on_pinned)(const struct item *item, const char *how, void *arg);
        /* What will be built, with an estimate of the time, before it starts; and when each is
         * built. May be NULL. */
        void (*on_notice)(const char *text, void *arg);
        /* bytes of one download and of all; 0: FETCH_FILE_MAX, FETCH_TOTAL_MAX */
        int64_t file_max, total_max;
        /* The end: err is NULL on success, otherwise the first failure (the rest was stopped).
         * fetch_free may be called from it. */
        void (*on_done)(struct error *err, void *arg);
        void *arg;
};

struct fetch;

/* This computer's architecture as Go and Kubernetes name it; "amd64" if it is unknown. */
const char *arch_own(void);

/* Starts resolving all items at once. If the cache has all of them, this function answers
 * everything before it returns, and on_done is called in the next turn of the loop. The request is
 * copied; cluster, items, agent and the strings must stay valid until on_done or fetch_free. */
int fetch_start(struct event_base *base, const struct fetch_request *request, struct fetch **out,
        struct error *err);
/* Stops running jobs (downloads can be resumed, builds are ended). f may be NULL. */
void fetch_free(struct fetch *f);

/* The items of one cluster's nodes, without duplicates. The array is malloc'd: items_free. */
struct item *fetch_items(
        const struct cluster *c, struct arena *a, size_t *count, struct error *err);
void items_free(struct item *items, size_t count);

/* ---- bundles ---- */

/* The command that makes one, for hints. */
#define BUNDLE_FROM \
        "it is the bundle.lock that `slipway up` wrote beside cluster.yaml, and blobs/ of that computer's ~/.cache/slipway"

/* Adds resolved items to a bundle directory, which may have others (another architecture
 * or version). Blocks. */
int bundle_write(const char *dir, const char *arch, const struct item *items, size_t count,
        struct error *err);
/* Compares every blob of a bundle with the bundle's lock. The error names the first that is
 * wrong or missing. */
int bundle_verify(const char *dir, size_t *items, int64_t *bytes, struct error *err);

#endif
