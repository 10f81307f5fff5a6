/* Facts about a machine: read by its agent or from a JSON file, otherwise defaults. */
#ifndef SLIPWAY_FACTS_H
#define SLIPWAY_FACTS_H

#include <jansson.h>

#include "config/cluster.h"

enum os_family { OS_DEBIAN, OS_RHEL, OS_SUSE, OS_FLATCAR, OS_FAMILY_COUNT };

struct facts {
        const char *os_id; /* ID of /etc/os-release: debian, ubuntu, rocky… */
        const char *os_version;
        enum os_family family;
        const char *arch;      /* amd64, arm64 */
        int cgroup;            /* 1 or 2 */
        bool systemd;          /* init is systemd */
        bool sys_nice;         /* CAP_SYS_NICE: negative nice values are allowed */
        bool sys_resource;     /* CAP_SYS_RESOURCE: negative oom_score_adj is allowed */
        bool ipvs;             /* the kernel has it */
        bool kernel_defaults;  /* the kernel settings of protectKernelDefaults can be set */
        const char *interface; /* with the node's address */
        /* etcd's initial-cluster and initial-cluster-state ("new", "existing") that the member was
         * created with; NULL: it is created together with all others */
        const char *etcd_initial, *etcd_state;
        /* the API no longer accepts the kubelet's certificate: send a new one */
        bool kubelet_again;
        /* what a cloud says about the machine, NULL: nothing; the Node has it from its first
         * registration */
        const char *provider_id, *zone, *region;
};

/* {"nodes": {"w1": {"address": "192.0.2.21", "ip": [..], "os": {"id": "debian", "version": "12"},
 * "arch": "amd64", "cgroup": 2, "capabilities": ["sys_nice", "sys_resource"], "interface": "eth0",
 * "ipvs": true, "kernelDefaults": true, "init": "systemd"}}, "default": {same}}; all fields
 * are optional. */
struct facts_file;
int facts_load(const char *path, struct arena *a, struct facts_file **out, struct error *err);
/* Sets the known addresses in c->nodes. `f` may be NULL. */
void facts_addresses(const struct facts_file *f, struct cluster *c);
/* The facts of one node: those of the file, then the file's default, then pool.os and the defaults.
 * EXIT_PREFLIGHT on an unknown OS or Windows. */
int facts_for(
        const struct facts_file *f, const struct node *n, struct facts *out, struct error *err);
/* The same from the facts that the node's agent sent. */
int facts_from_agent(
        json_t *said, const struct node *n, struct arena *a, struct facts *out, struct error *err);

#endif
