/* Between the files of the Kubespray importer. */
#ifndef SLIPWAY_KUBESPRAY_IMPL_H
#define SLIPWAY_KUBESPRAY_IMPL_H

#include "config/cluster.h"
#include "config/kubespray/kubespray.h"

struct spray {
        struct arena *arena;
        struct inventory *inv;
        /* whose variables are the cluster's: a control-plane host, an etcd host, a worker */
        const struct inventory_host *seat[3];
        struct str *out;   /* where the section being written goes */
        int indent;        /* of its fields */
        bool same_version; /* the Kubernetes version is the inventory's own */
        struct notes *notes;
        struct index asked; /* variables that some part of this knows */
        struct index said;  /* notes */
        size_t budget;      /* of Jinja look-ups for one value */
};

/* ---- variables (kubespray_vars.c) ---- */

/* The variable as the cluster sees it, NULL when it is nowhere or null. */
const struct tree *spray_var(struct spray *k, const char *name);
/* Its text with Jinja's plain references filled in; NULL when it is unset, empty, no scalar, or
 * cannot be read (and noted). */
const char *spray_text(struct spray *k, const char *name);
const char *spray_host_text(struct spray *k, const struct inventory_host *h, const char *name);
/* The text of a scalar somewhere inside a variable's value. */
const char *spray_scalar(
        struct spray *k, const struct inventory_host *h, const struct tree *t, const char *name);
bool spray_true(struct spray *k, const char *name);
/* A list, or words between commas. Empty when there is nothing to read. */
struct strings spray_list(struct spray *k, const char *name);
/* Variables that were set and that nobody asked for. */
void spray_leftovers(struct spray *k);

/* ---- writing ---- */

/* "# NOTE: …" at this place, and into the notes. */
void spray_note(struct spray *k, const char *fmt, ...) PRINTF(2, 3);
void spray_comment(struct spray *k, const char *fmt, ...) PRINTF(2, 3);
/* A value as a person would write it: quoted only where it must be. */
void spray_value(struct str *s, const char *v);
void spray_field(struct spray *k, const char *field, const char *value);
/* Field: [a, b]. */
void spray_words(struct spray *k, const char *field, const struct strings *words);
/* A map that is written only when something is in it: what is written between the two lies
 * in it. Nests. */
struct spray_section {
        const char *name;
        struct str body, *out;
};
void spray_begin(struct spray *k, struct spray_section *s, const char *name);
void spray_end(struct spray *k, struct spray_section *s);

/* Rows of variables that only change their names. */
enum spray_how {
        HOW_TEXT,
        HOW_HOST,
        HOW_NUMBER,
        HOW_PATH,
        HOW_URL,
        HOW_WORDS,
        HOW_MILLIS,
        HOW_BYTES,
        HOW_DURATION
};
struct spray_row {
        const char *var, *field;
        enum spray_how how;
        const char *def; /* slipway's own default: not written */
        long min, max;
};
void spray_rows(struct spray *k, const struct spray_row *rows, size_t n);

/* ---- sections ---- */
void spray_api(struct spray *k); /* kubespray_network.c */
void spray_network(struct spray *k);
void spray_provider(struct spray *k); /* kubespray_pools.c */
void spray_pools(struct spray *k);
void spray_images(struct spray *k); /* kubespray_spec.c: runtime, artifacts, registry, proxy */
void spray_access(struct spray *k); /* auth, encryption, audit, admission */
void spray_parts(struct spray *k);  /* featureGates, components, etcd, os, upgrade */
void spray_addons(struct spray *k); /* kubespray_addons.c: what was installed on top */

#endif
