/* The facts of the machine, as JSON. Features are found by testing them, not by
 * names or versions. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "agent/json.h"
#include "base/file.h"

#ifndef SLIPWAY_VERSION
#define SLIPWAY_VERSION "0"
#endif
#define CGROUP2_MAGIC 0x63677270

/* The first line of a small file without trailing blanks; "" when it cannot be read. */
static char *first_line(const char *path)
{
        char buf[4096];
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);
        buf[n < 0 ? 0 : n] = 0;
        buf[strcspn(buf, "\n")] = 0;
        for (size_t len = strlen(buf); len && buf[len - 1] == ' '; len--)
                buf[len - 1] = 0;
        return xstrdup(buf);
}

static void json_line(struct str *o, const char *key, const char *path)
{
        char *line CLEANUP(free_p) = first_line(path);
        if (*line)
                json_text(o, key, line);
}

static void read_whole(const char *path, struct str *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (file_read(path, (size_t)4 << 20, out, &err) < 0)
                str_truncate(out, 0);
}

/* The value of a key at the beginning of a line ("KEY=value" as in /etc/os-release, "key: value" as
 * in YAML), without quotes. NULL when there is no such line. */
static char *line_value(const struct str *text, const char *key, char sign)
{
        size_t n = strlen(key);
        for (const char *p = str_text(text); p; p = strchr(p, '\n')) {
                p += *p == '\n';
                if (strncmp(p, key, n) || p[n] != sign)
                        continue;
                const char *v = p + n + 1 + strspn(p + n + 1, " ");
                char quote = *v == '"' || *v == '\'' ? *v++ : 0;
                size_t len = strcspn(v, "\n");
                if (quote && len && v[len - 1] == quote)
                        len--;
                return xstrndup(v, len);
        }
        return NULL;
}

static void facts_os(struct agent *a, struct str *o)
{
        static const char *const keys[][2] = { { "id", "ID" }, { "version", "VERSION_ID" },
                { "idLike", "ID_LIKE" }, { "pretty", "PRETTY_NAME" } };
        struct str text CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = agent_path(a, "/etc/os-release");
        read_whole(path, &text);
        json_begin(o, "os", '{');
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                char *v CLEANUP(free_p) = line_value(&text, keys[i][1], '=');
                if (v)
                        json_text(o, keys[i][0], v);
        }
        json_end(o, '}');
}

static void facts_kernel(struct str *o)
{
        struct utsname u;
        struct statfs fs;
        uname(&u);
        json_text(o, "hostname", u.nodename);
        json_text(o, "kernel", u.release);
        json_text(o, "arch",
                streq(u.machine, "x86_64")    ? "amd64"
                : streq(u.machine, "aarch64") ? "arm64"
                                              : u.machine);
        json_number(o, "cgroup",
                statfs("/sys/fs/cgroup", &fs) == 0 && (unsigned long)fs.f_type == CGROUP2_MAGIC
                        ? 2
                        : 1);
        if (access("/run/systemd/system", F_OK) == 0)
                json_text(o, "init", "systemd");
        else
                json_line(o, "init", "/proc/1/comm");
}

static uint64_t capability_set(const char *status, const char *field)
{
        struct str text CLEANUP(str_release) = { 0 };
        read_whole(status, &text);
        const char *line = strstr(str_text(&text), field);
        return line ? strtoull(line + strlen(field), NULL, 16) : 0;
}

/* Capabilities of process 1, from which services get theirs, limited to our own bounding set. */
static void facts_capabilities(struct str *o)
{
        static const char *const names[] = { "chown", "dac_override", "dac_read_search", "fowner",
                "fsetid", "kill", "setgid", "setuid", "setpcap", "linux_immutable",
                "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock",
                "ipc_owner", "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct",
                "sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config",
                "mknod", "lease", "audit_write", "audit_control", "setfcap", "mac_override",
                "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon",
                "bpf", "checkpoint_restore" };
        uint64_t set = capability_set("/proc/1/status", "\nCapEff:") &
                       capability_set("/proc/self/status", "\nCapBnd:");
        json_begin(o, "capabilities", '[');
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (set >> i & 1)
                        json_text(o, NULL, names[i]);
        json_end(o, ']');
}

static void facts_size(struct str *o)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *save = NULL;
        read_whole("/proc/meminfo", &text);
        const char *total = strstr(str_text(&text), "MemTotal:");
        json_number(o, "memory", total ? strtoull(total + 9, NULL, 10) << 10 : 0);
        json_number(o, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
        str_truncate(&text, 0);
        read_whole("/proc/swaps", &text);
        json_begin(o, "swap", '[');
        char *line = text.len ? strtok_r(text.data, "\n", &save) : NULL;
        while (line && (line = strtok_r(NULL, "\n", &save))) {
                line[strcspn(line, " \t")] = 0;
                json_text(o, NULL, line);
        }
        json_end(o, ']');
        json_number(o, "time", (uint64_t)clock_wall_ms() * 1000000); /* in nanoseconds */
}

