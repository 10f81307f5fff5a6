/* The NodeSpec: everything that one node must have, as data. Rendered by a pure function: no
 * network, no clock, no disk; same input, same bytes. */
#ifndef SLIPWAY_NODESPEC_H
#define SLIPWAY_NODESPEC_H

#include "base/spec.h"
#include "node/facts.h"
#include "pki/identity.h"
#include "artifact/catalogue.h"

/* Label with the name of the pool, on every node of slipway; machines that kubeadm joined do not
 * have it. */
#define POOL_LABEL "slipway.dev/pool"

struct spec_entry {
        enum spec_kind kind;
        enum spec_class class;
        unsigned flags;
        const char *path, *name, *target, *version;
        const char *owner; /* "user:group", NULL: root:root */
        unsigned mode;
        const char *content; /* text, NUL-terminated */
        size_t len;
        /* Space-separated units; NULL: none. Of a file, artifact or link: those that read it and
         * restart when it changes. Of a unit: those that it must start after. */
        const char *units;
};

struct nodespec {
        struct arena arena;
        const struct node *node;
        struct facts facts;
        size_t count, cap;
        struct spec_entry *entries; /* in the order of application */
};

struct spec_input {
        const struct cluster *cluster;
        const struct identity *identity;
        const struct node_identity *leaves;
        const struct node *node;
        const struct facts *facts;
};

/* Fails only on facts of the machine (a kernel without IPVS where ipvs
 * is wanted): EXIT_PREFLIGHT. */
int node_render(const struct spec_input *in, struct nodespec *out, struct error *err);
/* Only what user-data may contain, without an Identity or an address: in->identity and in->leaves
 * are NULL. */
int node_render_immutable(const struct spec_input *in, struct nodespec *out, struct error *err);
void nodespec_release(struct nodespec *s);

struct spec_entry *nodespec_add(struct nodespec *s, enum spec_kind kind, enum spec_class class);
const struct spec_entry *nodespec_find(
        const struct nodespec *s, enum spec_kind kind, const char *path_or_name);
const char *spec_kind_name(enum spec_kind k);
const char *spec_class_name(enum spec_class c);
/* {"node":..,"os":..,"entries":[{"kind":..,"class":..,"path":..,"mode":"0644","sha256":..,
 * "units":[..]}]}, without contents of files and without digests of secrets. */
void nodespec_json(const struct nodespec *s, struct str *out);

#endif
