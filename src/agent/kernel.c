/* Sysctls, modules and mounts. A feature is found by its effect: when it is built into the kernel,
 * there is no module file and nothing to load. */
#include <fcntl.h>
#include <sys/utsname.h>

#include "agent/agent.h"
#include "base/file.h"

/* ---- sysctls ---- */

static char *sysctl_path(struct agent *a, const char *name)
{
        char *path = xasprintf("%s/proc/sys/%s", a->root, name);
        for (char *p = strchr(name, '/') ? NULL : path + strlen(a->root) + strlen("/proc/sys/");
                p && *p; p++)
                if (*p == '.')
                        *p = '/';
        return path;
}

static bool sysctl_read(struct agent *a, const char *name, struct str *out)
{
        char *path CLEANUP(free_p) = sysctl_path(a, name), buf[4096];
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));
        for (ssize_t i = 0; i < n; i++) {
                bool blank = strchr(" \t\n", buf[i]);
                if (!blank || (out->len && out->data[out->len - 1] != ' '))
                        str_addc(out, blank ? ' ' : buf[i]);
        }
        if (out->len && out->data[out->len - 1] == ' ')
                str_truncate(out, out->len - 1);
        return n >= 0;
}

bool sysctl_same(struct agent *a, const char *name, const char *value, bool *there)
{
        struct str now CLEANUP(str_release) = { 0 };
        *there = sysctl_read(a, name, &now);
        return *there && streq(str_text(&now), value);
}

int sysctl_write(struct agent *a, const char *name, const char *value, struct error *err)
{
        char *path CLEANUP(free_p) = sysctl_path(a, name);
        int fd CLEANUP(close_p) = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_TRUNC);
        int r = fd < 0 ? -errno : write_all(fd, value, strlen(value));
        return r < 0 ? error_set(err, -r, EXIT_STEP, "cannot set it to \"%s\": %s", value,
                               strerror(-r))
                     : 0;
}

/* The kubelet, kube-proxy and the CNI plugins change these whatever the spec says. */
void sysctls_keep(struct agent *a)
{
        static const char *const names[] = { "vm.overcommit_memory", "vm.panic_on_oom",
                "kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys",
                "kernel.keys.root_maxbytes", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding",
                "net.ipv6.conf.default.forwarding", "net.ipv4.conf.all.route_localnet",
                "net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables",
                "net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_buckets",
                "net.netfilter.nf_conntrack_tcp_timeout_established",
                "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
                "net.netfilter.nf_conntrack_tcp_be_liberal", "net.ipv4.vs.conntrack",
                "net.ipv4.vs.conn_reuse_mode", "net.ipv4.vs.expire_nodest_conn",
                "net.ipv4.vs.expire_quiescent_template", "net.ipv4.conf.all.arp_ignore",
                "net.ipv4.conf.all.arp_announce" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct str now CLEANUP(str_release) = { 0 };
                if (sysctl_read(a, names[i], &now))
                        before_value(a, "sysctl", names[i], str_text(&now));
        }
}

void check_sysctl(struct agent *a, struct entry *e)
{
        bool there;
        e->state =
                sysctl_same(a, e->name, e->target, &there) || !there ? STATE_SAME : STATE_CHANGED;
}

/* A missing setting belongs to a feature that this kernel lacks; the facts report that. */
void apply_sysctls(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                struct str now CLEANUP(str_release) = { 0 };
                bool there;
                record_entry(a, &e[i]);
                /* read again: a module may have added it */
                if (sysctl_same(a, e[i].name, e[i].target, &there) || !there) {
                        entry_done(a, &e[i], STATE_SAME, "%s",
                                there ? "" : "this kernel does not have this setting");
                        continue;
                }
                if (sysctl_read(a, e[i].name, &now))
                        before_value(a, "sysctl", e[i].name, str_text(&now));
                if (sysctl_write(a, e[i].name, e[i].target, &err) < 0)
                        entry_failed(a, &e[i], &err);
                else
                        entry_report(a, &e[i], STATE_CHANGED);
        }
}

/* ---- modules ---- */

static bool file_has_line(const char *path, const char *part)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        return file_read(path, (size_t)16 << 20, &s, &err) == 0 && strstr(str_text(&s), part);
}

