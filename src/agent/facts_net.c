/* Facts of the network: interfaces, the default route, and listening ports. */
#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "agent/agent.h"
#include "agent/json.h"

#define PORTS_MAX 256
#define FACTS_MAX ((size_t)256 << 10) /* they must fit into one frame */

/* The interface of the default route with the lowest metric; IPv6 only without one of IPv4. */
static bool default_route(char name[IF_NAMESIZE])
{
        FILE *f CLEANUP(fclose_p) = fopen("/proc/net/route", "re"), *f6 CLEANUP(fclose_p) = NULL;
        char line[512], dev[IF_NAMESIZE], dest[64], len[8];
        unsigned metric, best = UINT32_MAX, flags, dummy;
        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "%15s %63s %*s %x %*d %*d %u %x", dev, dest, &flags, &metric,
                            &dummy) == 5 &&
                        streq(dest, "00000000") && dummy == 0 && metric < best) {
                        best = metric;
                        snprintf(name, IF_NAMESIZE, "%s", dev);
                }
        f6 = best == UINT32_MAX ? fopen("/proc/net/ipv6_route", "re") : NULL;
        while (f6 && fgets(line, sizeof(line), f6))
                if (sscanf(line, "%63s %7s %*s %*s %*s %x %*s %*s %x %15s", dest, len, &metric,
                            &flags, dev) == 5 &&
                        streq(len, "00") && strspn(dest, "0") == 32 && !streq(dev, "lo") &&
                        metric < best) {
                        best = metric;
                        snprintf(name, IF_NAMESIZE, "%s", dev);
                }
        return best != UINT32_MAX;
}

static unsigned prefix_bits(const struct sockaddr *mask)
{
        const uint8_t *p =
                mask->sa_family == AF_INET
                        ? (const uint8_t *)&((const struct sockaddr_in *)(const void *)mask)
                                  ->sin_addr
                        : (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)mask)
                                  ->sin6_addr;
        unsigned bits = 0;
        for (size_t i = 0; i < (mask->sa_family == AF_INET ? 4u : 16u); i++)
                bits += (unsigned)__builtin_popcount(p[i]);
        return bits;
}

static void add_addresses(struct str *o, const struct ifaddrs *list, const char *name)
{
        json_begin(o, "addresses", '[');
        for (const struct ifaddrs *i = list; i && o->len < FACTS_MAX; i = i->ifa_next) {
                char text[INET6_ADDRSTRLEN + 8];
                int family = i->ifa_addr ? i->ifa_addr->sa_family : 0;
                if (!streq(i->ifa_name, name) || (family != AF_INET && family != AF_INET6) ||
                        !i->ifa_netmask)
                        continue;
                const void *raw =
                        family == AF_INET
                                ? (const void *)&((struct sockaddr_in *)(void *)i->ifa_addr)
                                          ->sin_addr
                                : (const void *)&((struct sockaddr_in6 *)(void *)i->ifa_addr)
                                          ->sin6_addr;
                if (!inet_ntop(family, raw, text, sizeof(text)))
                        continue;
                size_t n = strlen(text);
                snprintf(text + n, sizeof(text) - n, "/%u", prefix_bits(i->ifa_netmask));
                json_text(o, NULL, text);
        }
        json_end(o, ']');
}

static void link_add_line(
        struct str *o, const char *name, const char *file, const char *key, bool number)
{
        char *path CLEANUP(free_p) = xasprintf("/sys/class/net/%s/%s", name, file), buf[64] = "";
        FILE *f CLEANUP(fclose_p) = fopen(path, "re");
        if (f && fgets(buf, sizeof(buf), f)) {
                buf[strcspn(buf, "\n")] = 0;
                if (number)
                        json_number(o, key, strtoull(buf, NULL, 10));
                else
                        json_text(o, key, buf);
        }
}

/* Links of pods are no facts of the machine. */
static bool is_pod_link(const char *name)
{
        return streq(name, "lo") || has_prefix(name, "veth") || has_prefix(name, "cali") ||
               has_prefix(name, "lxc");
}

