/* The cluster's bridge on this computer, through which ssh and kubectl reach the machines. It has
 * no route out: the base root has everything that a node needs, and slipway sends the rest. */
#include <net/if.h>

#include "base/proc.h"
#include "provider/local/local.h"

bool link_there(const char *name) { return if_nametoindex(name) != 0; }

static int ip_run(struct error *err, const char *const *words)
{
        const char *argv[16] = { "ip" };
        for (size_t i = 0; words[i]; i++)
                argv[i + 1] = words[i];
        struct str out CLEANUP(str_release) = { 0 };
        return proc_must(argv, &out, err);
}
#define IP(err, ...) ip_run(err, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- existing routes ---- */

/* Lines of /proc/net/route: device, destination and mask; the latter in hexadecimal, in the byte
 * order of this computer. */
static bool route4(const char *line, char dev[IF_NAMESIZE], struct cidr *out)
{
        unsigned destination, mask;
        if (sscanf(line, "%15s %8x %*x %*x %*d %*d %*d %8x", dev, &destination, &mask) != 3)
                return false;
        *out = (struct cidr){ .ip.family = 4, .bits = (uint8_t)__builtin_popcount(mask) };
        memcpy(out->ip.b, &destination, 4);
        return true;
}

/* Lines of /proc/net/ipv6_route: destination, its length, …, device. */
static bool route6(const char *line, char dev[IF_NAMESIZE], struct cidr *out)
{
        char hex[33];
        unsigned bits, byte;
        if (sscanf(line, "%32s %2x %*s %*s %*s %*s %*s %*s %*s %15s", hex, &bits, dev) != 3 ||
                strlen(hex) != 32)
                return false;
        *out = (struct cidr){ .ip.family = 6, .bits = (uint8_t)bits };
        for (size_t i = 0; i < 16; i++)
                if (sscanf(hex + 2 * i, "%2x", &byte) == 1)
                        out->ip.b[i] = (uint8_t)byte;
        return true;
}

/* Finds a route that a network would collide with. The default route does not count. */
static bool network_routed(
        const struct cidr *network, const char *bridge, char dev[IF_NAMESIZE], struct cidr *there)
{
        bool v4 = network->ip.family == 4;
        FILE *f CLEANUP(fclose_p) = fopen(v4 ? "/proc/net/route" : "/proc/net/ipv6_route", "re");
        char line[512];
        while (f && fgets(line, sizeof(line), f))
                if ((v4 ? route4(line, dev, there) : route6(line, dev, there)) && there->bits &&
                        !streq(dev, bridge) && !streq(dev, "lo") && cidr_overlaps(network, there))
                        return true;
        return false;
}

static int network_free(const struct cidr *network, const char *bridge, struct error *err)
{
        static const struct cidr first4 = { .ip = { .family = 4, .b = { 10, 118 } }, .bits = 24 },
                                 first6 = { .ip = { .family = 6, .b = { 0xfd, 0, 1, 0x18 } },
                                         .bits = 112 };
        char dev[IF_NAMESIZE], ours[IP_TEXT + 4], theirs[IP_TEXT + 4];
        bool v4 = network->ip.family == 4;
        struct cidr there, other = v4 ? first4 : first6;
        uint8_t *varied = &other.ip.b[v4 ? 1 : 3];
        if (!network_routed(network, bridge, dev, &there))
                return 0;
        error_set(err, EADDRINUSE, EXIT_PREFLIGHT,
                "the machines' network %s is in use on this computer: %s is routed through %s",
                cidr_format(network, ours), cidr_format(&there, theirs), dev);
        while (*varied < 255 && network_routed(&other, bridge, dev, &there))
                ++*varied;
        return error_hint(err,
                "set provider.local.network to a range that nothing else uses, such as %s",
                cidr_format(&other, ours));
}

/* ---- the bridge ---- */

/* Without a MAC address of its own the bridge uses that of a port, which changes when ports are
 * added and removed. */
static void bridge_mac(const struct local *l, char out[18])
{
        snprintf(out, 18, "02:5c:%.2s:%.2s:%.2s:%.2s", l->id, l->id + 2, l->id + 4, l->id + 6);
}

static int bridge_address(const struct local *l, const struct cidr *network, struct error *err)
{
        struct ip first;
        char address[IP_TEXT], with_bits[IP_TEXT + 4];
        if (!cidr_nth(network, 1, &first))
                return error_set(err, EINVAL, EXIT_CONFIG, "provider.local.network is too small");
        snprintf(with_bits, sizeof(with_bits), "%s/%u", ip_format(&first, address), network->bits);
        return first.family == 4
                       ? IP(err, "address", "replace", with_bits, "dev", l->bridge)
                       : IP(err, "address", "replace", with_bits, "dev", l->bridge, "nodad");
}

/* An ip that a killed run had started may still create or delete the bridge: what counts is
 * whether the bridge exists afterwards, and bridge_make tries again when it does not. */
static int bridge_add(const struct local *l, struct error *err)
{
        char mac[18];
        bridge_mac(l, mac);
        if (link_there(l->bridge) ||
                IP(err, "link", "add", l->bridge, "address", mac, "type", "bridge") == 0)
                return 0;
        if (!link_there(l->bridge))
                return error_wrap(err, "cannot create the bridge %s", l->bridge);
        error_release(err);
        return 0;
}

static int bridge_try(const struct local *l, const struct cidrs *networks, struct error *err)
{
        int r = bridge_add(l, err);
        if (r < 0)
                return r;
        for (size_t i = 0; r == 0 && i < networks->n; i++)
                r = bridge_address(l, &networks->v[i], err);
        if (r == 0)
                r = IP(err, "link", "set", l->bridge, "up");
        return r < 0 ? error_wrap(err, "cannot set up the bridge %s", l->bridge) : 0;
}

int bridge_make(const struct local *l, const struct cidrs *networks, struct error *err)
{
        int r = 0;
        for (size_t i = 0; r == 0 && i < networks->n; i++)
                r = network_free(&networks->v[i], l->bridge, err);
        if (r < 0)
                return r;
        if ((r = bridge_try(l, networks, err)) == 0 || link_there(l->bridge))
                return r;
        error_release(err);
        return bridge_try(l, networks, err);
}

int bridge_remove(const struct local *l, struct error *err)
{
        int r = link_there(l->bridge) ? IP(err, "link", "delete", l->bridge) : 0;
        if (r == 0 || link_there(l->bridge))
                return r;
        error_release(err);
        return 0;
}
