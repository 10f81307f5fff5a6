/* What the output says is data: only nodes of the file are looked for in it, every address is
 * checked, and one that two nodes have is refused. */
#include <event2/event.h>

#include "base/index.h"
#include "config/scalar.h"
#include "provider/ssh.h"
#include "provider/terraform/terraform.h"

#define IPS_MAX 2
#define MISSING \
        "node %s is not in the Terraform output \"slipway\": its machine was not created yet"

struct reading {
        struct provider_run *run;
        json_t *value; /* of the output; NULL: there is none yet */
        const char *source;
        struct index ips, addresses;
};

static void reading_release(struct reading *r)
{
        json_decref(r->value);
        index_release(&r->ips);
        index_release(&r->addresses);
}

static int reading_fault(const struct reading *r, const char *node, const char *field,
        const char *why, struct error *err)
{
        error_set(err, EINVAL, EXIT_CONFIG, "%s: %s%s: %s: %s", r->source, node ? "node " : "the ",
                node ? node : "output", field, why);
        return error_hint(
                err, "check the Terraform output \"slipway\": docs/terraform.md shows it");
}

/* ---- one node ---- */

/* A text, or a list of at most two. */
static size_t reading_ips(const json_t *v, struct ip out[IPS_MAX])
{
        size_t n = json_is_array(v) ? json_array_size(v) : 1;
        for (size_t i = 0; n <= IPS_MAX && i < n; i++) {
                const char *text = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);
                if (!text || !ip_parse(text, &out[i]))
                        return 0;
        }
        return n <= IPS_MAX ? n : 0;
}

static const char *inside_range(const struct cluster *c, const struct ip *ip)
{
        for (size_t i = 0; i < c->network.pods.n; i++)
                if (cidr_contains(&c->network.pods.v[i], ip))
                        return "is in the range of pods, network.pods";
        for (size_t i = 0; i < c->network.services.n; i++)
                if (cidr_contains(&c->network.services.v[i], ip))
                        return "is in the range of Services, network.services";
        return NULL;
}

static int check_ips(
        struct reading *r, struct node *n, const struct ip *ips, size_t count, struct error *err)
{
        struct cluster *c = r->run->cluster;
        char text[IP_TEXT];
        for (size_t i = 0; i < count; i++) {
                const char *why = host_ip_fault(&ips[i]);
                why = why ? why : inside_range(c, &ips[i]);
                const char *key = arena_strdup(c->arena, ip_format(&ips[i], text));
                const struct node *other = why ? NULL : index_put(&r->ips, key, n);
                if (other)
                        why = arena_printf(c->arena, "is also that of node %s", other->name);
                if (why)
                        return reading_fault(
                                r, n->name, arena_printf(c->arena, "ip %s", key), why, err);
        }
        return 0;
}

static int read_ips(struct reading *r, struct node *n, const json_t *entry, struct error *err)
{
        struct cluster *c = r->run->cluster;
        struct ip ips[IPS_MAX];
        size_t count = reading_ips(json_object_get(entry, "ip"), ips);
        if (!count)
                return reading_fault(r, n->name, "ip", "it is not an IP address", err);
        int e = check_ips(r, n, ips, count, err);
        if (e < 0)
                return e;
        n->ip[0] = n->ip[1] = (struct ip){ 0 };
        node_set_ips(c, n, ips, count);
        if (!c->network.pods.n || n->ip[0].family == c->network.pods.v[0].ip.family)
                return 0;
        return reading_fault(
                r, n->name, "ip", "it is not of the family that network.pods has first", err);
}

static int read_address(struct reading *r, struct node *n, const json_t *entry, struct error *err)
{
        struct arena *a = r->run->cluster->arena;
        char text[IP_TEXT];
        json_t *v = json_object_get(entry, "address");
        const char *said = json_string_value(v);
        bool absent = !v || json_is_null(v) || (said && !*said);
        const char *address = absent ? ip_format(&n->ip[0], text) : said;
        const char *why = !address ? "it is not a text" : host_fault(address);
        if (why)
                return reading_fault(r, n->name, "address", why, err);
        if (!n->address || !streq(n->address, address)) /* status --watch lists again and again */
                n->address = arena_strdup(a, address);
        const struct node *other = index_put(&r->addresses, n->address, n);
        return !other ? 0
                      : reading_fault(r, n->name, arena_printf(a, "address %s", n->address),
                                arena_printf(a, "is also that of node %s", other->name), err);
}

static int read_zone(struct reading *r, struct machine *m, const json_t *entry, struct error *err)
{
        const char *zone = json_string_value(json_object_get(entry, "zone"));
        if (!zone || !*zone)
                return 0;
        const char *why = label_value_fault(zone);
        if (why)
                return reading_fault(r, m->node->name, "zone", why, err);
        m->zone = arena_strdup(r->run->arena, zone);
        return 0;
}

