/* Removes the links of the fabric and its addresses and routes on other links, over netlink, whose
 * message layouts are fixed by the kernel. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <net/if.h>
#include <sys/socket.h>

#include "agent/reset/reset.h"
#include "agent/reset/traces.h"
#include "base/file.h"

#define NETLINK_ROUTE 0
#define REQUEST_ACK   (1 | 4)
#define DELLINK       17
#define DELADDR       21
#define DELROUTE      25
#define ATTR_DST      1 /* of a route: the destination; of an address: the address */
#define ATTR_LOCAL    2
#define TABLE_MAIN    254

struct request {
        uint32_t len;
        uint16_t type, flags;
        uint32_t seq, port;
        uint8_t body[80];
};

static void rtnl_put(struct request *q, const void *data, size_t n)
{
        memcpy((uint8_t *)q + q->len, data, n);
        q->len += (uint32_t)n;
}

/* N: a multiple of four. */
static void rtnl_attribute(struct request *q, uint16_t type, const void *data, size_t n)
{
        uint16_t head[2] = { (uint16_t)(n + 4), type };
        rtnl_put(q, head, sizeof(head));
        rtnl_put(q, data, n);
}

static struct request rtnl_request(uint16_t type)
{
        return (struct request){ .len = 16, .type = type, .flags = REQUEST_ACK };
}

/* ---- links ---- */

static int delete_link(unsigned index)
{
        struct request q = rtnl_request(DELLINK);
        struct {
                uint8_t family, pad;
                uint16_t type;
                int32_t index;
                uint32_t flags, change;
        } info = { .index = (int32_t)index };
        rtnl_put(&q, &info, sizeof(info));
        return netlink_ask(NETLINK_ROUTE, &q, q.len);
}

/* The host's end of a pod's link: whatever its name, the fabric's bridge is its master. */
static bool on_bridge(const char *name)
{
        char *path CLEANUP(free_p) = xasprintf("/sys/class/net/%s/master", name), target[256];
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
        return has_suffix(target, "/cni0");
}

static bool is_fabric(const char *name)
{
        const char *pattern;
        for (size_t i = 0; (pattern = trace_name(TRACE_LINK, i)); i++)
                if (fnmatch(pattern, name, 0) == 0)
                        return true;
        return false;
}

static void delete_links(struct agent *a)
{
        struct if_nameindex *all = if_nameindex();
        /* ports of a bridge before the bridge */
        for (int bridges = 0; all && bridges < 2; bridges++)
                for (struct if_nameindex *i = all; i->if_index; i++) {
                        if (bridges ? !is_fabric(i->if_name) : !on_bridge(i->if_name))
                                continue;
                        int r = delete_link(i->if_index);
                        if (r == 0)
                                reset_event(a, SPEC_MODULE, i->if_name, STATE_REMOVED, NULL);
                        else if (r != -ENODEV)
                                reset_event(a, SPEC_MODULE, i->if_name, STATE_FAILED, strerror(-r));
                }
        if (all)
                if_freenameindex(all);
}

/* ---- the virtual address ---- */

static int cidr_split(const char *text, uint8_t addr[16], int *family, unsigned *bits)
{
        char copy[INET6_ADDRSTRLEN + 8];
        snprintf(copy, sizeof(copy), "%s", text);
        char *slash = strchr(copy, '/');
        if (slash)
                *slash++ = 0;
        *family = strchr(copy, ':') ? AF_INET6 : AF_INET;
        *bits = slash ? (unsigned)strtoul(slash, NULL, 10) : *family == AF_INET ? 32 : 128;
        return inet_pton(*family, copy, addr) == 1 ? 0 : -EINVAL;
}

