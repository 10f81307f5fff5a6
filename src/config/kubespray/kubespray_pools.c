/* Hosts → pools by what they do, and how they are reached. */
#include <ctype.h>

#include "base/quote.h"
#include "config/kubespray/kubespray_impl.h"
#include "config/scalar.h"

struct spray_host {
        const struct inventory_host *host;
        unsigned roles;
        const char *name, *address, *user, *port, *labels,
                /* labels, taints: flow YAML, or NULL */
                *taints;
        struct strings ip;
        const char *ips[2];
};

/* The pools, in the order they are written. Where two have the same first name, the second takes
 * its long one. */
static const struct {
        unsigned roles;
        const char *name, *longer, *words;
} pool_kinds[] = {
        { ROLE_CONTROL_PLANE | ROLE_ETCD, "control", "control", "[control-plane, etcd]" },
        { ROLE_CONTROL_PLANE, "control", "control-plane", "[control-plane]" },
        { ROLE_CONTROL_PLANE | ROLE_ETCD | ROLE_WORKER, "control", "control-etcd-worker",
                "[control-plane, etcd, worker]" },
        { ROLE_CONTROL_PLANE | ROLE_WORKER, "control", "control-worker",
                "[control-plane, worker]" },
        { ROLE_ETCD, "etcd", "etcd", "[etcd]" },
        { ROLE_ETCD | ROLE_WORKER, "etcd-worker", "etcd-worker", "[etcd, worker]" },
        { ROLE_WORKER, "worker", "worker", "[worker]" },
};

static unsigned roles_of(struct spray *k, const struct inventory_host *h, bool etcd_group)
{
        unsigned roles = 0;
        if (inventory_in(k->inv, h, "kube_control_plane"))
                roles |= ROLE_CONTROL_PLANE;
        if (inventory_in(k->inv, h, "etcd") || (!etcd_group && roles))
                roles |= ROLE_ETCD;
        if (inventory_in(k->inv, h, "kube_node"))
                roles |= ROLE_WORKER;
        return roles;
}

/* A name that Kubernetes takes: lower case, dots as they are, dashes for what it does not know.
 * NULL where the address is the name. */
static const char *kubespray_pools_node_name(struct spray *k, const char *name, const char *address)
{
        struct ip ip;
        if (streq(name, address) && (ip_parse(name, &ip) || strchr(name, '.')))
                return NULL;
        char *out = arena_strdup(k->arena, name), *end = out + strlen(out);
        for (char *p = out; *p; p++)
                *p = isalnum((unsigned char)*p) || *p == '.' ? (char)tolower((unsigned char)*p)
                                                             : '-';
        if (end > out + 63)
                *(end = out + 63) = 0;
        while (end > out && (end[-1] == '-' || end[-1] == '.'))
                *--end = 0;
        out += strspn(out, "-.");
        if (*out && !streq(out, name))
                spray_note(k,
                        "the host %s becomes the node %s: node names consist of lower-case letters, digits, dots and dashes",
                        name, out);
        return *out ? out : NULL;
}

/* The first of several variables that this host has. */
static const char *first_text(
        struct spray *k, const struct inventory_host *h, const char *const *names, size_t n)
{
        const char *text = NULL;
        for (size_t i = 0; i < n && !text; i++)
                text = spray_host_text(k, h, names[i]);
        return text;
}
#define FIRST_TEXT(k, h, ...) \
        first_text(k, h, (const char *const[]){ __VA_ARGS__ }, \
                ARRAY_SIZE(((const char *const[]){ __VA_ARGS__ })))

static void add_ip(struct spray *k, struct spray_host *h, const char *text)
{
        struct ip ip;
        if (!text || h->ip.n == 2)
                return;
        if (!ip_parse(text, &ip))
                return spray_note(k, "the host %s has %s as its address, which is not an address",
                        h->host->name, text);
        h->ips[h->ip.n++] = text;
}

/* What the cluster uses is written only where it differs from where ssh goes. */
static void host_addresses(struct spray *k, struct spray_host *h)
{
        const char *ip = FIRST_TEXT(k, h->host, "ip", "access_ip"),
                   *ip6 = FIRST_TEXT(k, h->host, "ip6", "access_ip6");
        const char *access = spray_host_text(k, h->host, "access_ip");
        h->address = FIRST_TEXT(k, h->host, "ansible_host", "ansible_ssh_host");
        if (!h->address)
                h->address = h->host->name;
        if (access && ip && !streq(access, ip))
                spray_note(k,
                        "the host %s had the access_ip %s beside its ip %s: slipway's nodes use one address between each other, the ip",
                        h->host->name, access, ip);
        if (ip && (ip6 || !streq(ip, h->address)))
                add_ip(k, h, ip);
        if (ip6 && (ip || !streq(ip6, h->address)))
                add_ip(k, h, ip6);
        h->ip.v = h->ips;
}

