/* The controls of the CIS Kubernetes benchmark that depend on a node's files, as a table, and the
 * result of each: for a NodeSpec, or for the files on the node. */
#ifndef SLIPWAY_CIS_H
#define SLIPWAY_CIS_H

#include <jansson.h>

#include "node/nodespec.h"

#define CIS_BENCHMARK "CIS Kubernetes Benchmark 1.9"

struct cis_file {
        const char *path, *owner; /* "root:root" */
        unsigned mode;
        const char *text; /* NULL: not needed */
};
struct cis_files {
        size_t n;
        struct cis_file *v;
};

struct cis_files cis_from_spec(struct arena *a, const struct nodespec *s);
/* The script to run on a node ("sh", "-c", script), and its output parsed. Keys are not in it. */
const char *cis_script(struct arena *a, const struct cluster *c);
struct cis_files cis_from_output(struct arena *a, const char *out);

/* {"benchmark", "hardening", "pass", "fail", "manual", "controls": [{"id", "title",
 * "result", "why", "nodes": [..]}]}: cis_begin, then cis_node for each node. `nodes` are
 * those where it fails. */
json_t *cis_begin(const struct cluster *c);
void cis_node(json_t *report, const struct cluster *c, const struct node *n,
        const struct cis_files *files);
/* Counts the results, and removes controls whose file no node has: they do not apply. */
void cis_end(json_t *report);
/* Evaluates all controls from rendered files, for one node of each pool. Nodes without an address
 * get one. The report is always set, unless there is no temporary directory. */
int cis_check(struct cluster *c, json_t **report, struct error *err);

#endif
