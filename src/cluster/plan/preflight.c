/* Preflight: reports all problems of all machines at once, before anything changes. Most checks
 * read what one machine's agent reported; those that compare machines are at the end. */
#include <time.h>

#include "base/sha256.h"
#include "cluster/plan/encrypt.h"
#include "cluster/plan/plan.h"
#include "config/fabric.h"

struct look {
        struct step *step;
        struct member *m;
        size_t problems;
};

static void problem(struct look *l, const char *hint, const char *fmt, ...) PRINTF(3, 4);

static void problem(struct look *l, const char *hint, const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        l->problems++;
        step_changed(l->step, "%s: %s%s%s", l->m->node->name, str_text(&s), hint ? "; " : "",
                hint ? hint : "");
}

static const char *text(const struct member *m, const char *key)
{
        const char *t = json_string_value(json_object_get(m->seen.said, key));
        return t ? t : "";
}

static bool ours(const struct look *l)
{
        return streq(text(l->m, "cluster"), l->m->site->identity.prefix) || member_adopted(l->m);
}

static void check_root(struct look *l)
{
        if (!json_is_true(json_object_get(l->m->seen.said, "root")))
                problem(l, "log in as root, or let the user use sudo",
                        "slipway's agent is not root there");
}

static void check_arch(struct look *l)
{
        if (!streq(text(l->m, "arch"), "amd64") && !streq(text(l->m, "arch"), "arm64"))
                problem(l, "use machines of amd64 or arm64",
                        "its processor is %s, and there are no artifacts for it",
                        text(l->m, "arch"));
}

static void check_init(struct look *l)
{
        if (!streq(text(l->m, "init"), "systemd"))
                problem(l, "boot the machine with systemd", "its init is %s, not systemd",
                        text(l->m, "init"));
}

/* Features of the kernel, and who needs them. */
static void check_kernel(struct look *l)
{
        const struct cluster *c = l->m->site->cluster;
        const struct network *n = &c->network;
        bool kube = l->m->node->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER),
             tunnel = kube && cluster_fabric(c)->backends;
        const struct {
                const char *feature;
                bool needed;
                const char *option, *instead; /* NULL: nothing instead */
        } table[] = {
                { "overlay", true, NULL, NULL },
                { "conntrack", true, NULL, NULL },
                { "vxlan", tunnel && n->fabric.backend == BACKEND_VXLAN, "network.fabric.backend",
                        "host-gw" },
                { "wireguard", tunnel && n->fabric.backend == BACKEND_WIREGUARD,
                        "network.fabric.backend", "vxlan" },
                { "nftables", kube && n->proxy_mode == PROXY_NFTABLES, "network.proxyMode",
                        "iptables" },
                { "ipvs", kube && n->proxy_mode == PROXY_IPVS, "network.proxyMode", "nftables" },
        };
        json_t *features = json_object_get(l->m->seen.said, "features");
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                if (!table[i].needed || !json_is_false(json_object_get(features, table[i].feature)))
                        continue;
                char *hint CLEANUP(free_p) =
                        table[i].option ? xasprintf("set %s: %s, or boot a kernel that has it",
                                                  table[i].option, table[i].instead)
                                        : xstrdup("boot a kernel that has it");
                problem(l, hint, "its kernel has no %s", table[i].feature);
        }
}

static void check_swap(struct look *l)
{
        json_t *swap = json_object_get(l->m->seen.said, "swap");
        if (json_array_size(swap))
                problem(l, "turn it off (swapoff -a, and its line in /etc/fstab)",
                        "swap is on (%s), and the kubelet refuses to start with it",
                        json_string_value(json_array_get(swap, 0)));
}

#define MIN_MEMORY ((json_int_t)900 << 20)
#define MIN_DISK   ((json_int_t)3 << 30)

/* Percent free on the images' disk: the kubelet's default. */
#define EVICTS_BELOW 15