/* Set by the kubelet or by the role; nobody else can choose them. */
static bool reserved_label(const char *key)
{
        static const char *const keys[] = { "node-role.kubernetes.io/control-plane",
                "node-role.kubernetes.io/master", "kubernetes.io/hostname", "kubernetes.io/os",
                "kubernetes.io/arch" };
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (streq(key, keys[i]))
                        return true;
        return false;
}

static const char *labels_of(struct spray *k, const struct inventory_host *h)
{
        struct str s CLEANUP(str_release) = { 0 };
        index_put(&k->asked, "node_labels", k);
        const struct tree *labels = inventory_get(k->inv, h, "node_labels");
        if (!labels || labels->kind != TREE_MAP)
                return spray_scalar(k, h, labels, "node_labels")
                               ? (spray_note(k, "node_labels of %s is not a map", h->name), NULL)
                               : NULL;
        tree_each (c, labels) {
                const char *v = c->kind == TREE_SCALAR ? spray_scalar(k, h, c, "node_labels") : "";
                if (!v)
                        v = "";
                if (label_key_fault(c->key) || label_value_fault(v) || reserved_label(c->key)) {
                        spray_note(k, "the label %s=%s of %s is left out: %s", c->key, v, h->name,
                                reserved_label(c->key) ? "slipway sets it from the node's role"
                                                       : "Kubernetes does not allow it");
                        continue;
                }
                str_add(&s, s.len ? ", " : "{");
                quote_yaml(&s, c->key);
                str_add(&s, ": ");
                quote_yaml(&s, v);
        }
        return s.len ? arena_printf(k->arena, "%s}", s.data) : NULL;
}

static const char *taints_of(struct spray *k, const struct inventory_host *h)
{
        static const char *const effects[] = { ":NoSchedule", ":PreferNoSchedule", ":NoExecute" };
        struct str s CLEANUP(str_release) = { 0 };
        index_put(&k->asked, "node_taints", k);
        tree_each (c, inventory_get(k->inv, h, "node_taints")) {
                const char *v = spray_scalar(k, h, c, "node_taints");
                bool fits = false;
                for (size_t i = 0; v && i < ARRAY_SIZE(effects); i++)
                        fits |= has_suffix(v, effects[i]) && v[0] != ':' && v[0] != '=';
                if (!fits) {
                        spray_note(k, "the taint %s of %s is left out: it is not key=value:Effect",
                                v ? v : "", h->name);
                        continue;
                }
                str_add(&s, s.len ? ", " : "[");
                quote_yaml(&s, v);
        }
        return s.len ? arena_printf(k->arena, "%s]", s.data) : NULL;
}

static void read_host(struct spray *k, struct spray_host *h)
{
        host_addresses(k, h);
        h->name = kubespray_pools_node_name(k, h->host->name, h->address);
        h->user = FIRST_TEXT(k, h->host, "ansible_user", "ansible_ssh_user");
        h->port = FIRST_TEXT(k, h->host, "ansible_port", "ansible_ssh_port");
        h->labels = labels_of(k, h->host);
        h->taints = taints_of(k, h->host);
        if (h->port &&
                (strspn(h->port, "0123456789") != strlen(h->port) || strlen(h->port) > 5 ||
                        strtol(h->port, NULL, 10) > 65535 || strtol(h->port, NULL, 10) < 1)) {
                spray_note(k, "the host %s had %s as its port, which is not a port", h->host->name,
                        h->port);
                h->port = NULL;
        }
}

/* ---- the provider ---- */

struct common {
        const char *user, *port;
};

static const char *text_or(const char *s, const char *other) { return s ? s : other; }

/* Who logs in and where, as the first control-plane host has it; hosts that differ
 * say so themselves. */
static struct common common_of(struct spray *k)
{
        struct common c = { FIRST_TEXT(k, k->seat[0], "ansible_user", "ansible_ssh_user"),
                FIRST_TEXT(k, k->seat[0], "ansible_port", "ansible_ssh_port") };
        if (c.port && (strspn(c.port, "0123456789") != strlen(c.port) || strlen(c.port) > 5 ||
                              strtol(c.port, NULL, 10) > 65535 || strtol(c.port, NULL, 10) < 1))
                c.port = NULL;
        return c;
}

