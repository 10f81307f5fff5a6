/* Addresses and networks, IPv4 and IPv6 in one type. */
#ifndef SLIPWAY_IP_H
#define SLIPWAY_IP_H

#include "base/base.h"

#define IP_TEXT 46 /* room for any address as text */

struct ip {
        uint8_t family; /* 4 or 6; 0 when unset */
        uint8_t b[16];  /* network order; IPv4 uses the first 4 */
};

struct cidr {
        struct ip ip; /* with host bits cleared */
        uint8_t bits;
};

bool ip_parse(const char *s, struct ip *out);
/* `host_bits` (may be NULL) is set when the address had bits outside the prefix (10.0.0.1/16):
 * cleared here, callers may complain. */
bool cidr_parse(const char *s, struct cidr *out, bool *host_bits);
const char *ip_format(const struct ip *ip, char buf[IP_TEXT]); /* canonical text (RFC 5952) */
const char *cidr_format(const struct cidr *c, char buf[IP_TEXT + 4]);
bool ip_equal(const struct ip *a, const struct ip *b);
bool cidr_contains(const struct cidr *c, const struct ip *ip);
bool cidr_overlaps(const struct cidr *a, const struct cidr *b);
/* The n-th address of a network (0 is the network's own); false when the network is too small. */
bool cidr_nth(const struct cidr *c, uint64_t n, struct ip *out);
/* Number of host bits: 8 for a /24 of IPv4. */
unsigned cidr_host_bits(const struct cidr *c);
/* "[addr]" for IPv6, "addr" for IPv4: for host:port and URLs. */
const char *ip_host(const struct ip *ip, char buf[IP_TEXT + 2]);

#endif
