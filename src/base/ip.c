#include <arpa/inet.h>

#include "base/ip.h"

static unsigned ip_bits(const struct ip *ip) { return ip->family == 4 ? 32 : 128; }

bool ip_parse(const char *s, struct ip *out)
{
        struct ip ip = { 0 };
        if (inet_pton(AF_INET, s, ip.b) == 1)
                ip.family = 4;
        else if (inet_pton(AF_INET6, s, ip.b) == 1)
                ip.family = 6;
        else
                return false;
        *out = ip;
        return true;
}

/* Clears the bits behind the prefix; true when there were any. */
static bool clear_host_bits(struct ip *ip, unsigned bits)
{
        bool any = false;
        for (unsigned i = bits; i < ip_bits(ip); i++) {
                uint8_t mask = (uint8_t)(0x80 >> (i % 8));
                if (ip->b[i / 8] & mask) {
                        any = true;
                        ip->b[i / 8] &= (uint8_t)~mask;
                }
        }
        return any;
}

bool cidr_parse(const char *s, struct cidr *out, bool *host_bits)
{
        const char *slash = strchr(s, '/');
        char buf[IP_TEXT];
        struct cidr c;
        if (!slash || (size_t)(slash - s) >= sizeof(buf))
                return false;
        memcpy(buf, s, (size_t)(slash - s));
        buf[slash - s] = 0;
        if (!ip_parse(buf, &c.ip))
                return false;
        unsigned bits = 0;
        const char *p = slash + 1;
        if (!*p || (p[0] == '0' && p[1]) || strlen(p) > 3)
                return false;
        for (; *p; p++) {
                if (*p < '0' || *p > '9')
                        return false;
                bits = bits * 10 + (unsigned)(*p - '0');
        }
        if (bits > ip_bits(&c.ip))
                return false;
        c.bits = (uint8_t)bits;
        bool any = clear_host_bits(&c.ip, bits);
        if (host_bits)
                *host_bits = any;
        *out = c;
        return true;
}

const char *ip_format(const struct ip *ip, char buf[IP_TEXT])
{
        if (!inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, ip->b, buf, IP_TEXT))
                buf[0] = 0;
        return buf;
}

const char *ip_host(const struct ip *ip, char buf[IP_TEXT + 2])
{
        char text[IP_TEXT];
        snprintf(buf, IP_TEXT + 2, ip->family == 6 ? "[%s]" : "%s", ip_format(ip, text));
        return buf;
}

const char *cidr_format(const struct cidr *c, char buf[IP_TEXT + 4])
{
        char text[IP_TEXT];
        snprintf(buf, IP_TEXT + 4, "%s/%u", ip_format(&c->ip, text), c->bits);
        return buf;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
        return a->family == b->family && memcmp(a->b, b->b, ip_bits(a) / 8) == 0;
}

bool cidr_contains(const struct cidr *c, const struct ip *ip)
{
        if (c->ip.family != ip->family)
                return false;
        struct ip masked = *ip;
        clear_host_bits(&masked, c->bits);
        return ip_equal(&masked, &c->ip);
}

bool cidr_overlaps(const struct cidr *a, const struct cidr *b)
{
        return a->bits <= b->bits ? cidr_contains(a, &b->ip) : cidr_contains(b, &a->ip);
}

unsigned cidr_host_bits(const struct cidr *c) { return ip_bits(&c->ip) - c->bits; }

bool cidr_nth(const struct cidr *c, uint64_t n, struct ip *out)
{
        unsigned host = cidr_host_bits(c);
        if (host < 64 && n >> host)
                return false;
        *out = c->ip;
        for (unsigned i = ip_bits(&c->ip) / 8; i-- > 0 && n;) {
                uint64_t v = out->b[i] + (n & 0xff);
                out->b[i] = (uint8_t)v; /* host bits are zero, so nothing carries */
                n >>= 8;
        }
        return true;
}