static bool evicts_by_share(const struct look *l)
{
        const struct cluster *c = l->m->site->cluster;
        const struct node *n = l->m->node;
        return n->pool->roles & (ROLE_CONTROL_PLANE | ROLE_WORKER) &&
               c->provider.kind != PROVIDER_LOCAL && !c->components.kubelet.eviction_hard.n &&
               !n->pool->kubelet.eviction_hard.n;
}

static void check_size(struct look *l)
{
        json_int_t memory = json_integer_value(json_object_get(l->m->seen.said, "memory"));
        if (memory && memory < MIN_MEMORY)
                problem(l, "give it at least 1 GiB",
                        "it has %" JSON_INTEGER_FORMAT " MiB of memory", memory >> 20);
        size_t i;
        json_t *disk;
        json_array_foreach(json_object_get(l->m->seen.said, "disks"), i, disk)
        {
                json_int_t free_bytes = json_integer_value(json_object_get(disk, "free")),
                           size = json_integer_value(json_object_get(disk, "size"));
                const char *path = json_string_value(json_object_get(disk, "path"));
                if (path && streq(path, "/var/lib") && free_bytes < MIN_DISK &&
                        !*l->m->seen.applied && !ours(l))
                        problem(l, "make room",
                                "%" JSON_INTEGER_FORMAT
                                " MiB are free under %s, and 3 GiB are needed",
                                free_bytes >> 20, path);
                if (path && streq(path, "/var/lib/containerd") && evicts_by_share(l) && size > 0 &&
                        free_bytes * 100 < size * EVICTS_BELOW && !*l->m->seen.applied && !ours(l))
                        problem(l, "make room, or set kubelet.evictionHard",
                                "%" JSON_INTEGER_FORMAT
                                " %% of the disk are free under %s, and a kubelet evicts pods below %d %%",
                                free_bytes * 100 / size, path, EVICTS_BELOW);
        }
}

/* Certificates are valid from five minutes in the past, but leases last only seconds: more than a
 * minute is refused. Another node may have been waited for since this one said its time. */
static void check_clock(struct look *l)
{
        json_int_t there = json_integer_value(json_object_get(l->m->seen.said, "time")) /
                           1000000000,
                   here = l->m->seen.said_at;
        json_int_t skew = there > here ? there - here : here - there;
        if (there && skew > 60 && l->m->run.tries == 0)
                problem(l, "set the clock, and keep it with a time server (os.ntp)",
                        "its clock is %" JSON_INTEGER_FORMAT " seconds %s", skew,
                        there > here ? "ahead" : "behind");
}

static void check_leftovers(struct look *l)
{
        json_t *left = json_object_get(l->m->seen.said, "leftovers");
        const char *cluster = text(l->m, "cluster");
        if (*cluster && !ours(l))
                problem(l, "remove it from that cluster first, or use another machine",
                        "it belongs to another slipway cluster (%s)", cluster);
        else if (!*cluster && json_array_size(left) && !member_adopted(l->m))
                problem(l, "clean the machine, or use another",
                        "it has data of another cluster: %s",
                        json_string_value(json_array_get(left, 0)));
}

static bool port_wanted(const struct look *l, json_int_t port)
{
        unsigned roles = l->m->node->pool->roles;
        const struct api *api = &l->m->site->cluster->api;
        if (roles & ROLE_ETCD && (port == 2379 || port == 2380))
                return true;
        if (roles & ROLE_CONTROL_PLANE && (port == api->port || port == 10257 || port == 10259))
                return true;
        return roles & (ROLE_CONTROL_PLANE | ROLE_WORKER) &&
               (port == api->local_port || port == 10250 || port == 10256 || port == 10248);
}

static void check_ports(struct look *l)
{
        size_t i;
        json_t *p;
        /* slipway's own program listens there */
        if (ours(l))
                return;
        json_array_foreach(json_object_get(l->m->seen.said, "ports"), i, p)
        {
                json_int_t port = json_integer_value(json_object_get(p, "port"));
                const char *program = json_string_value(json_object_get(p, "program"));
                if (port_wanted(l, port))
                        problem(l, "stop what listens there",
                                "port %" JSON_INTEGER_FORMAT " is taken by %s", port,
                                program ? program : "another program");
        }
}