/* For a directory that does not exist: its nearest parent. */
static void facts_disk(struct agent *a, struct str *o)
{
        static const char *const paths[] = { "/", "/var/lib", "/var/lib/containerd",
                "/var/lib/etcd", "/var/lib/kubelet" };
        json_begin(o, "disks", '[');
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                struct statvfs fs;
                char *full CLEANUP(free_p) = agent_path(a, paths[i]), *slash;
                while (statvfs(full, &fs) < 0 && (slash = strrchr(full, '/')))
                        slash[slash == full] = 0;
                json_begin(o, NULL, '{');
                json_text(o, "path", paths[i]);
                json_number(o, "free", (uint64_t)fs.f_bavail * fs.f_frsize);
                json_number(o, "size", (uint64_t)fs.f_blocks * fs.f_frsize);
                json_end(o, '}');
        }
        json_end(o, ']');
}

/* Whether the settings that the kubelet checks with protectKernelDefaults exist and can be written:
 * /proc/sys may be read-only in a container. */
static bool kernel_defaults(void)
{
        static const char *const names[] = { "vm/overcommit_memory", "vm/panic_on_oom",
                "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
                "kernel/keys/root_maxbytes" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *path CLEANUP(free_p) = xasprintf("/proc/sys/%s", names[i]);
                /* opening changes nothing */
                int fd CLEANUP(close_p) = open(path, O_WRONLY | O_CLOEXEC);
                if (fd < 0)
                        return false;
        }
        return true;
}

static void facts_features(struct str *o)
{
        static const char *const modules[][2] = { { "overlay", "overlay" }, { "vxlan", "vxlan" },
                { "conntrack", "nf_conntrack" }, { "iptables", "ip_tables" },
                { "nftables", "nf_tables" }, { "bridgeNetfilter", "br_netfilter" },
                { "ipvs", "ip_vs" }, { "wireguard", "wireguard" } };
        json_bool(o, "ipvs", kernel_may("ip_vs"));
        json_bool(o, "kernelDefaults", kernel_defaults());
        json_begin(o, "features", '{');
        for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
                json_bool(o, modules[i][0], kernel_may(modules[i][1]));
        json_end(o, '}');
}

/* Names of running cluster programs. */
static void facts_processes(struct str *o)
{
        static const char *const names[] = { "kubelet", "etcd", "kube-apiserver", "containerd",
                "dockerd", "crio", "k3s", "k0s" };
        DIR *d = opendir("/proc");
        bool found[ARRAY_SIZE(names)] = { false };
        for (struct dirent *e; d && (e = readdir(d));) {
                if (e->d_name[0] < '1' || e->d_name[0] > '9')
                        continue;
                char *path CLEANUP(free_p) = xasprintf("/proc/%s/comm", e->d_name),
                           *comm CLEANUP(free_p) = first_line(path);
                for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                        found[i] |= streq(comm, names[i]);
        }
        if (d)
                closedir(d);
        json_begin(o, "processes", '[');
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (found[i])
                        json_text(o, NULL, names[i]);
        json_end(o, ']');
}

/* Directories that user-data created are empty until a cluster uses them. */
static bool leftover_there(const char *path)
{
        DIR *d = opendir(path);
        bool found = !d && access(path, F_OK) == 0;
        for (struct dirent *e; d && !found && (e = readdir(d));)
                found = !streq(e->d_name, ".") && !streq(e->d_name, "..");
        if (d)
                closedir(d);
        return found;
}

/* Files of a cluster on this host, ours or another's. */
static void facts_leftovers(struct agent *a, struct str *o)
{
        static const char *const paths[] = { "/etc/kubernetes/admin.conf",
                "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf",
                "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf",
                "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/pki/ca.crt",
                "/var/lib/etcd/member", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/pki",
                "/etc/rancher/k3s", "/var/lib/k0s" };
        json_begin(o, "leftovers", '[');
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                char *full CLEANUP(free_p) = agent_path(a, paths[i]);
                if (leftover_there(full))
                        json_text(o, NULL, paths[i]);
        }
        json_end(o, ']');
        facts_processes(o);
        char *ca CLEANUP(free_p) = agent_path(a, "/etc/kubernetes/pki/ca.crt"), digest[SHA256_HEX];
        if (file_digest(ca, digest)) /* identifies the cluster */
                json_text(o, "clusterCA", digest);
        if (a->record.cluster)
                json_text(o, "cluster", a->record.cluster);
        if (a->record.node)
                json_text(o, "node", a->record.node);
}