/* keepalived removes it at a normal stop, but not if it is killed. */
static void delete_vip(struct agent *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        char address[64], device[IF_NAMESIZE];
        uint8_t addr[16];
        int family;
        unsigned bits, index;
        const char *at = file_read("/etc/slipway/keepalived.conf", 1 << 20, &s, &err) == 0
                                 ? strstr(str_text(&s), "virtual_ipaddress {")
                                 : NULL;
        if (!at || sscanf(at, "virtual_ipaddress { %63s dev %15s", address, device) != 2 ||
                cidr_split(address, addr, &family, &bits) < 0 || !(index = if_nametoindex(device)))
                return;
        struct request q = rtnl_request(DELADDR);
        struct {
                uint8_t family, bits, flags, scope;
                uint32_t index;
        } info = { .family = (uint8_t)family, .bits = (uint8_t)bits, .index = index };
        rtnl_put(&q, &info, sizeof(info));
        rtnl_attribute(&q, ATTR_LOCAL, addr, family == AF_INET ? 4 : 16);
        if (netlink_ask(NETLINK_ROUTE, &q, q.len) == 0)
                reset_event(a, SPEC_MODULE, address, STATE_REMOVED, NULL);
}

/* ---- routes to the pods of other nodes (host-gw), and calico's for addresses of no pod ---- */

static bool route_inside(const uint8_t *addr, const uint8_t *net, unsigned bits)
{
        return memcmp(addr, net, bits / 8) == 0 &&
               (bits % 8 == 0 || (addr[bits / 8] ^ net[bits / 8]) >> (8 - bits % 8) == 0);
}

static void delete_route(int family, const uint8_t *dst, unsigned bits)
{
        struct request q = rtnl_request(DELROUTE);
        struct {
                uint8_t family, dst_len, src_len, tos, table, protocol, scope, type;
                uint32_t flags;
        } info = { .family = (uint8_t)family,
                .dst_len = (uint8_t)bits,
                .table = TABLE_MAIN,
                .scope = 255 /* any */ };
        rtnl_put(&q, &info, sizeof(info));
        rtnl_attribute(&q, ATTR_DST, dst, family == AF_INET ? 4 : 16);
        netlink_ask(NETLINK_ROUTE, &q, q.len);
}

/* Lines of /proc/net/route and ipv6_route: the destination in hexadecimal, for IPv4 in the byte
 * order of the machine. */
static bool route_read(const char *line, int family, uint8_t dst[16], unsigned *bits)
{
        unsigned to, mask;
        char hex[33];
        if (family == AF_INET) {
                if (sscanf(line, "%*s %x %*x %*x %*d %*d %*d %x", &to, &mask) != 2)
                        return false;
                memcpy(dst, &to, 4);
                *bits = (unsigned)__builtin_popcount(mask);
                return true;
        }
        if (sscanf(line, "%32s %x", hex, bits) != 2 || strlen(hex) != 32)
                return false;
        for (size_t i = 0; i < 16; i++)
                if (sscanf(hex + 2 * i, "%2x", &to) == 1)
                        dst[i] = (uint8_t)to;
        return true;
}

static void delete_routes(const char *network)
{
        uint8_t net[16], dst[16];
        int family;
        unsigned bits, len;
        char line[512];
        if (cidr_split(network, net, &family, &bits) < 0 || bits == 0 || bits > 128)
                return;
        FILE *f CLEANUP(fclose_p) =
                fopen(family == AF_INET ? "/proc/net/route" : "/proc/net/ipv6_route", "re");
        while (f && fgets(line, sizeof(line), f))
                if (route_read(line, family, dst, &len) && len >= bits &&
                        route_inside(dst, net, bits))
                        delete_route(family, dst, len);
}

/* The pods' ranges, as the fabric's own files have them. */
static void delete_pod_routes(void)
{
        static const struct {
                const char *file, *key;
        } ranges[] = { { "/run/flannel/subnet.env", "FLANNEL_NETWORK=" },
                { "/run/flannel/subnet.env", "FLANNEL_IPV6_NETWORK=" },
                { "/etc/calico/calico.env", "POD_RANGE_IPV4=" },
                { "/etc/calico/calico.env", "POD_RANGE_IPV6=" } };
        char line[512];
        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
                FILE *f CLEANUP(fclose_p) = fopen(ranges[i].file, "re");
                while (f && fgets(line, sizeof(line), f)) {
                        char *range = line + strlen(ranges[i].key);
                        if (!has_prefix(line, ranges[i].key))
                                continue;
                        range += *range == '"';
                        range[strcspn(range, "\n,\"")] = 0;
                        delete_routes(range);
                }
        }
}

void reset_links(struct agent *a)
{
        delete_vip(a);
        delete_links(a);
        delete_pod_routes();
}