static const struct feature {
        const char *module;
        const char *path; /* exists when the feature does */
        const char *in;   /* or: this file */
        const char *line; /* has this line */
        bool link;        /* or: a kind of network link */
        bool nft;         /* or: the kernel answers over nftables' netlink */
} features[] = {
        { .module = "overlay", .in = "/proc/filesystems", .line = "\toverlay\n" },
        { .module = "br_netfilter", .path = "/proc/sys/net/bridge/bridge-nf-call-iptables" },
        { .module = "nf_conntrack", .path = "/proc/sys/net/netfilter/nf_conntrack_max" },
        { .module = "ip_tables", .path = "/proc/net/ip_tables_names" },
        { .module = "ip6_tables", .path = "/proc/net/ip6_tables_names" },
        { .module = "ip_vs", .path = "/proc/net/ip_vs" },
        { .module = "nf_tables", .nft = true },
        { .module = "vxlan", .link = true },
        { .module = "bridge", .link = true },
        { .module = "veth", .link = true },
        { .module = "dummy", .link = true },
        { .module = "wireguard", .link = true },
        { .module = "ipip", .path = "/proc/sys/net/ipv4/conf/tunl0" },
};

static bool module_listed(const char *file, const char *module)
{
        struct utsname u;
        char *name CLEANUP(free_p) = xasprintf("/%s.ko", module);
        if (uname(&u) < 0)
                return false;
        char *path CLEANUP(free_p) = xasprintf("/lib/modules/%s/%s", u.release, file);
        char *other CLEANUP(free_p) = xstrdup(name); /* both spellings are in use */
        for (char *p = other; *p; p++)
                *p = *p == '_' ? '-' : *p;
        return file_has_line(path, name) || file_has_line(path, other);
}

/* Checks that need no attempt. */
static bool module_seen(const char *module)
{
        char *sys CLEANUP(free_p) = xasprintf("/sys/module/%s", module);
        for (char *p = sys; *p; p++)
                *p = *p == '-' ? '_' : *p;
        for (size_t i = 0; i < ARRAY_SIZE(features); i++)
                if (streq(features[i].module, module) &&
                        ((features[i].path && access(features[i].path, F_OK) == 0) ||
                                (features[i].in &&
                                        file_has_line(features[i].in, features[i].line))))
                        return true;
        return access(sys, F_OK) == 0;
}

/* Tries the feature, when no file shows it. */
static bool module_works(const char *module)
{
        for (size_t i = 0; i < ARRAY_SIZE(features); i++)
                if (streq(features[i].module, module))
                        return (features[i].link && link_kind_works(module)) ||
                               (features[i].nft && nftables_works());
        return false;
}

bool kernel_has(const char *module)
{
        return module_seen(module) || module_listed("modules.builtin", module) ||
               module_works(module);
}

bool kernel_may(const char *module)
{
        return module_seen(module) || module_listed("modules.dep", module) || kernel_has(module);
}

void check_module(struct agent *a, struct entry *e)
{
        (void)a;
        e->state = kernel_has(e->name) ? STATE_SAME : STATE_CREATED;
}

void apply_modules(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n && session_alive(&a->session); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                record_entry(a, &e[i]);
                if (e[i].state != STATE_SAME &&
                        tool(&a->session, WORDS("modprobe", "--", e[i].name), 60, NULL, &err) < 0 &&
                        !kernel_has(e[i].name)) {
                        error_hint(&err,
                                "install a kernel that has this feature built in or as a module");
                        entry_failed(a, &e[i], &err);
                } else
                        entry_report(a, &e[i], e[i].state);
        }
}

/* ---- mounts: made by their units ---- */

static bool is_mounted(struct agent *a, const char *path)
{
        char *full CLEANUP(free_p) = agent_path(a, path),
                   *parent CLEANUP(free_p) = xasprintf("%s/..", full);
        struct stat st, up;
        return stat(full, &st) == 0 && stat(parent, &up) == 0 && st.st_dev != up.st_dev;
}

void check_mount(struct agent *a, struct entry *e)
{
        e->state = is_mounted(a, e->path) ? STATE_SAME : STATE_CREATED;
}

/* Its units may come before or after it in the spec. If it is not mounted after all units have
 * started, those units have failed. */
void apply_mounts(struct agent *a, struct entry *e, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                bool mounted = is_mounted(a, e[i].path);
                record_entry(a, &e[i]);
                if (mounted || e[i].state == STATE_SAME)
                        entry_report(a, &e[i], e[i].state);
                else
                        entry_done(
                                a, &e[i], STATE_SAME, "not mounted yet: its mount unit does that");
        }
}
