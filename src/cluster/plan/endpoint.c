#include "cluster/plan/endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#define LOOKUP_SECONDS 5
#define SHOWN          4 /* addresses in a message */

/* getaddrinfo has no timeout: its thread may outlive this function, and then its result
 * is not freed. */
static int endpoint_lookup(const char *name, unsigned family, struct addrinfo **out)
{
        struct timespec limit = { .tv_sec = LOOKUP_SECONDS };
        struct sigevent nobody = { .sigev_notify = SIGEV_NONE };
        struct {
                struct gaicb ask;
                struct addrinfo hints;
        } *l = xcalloc(1, sizeof(*l));
        struct gaicb *list[] = { &l->ask };
        l->hints = (struct addrinfo){ .ai_family = family == 6 ? AF_INET6 : AF_INET,
                .ai_socktype = SOCK_STREAM };
        l->ask = (struct gaicb){ .ar_name = xstrdup(name), .ar_request = &l->hints };
        int r = getaddrinfo_a(GAI_NOWAIT, list, 1, &nobody);
        if (r == 0) {
                gai_suspend((const struct gaicb *const *)list, 1, &limit);
                r = gai_error(&l->ask);
        }
        if (r == EAI_INPROGRESS && gai_cancel(&l->ask) != EAI_CANCELED)
                return r;
        if (r == 0)
                *out = l->ask.ar_result;
        free((char *)l->ask.ar_name);
        free(l);
        return r;
}

static struct ip endpoint_ip(const struct addrinfo *a)
{
        struct ip ip = { .family = a->ai_family == AF_INET6 ? 6 : 4 };
        if (ip.family == 6)
                memcpy(ip.b, &((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr,
                        16);
        else
                memcpy(ip.b, &((const struct sockaddr_in *)(const void *)a->ai_addr)->sin_addr, 4);
        return ip;
}

static int endpoint_refused(const struct cluster *c, const char *says, struct error *err)
{
        error_set(err, EADDRNOTAVAIL, EXIT_PREFLIGHT, "api.vipName: %s %s, and api.vip is %s",
                c->api.vip_name, says, c->api.vip);
        return error_hint(err,
                "let the name resolve to that one address (DNS, or /etc/hosts of this computer), or change api.vip; nothing was changed");
}

int endpoint_check(const struct cluster *c, struct error *err)
{
        struct ip vip;
        struct addrinfo *all = NULL;
        struct str says CLEANUP(str_release) = { 0 };
        char text[IP_TEXT];
        size_t n = 0, other = 0;
        if (!c->api.vip_name || !c->api.vip || !ip_parse(c->api.vip, &vip))
                return 0;
        int r = endpoint_lookup(c->api.vip_name, vip.family, &all);
        for (const struct addrinfo *a = all; a; a = a->ai_next) {
                struct ip ip = endpoint_ip(a);
                other += !ip_equal(&ip, &vip);
                if (n++ < SHOWN)
                        str_addf(
                                &says, "%s%s", n > 1 ? ", " : "resolves to ", ip_format(&ip, text));
        }
        if (all)
                freeaddrinfo(all);
        if (r == 0 && n && !other)
                return 0;
        if (r || !n)
                str_addf(&says, "does not resolve (%s)",
                        r == EAI_INPROGRESS ? "no answer within 5 s" : gai_strerror(r));
        else if (n > SHOWN)
                str_addf(&says, " and %zu more", n - SHOWN);
        return endpoint_refused(c, str_text(&says), err);
}
