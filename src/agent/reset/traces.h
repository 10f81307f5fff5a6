/* What kube-proxy and each pod network leave in the kernel and as units, by name: one row a
 * program, whoever installed it. Data directories are in data.c, where their order matters. */
#ifndef SLIPWAY_TRACES_H
#define SLIPWAY_TRACES_H

#include "base/base.h"

enum trace {
        TRACE_LINK,    /* a pattern, as the shell's */
        TRACE_CHAIN,   /* of iptables: a prefix */
        TRACE_COMMENT, /* of rules of iptables in the kernel's own chains: a prefix */
        TRACE_SET,     /* of ipset: a prefix; rules that ask for them go too */
        TRACE_TABLE,   /* of nftables: a name */
        TRACE_UNIT,    /* a service */
        TRACE_COUNT
};

/* The i-th name of a kind, of all rows; NULL: there are no more. */
const char *trace_name(enum trace kind, size_t i);
bool trace_prefix(enum trace kind, const char *name); /* whether a name begins with one of them */

#endif
