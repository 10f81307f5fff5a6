/* Operating systems: the family of an os-release ID, and how families differ, as tables. */
#ifndef SLIPWAY_OS_H
#define SLIPWAY_OS_H

#include "node/facts.h"

struct os_id {
        const char *id;
        enum os_family family;
        const char *version; /* assumed while unknown */
        bool resolved; /* /etc/resolv.conf is systemd-resolved's stub: pods need the real one */
};

struct os_info {
        const char *name;        /* of the family, for reports */
        const char *bin_dir;     /* where programs go: on the PATH and writable */
        bool packages;           /* has a package manager */
        bool selinux;            /* may enforce SELinux */
        const char *node[16];    /* packages of a node with a kubelet */
        const char *ntp_package; /* the time service */
        const char *ntp_unit, *ntp_path, *ntp_template;
        const char *proxy_path, *proxy_template; /* the package manager's HTTP proxy */
        const char *kubelet_env;                 /* file for KUBELET_EXTRA_ARGS */
        const char *ca_paths[4];                 /* directories that /etc/ssl/certs links to */
};

/* NULL: unknown. */
const struct os_id *os_find(const char *id);
const struct os_info *os_info(enum os_family family);
/* "debian, ubuntu, …", for messages. */
void os_names(struct str *out);
/* The package with mkfs.FILESYSTEM. */
const char *os_mkfs_package(const char *filesystem);

#endif