static int read_terraform_node(
        struct reading *r, struct node *n, struct machine *out, struct error *err)
{
        const json_t *entry = json_object_get(json_object_get(r->value, "nodes"), n->name);
        int e = entry ? read_ips(r, n, entry, err) : 0;
        if (!entry) {
                n->address = NULL;
                n->ip[0] = n->ip[1] = (struct ip){ 0 };
        } else if (e == 0)
                e = read_address(r, n, entry, err);
        if (e == 0)
                e = ssh_host_find(r->run, n, out, err);
        if (e == 0 && !entry)
                out->state = MACHINE_ABSENT;
        return e < 0 ? e : read_zone(r, out, entry, err);
}

/* ---- what all have ---- */

/* [user@]host[:port]; ssh would take anything. */
static const char *bastion_fault(const char *s)
{
        const char *at = strrchr(s, '@'), *host = at ? at + 1 : s;
        for (const char *p = s; at && p < at; p++)
                if (!(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') &&
                        !(*p >= '0' && *p <= '9') && !strchr("._-", *p))
                        return "its user has characters that names of users do not have";
        return *s == '-' || at == s ? "it is not [user@]host[:port]" : hostport_fault(host);
}

static int read_bastion(struct reading *r, struct error *err)
{
        struct cluster *c = r->run->cluster;
        const char *said = json_string_value(json_object_get(r->value, "bastion"));
        if (!said || !*said || tree_get(c->provider.terraform.ssh.src, "bastion"))
                return 0;
        const char *why = bastion_fault(said);
        if (why)
                return reading_fault(r, NULL, "bastion", why, err);
        if (!c->provider.ssh.bastion || !streq(c->provider.ssh.bastion, said))
                c->provider.ssh.bastion = arena_strdup(c->arena, said);
        return 0;
}

static int read_endpoint(struct reading *r, struct error *err)
{
        struct cluster *c = r->run->cluster;
        const char *said = json_string_value(json_object_get(r->value, "endpoint"));
        if (!said || !*said || c->api.vip || c->api.load_balancer)
                return 0;
        const char *why = host_fault(said);
        if (why)
                return reading_fault(r, NULL, "endpoint", why, err);
        if (!c->balancer || !streq(c->balancer, said))
                c->balancer = arena_strdup(c->arena, said);
        return 0;
}

static int terraform_list(struct provider_run *run, struct machine *out, struct error *err)
{
        struct cluster *c = run->cluster;
        struct reading r CLEANUP(reading_release) = { .run = run };
        int e = terraform_output(c, run->arena, &r.value, &r.source, err);
        if (e == 0)
                e = read_bastion(&r, err); /* before the nodes, which are reached through it */
        if (e == 0)
                e = read_endpoint(&r, err);
        for (size_t i = 0; e == 0 && i < c->node_count; i++)
                e = read_terraform_node(&r, &c->nodes[i], &out[i], err);
        return e;
}

/* ---- nodes without a machine ---- */

static int terraform_survey(
        struct provider_run *run, struct machine *machines, struct survey *out, struct error *err)
{
        for (size_t i = 0; i < run->cluster->node_count; i++)
                if (machines[i].state == MACHINE_ABSENT)
                        survey_problem(
                                run, out, terraform_ops.missing, MISSING, machines[i].node->name);
        return 0;
}

/* Callers are told from the event loop, never from within the call. */
struct creating {
        struct machine *m;
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
};

static void terraform_create_failed(int fd, short what, void *arg)
{
        struct creating c = *(struct creating *)arg;
        struct error err CLEANUP(error_release) = { 0 };
        free(arg);
        error_set(&err, ENOENT, EXIT_STEP, MISSING, c.m->node->name);
        error_hint(&err, "%s", terraform_ops.missing);
        c.fn(c.m, &err, c.arg);
}

static void terraform_create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        if (m->state == MACHINE_RUNNING) {
                ssh_host_nothing(run, m, fn, arg);
                return;
        }
        struct creating *c = xmalloc(sizeof(*c));
        *c = (struct creating){ m, fn, arg };
        event_base_once(
                run->base, -1, EV_TIMEOUT, terraform_create_failed, c, &(struct timeval){ 0 });
}

const struct provider_ops terraform_ops = { .name = "terraform",
        .remote = true,
        .missing =
                "run 'slipway export terraform' and 'tofu apply' (an outputs.json must be saved again)",
        .list = terraform_list,
        .find = ssh_host_find,
        .survey = terraform_survey,
        .prepare = ssh_host_prepare,
        .create = terraform_create,
        .destroy = ssh_host_nothing,
        .cleanup = ssh_host_cleanup };
