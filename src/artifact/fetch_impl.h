/* Internals of a fetch. Items that are not in the cache become wants. For each source, its wants
 * are grouped into jobs (one archive or one build gives several items) and the jobs run; a want
 * whose job failed continues with its next source. */
#ifndef SLIPWAY_FETCH_IMPL_H
#define SLIPWAY_FETCH_IMPL_H

#include "artifact/fetch.h"
#include "artifact/blob.h"
#include "artifact/http.h"
#include "artifact/lock.h"
#include "artifact/origin.h"
#include "artifact/work.h"
#include "base/str.h"

struct event;

enum source { FROM_BUNDLE, FROM_MIRROR, FROM_UPSTREAM, FROM_BUILD, SOURCE_COUNT };

struct want {
        struct item *item;
        char *key;       /* "kubelet@1.36.1/amd64", as in the locks */
        char pinned[65]; /* the digest in the lock, or "" */
        enum source order[SOURCE_COUNT];
        size_t sources, at;
        /* made from this program: not pinned, and different for each program */
        bool own;
        /* in artifacts.trustOnFirstUse, and not pinned by the lock */
        bool trust;
        bool done;
        struct str tried; /* why each source failed */
        char *way;        /* a hint that helps in any case, or NULL */
};

struct job;

struct job_kind {
        size_t at_once;
        /* Starts the job; job_done ends it, from the loop or from within. */
        void (*start)(struct job *j);
        /* Stops it without job_done and frees its state. */
        void (*stop)(struct job *j);
};

struct job {
        struct fetch *fetch;
        const struct job_kind *kind;
        enum source source;
        char *key; /* wants with the same kind and key share a job */
        struct want **wants;
        size_t count;
        bool running;
        void *state; /* the kind's own */
        struct work work;
        struct job *next;
};

struct fetch {
        struct event_base *base;
        struct fetch_request request;
        char *cache, *lock_path, *bundle;
        struct locked lock, index, bundled;
        struct want *wants; /* one per item, with the same index */
        struct job *jobs;
        struct worker *worker;
        struct http *http;
        struct transfer *probe;
        struct event *tick; /* the next turn: what to do is `next` */
        void (*next)(struct fetch *f);
        int cache_lock, build_lock;    /* descriptors, -1: not held */
        enum source source;            /* the current one */
        char *dead[SOURCE_COUNT];      /* why a source cannot be reached, or NULL */
        char *pull_dead[SOURCE_COUNT]; /* the same, for images */
        int64_t room;                  /* bytes that may still be downloaded */
        bool waiting, pumping, over;
        struct error error;
};

extern const struct job_kind copy_job, download_job, pull_job, build_job;

/* fetch.c: for job kinds */
void fetch_note(struct fetch *f, const struct item *item, int permille, const char *fmt, ...)
        PRINTF(4, 5);
/* For every item of the job. */
void job_note(struct job *j, int permille, const char *fmt, ...) PRINTF(3, 4);
/* A blob for a want exists. `how`: the source's name, or "computer". If the digest is not the
 * pinned one, the want fails. */
void want_resolved(
        struct job *j, struct want *w, const char digest[65], int64_t size, const char *how);
/* The job has ended: unresolved wants fail with err (NULL: no message). The job is freed. */
void job_done(struct job *j, struct error *err);
void fetch_later(struct fetch *f, void (*next)(struct fetch *f), int ms);

/* fetch_sources.c: the sources of a want, and the jobs of a source */
void sources_order(struct fetch *f, struct want *w, const char *preferred);
const char *source_name(enum source s);  /* "mirror" */
const char *source_title(enum source s); /* "the mirror" */
/* Creates or joins the job that gets the want from f->source; an error if there is none. */
int want_job(struct fetch *f, struct want *w, struct error *err);
/* The address that shows whether a source can be reached; malloc'd. NULL: no check. */
char *source_probe(const struct fetch *f);
/* The recipe of a want and its version (malloc'd); NULL: it cannot be built. */
const struct recipe *want_recipe(const struct fetch *f, const struct want *w, char **version);
/* Its programs are in CACHE/artifacts, or it needs no compiling. */
bool want_built(const struct fetch *f, const struct want *w);
/* Only one run builds at a time. False: another run is building, wait for it. */
bool build_lock_take(struct fetch *f);

/* fetch_estimate.c: announces what will be built, and for how long */
void builds_announce(struct fetch *f);
void build_notice(struct fetch *f, const char *fmt, ...) PRINTF(2, 3);

/* fetch_build.c */
/* Malloc'd; NULL: not built before. */
char *recipe_dir(const struct fetch *f, const char *recipe, const char *version);
bool fetch_own_arch(const struct fetch *f);

char *item_key(const struct item *item, const char *arch); /* malloc'd */
char *item_title(const struct item *item);                 /* "kubelet 1.36.1"; malloc'd */

#endif
