/* The machines of a cluster as Terraform (OpenTofu) files in JSON. A platform's resources are rows
 * of rows/NAME.json, which one writer (modules.c) sorts into modules and connects. Everything of
 * the user's is a value in slipway.auto.tfvars.json (values.c), which Terraform reads literally:
 * text of the user cannot become an expression. */
#ifndef SLIPWAY_DELIVER_TERRAFORM_H
#define SLIPWAY_DELIVER_TERRAFORM_H

#include <jansson.h>

#include "config/platform.h"

struct terraform {
        const struct cluster *cluster;
        const struct platform *platform;
        struct arena *arena;
        json_t *table;     /* rows/NAME.json */
        json_t *modules;   /* {MODULE: its file} */
        json_t *inputs;    /* {MODULE: {VARIABLE: what the root module passes}} */
        json_t *variables; /* {NAME: true}: of the root module, those that something uses */
};

struct terraform_result {
        size_t files, changed, removed;
        struct strings unset; /* variables that Terraform will ask for */
};

/* Writes the files of a cluster with provider terraform into the directory. Files there that it did
 * not write, or that were changed since, are refused before anything is written. */
int terraform_export(const struct cluster *c, const char *dir, struct arena *a,
        struct terraform_result *out, struct error *err);

/* modules.c: files below modules/ and the root module, into {PATH: JSON}. */
int terraform_modules(struct terraform *t, json_t *files, struct error *err);
/* values.c */
bool terraform_when(const struct terraform *t, const char *words);
json_t *terraform_declarations(const struct terraform *t); /* variables.tf.json */
json_t *terraform_values(const struct terraform *t);       /* slipway.auto.tfvars.json */
bool terraform_unset(const struct terraform *t, const char *name);

#endif