void facts_network(struct str *o)
{
        char route[IF_NAMESIZE] = "";
        struct ifaddrs *list = NULL;
        if (default_route(route))
                json_text(o, "interface", route);
        json_begin(o, "interfaces", '[');
        if (getifaddrs(&list) == 0) {
                for (struct ifaddrs *i = list; i && o->len < FACTS_MAX; i = i->ifa_next) {
                        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_PACKET ||
                                is_pod_link(i->ifa_name))
                                continue;
                        json_begin(o, NULL, '{');
                        json_text(o, "name", i->ifa_name);
                        json_bool(o, "up", i->ifa_flags & IFF_UP);
                        json_bool(o, "default", streq(i->ifa_name, route));
                        link_add_line(o, i->ifa_name, "address", "mac", false);
                        link_add_line(o, i->ifa_name, "mtu", "mtu", true);
                        add_addresses(o, list, i->ifa_name);
                        json_end(o, '}');
                }
                freeifaddrs(list);
        }
        json_end(o, ']');
}

struct port {
        unsigned port;
        unsigned long inode;
        char address[INET6_ADDRSTRLEN], program[64];
};

/* A line of /proc/net/tcp or tcp6: addresses are 32-bit words in the byte order of the machine. */
static void read_ports(const char *path, struct port *ports, size_t *n)
{
        FILE *f CLEANUP(fclose_p) = fopen(path, "re");
        char line[512], hex[64];
        while (f && fgets(line, sizeof(line), f) && *n < PORTS_MAX) {
                struct port *p = &ports[*n];
                unsigned state;
                uint32_t words[4] = { 0 };
                if (sscanf(line, " %*u: %63[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %lu", hex,
                            &p->port, &state, &p->inode) != 4 ||
                        state != 10)
                        continue;
                bool v4 = strlen(hex) == 8;
                if (sscanf(hex, v4 ? "%8" SCNx32 : "%8" SCNx32 "%8" SCNx32 "%8" SCNx32 "%8" SCNx32,
                            &words[0], &words[1], &words[2], &words[3]) < 1)
                        continue;
                inet_ntop(v4 ? AF_INET : AF_INET6, words, p->address, sizeof(p->address));
                p->program[0] = 0;
                (*n)++;
        }
}

static void read_comm(const char *pid, char out[64])
{
        char *path CLEANUP(free_p) = xasprintf("/proc/%s/comm", pid);
        FILE *f CLEANUP(fclose_p) = fopen(path, "re");
        if (f && fgets(out, 64, f))
                out[strcspn(out, "\n")] = 0;
}

/* Compares the sockets of one process with the ports; returns how many ports it owns. */
static size_t match_process(const char *pid, struct port *ports, size_t n)
{
        char *path CLEANUP(free_p) = xasprintf("/proc/%s/fd", pid);
        DIR *d = opendir(path);
        size_t found = 0;
        for (struct dirent *e; d && (e = readdir(d));) {
                char target[64];
                unsigned long inode;
                ssize_t len = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);
                target[len < 0 ? 0 : len] = 0;
                if (sscanf(target, "socket:[%lu]", &inode) != 1)
                        continue;
                for (size_t i = 0; i < n; i++)
                        if (ports[i].inode == inode && !ports[i].program[0]) {
                                read_comm(pid, ports[i].program);
                                found++;
                        }
        }
        if (d)
                closedir(d);
        return found;
}

void facts_ports(struct str *o)
{
        struct port *ports CLEANUP(free_p) = xcalloc(PORTS_MAX, sizeof(*ports));
        size_t n = 0, left;
        read_ports("/proc/net/tcp", ports, &n);
        read_ports("/proc/net/tcp6", ports, &n);
        left = n;
        DIR *d = left ? opendir("/proc") : NULL;
        for (struct dirent *e; d && left && (e = readdir(d));)
                if (e->d_name[0] >= '1' && e->d_name[0] <= '9') {
                        size_t found = match_process(e->d_name, ports, n);
                        left -= found < left ? found : left;
                }
        if (d)
                closedir(d);
        json_begin(o, "ports", '[');
        for (size_t i = 0; i < n; i++) {
                json_begin(o, NULL, '{');
                json_number(o, "port", ports[i].port);
                json_text(o, "address", ports[i].address);
                if (ports[i].program[0])
                        json_text(o, "program", ports[i].program);
                json_end(o, '}');
        }
        json_end(o, ']');
}
