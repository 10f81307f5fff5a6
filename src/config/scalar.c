#include "base/ip.h"
#include "base/utf8.h"
#include "config/scalar.h"

struct unit {
        const char *name;
        int64_t factor;
};

/* Largest first; time in milliseconds. */
static const struct unit time_units[] = { { "w", 604800000 }, { "d", 86400000 }, { "h", 3600000 },
        { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };
static const struct unit size_units[] = {
        { "TiB", (int64_t)1 << 40 },
        { "GiB", 1 << 30 },
        { "MiB", 1 << 20 },
        { "KiB", 1 << 10 },
        { "Ti", (int64_t)1 << 40 },
        { "Gi", 1 << 30 },
        { "Mi", 1 << 20 },
        { "Ki", 1 << 10 },
        { "TB", 1000000000000 },
        { "GB", 1000000000 },
        { "MB", 1000000 },
        { "KB", 1000 },
        { "T", 1000000000000 },
        { "G", 1000000000 },
        { "M", 1000000 },
        { "K", 1000 },
        { "k", 1000 },
};

/* A number and its unit, searched from `first` on; `*unit` is its index. Returns what
 * follows, or NULL. */
static const char *parse_part(
        const char *s, const struct unit *units, size_t n, size_t first, size_t *unit, int64_t *out)
{
        int64_t v = 0;
        if (*s < '0' || *s > '9')
                return NULL;
        for (; *s >= '0' && *s <= '9'; s++)
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s - '0', &v))
                        return NULL;
        size_t len = strcspn(s, "0123456789");
        for (size_t i = first; i < n; i++) {
                if (strlen(units[i].name) != len || strncmp(s, units[i].name, len) ||
                        __builtin_mul_overflow(v, units[i].factor, &v))
                        continue;
                *unit = i;
                *out = v;
                return s + len;
        }
        return NULL;
}

bool duration_parse(const char *s, bool millis, int64_t *out)
{
        size_t n = ARRAY_SIZE(time_units) - !millis, next = 0, unit;
        int64_t total = 0, v;
        do {
                s = parse_part(s, time_units, n, next, &unit, &v);
                if (!s || __builtin_add_overflow(total, v, &total))
                        return false;
                next = unit + 1; /* 1h30m, not 30m1h */
        } while (*s);
        *out = millis ? total : total / 1000;
        return true;
}

bool size_parse(const char *s, int64_t *out)
{
        size_t unit;
        int64_t v;
        s = parse_part(s, size_units, ARRAY_SIZE(size_units), 0, &unit, &v);
        if (!s || *s)
                return false;
        *out = v;
        return true;
}

static void add_in_unit(
        struct str *s, int64_t value, const struct unit *units, size_t n, const char *one)
{
        for (size_t i = 0; value && i < n; i++)
                if (value % units[i].factor == 0) {
                        str_addf(s, "%" PRId64 "%s", value / units[i].factor, units[i].name);
                        return;
                }
        str_addf(s, "%" PRId64 "%s", value, one);
}

void duration_add(struct str *s, int64_t value, bool millis)
{
        /* weeks are read but not written: people think of 365d */
        add_in_unit(
                s, millis ? value : value * 1000, time_units + 1, ARRAY_SIZE(time_units) - 1, "s");
}

void size_add(struct str *s, int64_t bytes) { add_in_unit(s, bytes, size_units, 4, " bytes"); }

static bool is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
static bool is_alnum(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }

/* Characters for which `inner` holds, the first and last alphanumeric. */
static bool label_shape(const char *s, size_t len, const char *inner, bool lower)
{
        bool (*good)(char) = lower ? is_lower : is_alnum;
        if (!len || !good(s[0]) || !good(s[len - 1]))
                return false;
        for (size_t i = 0; i < len; i++)
                if (!good(s[i]) && !strchr(inner, s[i]))
                        return false;
        return true;
}

const char *name_fault(const char *s)
{
        if (strlen(s) > 63)
                return "a name has at most 63 characters";
        return label_shape(s, strlen(s), "-", true)
                       ? NULL
                       : "a name is lower-case letters, digits and \"-\", and begins and ends with a letter or digit";
}

static const char *dns_fault(const char *s, bool lower)
{
        const char *p = s;
        size_t len = 0;
        if (strlen(s) > 253)
                return "a DNS name has at most 253 characters";
        for (;; p += len + 1) {
                len = strcspn(p, ".");
                if (len > 63)
                        return "a part of a DNS name has at most 63 characters";
                if (!label_shape(p, len, lower ? "-" : "-_", lower))
                        return lower ? "a DNS name is lower-case letters, digits, \"-\" and \".\""
                                     : "a DNS name is letters, digits, \"-\" and \".\"";
                if (!p[len])
                        break;
        }
        return NULL;
}

