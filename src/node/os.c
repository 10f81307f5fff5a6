#include "node/os.h"

static const struct os_id ids[] = {
        { "debian", OS_DEBIAN, "12", false },
        { "ubuntu", OS_DEBIAN, "24.04", true },
        { "raspbian", OS_DEBIAN, "12", false },
        { "rhel", OS_RHEL, "9", false },
        { "centos", OS_RHEL, "9", false },
        { "rocky", OS_RHEL, "9", false },
        { "almalinux", OS_RHEL, "9", false },
        { "ol", OS_RHEL, "9", false },
        { "amzn", OS_RHEL, "2023", true },
        { "fedora", OS_RHEL, "42", true },
        { "opensuse-leap", OS_SUSE, "15.6", false },
        { "opensuse-tumbleweed", OS_SUSE, "", false },
        { "sles", OS_SUSE, "15.6", false },
        { "flatcar", OS_FLATCAR, "", true },
};

static const struct os_info families[OS_FAMILY_COUNT] = {
        [OS_DEBIAN] = {
                .name = "Debian and Ubuntu",
                .bin_dir = "/usr/local/bin",
                .packages = true,
                .node = { "ca-certificates", "conntrack", "curl", "ebtables", "ethtool", "iproute2", "ipset", "iptables", "kmod", "nftables", "socat" },
                .ntp_package = "systemd-timesyncd",
                .ntp_unit = "systemd-timesyncd.service",
                .ntp_path = "/etc/systemd/timesyncd.conf.d/slipway.conf",
                .ntp_template = "timesyncd.conf",
                .proxy_path = "/etc/apt/apt.conf.d/95slipway-proxy",
                .proxy_template = "apt-proxy.conf",
                .kubelet_env = "/etc/default/kubelet",
                .ca_paths = { "/etc/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/ca-certificates" },
        },
        [OS_RHEL] = {
                .name = "RHEL, its clones and Fedora",
                .bin_dir = "/usr/local/bin",
                .packages = true,
                .selinux = true,
                .node = { "ca-certificates", "conntrack-tools", "container-selinux", "curl", "ethtool", "iproute", "iproute-tc", "ipset", "iptables-nft", "kmod", "nftables", "policycoreutils", "socat" },
                .ntp_package = "chrony",
                .ntp_unit = "chronyd.service",
                .ntp_path = "/etc/chrony.conf",
                .ntp_template = "chrony.conf",
                .proxy_path = "/etc/dnf/dnf.conf",
                .proxy_template = "dnf.conf",
                .kubelet_env = "/etc/sysconfig/kubelet",
                .ca_paths = { "/etc/pki/ca-trust", "/etc/pki/tls/certs" },
        },
        [OS_SUSE] = {
                .name = "openSUSE and SLES",
                .bin_dir = "/usr/local/bin",
                .packages = true,
                .node = { "ca-certificates", "conntrack-tools", "curl", "ebtables", "ethtool", "iproute2", "ipset", "iptables", "kmod", "nftables", "socat" },
                .ntp_package = "chrony",
                .ntp_unit = "chronyd.service",
                .ntp_path = "/etc/chrony.conf",
                .ntp_template = "chrony.conf",
                .proxy_path = "/etc/sysconfig/proxy",
                .proxy_template = "suse-proxy.env",
                .kubelet_env = "/etc/sysconfig/kubelet",
                .ca_paths = { "/var/lib/ca-certificates" },
        },
        [OS_FLATCAR] = {
                .name = "Flatcar",
                .bin_dir = "/opt/bin",
                .selinux = false, /* built in, but permissive by default */
                .ntp_unit = "systemd-timesyncd.service",
                .ntp_path = "/etc/systemd/timesyncd.conf.d/slipway.conf",
                .ntp_template = "timesyncd.conf",
                .kubelet_env = "/etc/default/kubelet",
                .ca_paths = { "/usr/share/ca-certificates" },
        },
};

const struct os_id *os_find(const char *id)
{
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                if (streq(ids[i].id, id))
                        return &ids[i];
        return NULL;
}

const struct os_info *os_info(enum os_family family) { return &families[family]; }

void os_names(struct str *out)
{
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                str_addf(out, "%s%s", i ? ", " : "", ids[i].id);
}

const char *os_mkfs_package(const char *filesystem)
{
        static const struct {
                const char *filesystem, *package;
        } table[] = { { "ext4", "e2fsprogs" }, { "xfs", "xfsprogs" } };
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (streq(table[i].filesystem, filesystem))
                        return table[i].package;
        return NULL;
}
