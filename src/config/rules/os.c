/* The nodes' operating system: update windows, kernel settings, keys. */
#include <ctype.h>

#include "config/rules/rules.h"

/* "Sun 02:00" or "02:00", as locksmith reads it. */
static bool window_start(const char *s)
{
        static const char *const days[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun" };
        for (size_t i = 0; i < ARRAY_SIZE(days); i++)
                if (has_prefix(s, days[i]) && s[3] == ' ') {
                        s += 4;
                        break;
                }
        if (strlen(s) != 5 || !isdigit((unsigned char)s[0]) || !isdigit((unsigned char)s[1]) ||
                s[2] != ':' || !isdigit((unsigned char)s[3]) || !isdigit((unsigned char)s[4]))
                return false;
        return (s[0] - '0') * 10 + s[1] - '0' < 24 && s[3] < '6';
}

/* "2h", "90m", "1h30m" */
static bool window_length(const char *s)
{
        if (!*s)
                return false;
        while (*s) {
                size_t n = strspn(s, "0123456789");
                if (!n || !strchr("hms", s[n]) || !s[n])
                        return false;
                s += n + 1;
        }
        return true;
}

static void updates(const struct cluster *c, struct problems *p)
{
        const struct os_updates *u = &c->os.updates;
        if (u->window_start && !window_start(u->window_start))
                rule_error(p, c, "os.updates.windowStart",
                        "write [day] HH:MM, such as Sun 02:00 or 02:00", "\"%s\" is not a time",
                        u->window_start);
        if (u->window_length && !window_length(u->window_length))
                rule_error(p, c, "os.updates.windowLength",
                        "write hours and minutes, such as 2h or 1h30m",
                        "\"%s\" is not a length of time", u->window_length);
        if (u->window_start && !u->window_length)
                rule_error(p, c, "os.updates.windowLength",
                        "set its length, such as windowLength: 2h",
                        "the window has a start but no length");
        else if (u->window_length && !u->window_start)
                rule_error(p, c, "os.updates.windowStart",
                        "set its start, such as windowStart: Sun 02:00",
                        "the window has a length but no start");
        else if (u->window_start && u->strategy == UPDATE_MANUAL && !rule_spoiled(p, "os.updates"))
                rule_error(p, c, "os.updates.windowStart",
                        "set strategy: reboot, or leave the window out",
                        "the strategy is manual, so no node reboots in this window");
}

/* What the pod network does not work without. */
static const struct {
        const char *key, *value;
} needed[] = {
        { "net.ipv4.ip_forward", "1" },
        { "net.ipv4.conf.all.forwarding", "1" },
        { "net.ipv6.conf.all.forwarding", "1" },
        { "net.bridge.bridge-nf-call-iptables", "1" },
        { "net.bridge.bridge-nf-call-ip6tables", "1" },
};

static void os_sysctls(const struct cluster *c, struct problems *p)
{
        const struct tree *at = rule_find(c, "os.sysctls");
        for (size_t i = 0; i < c->os.sysctls.n; i++) {
                const char *key = c->os.sysctls.v[i].key, *value = c->os.sysctls.v[i].value;
                for (size_t k = 0; key && value && k < ARRAY_SIZE(needed); k++)
                        if (streq(key, needed[k].key) && !streq(value, needed[k].value))
                                problem_add(p, at, key, "leave it out: slipway sets it",
                                        "pods on different nodes reach each other only with %s = %s, got %s",
                                        key, needed[k].value, value);
        }
}

static void keys(const struct cluster *c, struct problems *p)
{
        const struct tree *list = rule_find(c, "os.authorizedKeys");
        for (size_t i = 0; i < c->os.authorized_keys.n; i++) {
                const char *k = c->os.authorized_keys.v[i];
                if (k && strstr(k, "PRIVATE KEY"))
                        problem_add(p, rule_item(list, i), NULL,
                                "write the line of the .pub file, and create a new key pair: this one has been exposed",
                                "this is a private key");
                else if (k && !strstr(k, "ssh-") && !strstr(k, "ecdsa-") && !strstr(k, "sk-"))
                        problem_add(p, rule_item(list, i), NULL,
                                "write the line of the .pub file: ssh-ed25519 AAAA… name",
                                "this is not an SSH public key");
        }
}

void rules_os(struct cluster *c, struct problems *p)
{
        updates(c, p);
        os_sysctls(c, p);
        keys(c, p);
}