const char *host_fault(const char *s)
{
        struct ip ip;
        if (ip_parse(s, &ip))
                return NULL;
        const char *dot = strrchr(s, '.'), *last = dot ? dot + 1 : s;
        /* no top-level domain is a number: an address was meant */
        if (*last && strspn(last, "0123456789") == strlen(last))
                return "it is not an IP address, and a DNS name does not end in a number";
        if (*s == '[')
                return "an IPv6 address is written without brackets here";
        return strchr(s, ':') ? "it is neither a DNS name nor an IP address" : dns_fault(s, false);
}

static bool parse_port(const char *s, long *out)
{
        size_t len = strlen(s);
        if (!len || len > 5 || strspn(s, "0123456789") != len || *s == '0')
                return false;
        *out = strtol(s, NULL, 10);
        return *out <= 65535;
}

bool hostport_split(const char *s, char host[HOST_MAX], long *port)
{
        struct ip ip;
        size_t len = strlen(s), skip = 0;
        const char *rest = "";
        *port = 0;
        if (*s == '[') {
                const char *end = strchr(s, ']');
                if (!end)
                        return false;
                skip = 1;
                len = (size_t)(end - s) - 1;
                rest = end + 1;
        } else if (!ip_parse(s, &ip)) {
                len = strcspn(s, ":");
                rest = s + len;
        }
        if (len >= HOST_MAX)
                return false;
        memcpy(host, s + skip, len);
        host[len] = 0;
        if (skip && (!ip_parse(host, &ip) || ip.family != 6))
                return false;
        return host_fault(host) == NULL && (!*rest || (*rest == ':' && parse_port(rest + 1, port)));
}

const char *hostport_fault(const char *s)
{
        char host[HOST_MAX];
        long port;
        return hostport_split(s, host, &port)
                       ? NULL
                       : "it is neither host nor host:port (an IPv6 address with a port is [address]:port)";
}

const char *url_fault(const char *s)
{
        char authority[HOST_MAX + 8], host[HOST_MAX];
        long port;
        const char *p = has_prefix(s, "http://") ? s + 7 : has_prefix(s, "https://") ? s + 8 : NULL;
        if (!p)
                return "it does not begin with http:// or https://";
        for (const char *c = p; *c; c++)
                if (*c <= ' ' || strchr("\"<>\\^`{|}", *c) || (unsigned char)*c >= 0x7f)
                        return "it contains a character that must be percent-encoded in a URL";
        size_t len = strcspn(p, "/?#");
        const char *at = memrchr(p, '@', len);
        if (at) { /* user:password@ */
                len -= (size_t)(at + 1 - p);
                p = at + 1;
        }
        if (len >= sizeof(authority))
                return "its host is too long";
        memcpy(authority, p, len);
        authority[len] = 0;
        return hostport_split(authority, host, &port)
                       ? NULL
                       : "its host is neither a DNS name nor an address";
}

const char *abspath_fault(const char *s)
{
        if (*s != '/')
                return "a path on the node begins with /";
        for (const char *p = s; (p = strstr(p, "/..")); p += 3)
                if (p[3] == '/' || !p[3])
                        return "a path on the node must not contain ..";
        return strlen(s) > 4095 ? "it is too long" : NULL;
}

const char *label_key_fault(const char *s)
{
        const char *slash = strchr(s, '/'), *name = slash ? slash + 1 : s;
        if (slash) {
                char *prefix CLEANUP(free_p) = xstrndup(s, (size_t)(slash - s));
                if (dns_fault(prefix, true))
                        return "the part before the / must be a lower-case DNS name";
        }
        if (strlen(name) > 63)
                return slash ? "the part after the / has at most 63 characters"
                             : "it has at most 63 characters, apart from a DNS name and / before it";
        return label_shape(name, strlen(name), "-_.", false)
                       ? NULL
                       : "it is letters, digits, \"-\", \"_\" and \".\", and begins and ends with a letter or digit";
}

const char *label_value_fault(const char *s)
{
        if (strlen(s) > 63)
                return "it has at most 63 characters";
        return !*s || label_shape(s, strlen(s), "-_.", false)
                       ? NULL
                       : "it is letters, digits, \"-\", \"_\" and \".\", and begins and ends with a letter or digit";
}

const char *control_in(const char *s, uint32_t *cp)
{
        for (const char *end = s + strlen(s); s < end;) {
                size_t n = utf8_decode(s, (size_t)(end - s), cp);
                if (!n || utf8_control(*cp))
                        return s;
                s += n;
        }
        return NULL;
}