/* The value of a flag in a manifest's command: "    - --name=value". */
static char *manifest_flag(const struct str *text, const char *flag)
{
        const char *at = strstr(str_text(text), flag);
        return at ? xstrndup(at + strlen(flag), strcspn(at + strlen(flag), "\n")) : NULL;
}

/* How the etcd member here was created: its configuration keeps the initial cluster, whatever
 * joined or left since. Nothing while there is no data. */
static void facts_etcd(struct agent *a, struct str *o)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *file CLEANUP(free_p) = agent_path(a, "/etc/etcd/etcd.yaml");
        read_whole(file, &text);
        char *pod CLEANUP(free_p) =
                text.len ? NULL : agent_path(a, "/etc/kubernetes/manifests/etcd.yaml");
        if (pod)
                read_whole(pod, &text);
        char *dir CLEANUP(free_p) =
                pod ? manifest_flag(&text, "--data-dir=") : line_value(&text, "data-dir", ':');
        char *initial CLEANUP(free_p) = pod ? manifest_flag(&text, "--initial-cluster=")
                                            : line_value(&text, "initial-cluster", ':');
        char *state CLEANUP(free_p) = pod ? manifest_flag(&text, "--initial-cluster-state=")
                                          : line_value(&text, "initial-cluster-state", ':');
        if (pod && !state)
                state = xstrdup("new");
        char *member CLEANUP(free_p) = dir ? xasprintf("%s%s/member/wal", a->root, dir) : NULL;
        if (!member || !initial || !state || access(member, F_OK) < 0)
                return;
        json_begin(o, "etcd", '{');
        json_text(o, "initial", initial);
        json_text(o, "state", state);
        json_end(o, '}');
}

/* Whether the API server here, if any, encrypts what it stores. */
static void facts_apiserver(struct agent *a, struct str *o)
{
        struct str text CLEANUP(str_release) = { 0 };
        char *file CLEANUP(free_p) = agent_path(a, "/etc/kubernetes/manifests/kube-apiserver.yaml");
        read_whole(file, &text);
        if (!text.len)
                return;
        json_begin(o, "apiserver", '{');
        json_bool(o, "encrypts", strstr(str_text(&text), "--encryption-provider-config=") != NULL);
        json_end(o, '}');
}

/* The kubelet's current client certificate: the operator judges whether it is valid. "" when the
 * file has none. */
static void facts_kubelet(struct agent *a, struct str *o)
{
        static const char begin[] = "-----BEGIN CERTIFICATE-----",
                          end[] = "-----END CERTIFICATE-----";
        struct str text CLEANUP(str_wipe_release) = { 0 };
        struct stat st;
        char *file CLEANUP(free_p) =
                agent_path(a, "/var/lib/kubelet/pki/kubelet-client-current.pem");
        if (lstat(file, &st) < 0)
                return;
        read_whole(file, &text);
        const char *from = strstr(str_text(&text), begin), *to = from ? strstr(from, end) : NULL;
        char *pem CLEANUP(free_p) =
                to ? xstrndup(from, (size_t)(to - from) + sizeof(end) - 1) : xstrdup("");
        json_text(o, "kubeletClient", pem);
}

void facts_write(struct agent *a, struct str *o)
{
        json_begin(o, NULL, '{');
        json_text(o, "agent", SLIPWAY_VERSION);
        json_bool(o, "root", geteuid() == 0);
        facts_kernel(o);
        facts_boot(a, o);
        facts_os(a, o);
        json_line(o, "machineId", "/etc/machine-id");
        if (access("/run/systemd/container", F_OK) < 0) /* in a container it is the host's */
                json_line(o, "productUuid", "/sys/class/dmi/id/product_uuid");
        facts_capabilities(o);
        facts_size(o);
        facts_network(o);
        facts_ports(o);
        facts_disk(a, o);
        facts_features(o);
        if (package_manager())
                json_text(o, "packageManager", package_manager());
        char *selinux CLEANUP(free_p) = first_line("/sys/fs/selinux/enforce");
        json_text(o, "selinux",
                !*selinux         ? "disabled"
                : *selinux == '1' ? "enforcing"
                                  : "permissive");
        facts_leftovers(a, o);
        facts_etcd(a, o);
        facts_apiserver(a, o);
        facts_kubelet(a, o);
        json_end(o, '}');
}
