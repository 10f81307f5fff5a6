/* Where each item of the catalogue is upstream, and how it is built from Go modules, as tables. In
 * a pattern {v} is the version and {a} the architecture as Go names it. */
#ifndef SLIPWAY_ORIGIN_H
#define SLIPWAY_ORIGIN_H

#include "artifact/catalogue.h"

struct origin {
        const char *name; /* of the item */
        const char *url;  /* a program, or an archive of several; NULL: only built */
        /* its name in the archive; "*": every program in it, as a set; NULL: the file
         * is the program */
        const char *member;
        const char *sums;   /* a list of checksums; NULL: upstream has none */
        const char *recipe; /* how it is built; NULL: it cannot be */
        const char *file;   /* what the build calls it; "*": every file, as a set */
};

struct recipe {
        const char *name;       /* "kubernetes" */
        const char *modules[3]; /* with the wanted version, or their own: MODULE@v1.2.3 */
        const char *packages[10];
        const char *ldflags, *tags;
        const char *library; /* pkg-config must know it, or it is not built */
        /* the version that is built, whatever version is wanted, because no module of a newer one
         * is served; NULL: the wanted one */
        const char *builds;
        const char *data; /* a directory of the first module, copied beside the programs */
        unsigned minutes; /* estimate for the first build on one core; 0: one */
        /* Kubernetes' go.mod replaces k8s.io modules by directories; here by their releases */
        bool staging;
        /* the module needs the forks of other modules that its go.mod names (replace, exclude) */
        bool replaces;
        bool cgo; /* a C compiler is needed; linked statically */
        /* the tests of its package become one program, by go test -c */
        bool test;
        /* this computer's own program is used if it cannot be built */
        bool own;
        bool agent; /* it is the agent under another name: nothing is built */
        bool same;  /* `builds` is the wanted version, as Go modules number it */
};

/* An image with one static program in it. */
struct image_origin {
        const char *name; /* the last word of its repository */
        const char *recipe, *file;
        const char *path; /* of the program in it */
        const char *user;
};

const struct origin *origin_of(const char *name);
const struct image_origin *image_origin_of(const char *name);
const struct recipe *recipe_of(const char *name);
/* The version that belongs to the catalogue's other parts; NULL: none is known. */
const char *recipe_version(const char *recipe, const struct catalogue *c, struct arena *a);
/* Some item that the recipe makes; NULL: none. */
const struct origin *recipe_origin(const char *recipe);
/* "kube-apiserver" and "1.36.1" of "registry.k8s.io/kube-apiserver:v1.36.1"; false when there is no
 * tag. Both malloc'd. */
bool image_words(const char *reference, char **name, char **version);

char *origin_expand(const char *pattern, const char *version, const char *arch);
/* The same path under a mirror: MIRROR/HOST/PATH. */
char *origin_mirrored(const char *mirror, const char *url);
/* The checksum of `file` in a list of lines "HEX  NAME", or a bare "HEX". */
bool sums_find(const char *text, const char *file, char out[65]);

#endif