/* [user@]host[:port] of the first host in the group bastion. */
static const char *bastion_of(struct spray *k)
{
        for (const struct inventory_host *h = k->inv->hosts; h; h = h->next) {
                if (!inventory_in(k->inv, h, "bastion"))
                        continue;
                const char *address =
                        text_or(FIRST_TEXT(k, h, "ansible_host", "ansible_ssh_host"), h->name);
                const char *user = FIRST_TEXT(k, h, "ansible_user", "ansible_ssh_user"),
                           *port = FIRST_TEXT(k, h, "ansible_port", "ansible_ssh_port");
                struct ip ip;
                bool v6 = port && ip_parse(address, &ip) && ip.family == 6;
                return arena_printf(k->arena, v6 ? "%s%s[%s]%s%s" : "%s%s%s%s%s", user ? user : "",
                        user ? "@" : "", address, port ? ":" : "", port ? port : "");
        }
        return NULL;
}

/* A jump host in ansible_ssh_common_args: -J HOST, or -o ProxyJump=HOST. */
static const char *jump_of(struct spray *k)
{
        const char *args = spray_text(k, "ansible_ssh_common_args"), *at = NULL;
        if (!args)
                return NULL;
        if ((at = strstr(args, "ProxyJump=")) || (at = strstr(args, "ProxyJump ")))
                at += strlen("ProxyJump=");
        else if ((at = strstr(args, "-J ")))
                at += strlen("-J ");
        size_t n = at ? strcspn(at += strspn(at, " \"'"), " \"'") : 0;
        if (n)
                return arena_strndup(k->arena, at, n);
        spray_note(k,
                "ansible_ssh_common_args was %s: use provider.ssh.options, or ~/.ssh/config, which slipway's ssh reads too",
                args);
        return NULL;
}

void spray_provider(struct spray *k)
{
        static const char *const passwords[] = { "ansible_password", "ansible_ssh_pass",
                "ansible_become_password", "ansible_become_pass", "ansible_sudo_pass" };
        static const struct spray_row keys[] = {
                { "ansible_ssh_private_key_file", "key", HOW_TEXT },
                { "ansible_private_key_file", "key", HOW_TEXT },
        };
        struct common c = common_of(k);
        const char *jump = jump_of(k), *bastion = text_or(bastion_of(k), jump);
        struct spray_section provider, ssh;
        spray_begin(k, &provider, "provider");
        spray_begin(k, &ssh, "ssh");
        spray_field(k, "user", text_or(c.user, "root"));
        if (c.port && !streq(c.port, "22"))
                str_addf(k->out, "%*sport: %s\n", k->indent, "", c.port);
        spray_rows(k, spray_var(k, keys[0].var) ? &keys[0] : &keys[1], 1);
        if (bastion)
                spray_field(k, "bastion", bastion);
        for (size_t i = 0; i < ARRAY_SIZE(passwords); i++)
                if (spray_var(k, passwords[i]))
                        spray_note(k,
                                "%s is not converted: slipway logs in with ssh keys, and reads the password for sudo from sudoPasswordFile",
                                passwords[i]);
        spray_end(k, &ssh);
        spray_end(k, &provider);
}

/* ---- pools ---- */

static void write_host(
        struct spray *k, const struct spray_host *h, struct common c, bool labels, bool taints)
{
        const char *user = text_or(h->user, "root"), *port = text_or(h->port, "22");
        str_addf(k->out, "%*s- {", k->indent, "");
        if (h->name) {
                str_add(k->out, "name: ");
                spray_value(k->out, h->name);
                str_add(k->out, ", ");
        }
        str_add(k->out, "address: ");
        spray_value(k->out, h->address);
        for (size_t i = 0; i < h->ip.n; i++) {
                str_add(k->out, i ? ", " : h->ip.n > 1 ? ", ip: [" : ", ip: ");
                spray_value(k->out, h->ip.v[i]);
        }
        str_add(k->out, h->ip.n > 1 ? "]" : "");
        if (!streq(user, text_or(c.user, "root"))) {
                str_add(k->out, ", user: ");
                spray_value(k->out, user);
        }
        if (!streq(port, text_or(c.port, "22")))
                str_addf(k->out, ", port: %s", port);
        if (labels && h->labels)
                str_addf(k->out, ", labels: %s", h->labels);
        if (taints && h->taints)
                str_addf(k->out, ", taints: %s", h->taints);
        str_add(k->out, "}\n");
}

