/* A Kubespray inventory as cluster.yaml: what has a counterpart is translated, what Kubernetes no
 * longer has becomes its living successor, and everything else is left as a NOTE in a comment, so
 * that nothing is lost without a word. */
#ifndef SLIPWAY_KUBESPRAY_H
#define SLIPWAY_KUBESPRAY_H

#include "config/kubespray/inventory.h"

/* What a person should look at, in the order of the file; each also stands as "# NOTE: …"
 * at its place. */
struct note {
        const char *text;
        struct note *next;
};
struct notes {
        struct arena *arena;
        struct note *first, **end;
        size_t count;
};

/* `path` is the inventory directory or its hosts file; group_vars and host_vars are looked for
 * beside it. `name` is the cluster's name; NULL takes the directory's. The YAML goes to `out`. */
int kubespray_import(struct arena *a, const char *path, const char *name, struct str *out,
        struct notes *notes, struct error *err);

/* The half of it that touches no files: an inventory that is read and finished. */
int kubespray_convert(struct arena *a, struct inventory *inv, const char *name, struct str *out,
        struct notes *notes, struct error *err);
/* Kubespray's own ideas about groups: the old names, and k8s_cluster around the others. To be
 * called before inventory_finish. */
int kubespray_groups(struct inventory *inv, struct error *err);

#endif