static void check_own(struct look *l, const char *ip)
{
        size_t i, j;
        json_t *one, *address;
        json_array_foreach(json_object_get(l->m->seen.said, "interfaces"), i, one)
        {
                json_array_foreach(json_object_get(one, "addresses"), j, address)
                {
                        const char *a = json_string_value(address);
                        if (a && strcspn(a, "/") == strlen(ip) && strncmp(a, ip, strlen(ip)) == 0)
                                return;
                }
        }
        problem(l, "give the address the cluster is to use as `ip`",
                "none of its interfaces has the address %s", ip);
}

/* The addresses the file names must be the machine's own: etcd and the API server listen on the
 * first, and a kubelet refuses to start with another's. */
static void check_address(struct look *l)
{
        struct facts facts;
        struct error err CLEANUP(error_release) = { 0 };
        const struct ip *ips = l->m->node->ip;
        char ip[IP_TEXT];
        if (facts_from_agent(l->m->seen.said, l->m->node, l->m->site->arena, &facts, &err) < 0) {
                problem(l, err.hint, "%s", err.message);
                return;
        }
        check_own(l, ip_format(&ips[0], ip));
        if (ips[1].family)
                check_own(l, ip_format(&ips[1], ip));
}

static void (*const checks[])(struct look *) = { check_root, check_arch, check_init, check_kernel,
        check_swap, check_size, check_clock, check_leftovers, check_ports, check_address };

/* Machines cloned from one image may have the same id, and so the same DHCP lease and Node. */
static void preflight_compare(struct look *l, const char *key, const char *what, const char *hint)
{
        const struct site *s = l->m->site;
        const char *mine = text(l->m, key);
        for (size_t i = 0; *mine && i < s->count && &s->members[i] != l->m; i++)
                if (s->members[i].seen.said && streq(text(&s->members[i], key), mine))
                        problem(l, hint, "it has the same %s as %s", what,
                                s->members[i].node->name);
}

/* Frees what only these checks read. */
static void preflight_trim(json_t *said)
{
        static const char *const keys[] = { "ports", "disks", "leftovers", "swap", "features" };
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                json_object_del(said, keys[i]);
}

static void preflight_look(struct step *s, struct site *site)
{
        struct error err CLEANUP(error_release) = { 0 };
        size_t problems = 0, looked = 0;
        for (size_t i = 0; i < site->count; i++) {
                struct look l = { .step = s, .m = &site->members[i] };
                /* not reached yet, or checked before the plan */
                if (!l.m->seen.said || l.m->seen.looked)
                        continue;
                looked++;
                l.m->seen.looked = true;
                for (size_t j = 0; j < ARRAY_SIZE(checks); j++)
                        checks[j](&l);
                preflight_compare(&l, "machineId", "machine id",
                        "remove /etc/machine-id there and run systemd-machine-id-setup");
                /* containers share their computer's */
                if (site->cluster->provider.kind != PROVIDER_LOCAL)
                        preflight_compare(&l, "productUuid", "product uuid",
                                "give the virtual machine a uuid of its own");
                preflight_compare(&l, "hostname", "host name",
                        "give each machine a name of its own (hostnamectl)");
                problems += l.problems;
                preflight_trim(l.m->seen.said);
        }
        if (problems) {
                error_set(&err, EINVAL, EXIT_PREFLIGHT, "%zu problem%s", problems,
                        problems == 1 ? "" : "s");
                error_hint(
                        &err, "nothing was changed; fix the problems listed above and run again");
        }
        if (!problems && encrypt_look(site, &err) < 0)
                problems++;
        if (looked || problems)
                step_done(s, problems ? &err : NULL);
        else
                step_unchanged(s);
}

void step_preflight(struct step *s) { preflight_look(s, s->arg); }

void step_preflight_one(struct step *s) { preflight_look(s, ((struct member *)s->arg)->site); }