/* What every host of the pool has alike, or NULL. */
static const char *shared(const struct spray_host *h, size_t n, unsigned roles, bool taints)
{
        const char *all = NULL;
        bool first = true;
        for (size_t i = 0; i < n; i++) {
                const char *own = taints ? h[i].taints : h[i].labels;
                if (h[i].roles != roles)
                        continue;
                if (!own || (!first && !streq(all, own)))
                        return NULL;
                all = own;
                first = false;
        }
        return all;
}

static void write_pool(struct spray *k, const struct spray_host *h, size_t n, size_t kind,
        const char *name, struct common c)
{
        unsigned roles = pool_kinds[kind].roles;
        const char *labels = shared(h, n, roles, false), *taints = shared(h, n, roles, true);
        str_addf(k->out, "%*s- name: %s\n", k->indent, "", name);
        k->indent += 2;
        if (roles != ROLE_WORKER)
                str_addf(k->out, "%*sroles: %s\n", k->indent, "", pool_kinds[kind].words);
        if (labels)
                str_addf(k->out, "%*slabels: %s\n", k->indent, "", labels);
        if (taints)
                str_addf(k->out, "%*staints: %s\n", k->indent, "", taints);
        struct spray_section hosts;
        spray_begin(k, &hosts, "hosts");
        for (size_t i = 0; i < n; i++)
                if (h[i].roles == roles)
                        write_host(k, &h[i], c, !labels, !taints);
        spray_end(k, &hosts);
        k->indent -= 2;
}

static void write_pools(struct spray *k, const struct spray_host *h, size_t n, struct common c)
{
        size_t etcd = 0;
        const char *used = "";
        for (size_t i = 0; i < n; i++)
                etcd += !!(h[i].roles & ROLE_ETCD);
        if (etcd % 2 == 0)
                spray_note(k,
                        "%zu hosts are in the group etcd: etcd needs an odd number, so remove the role from one of them",
                        etcd);
        for (size_t kind = 0; kind < ARRAY_SIZE(pool_kinds); kind++) {
                size_t count = 0;
                for (size_t i = 0; i < n; i++)
                        count += h[i].roles == pool_kinds[kind].roles;
                if (!count)
                        continue;
                const char *name = pool_kinds[kind].name;
                if (streq(name, used))
                        name = pool_kinds[kind].longer;
                used = pool_kinds[kind].name;
                write_pool(k, h, n, kind, name, c);
        }
}

/* Hosts that have a place in the inventory and none in the cluster: load balancers, a host of
 * Ansible's own. */
static void unused_hosts(struct spray *k)
{
        struct str s CLEANUP(str_release) = { 0 };
        size_t n = 0;
        for (const struct inventory_host *h = k->inv->hosts; h; h = h->next)
                if (!roles_of(k, h, true) && !inventory_in(k->inv, h, "bastion") && n++ < 20)
                        str_addf(&s, "%s%s", s.len ? ", " : "", h->name);
        if (n > 20)
                str_addf(&s, " and %zu more", n - 20);
        if (n)
                spray_note(k,
                        "these hosts are in none of the groups kube_control_plane, etcd and kube_node: %s",
                        str_text(&s));
}

static bool has_etcd_group(struct spray *k)
{
        for (const struct inventory_host *h = k->inv->hosts; h; h = h->next)
                if (inventory_in(k->inv, h, "etcd"))
                        return true;
        return false;
}

void spray_pools(struct spray *k)
{
        bool etcd_group = has_etcd_group(k);
        struct spray_host *h = arena_array(k->arena, struct spray_host, k->inv->host_count + 1);
        struct spray_section pools;
        size_t n = 0;
        spray_begin(k, &pools, "pools");
        for (const struct inventory_host *i = k->inv->hosts; i; i = i->next) {
                h[n] = (struct spray_host){ .host = i, .roles = roles_of(k, i, etcd_group) };
                if (h[n].roles)
                        read_host(k, &h[n++]);
        }
        if (!etcd_group)
                spray_comment(
                        k, "the inventory has no group etcd: etcd runs on the control-plane nodes");
        write_pools(k, h, n, common_of(k));
        unused_hosts(k);
        spray_end(k, &pools);
}
