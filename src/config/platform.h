/* The table of platforms that `slipway export terraform` writes files for: what each has, and the
 * variables that provider.terraform.variables may set. Its resources are rows in
 * deliver/terraform/rows/NAME.json. */
#ifndef SLIPWAY_CONFIG_PLATFORM_H
#define SLIPWAY_CONFIG_PLATFORM_H

#include "config/cluster.h"

enum platform_kind {
        PLATFORM_OPENSTACK,
        PLATFORM_AWS,
        PLATFORM_GCE,
        PLATFORM_AZURE,
        PLATFORM_VSPHERE,
        PLATFORM_OCI,
        PLATFORM_HETZNER,
        PLATFORM_COUNT
};

enum platform_has {
        PLATFORM_BALANCER = 1 << 0, /* a load balancer in front of the API servers */
        PLATFORM_VIP = 1 << 1,      /* an address can move between machines */
        PLATFORM_SIZES = 1 << 2,    /* machine sizes have names; otherwise machine.cpus, memory */
        PLATFORM_SHAPES = 1 << 3,   /* machine.cpus and machine.memory have an effect */
        PLATFORM_ZONED = 1 << 4,    /* every machine needs a zone */
        PLATFORM_KEYS = 1 << 5,     /* a machine cannot be made without an ssh key */
};

/* TEXT unless its name says otherwise. */
enum variable_type { VARIABLE_TEXT, VARIABLE_LIST, VARIABLE_NUMBER };

struct platform_variable {
        const char *name;
        enum variable_type type;
        const char *def; /* as it would be written; NULL: none */
        bool required;   /* Terraform asks for it if nothing sets it */
        /* slipway itself uses it: it becomes part of other values, not a variable of the files */
        bool used_here;
        const char *help;
};

struct platform {
        const char *name, *label;
        unsigned has;          /* enum platform_has */
        size_t userdata_limit; /* bytes of base64: the files hand it over encoded */
        const struct platform_variable *variables; /* its own; the common ones are apart */
        size_t variable_count;
};

extern const char *const platform_names[]; /* by enum platform_kind; the last is NULL */
const struct platform *platform_row(enum platform_kind kind);
/* Of the platform, or one that all have; NULL: it has no such variable. */
const struct platform_variable *platform_variable(const struct platform *p, const char *name);
/* All of its variables, for loops: NULL behind the last. */
const struct platform_variable *platform_variable_at(const struct platform *p, size_t i);
/* What provider.terraform.variables says; NULL: nothing. */
const char *terraform_variable(const struct cluster *c, const char *name);
/* The same for a pool: "POOL.NAME", otherwise "NAME". */
const char *terraform_pool_variable(
        const struct cluster *c, const struct pool *p, const char *name);
/* Whether it can be set for a single pool. */
bool platform_pool_variable(const char *name);
/* The words of a list "a, b": in the arena. */
struct strings platform_list(struct arena *a, const char *text);

#endif
