/* Facts: what a machine says of itself. Read by the agent, or from a JSON file; where nobody asked yet, the usual. */
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
        bool sys_nice;         /* CAP_SYS_NICE: a service may go before others */
        bool sys_resource;     /* CAP_SYS_RESOURCE: negative oom_score_adj is allowed */
        bool ipvs;             /* the kernel has it */
        const char *interface; /* that holds the node's address */
        /* etcd's initial-cluster and its state ("new", "existing") as its member was born with them; NULL: it is to be born with all others */
        const char *etcd_initial, *etcd_state;
        bool kubelet_again; /* the kubelet has a certificate, and it lets it in no more: it gets the first one anew */
};

/* {"nodes": {"w1": {"address": "192.0.2.21", "ip": [..], "os": {"id": "debian", "version": "12"}, "arch": "amd64", "cgroup": 2,
 *   "capabilities": ["sys_nice", "sys_resource"], "interface": "eth0", "ipvs": true, "init": "systemd"}}, "default": {same}}; everything optional. */
struct facts_file;
int facts_load(const char *path, struct arena *a, struct facts_file **out, struct error *err);
/* Puts known addresses into c->nodes. `f` may be NULL. */
void facts_addresses(const struct facts_file *f, struct cluster *c);
/* The facts of one node: the file's, then its default, then pool.os and the usual. An OS nobody knows, or Windows, is EXIT_PREFLIGHT with a sentence. */
int facts_for(const struct facts_file *f, const struct node *n, struct facts *out, struct error *err);
/* The same from what the node's agent said of its machine; it says much more than is needed here. */
int facts_from_agent(json_t *said, const struct node *n, struct arena *a, struct facts *out, struct error *err);

#endif
