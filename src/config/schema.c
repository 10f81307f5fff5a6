/* The fields of cluster.yaml, as tables: one per struct of cluster.h, innermost structs first. A
 * new option is a row here and a member there. The macros only spell the offsets; `def` is the
 * default as a user would write it. */
#include "config/schema.h"
#include "config/addon.h"
#include "config/fabric.h"
#include "config/minors.h"
#include "config/platform.h"

#define AT(type, member) .offset = offsetof(struct type, member)
#define SCHEMA(id, type, short_field, text, ...) \
        static const struct field id##_fields[] = { __VA_ARGS__ }; \
        static const struct schema id##_schema = { .name = #id, \
                HELP(text), \
                .fields = id##_fields, \
                .count = ARRAY_SIZE(id##_fields), \
                .size = sizeof(struct type), \
                .shorthand = short_field }
#ifdef SCHEMA_HELP
#define HELP(text) .help = text
#else
#define HELP(text) .help = true
#endif

static const char *const role_names[] = { "control-plane", "etcd", "worker", NULL };
static const char *const user_data_names[] = { "cloud-init", "ignition", NULL };
static const char *const os_lb_names[] = { "octavia", "vip", "none", NULL };
static const char *const image_names[] = { "qcow2", "raw", "iso", "vmdk", "vdi", "vhd", "vhdx",
        NULL };
static const char *const spread_names[] = { "soft-anti-affinity", "anti-affinity", "none", NULL };
static const char *const aws_lb_names[] = { "nlb", "nlb-internal", "none", NULL };
static const char *const aws_nat_names[] = { "one", "perZone", "none", NULL };
static const char *const backend_names[] = { "vxlan", "host-gw", "wireguard", NULL };
static const char *const proxy_mode_names[] = { "iptables", "nftables", "ipvs", "none", NULL };
static const char *const proxy_run_names[] = { "service", "daemonset", NULL };
static const char *const etcd_run_names[] = { "service", "static-pod", NULL };
static const char *const runtime_names[] = { "containerd", "cri-o", NULL };
static const char *const oci_names[] = { "runc", "crun", NULL };
/* The programs of the catalogue that can be downloaded (a unit test compares). */
static const char *const program_names[] = { "kubelet", "kube-proxy", "kubeadm", "kubectl", "etcd",
        "etcdctl", "etcdutl", "containerd", "containerd-shim-runc-v2", "ctr", "crio", "conmon",
        "runc", "crun", "crictl", "cni-plugins", "flanneld", "flannel", NULL };
static const char *const source_names[] = { "auto", "bundle", "mirror", "upstream", "build", NULL };
static const char *const algorithm_names[] = { "ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-4096",
        NULL };
static const char *const hardening_names[] = { "cis", "kubeadm", NULL };
static const char *const binding_roles[] = { "view", "edit", "admin", "cluster-admin", NULL };
static const char *const encryption_names[] = { "none", "secretbox", "aescbc", "aesgcm", NULL };
static const char *const audit_names[] = { "none", "metadata", "request", "requestResponse", NULL };
static const char *const pod_security_names[] = { "privileged", "baseline", "restricted", NULL };
static const char *const expose_names[] = { "hostPort", "nodePort", "loadBalancer", NULL };
static const char *const readiness_names[] = { "all", "percent", "count", NULL };
static const char *const update_names[] = { "manual", "reboot", NULL };
static const char *const filesystem_names[] = { "ext4", "xfs", NULL };
static const char *const os_names[] = { "debian", "ubuntu", "rhel", "centos", "rocky", "almalinux",
        "ol", "fedora", "opensuse-leap", "opensuse-tumbleweed", "sles", "flatcar", NULL };

/* Hints for options that are not implemented yet: what to use today. */
#define LATER_HEAL \
        "leave it out: `slipway status` shows unhealthy nodes, and `slipway remove-node` and `slipway scale` replace a machine"

/* clang-format off */

/* ---- pools ---- */

SCHEMA(disk, disk, NULL, "A disk that the machine already has. It is formatted only if it is blank, then mounted.",
        { "device", T_ABSPATH, F_REQUIRED, AT(disk, device), HELP("The block device. A path under /dev/disk/by-id stays the same when the order of disks changes."), .example = "/dev/sdb" },
        { "filesystem", T_STRING, 0, AT(disk, filesystem), .names = filesystem_names, .def = "ext4", HELP("The filesystem that is created on a blank device.") },
        { "mount", T_ABSPATH, F_REQUIRED, AT(disk, mount), HELP("The mount point. Services that store data there start after the mount."), .example = "/var/lib/etcd" },
        { "options", T_STRINGS, 0, AT(disk, options), .def = "[defaults, noatime]", HELP("Mount options.") });

SCHEMA(volume, volume, NULL, "A disk attached to the machine in addition to its system disk (OpenStack, AWS). It is formatted only if it is blank, then mounted.",
        { "size", T_SIZE, 0, AT(volume, size), .min = 1 << 30, .max = (int64_t)64 << 40, HELP("The size of the volume."), .example = "50GiB" },
        { "type", T_STRING, 0, AT(volume, type), HELP("The provider's volume type."), .example = "gp3" },
        { "zone", T_STRING, 0, AT(volume, zone), HELP("The availability zone of the volume, if volumes have other zones than machines (OpenStack).") },
        { "device", T_ABSPATH, 0, AT(volume, device), HELP("The device on the machine; by default the path in /dev/disk/by-id that has the volume's id.") },
        { "filesystem", T_STRING, 0, AT(volume, filesystem), .names = filesystem_names, .def = "ext4", HELP("The filesystem that is created on a blank volume.") },
        { "mount", T_ABSPATH, F_REQUIRED, AT(volume, mount), HELP("The mount point."), .example = "/var/lib/containerd" });

SCHEMA(root_volume, root_volume, "size", "The system disk of a machine in a cloud. The size alone is enough.",
        { "size", T_SIZE, 0, AT(root_volume, size), .min = 1 << 30, .max = (int64_t)64 << 40, HELP("Its size; by default 20 GiB, or what the image needs."), .example = "50GiB" },
        { "type", T_STRING, 0, AT(root_volume, type), HELP("Its volume type; on AWS by default gp3."), .example = "gp3" },
        { "zone", T_STRING, 0, AT(root_volume, zone), HELP("The availability zone of the volume, if volumes have other zones than machines (OpenStack).") },
        { "encrypted", T_BOOL, 0, AT(root_volume, encrypted), .def = "true", HELP("Whether it is encrypted (AWS; in OpenStack the type decides).") },
        { "kmsKey", T_STRING, 0, AT(root_volume, kms_key), HELP("The KMS key that it is encrypted with; by default the account's (AWS).") },
        { "iops", T_INT, 0, AT(root_volume, iops), .min = 100, .max = 256000, HELP("Its I/O operations per second, for volume types that have a choice (AWS).") });

SCHEMA(machine, machine_shape, NULL, "The size of machines that have no named size.",
        { "cpus", T_INT, 0, AT(machine_shape, cpus), .def = "0", .min = 0, .max = 1024, HELP("Number of CPUs; 0 means no limit.") },
        { "memory", T_SIZE, 0, AT(machine_shape, memory), .min = 256 << 20, .max = (int64_t)64 << 40, HELP("Memory limit; without it there is no limit."), .example = "2GiB" },
        { "disk", T_SIZE, 0, AT(machine_shape, disk), .min = 1 << 30, .max = (int64_t)64 << 40, HELP("Disk limit; without it there is no limit."), .example = "20GiB", .later = "leave it out: machines on this computer share its disk; only cpus and memory can be limited" });

SCHEMA(host, host, "address", "An existing machine. The address alone is enough.",
        { "name", T_HOST, 0, AT(host, name), HELP("The node's name. By default it is derived from the address: a DNS name is used unchanged, 192.0.2.11 becomes ip-192-0-2-11."), .example = "w1" },
        { "address", T_HOST, F_REQUIRED, AT(host, address), HELP("Where ssh connects to: a DNS name, a Host of ~/.ssh/config, or an IP address."), .example = "192.0.2.21" },
        { "ip", T_IPS, 0, AT(host, ip), HELP("The IP address that the cluster uses, if it differs from `address`; for dual-stack one of each family."), .example = "[10.0.0.21, \"fd00::21\"]" },
        { "user", T_STRING, 0, AT(host, user), HELP("Overrides provider.ssh.user for this host.") },
        { "port", T_INT, 0, AT(host, port), .min = 1, .max = 65535, HELP("Overrides provider.ssh.port for this host.") },
        { "labels", T_LABELS, 0, AT(host, labels), HELP("Labels of this node; they override the pool's."), .example = "{zone: a}" },
        { "taints", T_TAINTS, 0, AT(host, taints), HELP("Taints of this node, in addition to the pool's."), .example = "[\"gpu=yes:NoSchedule\"]" });

SCHEMA(kubelet, kubelet_options, NULL, "Settings of the kubelet.",
        { "systemReserved", T_PAIRS, F_LOOSE, AT(kubelet_options, system_reserved), HELP("Resources reserved for the operating system: cpu, memory, ephemeral-storage, pid."), .example = "{cpu: 100m, memory: 256Mi}" },
        { "kubeReserved", T_PAIRS, F_LOOSE, AT(kubelet_options, kube_reserved), HELP("Resources reserved for the Kubernetes services.") },
        { "evictionHard", T_PAIRS, F_LOOSE, AT(kubelet_options, eviction_hard), HELP("Thresholds at which the kubelet evicts pods."), .example = "{memory.available: 200Mi}" },
        { "maxPods", T_INT, 0, AT(kubelet_options, max_pods), .min = 1, .max = 10000, HELP("Maximum number of pods per node; the kubelet's own default is 110.") },
        { "flags", T_PAIRS, F_LOOSE, AT(kubelet_options, flags), HELP("Additional command-line flags, without leading dashes."), .example = "{v: 4}" },
        { "config", T_ANY, 0, AT(kubelet_options, config), HELP("Fields of KubeletConfiguration, merged over the ones that slipway writes."), .example = "{imageGCHighThresholdPercent: 80}" });

SCHEMA(pool, pool, NULL, "A group of nodes with the same roles and the same size.",
        { "name", T_NAME, F_REQUIRED, AT(pool, name), HELP("The pool's name. Machines that a provider creates are called NAME-1, NAME-2, and so on."), .example = "worker" },
        { "roles", T_ROLES, 0, AT(pool, roles), .names = role_names, .def = "[worker]", HELP("The roles of its nodes. etcd runs on the control-plane nodes (both roles in one pool) or on its own nodes.") },
        { "count", T_INT, 0, AT(pool, count), .def = "-1", .min = 0, .max = 10000, HELP("How many machines the provider creates.") },
        { "without", T_NUMBERS, 0, AT(pool, without), .min = 1, .max = 1000000, HELP("Machine numbers to skip: those of machines that were removed while machines with higher numbers stayed. `remove-node` writes it."), .example = "[2]" },
        { "hosts", T_STRUCTS, 0, AT(pool, hosts), .sub = &host_schema, HELP("The existing machines of the pool (provider ssh)."), .example = "[192.0.2.21, 192.0.2.22]" },
        { "os", T_STRING, 0, AT(pool, os), .names = os_names, HELP("The operating system to assume as long as the machine has not been asked.") },
        { "labels", T_LABELS, 0, AT(pool, labels), HELP("Labels of the pool's nodes.") },
        { "annotations", T_PAIRS, 0, AT(pool, annotations), HELP("Annotations of the pool's nodes.") },
        { "taints", T_TAINTS, 0, AT(pool, taints), HELP("Taints of the pool's nodes: key=value:Effect. Control-plane nodes without the role worker get the control-plane taint automatically.") },
        { "disks", T_STRUCTS, 0, AT(pool, disks), .sub = &disk_schema, HELP("Disks to format (only if blank) and mount.") },
        { "volumes", T_STRUCTS, 0, AT(pool, volumes), .sub = &volume_schema, HELP("Attached disks to format (only if blank) and mount (OpenStack, AWS).") },
        { "machine", T_STRUCT, 0, AT(pool, machine), .sub = &machine_schema, HELP("The size of machines on this computer (provider local), or in vSphere and Oracle Cloud (provider terraform).") },
        { "flavor", T_STRING, 0, AT(pool, flavor), HELP("The OpenStack flavor."), .example = "m1.large" },
        { "instanceType", T_STRING, 0, AT(pool, instance_type), HELP("The AWS instance type."), .example = "m7i.large" },
        { "image", T_STRING, 0, AT(pool, image), HELP("Overrides the provider's image for this pool.") },
        { "zones", T_STRINGS, 0, AT(pool, zones), HELP("Availability zones that the pool's machines are assigned to in turn; by default the provider's.") },
        { "floatingIP", T_BOOL, 0, AT(pool, floating_ip), .def = "false", HELP("Whether each machine gets a floating IP address (OpenStack).") },
        { "spread", T_ENUM, 0, AT(pool, spread), .names = spread_names, .def = "soft-anti-affinity", HELP("How the machines are kept apart on the cloud's hosts, with a server group for the pool (OpenStack).") },
        { "publicIP", T_BOOL, 0, AT(pool, public_ip), .def = "false", HELP("Whether each machine gets a public address that stays with it (AWS: an Elastic IP address).") },
        { "spot", T_BOOL, 0, AT(pool, spot), .def = "false", HELP("Whether the machines are spot instances (AWS), which AWS may take back at any time; only for workers.") },
        { "rootVolume", T_STRUCT, 0, AT(pool, root_volume), .sub = &root_volume_schema, HELP("The system disk of the machines: a volume instead of the flavor's own disk (OpenStack), or its size and type (AWS).") },
        { "kubelet", T_STRUCT, 0, AT(pool, kubelet), .sub = &kubelet_schema, HELP("Settings of the kubelet for this pool; they override components.kubelet.") });

/* ---- providers ---- */

SCHEMA(local, provider_local, NULL, "Machines on this computer, run by systemd-nspawn. The default.",
        { "network", T_CIDRS, 0, AT(provider_local, network), .def = "10.117.0.0/24", HELP("The network of the machines; its first address belongs to this computer. For dual-stack one of each family."), .example = "[10.117.0.0/24, \"fd00:117::/112\"]" },
        { "release", T_STRING, 0, AT(provider_local, release), .def = "bookworm", HELP("The Debian release of the machines.") });

SCHEMA(ssh, provider_ssh, NULL, "Existing machines, reached with your ssh command and its configuration.",
        { "user", T_STRING, 0, AT(provider_ssh, user), .def = "root", HELP("The user to log in as.") },
        { "key", T_PATH, 0, AT(provider_ssh, key), HELP("The private key file; by default ssh chooses."), .example = "~/.ssh/id_ed25519" },
        { "port", T_INT, 0, AT(provider_ssh, port), .def = "22", .min = 1, .max = 65535, HELP("The port of sshd.") },
        { "bastion", T_STRING, 0, AT(provider_ssh, bastion), HELP("A jump host: [user@]host[:port]."), .example = "ops@jump.example.net" },
        { "sudo", T_BOOL, 0, AT(provider_ssh, sudo), .def = "true", HELP("Whether a user that is not root becomes root with sudo.") },
        { "sudoPasswordFile", T_PATH, 0, AT(provider_ssh, sudo_password_file),
                HELP("A file with the password for sudo, readable only by its owner. --ask-sudo-password and SLIPWAY_SUDO_PASSWORD "
                        "take precedence."),
                .example = "~/.config/slipway/sudo" },
        { "options", T_STRINGS, 0, AT(provider_ssh, options), HELP("Additional ssh options, as for ssh -o."), .example = "[\"ServerAliveInterval=15\"]" },
        { "connections", T_INT, 0, AT(provider_ssh, connections), .min = 1, .max = 1000,
                HELP("The maximum number of simultaneous connections, each an ssh process of about 8 MB; with more nodes than that, nodes take turns. By default 16 per core and at most 48, fewer "
                        "with little memory, half as many through a jump host.") });

SCHEMA(openstackNetwork, os_network_options, "name", "The network of the machines: the name or id of one that exists, or what is made.",
        { "name", T_STRING, 0, AT(os_network_options, name), HELP("The name or id of an existing network. Without it slipway creates one."), .example = "private-net" },
        { "cidr", T_CIDR, 0, AT(os_network_options, cidr), .def = "10.90.0.0/24", HELP("The range of the network that slipway creates.") },
        { "dns", T_STRINGS, 0, AT(os_network_options, dns), HELP("Name servers of the network that slipway creates; by default the cloud's."), .example = "[9.9.9.9]" },
        { "mtu", T_INT, 0, AT(os_network_options, mtu), .min = 1280, .max = 65535, HELP("The MTU of the network that slipway creates; by default the cloud's.") });

SCHEMA(openstackImage, os_image_options, "name", "The image of the machines: one that exists, or one that slipway uploads.",
        { "name", T_STRING, 0, AT(os_image_options, name), HELP("The name or id of an existing image, or the name of the one that slipway uploads."), .example = "debian-12" },
        { "properties", T_PAIRS, 0, AT(os_image_options, properties), HELP("Properties by which an existing image is found, or that the uploaded one gets."), .example = "{os_distro: debian, os_version: \"12\"}" },
        { "file", T_PATH, 0, AT(os_image_options, file), HELP("A file on this computer, which slipway uploads as the cluster's own image. Needs sha256.") },
        { "url", T_URL, 0, AT(os_image_options, url), HELP("Instead of a file: where the image is downloaded from, by Glance if the cloud offers that. Needs sha256.") },
        { "sha256", T_STRING, 0, AT(os_image_options, sha256), HELP("The SHA-256 checksum of the file. Another one is another image: machines are replaced.") },
        { "format", T_STRING, 0, AT(os_image_options, format), .names = image_names, HELP("The format of the file; by default what its first bytes or the end of the URL show.") });

SCHEMA(openstackCloud, os_cloud_options, "name", "Who slipway is for the cloud, and what the cluster has of it. The name alone is enough.",
        { "name", T_STRING, 0, AT(os_cloud_options, name), HELP("The entry of clouds.yaml with the credentials; by default what the environment says (OS_CLOUD, OS_AUTH_URL and others)."), .example = "taco-openstack" },
        { "controller", T_BOOL, 0, AT(os_cloud_options, controller), .def = "false", HELP("Whether the cluster has OpenStack's cloud controller manager, which makes load balancers (Octavia) for Services of type LoadBalancer.") },
        { "csi", T_BOOL, 0, AT(os_cloud_options, csi), .def = "false", HELP("Whether the cluster has the CSI driver of Cinder, which makes volumes for PersistentVolumeClaims.") });

SCHEMA(openstackAccess, os_access, NULL, "Networks from which the machines are reached: rules of the managed security group, and of the load balancer.",
        { "ssh", T_CIDRS, 0, AT(os_access, ssh), .def = "[0.0.0.0/0]", HELP("For ssh.") },
        { "api", T_CIDRS, 0, AT(os_access, api), .def = "[0.0.0.0/0]", HELP("For the API servers, also through the load balancer (octavia).") },
        { "nodePorts", T_CIDRS, 0, AT(os_access, node_ports), .def = "[0.0.0.0/0]", HELP("For NodePorts, 30000 to 32767.") });

SCHEMA(openstackPorts, os_port_options, NULL, "The ports of the machines, which have their addresses.",
        { "networks", T_STRINGS, 0, AT(os_port_options, networks), HELP("Further networks, by name or id: each machine gets a port on each of them. Another list replaces machines."), .example = "[storage]" },
        { "security", T_STRINGS, 0, AT(os_port_options, security), HELP("Names of further security groups, or `none`: port security is switched off. Without it, groups of existing ports are not changed."), .example = "[storage-clients]" },
        { "addressPairs", T_CIDRS, 0, AT(os_port_options, pairs), HELP("Addresses that machines may send from in their own network beside theirs, such as those of pods or of a virtual IP. Without it, those of existing ports are not changed."), .example = "[10.90.0.200/32]" },
        { "trunk", T_BOOL, 0, AT(os_port_options, trunk), .def = "false", HELP("Whether each port is the parent of a trunk, for VLANs of other networks inside the machine. A machine that exists gets it when it is made anew.") });

SCHEMA(openstackBastion, bastion, "address", "The jump host that machines are reached through: the address of one that exists, or the flavor of one that slipway creates, with a floating IP address.",
        { "address", T_STRING, 0, AT(bastion, address), HELP("An existing jump host: [user@]host[:port]."), .example = "ops@jump.example.net" },
        { "flavor", T_STRING, 0, AT(bastion, flavor), HELP("The flavor of a jump host that slipway creates. Needs externalNetwork."), .example = "m1.small" },
        { "image", T_STRING, 0, AT(bastion, image), HELP("Its image, by name or id; by default that of the first pool.") },
        { "user", T_STRING, 0, AT(bastion, user), HELP("The user to log in to it as; by default the provider's.") });

SCHEMA(openstack, provider_openstack, NULL, "Machines in OpenStack, which slipway creates and deletes.",
        { "cloud", T_STRUCT, 0, AT(provider_openstack, cloud), .sub = &openstackCloud_schema, HELP("The entry of clouds.yaml, and whether the cluster has the cloud's controller and CSI driver."), .example = "taco-openstack" },
        { "region", T_STRING, 0, AT(provider_openstack, region), HELP("Overrides the region of clouds.yaml.") },
        { "network", T_STRUCT, 0, AT(provider_openstack, network), .sub = &openstackNetwork_schema, HELP("The network of the machines: the name or id of an existing one, or what slipway creates.") },
        { "subnet", T_STRING, 0, AT(provider_openstack, subnet), HELP("The name of the subnet, if an existing network has several.") },
        { "externalNetwork", T_STRING, 0, AT(provider_openstack, external_network), HELP("The network that floating IP addresses come from, and that the router of a created network leads to."), .example = "public-net" },
        { "image", T_STRUCT, F_REQUIRED, AT(provider_openstack, image), .sub = &openstackImage_schema, HELP("The image, by name or id, or what slipway uploads."), .example = "debian-12" },
        { "user", T_STRING, 0, AT(provider_openstack, user), .def = "debian", HELP("The user to log in as. User-data creates it if the image has none, with sudo and slipway's own key.") },
        { "keypair", T_STRING, 0, AT(provider_openstack, keypair), HELP("The name of an existing OpenStack key pair, in addition to slipway's own key.") },
        { "userData", T_ENUM, 0, AT(provider_openstack, user_data), .names = user_data_names, .def = "cloud-init", HELP("The format of the user-data that the image reads at first boot; `render --format user-data` writes it.") },
        { "configDrive", T_BOOL, 0, AT(provider_openstack, config_drive), .def = "true", HELP("Whether machines get their user-data from a disk too, not only from the metadata service.") },
        { "loadBalancer", T_ENUM, 0, AT(provider_openstack, load_balancer), .names = os_lb_names, .def = "octavia", HELP("The load balancer in front of the API servers; `vip` is an address that keepalived moves between the control-plane nodes.") },
        { "apiFloatingIP", T_BOOL, 0, AT(provider_openstack, api_floating_ip), .def = "false", HELP("Whether the API gets a floating IP address of the external network (loadBalancer: octavia).") },
        { "securityGroups", T_STRINGS, 0, AT(provider_openstack, security_groups), .def = "[managed]", HELP("`managed` (slipway creates one), or the names of existing groups.") },
        { "access", T_STRUCT, 0, AT(provider_openstack, access), .sub = &openstackAccess_schema, HELP("Who reaches the machines from outside, in the managed security group.") },
        { "ports", T_STRUCT, 0, AT(provider_openstack, ports), .sub = &openstackPorts_schema, HELP("The ports of the machines.") },
        { "zones", T_STRINGS, 0, AT(provider_openstack, zones), HELP("Availability zones that machines are assigned to in turn; by default the cloud chooses.") },
        { "metadata", T_PAIRS, 0, AT(provider_openstack, metadata), HELP("Metadata of every machine.") },
        { "bastion", T_STRUCT, 0, AT(provider_openstack, bastion), .sub = &openstackBastion_schema, HELP("The jump host that machines are reached through: the address of an existing one, or what slipway creates."), .example = "{flavor: m1.small}" });

SCHEMA(access, cloud_access, NULL, "Who reaches the machines from outside their network. `[]` is nobody.",
        { "ssh", T_CIDRS, 0, AT(cloud_access, ssh), .def = "0.0.0.0/0", HELP("Address ranges that may connect to sshd."), .example = "[192.0.2.0/24]" },
        { "api", T_CIDRS, 0, AT(cloud_access, api), .def = "0.0.0.0/0", HELP("Address ranges that may connect to the API.") },
        { "nodePorts", T_CIDRS, 0, AT(cloud_access, node_ports), .def = "[]", HELP("Address ranges that may connect to the ports of Services of type NodePort.") });
SCHEMA(vpc, aws_vpc, NULL, "The VPC of the machines.",
        { "cidr", T_CIDR, 0, AT(aws_vpc, cidr), .def = "10.32.0.0/16", HELP("The address range of a VPC that slipway creates, a /16 to a /20."), .example = "10.32.0.0/16" },
        { "id", T_STRING, 0, AT(aws_vpc, id), HELP("The id of an existing VPC.") },
        { "subnets", T_STRINGS, 0, AT(aws_vpc, subnets), HELP("The subnets of an existing VPC that machines are in, one per zone."), .example = "[subnet-0a1, subnet-0b2]" },
        { "publicSubnets", T_STRINGS, 0, AT(aws_vpc, public_subnets), HELP("The subnets of an existing VPC for the load balancer and for machines with publicIP, one per zone; by default `subnets`.") });
SCHEMA(ami, aws_ami, "id", "The AMI of the machines: its id, its name and owner, or a parameter of the Systems Manager that has its id.",
        { "id", T_STRING, 0, AT(aws_ami, id), HELP("The id of the AMI."), .example = "ami-0123456789abcdef0" },
        { "name", T_STRING, 0, AT(aws_ami, name), HELP("Its name, with * for any text: of several the newest. Needs `owner`."), .example = "debian-12-amd64-*" },
        { "owner", T_STRING, 0, AT(aws_ami, owner), HELP("The account that owns the AMI of this name, or self, amazon or aws-marketplace."), .example = "\"136693071363\"" },
        { "ssm", T_STRING, 0, AT(aws_ami, ssm), HELP("The public or own parameter that has its id."), .example = "/aws/service/debian/release/12/latest/amd64" });
SCHEMA(iam, aws_iam, NULL, "Instance profiles of the machines, which give them rights in AWS: `managed` (slipway creates them), or the name of an existing one. By default machines have none.",
        { "control", T_STRING, 0, AT(aws_iam, control), HELP("The instance profile of control-plane nodes."), .example = "managed" },
        { "worker", T_STRING, 0, AT(aws_iam, worker), HELP("The instance profile of all other nodes."), .example = "managed" },
        { "permissionsBoundary", T_STRING, 0, AT(aws_iam, permissions_boundary), HELP("The ARN of a policy that limits the rights of managed roles.") });
SCHEMA(imds, aws_imds, NULL, "The machines' metadata service. Version 2 of it is always required.",
        { "hopLimit", T_INT, 0, AT(aws_imds, hop_limit), .def = "1", .min = 1, .max = 64, HELP("How far its answers travel: 1 is the machine itself, 2 also its pods.") },
        { "tags", T_BOOL, 0, AT(aws_imds, tags), .def = "false", HELP("Whether the machine's tags can be read from it.") });
SCHEMA(dns, aws_dns, NULL, "DNS names in Route 53.",
        { "zone", T_HOST, F_REQUIRED, AT(aws_dns, zone), HELP("An existing hosted zone; the API gets the name NAME.ZONE."), .example = "example.net" },
        { "private", T_BOOL, 0, AT(aws_dns, private), .def = "true", HELP("Whether it is the private zone of this name, visible only inside its VPCs; slipway adds the VPC that it creates.") });
SCHEMA(cloudParts, cloud_parts, NULL, "What the cluster has of its cloud.",
        { "controller", T_BOOL, 0, AT(cloud_parts, controller), .def = "false", HELP("Whether the cluster has AWS's cloud controller manager, which makes load balancers for Services of type LoadBalancer.") },
        { "csi", T_BOOL, 0, AT(cloud_parts, csi), .def = "false", HELP("Whether the cluster has the CSI driver of EBS, which makes volumes for PersistentVolumeClaims.") });
SCHEMA(awsBastion, bastion, "address", "The jump host that machines are reached through: the address of one that exists, or the type of one that slipway creates, with an Elastic IP address in a public subnet.",
        { "address", T_STRING, 0, AT(bastion, address), HELP("An existing jump host: [user@]host[:port]."), .example = "ops@jump.example.net" },
        { "instanceType", T_STRING, 0, AT(bastion, type), HELP("The instance type of a jump host that slipway creates."), .example = "t3.micro" },
        { "image", T_STRING, 0, AT(bastion, image), HELP("The id of its AMI; by default the AMI of the first pool.") },
        { "user", T_STRING, 0, AT(bastion, user), HELP("The user to log in to it as; by default the provider's.") });
SCHEMA(aws, provider_aws, NULL, "Machines in AWS, with their network, load balancer and DNS record.",
        { "region", T_STRING, F_REQUIRED, AT(provider_aws, region), HELP("The AWS region."), .example = "eu-central-1" },
        { "profile", T_STRING, 0, AT(provider_aws, profile), HELP("The profile in ~/.aws; by default the one that the environment selects.") },
        { "zones", T_STRINGS, 0, AT(provider_aws, zones), HELP("Availability zones that machines are assigned to in turn."), .example = "[eu-central-1a, eu-central-1b]" },
        { "vpc", T_STRUCT, 0, AT(provider_aws, vpc), .sub = &vpc_schema, HELP("The VPC of the machines; by default slipway creates one.") },
        { "nat", T_ENUM, 0, AT(provider_aws, nat), .names = aws_nat_names, .def = "one", HELP("NAT gateways, through which machines without a public address reach the internet, of a VPC that slipway creates.") },
        { "image", T_STRUCT, F_REQUIRED, AT(provider_aws, image), .sub = &ami_schema, HELP("The AMI of the machines.") },
        { "user", T_STRING, 0, AT(provider_aws, user), .def = "admin", HELP("The user to log in as.") },
        { "keypair", T_STRING, 0, AT(provider_aws, keypair), HELP("The name of an existing AWS key pair, for the image's own user. slipway needs none.") },
        { "iam", T_STRUCT, 0, AT(provider_aws, iam), .sub = &iam_schema, HELP("Instance profiles of the machines.") },
        { "imds", T_STRUCT, 0, AT(provider_aws, imds), .sub = &imds_schema, HELP("The machines' metadata service.") },
        { "cloud", T_STRUCT, 0, AT(provider_aws, cloud), .sub = &cloudParts_schema, HELP("Whether the cluster has AWS's controller and CSI driver. They use the instance profile of control-plane nodes (iam.control).") },
        { "access", T_STRUCT, 0, AT(provider_aws, access), .sub = &access_schema, HELP("Who reaches the machines from outside; of managed security groups.") },
        { "userData", T_ENUM, 0, AT(provider_aws, user_data), .names = user_data_names, .def = "cloud-init", HELP("The format of the user-data that the image reads at first boot; `render --format user-data` writes it.") },
        { "loadBalancer", T_ENUM, 0, AT(provider_aws, load_balancer), .names = aws_lb_names, .def = "nlb", HELP("The load balancer in front of the API servers: `nlb-internal` is reachable only inside the VPC.") },
        { "dns", T_STRUCT, 0, AT(provider_aws, dns), .sub = &dns_schema, HELP("A DNS name for the API.") },
        { "securityGroups", T_STRINGS, 0, AT(provider_aws, security_groups), .def = "[managed]", HELP("`managed` (slipway creates them), or the ids of existing groups.") },
        { "tags", T_PAIRS, 0, AT(provider_aws, tags), HELP("Tags of every AWS resource that slipway creates.") },
        { "bastion", T_STRUCT, 0, AT(provider_aws, bastion), .sub = &awsBastion_schema, HELP("The jump host that machines are reached through: the address of an existing one, or what slipway creates."), .example = "{instanceType: t3.micro}" });

SCHEMA(terraform, provider_terraform, NULL, "Machines that Terraform or OpenTofu creates from the files of `slipway export terraform`, and that are then reached over SSH. docs/terraform.md explains it.",
        { "platform", T_ENUM, F_REQUIRED, AT(provider_terraform, platform), .names = platform_names, HELP("Where the machines are."), .example = "hetzner" },
        { "dir", T_PATH, F_REQUIRED, AT(provider_terraform, dir), HELP("The directory of the Terraform files. The addresses of the machines are read from the output `slipway` there."), .example = "./infra" },
        { "variables", T_PAIRS, F_LOOSE, AT(provider_terraform, variables), HELP("Values for the variables of the exported files; lists are written as \"a, b\". docs/terraform.md lists them for each platform."), .example = "{image: debian-12, size: cx32, zones: \"fsn1, nbg1\"}" },
        { "userData", T_ENUM, 0, AT(provider_terraform, user_data), .names = user_data_names, .def = "cloud-init", HELP("The format of the user-data that the image reads at first boot.") },
        { "loadBalancer", T_BOOL, 0, AT(provider_terraform, load_balancer), .def = "true", HELP("Whether the files have a load balancer in front of the API servers. There is none if api.vip or api.loadBalancer is set.") },
        { "user", T_STRING, 0, AT(provider_ssh, user), .def = "debian", HELP("The user to log in as, which the image has.") },
        { "key", T_PATH, 0, AT(provider_ssh, key), HELP("As provider.ssh.key."), .example = "~/.ssh/id_ed25519" },
        { "port", T_INT, 0, AT(provider_ssh, port), .def = "22", .min = 1, .max = 65535, HELP("As provider.ssh.port.") },
        { "bastion", T_STRING, 0, AT(provider_ssh, bastion), HELP("A jump host: [user@]host[:port]. By default the one of the output `slipway`."), .example = "ops@jump.example.net" },
        { "sudo", T_BOOL, 0, AT(provider_ssh, sudo), .def = "true", HELP("As provider.ssh.sudo.") },
        { "sudoPasswordFile", T_PATH, 0, AT(provider_ssh, sudo_password_file), HELP("As provider.ssh.sudoPasswordFile.") },
        { "options", T_STRINGS, 0, AT(provider_ssh, options), HELP("As provider.ssh.options.") },
        { "connections", T_INT, 0, AT(provider_ssh, connections), .min = 1, .max = 1000, HELP("As provider.ssh.connections.") });

SCHEMA(provider, provider, NULL, "Where machines come from: exactly one of these. The default is `local`.",
        { "local", T_STRUCT, F_ONE_OF, AT(provider, local), .sub = &local_schema, HELP("Machines on this computer.") },
        { "ssh", T_STRUCT, F_ONE_OF, AT(provider, ssh), .sub = &ssh_schema, HELP("Existing machines, reached over SSH.") },
        { "openstack", T_STRUCT, F_ONE_OF, AT(provider, openstack), .sub = &openstack_schema, HELP("Machines in OpenStack, which slipway creates.") },
        { "aws", T_STRUCT, F_ONE_OF, AT(provider, aws), .sub = &aws_schema, HELP("Machines in AWS, which slipway creates.") },
        { "terraform", T_STRUCT, F_ONE_OF, AT(provider, terraform), .sub = &terraform_schema, HELP("Machines that Terraform or OpenTofu creates from files that slipway writes.") });

/* ---- the API and the networks ---- */

SCHEMA(api, api, NULL, "The endpoint in front of the API servers.",
        { "vip", T_ADDRESS, 0, AT(api, vip), HELP("A virtual IP address (VIP), held by one control-plane node at a time (keepalived)."), .example = "192.0.2.10" },
        { "vipName", T_HOST, 0, AT(api, vip_name), HELP("A DNS name of the VIP. Kubeconfigs (also those on the nodes) and `kubeadm join` use it instead of the address, so clients and nodes must resolve it; certificates have both. `up` and `plan` look it up and refuse a name that does not resolve to exactly the VIP."), .example = "k8s.example.net" },
        { "vipInterface", T_STRING, 0, AT(api, vip_interface), HELP("The network interface for the VIP; by default the one with the node's address.") },
        { "virtualRouterID", T_INT, 0, AT(api, virtual_router_id), .min = 1, .max = 255, HELP("The VRRP router id; by default calculated from the last two numbers of the VIP.") },
        { "names", T_STRINGS, 0, AT(api, names), .item = T_HOST, HELP("Additional names and addresses in the API server's certificate. The first one is the endpoint if there is neither a VIP nor a load balancer."), .example = "[k8s.example.net]" },
        { "loadBalancer", T_HOSTPORT, 0, AT(api, load_balancer), HELP("An existing load balancer in front of the API servers: host or host:port."), .example = "lb.example.net:6443" },
        { "port", T_INT, 0, AT(api, port), .def = "6443", .min = 1, .max = 65535, HELP("The port of the API servers.") },
        { "localPort", T_INT, 0, AT(api, local_port), .def = "7443", .min = 1, .max = 65535, HELP("The port of the load balancer on every node's loopback address.") },
        { "localBalancer", T_BOOL, 0, AT(api, local_balancer), .def = "true", HELP("Run a load balancer (haproxy) on every node, so that no node depends on a single API server. `false`: nodes use the endpoint; `adopt` writes this.") });

SCHEMA(fabric, fabric, "name", "The pod network (CNI).",
        { "name", T_ENUM, 0, AT(fabric, kind), .names = fabric_names, .def = "flannel", HELP("The pod network. `none`: you install one yourself; `custom`: slipway applies your manifests. docs/fabrics.md compares them.") },
        { "backend", T_ENUM, 0, AT(fabric, backend), .names = backend_names, .def = "vxlan", HELP("How packets get from node to node: wrapped in UDP, by routes, or encrypted. docs/fabrics.md says which pod network has which.") },
        { "mtu", T_INT, 0, AT(fabric, mtu), .min = 576, .max = 65535, HELP("The MTU of the pod network; by default it is found out.") },
        { "interface", T_STRING, 0, AT(fabric, interface), HELP("The network interface between nodes; by default the one with the node's address.") },
        { "manifests", T_STRINGS, 0, AT(fabric, manifests), .item = T_PATH, HELP("Manifest files to apply, for `custom`.") });

SCHEMA(network, network, NULL, "Address ranges, DNS and the pod network.",
        { "pods", T_CIDRS, 0, AT(network, pods), .def = "10.244.0.0/16", HELP("The address range of pods; for dual-stack one of each family."), .example = "[10.244.0.0/16, \"fd00:10:244::/56\"]" },
        { "services", T_CIDRS, 0, AT(network, services), .def = "10.96.0.0/12", HELP("The address range of Services; for dual-stack one of each family.") },
        { "nodeMask", T_INT, 0, AT(network, node_mask), .def = "24", .min = 16, .max = 30, HELP("Prefix length of one node's IPv4 pod range.") },
        { "nodeMaskV6", T_INT, 0, AT(network, node_mask6), .def = "64", .min = 48, .max = 124, HELP("Prefix length of one node's IPv6 pod range.") },
        { "domain", T_HOST, 0, AT(network, domain), .def = "cluster.local", HELP("The cluster's DNS domain.") },
        { "dns", T_ADDRESS, 0, AT(network, dns), HELP("The address of the cluster's DNS Service; by default the tenth of `services`.") },
        { "dnsUpstream", T_STRINGS, 0, AT(network, dns_upstream), .item = T_HOSTPORT, HELP("DNS servers for names outside the cluster; by default the node's own.") },
        { "hosts", T_CIDRS, 0, AT(network, hosts), HELP("The networks of the nodes; `check` uses them to find wrong and overlapping addresses.") },
        { "fabric", T_STRUCT, 0, AT(network, fabric), .sub = &fabric_schema, HELP("The pod network."), .example = "flannel" },
        { "proxyMode", T_ENUM, 0, AT(network, proxy_mode), .names = proxy_mode_names, .def = "iptables", HELP("The mode of kube-proxy; `none`: no kube-proxy, because the pod network replaces it.") },
        { "proxyRun", T_ENUM, 0, AT(network, proxy_run), .names = proxy_run_names, .def = "service", HELP("How kube-proxy runs. `daemonset`: the cluster has its own kube-proxy DaemonSet, of which slipway changes only the image; `adopt` writes this.") },
        { "proxyImage", T_STRING, 0, AT(network, proxy_image), HELP("The image of the cluster's own kube-proxy DaemonSet; `upgrade` sets it to the new version."), .example = "registry.k8s.io/kube-proxy:v" KUBERNETES_NEWEST },
        { "manageDNS", T_BOOL, 0, AT(network, manage_dns), .def = "true", HELP("Whether slipway installs and manages CoreDNS. `false`: the cluster has its own CoreDNS, of which slipway changes only the image; `adopt` writes this.") },
        { "dnsImage", T_STRING, 0, AT(network, dns_image), HELP("The image of the cluster's own CoreDNS; `upgrade` changes it if the new Kubernetes version has a newer one."), .example = "registry.k8s.io/coredns/coredns:v1.14.6" });

/* ---- runtime and artifacts ---- */

SCHEMA(runtime, runtime, "name", "The container runtime.",
        { "name", T_ENUM, 0, AT(runtime, kind), .names = runtime_names, .def = "containerd", HELP("The container runtime.") },
        { "oci", T_ENUM, 0, AT(runtime, oci), .names = oci_names, .def = "runc", HELP("The OCI runtime that starts containers.") },
        { "dataDir", T_ABSPATH, 0, AT(runtime, data_dir), HELP("The directory for images and containers; by default the runtime's own.") },
        { "pause", T_STRING, 0, AT(runtime, pause), HELP("The pause image; by default the one of slipway's catalogue.") },
        { "managed", T_BOOL, 0, AT(runtime, managed), .def = "true", HELP("Whether slipway installs and configures the runtime and the CNI plugins. `false`: the hosts have their own, which slipway does not change; `adopt` writes this.") });

SCHEMA(artifacts, artifacts, NULL, "Where programs and images come from.",
        { "source", T_ENUM, 0, AT(artifacts, source), .names = source_names, .def = "auto", HELP("`auto` tries bundle, mirror, upstream and build in this order, and reports which one was used.") },
        { "bundle", T_PATH, 0, AT(artifacts, bundle), HELP("A bundle directory with everything for an offline installation."), .example = "./bundle" },
        { "mirror", T_URL, 0, AT(artifacts, mirror), HELP("The URL of a mirror of the upstream files."), .example = "https://mirror.example.net/k8s" },
        { "trustOnFirstUse", T_STRINGS, 0, AT(artifacts, trust), .names = program_names, HELP("Programs that may be downloaded without a checksum if neither upstream nor the mirror has one. `bundle.lock` then pins the digest of the first download."), .example = "[flanneld]" });

SCHEMA(registry, registry, NULL, "Registry mirrors that nodes pull images from.",
        { "mirror", T_STRING, 0, AT(registry, mirror), HELP("A mirror that is tried first for every registry: host[:port][/path]."), .example = "registry.example.net:5000" },
        { "mirrors", T_PAIRS, 0, AT(registry, mirrors), HELP("Mirrors for single registries, tried first."), .example = "{docker.io: mirror.example.net}" },
        { "insecure", T_BOOL, 0, AT(registry, insecure), .def = "false", HELP("Allow a mirror with plain HTTP or with an untrusted certificate.") },
        { "caFile", T_PATH, 0, AT(registry, ca_file), HELP("The certificate authority (CA) of the mirror's certificate.") },
        { "username", T_STRING, 0, AT(registry, username), HELP("The user name for the mirror.") },
        { "passwordFile", T_PATH, 0, AT(registry, password_file), HELP("A file with the password for the mirror; cluster.yaml itself holds no secrets.") });

SCHEMA(proxy, proxies, NULL, "HTTP proxies that the nodes use.",
        { "http", T_URL, 0, AT(proxies, http), HELP("The proxy for http URLs."), .example = "http://proxy.example.net:3128" },
        { "https", T_URL, 0, AT(proxies, https), HELP("The proxy for https URLs.") },
        { "noProxy", T_STRINGS, 0, AT(proxies, no_proxy), HELP("Names and ranges to reach without the proxy, in addition to nodes, pods, Services and the cluster's domain.") });

/* ---- who may do what ---- */

SCHEMA(user, user, NULL, "A person with a client certificate and a kubeconfig entry.",
        { "name", T_STRING, F_REQUIRED, AT(user, name), HELP("The user name in Kubernetes."), .example = "alice" },
        { "groups", T_STRINGS, 0, AT(user, groups), HELP("The user's groups in Kubernetes."), .example = "[platform]" },
        { "admin", T_BOOL, 0, AT(user, admin), .def = "false", HELP("Whether the user is a cluster administrator.") },
        { "lifetime", T_DURATION, 0, AT(user, lifetime), .min = 600, .max = (int64_t)100 * 365 * 86400, HELP("How long the certificate is valid; by default certificates.lifetime."), .example = "90d" });

SCHEMA(oidc, oidc, NULL, "Users of an OpenID Connect provider.",
        { "issuer", T_URL, 0, AT(oidc, issuer), HELP("The https URL of the provider."), .example = "https://dex.example.net" },
        { "clientID", T_STRING, 0, AT(oidc, client_id), .def = "kubernetes", HELP("The audience that tokens must have.") },
        { "usernameClaim", T_STRING, 0, AT(oidc, username_claim), .def = "sub", HELP("The claim with the user name; with services.dex it is `email` unless it is set.") },
        { "usernamePrefix", T_STRING, 0, AT(oidc, username_prefix), HELP("A prefix for user names; with services.dex it is `oidc:` unless it is set."), .example = "\"oidc:\"" },
        { "groupsClaim", T_STRING, 0, AT(oidc, groups_claim), .def = "groups", HELP("The claim with the list of groups.") },
        { "groupsPrefix", T_STRING, 0, AT(oidc, groups_prefix), HELP("A prefix for group names; with services.dex it is `oidc:` unless it is set.") },
        { "caFile", T_PATH, 0, AT(oidc, ca_file), HELP("The certificate authority (CA) of the provider's certificate; by default the system's CAs.") },
        { "requiredClaims", T_PAIRS, 0, AT(oidc, required_claims), HELP("Claims that a token must have, with their values.") },
        { "signingAlgs", T_STRINGS, 0, AT(oidc, signing_algs), HELP("Accepted signature algorithms; by default RS256.") },
        { "scopes", T_STRINGS, 0, AT(oidc, scopes), .def = "[email, groups, offline_access]", HELP("What `kubeconfig --oidc` asks for at a login, besides openid. `groups` puts the groups into the token at most providers, `offline_access` allows renewing it without another login. A provider may refuse scopes that it does not know."), .example = "[email, offline_access]" },
        { "clientSecretFile", T_PATH, 0, AT(oidc, client_secret_file), HELP("A file (mode 0600) with the client's secret, for providers that do not accept public clients (PKCE). Everyone who gets a kubeconfig from `kubeconfig --oidc` gets the secret with it.") });

SCHEMA(binding, binding, NULL, "Rights of a group or of a user, in all namespaces or in one.",
        { "group", T_STRING, 0, AT(binding, group), HELP("The group: one of auth.users[].groups, or of the provider, with auth.oidc.groupsPrefix."), .example = "\"oidc:platform\"" },
        { "user", T_STRING, 0, AT(binding, user), HELP("The user, instead of a group: one of auth.users, or of the provider, with auth.oidc.usernamePrefix."), .example = "alice" },
        { "role", T_STRING, F_REQUIRED, AT(binding, role), .names = binding_roles, HELP("The rights: Kubernetes' ClusterRole of this name."), .example = "view" },
        { "namespace", T_NAME, 0, AT(binding, space), HELP("Only in this namespace; it is created if it does not exist, and never removed."), .example = "team-a" });

SCHEMA(auth, auth, NULL, "Authentication of users.",
        { "users", T_STRUCTS, F_KEY, AT(auth, users), .sub = &user_schema, HELP("Users with client certificates."), .example = "[{name: alice, groups: [platform]}]" },
        { "oidc", T_STRUCT, 0, AT(auth, oidc), .sub = &oidc_schema, HELP("Users of an OpenID Connect provider.") },
        { "bindings", T_STRUCTS, 0, AT(auth, bindings), .sub = &binding_schema, HELP("Rights of groups and users. A binding that is removed from the file is removed from the cluster."), .example = "[{group: platform, role: edit, namespace: team-a}]" });

SCHEMA(ownCA, own_ca, NULL, "Your own certificate authority (CA), root or intermediate.",
        { "certificate", T_PATH, 0, AT(own_ca, certificate), HELP("The CA certificate (PEM); for an intermediate CA followed by its chain.") },
        { "key", T_PATH, 0, AT(own_ca, key), HELP("The CA's private key (PEM, not encrypted).") });

SCHEMA(certificates, certificates, NULL, "Certificate authorities, key algorithm and lifetimes.",
        { "algorithm", T_ENUM, 0, AT(certificates, algorithm), .names = algorithm_names, .def = "ecdsa-p256", HELP("The algorithm of every key.") },
        { "caLifetime", T_DURATION, 0, AT(certificates, ca_lifetime), .def = "3650d", .min = 1200, .max = (int64_t)100 * 365 * 86400, HELP("How long CA certificates are valid.") },
        { "lifetime", T_DURATION, 0, AT(certificates, lifetime), .def = "365d", .min = 180, .max = (int64_t)100 * 365 * 86400, HELP("How long all other certificates are valid.") },
        { "verifyKubelets", T_BOOL, 0, AT(certificates, verify_kubelets), .def = "true", HELP("Whether API servers verify the kubelets' serving certificates (logs, exec, metrics). `adopt` writes `false`; remove that line after the first `up`, when every node has a certificate of the cluster's CA.") },
        { "ca", T_STRUCT, 0, AT(certificates, ca), .sub = &ownCA_schema, HELP("Your own CA for the cluster.") },
        { "etcdCA", T_STRUCT, 0, AT(certificates, etcd_ca), .sub = &ownCA_schema, HELP("Your own CA for etcd.") },
        { "frontProxyCA", T_STRUCT, 0, AT(certificates, front_proxy_ca), .sub = &ownCA_schema, HELP("Your own CA for the front proxy.") });

SCHEMA(encryption, encryption, "provider", "Encryption of secrets in etcd.",
        { "provider", T_ENUM, 0, AT(encryption, provider), .names = encryption_names, HELP("The cipher; by default `secretbox`, or `none` with `hardening: kubeadm`.") },
        { "resources", T_STRINGS, 0, AT(encryption, resources), .def = "[secrets]", HELP("The resources that are encrypted.") });

SCHEMA(audit, audit, "level", "The audit log of the API servers.",
        { "level", T_ENUM, 0, AT(audit, level), .names = audit_names, HELP("How much of each request is logged; by default `metadata`, or `none` with `hardening: kubeadm`.") },
        { "policyFile", T_PATH, 0, AT(audit, policy_file), HELP("Your own audit policy; it replaces `level`.") },
        { "path", T_ABSPATH, 0, AT(audit, path), .def = "/var/log/kubernetes/audit/audit.log", HELP("The path of the log on every control-plane node.") },
        { "maxAge", T_INT, 0, AT(audit, max_age), .def = "30", .min = 0, .max = 36500, HELP("How many days a log file is kept.") },
        { "maxBackups", T_INT, 0, AT(audit, max_backups), .def = "10", .min = 0, .max = 10000, HELP("How many log files are kept.") },
        { "maxSize", T_INT, 0, AT(audit, max_size), .def = "100", .min = 1, .max = 100000, HELP("The maximum size of a log file in MiB.") });

SCHEMA(admission, admission, NULL, "Admission plugins of the API servers.",
        { "enable", T_STRINGS, 0, AT(admission, enable), HELP("Additional plugins to enable."), .example = "[AlwaysPullImages]" },
        { "disable", T_STRINGS, 0, AT(admission, disable), HELP("Plugins to disable that are enabled by default.") },
        { "podSecurity", T_ENUM, 0, AT(admission, pod_security), .names = pod_security_names, HELP("The Pod Security level that is enforced in namespaces without a label of their own. By default nothing is enforced, and violations of `baseline` cause warnings (with `hardening: kubeadm` no warnings either). kube-system is exempt.") },
        { "configFile", T_PATH, 0, AT(admission, config_file), HELP("Your own AdmissionConfiguration; it replaces the one that slipway writes.") });

/* ---- components ---- */

SCHEMA(component, component, NULL, "Settings of one component.",
        { "flags", T_PAIRS, F_LOOSE, AT(component, flags), HELP("Additional command-line flags, without leading dashes; they override slipway's."), .example = "{v: 2, profiling: false}" });

SCHEMA(components, components, NULL, "Command-line flags of the components.",
        { "apiserver", T_STRUCT, 0, AT(components, apiserver), .sub = &component_schema, HELP("Flags of kube-apiserver.") },
        { "controllerManager", T_STRUCT, 0, AT(components, controller_manager), .sub = &component_schema, HELP("Flags of kube-controller-manager.") },
        { "scheduler", T_STRUCT, 0, AT(components, scheduler), .sub = &component_schema, HELP("Flags of kube-scheduler.") },
        { "kubeProxy", T_STRUCT, 0, AT(components, kube_proxy), .sub = &component_schema, HELP("Flags of kube-proxy.") },
        { "etcd", T_STRUCT, 0, AT(components, etcd), .sub = &component_schema, HELP("Flags of etcd.") },
        { "kubelet", T_STRUCT, 0, AT(components, kubelet), .sub = &kubelet_schema, HELP("Settings of the kubelet on every node.") });

SCHEMA(snapshots, etcd_snapshots, NULL, "Snapshots that the etcd nodes take on a timer.",
        { "every", T_DURATION, 0, AT(etcd_snapshots, every), .def = "6h", .min = 60, .max = 365 * 86400, HELP("The interval between snapshots.") },
        { "keep", T_INT, 0, AT(etcd_snapshots, keep), .def = "8", .min = 0, .max = 10000, HELP("How many snapshots are kept; 0 takes none.") },
        { "copyTo", T_STRING, 0, AT(etcd_snapshots, copy_to), HELP("A directory on the nodes, or an S3 URL, to copy each snapshot to."), .example = "s3://backups/etcd?region=eu-central-1" },
        { "copyKeyFile", T_PATH, 0, AT(etcd_snapshots, copy_key_file), HELP("A file with the S3 key as one line, ID:SECRET. slipway installs it on the etcd nodes, readable by root only.") });

SCHEMA(etcd, etcd_options, NULL, "Settings of etcd.",
        { "run", T_ENUM, 0, AT(etcd_options, run), .names = etcd_run_names, .def = "service", HELP("How etcd runs. `static-pod`: as a static pod on the control-plane nodes, like kubeadm's; `adopt` writes this.") },
        { "image", T_STRING, 0, AT(etcd_options, image), HELP("The image of etcd's static pod; by default the one of slipway's catalogue."), .example = "registry.k8s.io/etcd:3.6.8-0" },
        { "dataDir", T_ABSPATH, 0, AT(etcd_options, data_dir), .def = "/var/lib/etcd", HELP("The data directory.") },
        { "quota", T_SIZE, 0, AT(etcd_options, quota), .def = "8GiB", .min = 64 << 20, .max = (int64_t)64 << 30, HELP("The maximum size of the database.") },
        { "heartbeat", T_MILLIS, 0, AT(etcd_options, heartbeat), .def = "100ms", .min = 10, .max = 10000, HELP("The interval of heartbeats between members; about their network round-trip time.") },
        { "election", T_MILLIS, 0, AT(etcd_options, election), .def = "1s", .min = 50, .max = 50000, HELP("How long followers wait for a heartbeat before they elect a new leader.") },
        { "snapshots", T_STRUCT, 0, AT(etcd_options, snapshots), .sub = &snapshots_schema, HELP("Snapshots that the etcd nodes take on a timer.") });

/* ---- the operating system ---- */

SCHEMA(updates, os_updates, "strategy", "Automatic updates of the operating system (Flatcar's update engine and locksmith).",
        { "strategy", T_ENUM, 0, AT(os_updates, strategy), .names = update_names, .def = "manual", HELP("`manual`: nodes never reboot by themselves; `reboot`: they reboot within the window.") },
        { "group", T_STRING, 0, AT(os_updates, group), .def = "stable", HELP("The release channel.") },
        { "server", T_URL, 0, AT(os_updates, server), HELP("The URL of your own update server.") },
        { "windowStart", T_STRING, 0, AT(os_updates, window_start), HELP("The start of the reboot window: [day] HH:MM."), .example = "Sun 02:00" },
        { "windowLength", T_STRING, 0, AT(os_updates, window_length), HELP("The length of the reboot window."), .example = "2h" });

SCHEMA(hostsLine, hosts_line, NULL, "A line of /etc/hosts. Other lines of that file are kept.",
        { "address", T_ADDRESS, F_REQUIRED, AT(hosts_line, address), HELP("The address."), .example = "192.0.2.5" },
        { "names", T_STRINGS, F_REQUIRED, AT(hosts_line, names), .item = T_HOST, HELP("The names of the address."), .example = "[registry.example.net, registry]" },
        { "pools", T_STRINGS, 0, AT(hosts_line, pools), .item = T_NAME, HELP("The pools whose nodes get it; by default all nodes."), .example = "[worker]" });

SCHEMA(file, node_file, NULL, "A file on the nodes. A file that existed before is restored when the entry or the node is removed.",
        { "path", T_ABSPATH, F_REQUIRED, AT(node_file, path), HELP("Where the file is. Files and directories of Kubernetes, and the system's programs, cannot be named."), .example = "/etc/motd" },
        { "content", T_TEXT, F_EMPTY, AT(node_file, content), HELP("The text of the file."), .example = "\"hello\\n\"" },
        { "contentFile", T_PATH, 0, AT(node_file, content_file), HELP("A text file on this computer with the content, instead of `content`.") },
        { "mode", T_STRING, 0, AT(node_file, mode), HELP("The mode, in quotes; by default \"0644\", and \"0600\" for a secret file."), .example = "\"0644\"" },
        { "owner", T_STRING, 0, AT(node_file, owner), HELP("USER or USER:GROUP, which must exist on the node; by default root."), .example = "www-data" },
        { "secret", T_BOOL, 0, AT(node_file, secret), .def = "false", HELP("Whether the content is a secret: it is then left out of `slipway render`, and of everything else that is printed.") },
        { "pools", T_STRINGS, 0, AT(node_file, pools), .item = T_NAME, HELP("The pools whose nodes get it; by default all nodes."), .example = "[worker]" });

SCHEMA(command, node_command, "shell", "A command that runs on the nodes as root, after the files are in place: once, and again when its text changes. A command that failed or was interrupted is run again by the next `up`.",
        { "shell", T_STRING, 0, AT(node_command, shell), HELP("A line for `sh -c`."), .example = "update-ca-certificates" },
        { "argv", T_STRINGS, 0, AT(node_command, argv), HELP("The program and its arguments, instead of `shell`."), .example = "[udevadm, trigger]" },
        { "timeout", T_DURATION, 0, AT(node_command, timeout), .def = "5m", .min = 1, .max = 86400, HELP("How long it may take; it fails after that.") },
        { "pools", T_STRINGS, 0, AT(node_command, pools), .item = T_NAME, HELP("The pools whose nodes get it; by default all nodes."), .example = "[worker]" });

SCHEMA(os, os_options, NULL, "The operating system of every node.",
        { "updates", T_STRUCT, 0, AT(os_options, updates), .sub = &updates_schema, HELP("Automatic updates of the operating system (Flatcar).") },
        { "sysctls", T_PAIRS, F_LOOSE, AT(os_options, sysctls), HELP("Additional kernel settings (sysctl)."), .example = "{vm.max_map_count: 262144}" },
        { "modules", T_STRINGS, 0, AT(os_options, modules), HELP("Additional kernel modules to load.") },
        { "packages", T_STRINGS, 0, AT(os_options, packages), HELP("Additional packages to install.") },
        { "authorizedKeys", T_STRINGS, 0, AT(os_options, authorized_keys), HELP("SSH public keys for machines on this computer and in rendered user-data. Existing hosts (provider ssh) keep their own.") },
        { "ntp", T_STRINGS, 0, AT(os_options, ntp), .item = T_HOST, HELP("NTP servers; by default the system's own.") },
        { "hosts", T_STRUCTS, 0, AT(os_options, hosts), .sub = &hostsLine_schema, HELP("Additional lines of /etc/hosts."), .example = "[{address: 192.0.2.5, names: [registry.example.net]}]" },
        { "files", T_STRUCTS, 0, AT(os_options, files), .sub = &file_schema, HELP("Additional files.") },
        { "commands", T_STRUCTS, 0, AT(os_options, commands), .sub = &command_schema, HELP("Commands to run once.") });

/* ---- policies ---- */

SCHEMA(upgrade, upgrade, NULL, "How upgrades and other changes of nodes proceed.",
        { "workersAtOnce", T_AMOUNT, 0, AT(upgrade, workers_at_once), .def = "10%", .min = 1, .max = 10000, HELP("How many workers are drained and changed at the same time: a number or a percentage."), .example = "20%" },
        { "drainTimeout", T_DURATION, 0, AT(upgrade, drain_timeout), .def = "5m", .min = 1, .max = 7 * 86400, HELP("How long a drain may wait for pods. After that the node is uncordoned and the run stops.") },
        { "healthTimeout", T_DURATION, 0, AT(upgrade, health_timeout), .def = "10m", .min = 10, .max = 7 * 86400, HELP("How long an upgraded node may take to become healthy. After that it is rolled back to its previous version.") });

SCHEMA(readiness, readiness, "type", "How many workers must be Ready for `up` to succeed. Control-plane and etcd nodes must always be Ready.",
        { "type", T_ENUM, 0, AT(readiness, type), .names = readiness_names, .def = "all", HELP("All workers, a percentage of them, or a number of them. Except with `all`, workers that cannot be reached are left out of the run, and workers that are not Ready after `wait` are named as warnings. `status` still reports both.") },
        { "value", T_INT, 0, AT(readiness, value), .def = "-1", .min = 0, .max = 20000, HELP("The percentage or number of workers that must be Ready."), .example = "90" },
        { "wait", T_DURATION, 0, AT(readiness, wait), .def = "15m", .min = 10, .max = 86400, HELP("How long `up` waits for a node to become Ready.") });

SCHEMA(heal, heal, NULL, "Automatic replacement of unhealthy machines (by the controller).",
        { "enabled", T_BOOL, 0, AT(heal, enabled), .def = "true", HELP("Whether unhealthy machines are replaced.") },
        { "unhealthyAfter", T_DURATION, 0, AT(heal, unhealthy_after), .def = "5m", .min = 10, .max = 7 * 86400, HELP("How long a node may be NotReady before it is replaced.") },
        { "startupTimeout", T_DURATION, 0, AT(heal, startup_timeout), .def = "10m", .min = 10, .max = 7 * 86400, HELP("How long a new machine may take to become Ready.") },
        { "maxAtOnce", T_AMOUNT, 0, AT(heal, max_at_once), .def = "1", .min = 1, .max = 10000, HELP("How many machines are replaced at the same time. If more are unhealthy, slipway assumes an outage and replaces none.") });

/* ---- services ---- */

SCHEMA(repository, repository, NULL, "A chart repository.",
        { "name", T_NAME, F_REQUIRED, AT(repository, name), HELP("The repository's name in chart references."), .example = "corp" },
        { "url", T_STRING, F_REQUIRED, AT(repository, url), HELP("Where the charts are: an http://, https:// or oci:// URL, or a directory with charts (a path that begins with `.`, `/` or `~`)."), .example = "https://charts.example.net" },
        { "username", T_STRING, 0, AT(repository, username), HELP("The user name for the repository.") },
        { "passwordFile", T_PATH, 0, AT(repository, password_file), HELP("A file with the password, readable only by its owner; cluster.yaml itself holds no secrets.") },
        { "caFile", T_PATH, 0, AT(repository, ca_file), HELP("The certificate authority (CA) of the repository's certificate; by default those that this computer trusts.") });

SCHEMA(chart, chart, NULL, "A chart to install.",
        { "name", T_NAME, F_REQUIRED, AT(chart, name), HELP("The release's name."), .example = "prometheus" },
        { "chart", T_STRING, F_REQUIRED, AT(chart, chart), HELP("REPOSITORY/CHART, an oci:// reference, or a path."), .example = "corp/prometheus" },
        { "version", T_STRING, 0, AT(chart, version), HELP("The chart's version; without it, the newest at the first use. `bundle.lock` pins the digest either way."), .example = "27.1.0" },
        { "namespace", T_NAME, 0, AT(chart, namespace), .def = "default", HELP("The namespace to install it in.") },
        { "createNamespace", T_BOOL, 0, AT(chart, create_namespace), .def = "true", HELP("Whether the namespace is created if it does not exist.") },
        { "values", T_ANY, 0, AT(chart, values), HELP("The chart's values; they override those of `valuesFile` and `valuesFiles`."), .example = "{server: {retention: 15d}}" },
        { "valuesFile", T_PATH, 0, AT(chart, values_file), HELP("A file with the chart's values.") },
        { "valuesFiles", T_STRINGS, 0, AT(chart, values_files), .item = T_PATH, HELP("Several files with the chart's values, instead of `valuesFile`; later files override earlier ones."), .example = "[common.yaml, production.yaml]" },
        { "after", T_STRINGS, 0, AT(chart, after), .item = T_NAME, HELP("Names of charts that are installed before this one. Charts that do not name each other are installed at the same time."), .example = "[cert-manager]" },
        { "wait", T_BOOL, 0, AT(chart, wait), .def = "true", HELP("Whether the run waits until the chart's workloads are ready.") },
        { "atomic", T_BOOL, 0, AT(chart, atomic), .def = "true", HELP("Whether a failed upgrade is rolled back and a failed installation removed. Needs `wait`.") },
        { "timeout", T_DURATION, 0, AT(chart, timeout), .def = "5m", .min = 1, .max = 86400, HELP("How long the installation may take.") });

SCHEMA(addon, addon, "name", "Software that is installed by name. The name alone is enough.",
        { "name", T_STRING, F_REQUIRED, AT(addon, name), .names = addon_choices, HELP("The addon. `slipway addons` lists them with their versions and what each needs."), .example = "metrics-server" },
        { "values", T_ANY, 0, AT(addon, values), HELP("Values of the addon. Of a chart: they override the addon's own. Of a built-in addon: those that docs/addons.md lists."), .example = "{addresses: [10.0.0.200-10.0.0.220]}" });

SCHEMA(dex, dex, "host", "An identity provider (Dex) in the cluster. auth.oidc is derived from it: issuer, CA, `usernameClaim: email` and the prefixes `oidc:`. docs/identity.md explains it.",
        { "host", T_HOST, 0, AT(dex, host), HELP("The DNS name or address at which people and API servers reach the provider. The certificate is issued for it."), .example = "dex.example.net" },
        { "port", T_INT, 0, AT(dex, port), .def = "443", .min = 1, .max = 65535, HELP("The port of the provider at that name. With `expose: nodePort` also the node port.") },
        { "expose", T_ENUM, 0, AT(dex, expose), .names = expose_names, .def = "hostPort", HELP("How the provider is reached: on `port` of every control-plane node (and of the virtual IP), on the same node port of all nodes, or through a Service of type LoadBalancer.") },
        { "connectors", T_ANY, 0, AT(dex, connectors), HELP("Dex's own list of connectors. Secrets are in files (mode 0600): `clientSecretFile`, `bindPWFile`, `keystonePasswordFile`, `passwordFile`; certificates in `rootCAFile` or `caFile`."), .example = "[{type: github, id: github, name: GitHub, config: {clientID: abc, clientSecretFile: ./github.secret}}]" },
        { "clients", T_ANY, 0, AT(dex, clients), HELP("Dex's own list of static clients, for other programs that log in here; their secrets in `secretFile`. The client of kubectl (auth.oidc.clientID) is always there."), .example = "[{id: grafana, name: Grafana, redirectURIs: [\"https://grafana.example.net/login/generic_oauth\"], secretFile: ./grafana.secret}]" },
        { "passwordsFile", T_PATH, 0, AT(dex, passwords_file), HELP("A file (mode 0600) with Dex's own list of static passwords: email, hash (bcrypt), username and userID of each person."), .example = "./passwords.yaml" },
        { "config", T_ANY, 0, AT(dex, config), HELP("More fields of Dex's own configuration, such as `expiry` or `frontend`. They override slipway's, which are `expiry.idTokens: 1h` and `oauth2.skipApprovalScreen: true`."), .example = "{expiry: {idTokens: 15m}}" });

SCHEMA(services, services, NULL, "Software to install in the cluster.",
        { "namespaces", T_STRINGS, 0, AT(services, namespaces), .item = T_NAME, HELP("Namespaces to create. One that is taken out of the file stays in the cluster.") },
        { "manifests", T_STRINGS, 0, AT(services, manifests), .item = T_PATH, HELP("Manifest files to apply. Objects that are taken out of them, or whose file is taken out, are deleted.") },
        { "addons", T_STRUCTS, F_KEY, AT(services, addons), .sub = &addon_schema, HELP("Software to install by name, in the version that belongs to this slipway. One that is taken out of the file is removed. docs/addons.md lists them."), .example = "[metrics-server, local-path]" },
        { "repositories", T_STRUCTS, F_KEY, AT(services, repositories), .sub = &repository_schema, HELP("Chart repositories.") },
        { "charts", T_STRUCTS, 0, AT(services, charts), .sub = &chart_schema, HELP("Charts to install. One that is taken out of the file is uninstalled.") },
        { "dex", T_STRUCT, 0, AT(services, dex), .sub = &dex_schema, HELP("An identity provider (Dex) for people. Taken out of the file, it is removed.") });

/* ---- the whole ---- */

static const struct field spec_fields[] = {
        { "kubernetes", T_VERSION, F_REQUIRED, AT(cluster, kubernetes), HELP("The Kubernetes version."), .example = KUBERNETES_NEWEST },
        { "env", T_STRINGS, 0, AT(cluster, env), HELP("Environment variables that this file uses: `${NAME}` and `${NAME:-default}` are replaced by their values, for these names only."), .example = "[REGISTRY_USER]" },
        { "provider", T_STRUCT, 0, AT(cluster, provider), .sub = &provider_schema, HELP("Where machines come from.") },
        { "pools", T_STRUCTS, F_REQUIRED | F_KEY, AT(cluster, pools), .sub = &pool_schema, HELP("The nodes, in groups."), .example = "[{name: control, roles: [control-plane, etcd], count: 1}]" },
        { "api", T_STRUCT, 0, AT(cluster, api), .sub = &api_schema, HELP("The endpoint in front of the API servers.") },
        { "network", T_STRUCT, 0, AT(cluster, network), .sub = &network_schema, HELP("Address ranges, DNS and the pod network.") },
        { "runtime", T_STRUCT, 0, AT(cluster, runtime), .sub = &runtime_schema, HELP("The container runtime.") },
        { "artifacts", T_STRUCT, 0, AT(cluster, artifacts), .sub = &artifacts_schema, HELP("Where programs and images come from.") },
        { "registry", T_STRUCT, 0, AT(cluster, registry), .sub = &registry_schema, HELP("Registry mirrors that nodes pull images from.") },
        { "proxy", T_STRUCT, 0, AT(cluster, proxy), .sub = &proxy_schema, HELP("HTTP proxies that the nodes use.") },
        { "auth", T_STRUCT, 0, AT(cluster, auth), .sub = &auth_schema, HELP("Authentication of users.") },
        { "certificates", T_STRUCT, 0, AT(cluster, certificates), .sub = &certificates_schema, HELP("Certificate authorities, key algorithm and lifetimes.") },
        { "hardening", T_ENUM, 0, AT(cluster, hardening), .names = hardening_names, .def = "cis", HELP("The defaults of security settings: those of the CIS Kubernetes Benchmark, or kubeadm's (`adopt` writes this). docs/hardening.md compares them.") },
        { "encryption", T_STRUCT, 0, AT(cluster, encryption), .sub = &encryption_schema, HELP("Encryption of secrets in etcd."), .example = "secretbox" },
        { "audit", T_STRUCT, 0, AT(cluster, audit), .sub = &audit_schema, HELP("The audit log of the API servers."), .example = "metadata" },
        { "admission", T_STRUCT, 0, AT(cluster, admission), .sub = &admission_schema, HELP("Admission plugins of the API servers.") },
        { "featureGates", T_GATES, 0, AT(cluster, feature_gates), HELP("Feature gates of every component."), .example = "{UserNamespacesSupport: true}" },
        { "components", T_STRUCT, 0, AT(cluster, components), .sub = &components_schema, HELP("Command-line flags of the components.") },
        { "etcd", T_STRUCT, 0, AT(cluster, etcd), .sub = &etcd_schema, HELP("Settings of etcd.") },
        { "os", T_STRUCT, 0, AT(cluster, os), .sub = &os_schema, HELP("The operating system of every node.") },
        { "upgrade", T_STRUCT, 0, AT(cluster, upgrade), .sub = &upgrade_schema, HELP("How upgrades and other changes of nodes proceed.") },
        { "readiness", T_STRUCT, 0, AT(cluster, readiness), .sub = &readiness_schema, HELP("How many workers must be Ready for `up` to succeed."), .example = "{type: percent, value: 90, wait: 10m}" },
        { "heal", T_STRUCT, 0, AT(cluster, heal), .sub = &heal_schema, HELP("Automatic replacement of unhealthy machines."), .later = LATER_HEAL },
        { "services", T_STRUCT, 0, AT(cluster, services), .sub = &services_schema, HELP("Software to install in the cluster. docs/services.md explains it.") },
};
const struct schema cluster_schema = { .name = "spec", HELP("The whole cluster."), .fields = spec_fields, .count = ARRAY_SIZE(spec_fields), .size = sizeof(struct cluster) };

/* Names from older files and other tools: removed from Kubernetes, or called differently here. */
const struct gone gone_table[] = {
        { "auth", "basic", "Kubernetes 1.19 removed basic authentication", "auth.users (certificates) or auth.oidc" },
        { "auth", "basicAuth", "Kubernetes 1.19 removed basic authentication", "auth.users (certificates) or auth.oidc" },
        { "auth", "basicAuthFile", "Kubernetes 1.19 removed basic authentication", "auth.users (certificates) or auth.oidc" },
        { "auth", "tokens", "tokens in a static file cannot be revoked without restarting the API server", "auth.users (certificates) or auth.oidc" },
        { "addon", "name=openstack-cloud-controller", "the provider's section asks for it", "provider.openstack.cloud: {controller: true}" },
        { "addon", "name=cinder-csi", "the provider's section asks for it", "provider.openstack.cloud: {csi: true}" },
        { "addon", "name=aws-cloud-controller", "the provider's section asks for it", "provider.aws.cloud: {controller: true}" },
        { "addon", "name=ebs-csi", "the provider's section asks for it", "provider.aws.cloud: {csi: true}" },
        { "user", "password", "Kubernetes 1.19 removed basic authentication", "the user without a password: slipway issues a client certificate; for passwords use auth.oidc" },
        { "runtime", "name=docker", "Kubernetes 1.24 removed dockershim", "containerd; it runs images built with docker" },
        { "runtime", "name=dockershim", "Kubernetes 1.24 removed dockershim", "containerd; it runs images built with docker" },
        { "runtime", "name=cri-dockerd", "slipway does not support dockerd", "containerd; it runs images built with docker" },
        { "runtime", "name=rkt", "rkt was archived in 2020 and Kubernetes 1.11 removed it", "containerd" },
        { "runtime", "name=rktlet", "rkt was archived in 2020", "containerd" },
        { "runtime", "name=frakti", "frakti was archived", "containerd" },
        { "runtime", "name=crio", "the name is cri-o", "cri-o" },
        { "fabric", "name=weave", "Weave Net was archived in 2024", "flannel, or custom with the manifests of a maintained pod network" },
        { "fabric", "name=contiv", "Contiv was archived", "flannel, or custom with the manifests of a maintained pod network" },
        { "fabric", "name=romana", "Romana was archived", "flannel, or custom with the manifests of a maintained pod network" },
        { "fabric", "name=kube-router", "kube-router is not built in", "calico, canal or cilium, or custom with its manifests" },
        { "fabric", "name=multus", "multus needs another pod network underneath", "another pod network here, and the addon multus (services.addons)" },
        { "fabric", "name=macvlan", "macvlan is not built in", "custom with its manifests" },
        { "fabric", "name=cloud", "the routes are created by the cloud controller manager", "none, and install the cloud controller manager with helm or kubectl" },
        { "fabric", "backend=udp", "flannel's udp backend is for kernels without VXLAN", "vxlan" },
        { "fabric", "backend=ipsec", "flannel removed its ipsec backend", "wireguard" },
        { "services", "tiller", "Helm 3 has no tiller", "helm, which needs no component in the cluster" },
        { "services", "helm", "Helm 3 needs no component in the cluster", "helm, with the kubeconfig that `slipway kubeconfig` prints" },
        { "services", "dashboard", "the Kubernetes dashboard was archived in 2026", "services.addons: [headlamp]" },
        { "updates", "strategy=etcd-lock", "locksmith's etcd-lock needs etcd's v2 API, which etcd 3.6 removed", "manual, and 'slipway reboot' when 'slipway status' names nodes that need it; or reboot with a window" },
        { "updates", "strategy=best-effort", "locksmith's best-effort falls back on etcd's v2 API, which etcd 3.6 removed", "reboot with windowStart and windowLength" },
        { "encryption", "provider=identity", "identity does not encrypt", "none" },
        { "encryption", "provider=kms", "slipway does not configure KMS plugins", "secretbox" },
        { "audit", "level=RequestResponse", "the name is requestResponse", "requestResponse" },
        { "aws", "instanceProfile", "the control plane and workers can have different ones", "iam: {control: NAME, worker: NAME}" },
        { "aws", "loadBalancer=elb", "classic load balancers are obsolete", "nlb" },
        { "aws", "loadBalancer=classic", "classic load balancers are obsolete", "nlb" },
        { "spec", "docker", "Kubernetes 1.24 removed dockershim", "runtime: containerd" },
        { "spec", "masters", "nodes are grouped in pools with roles", "pools with roles: [control-plane, etcd]" },
        { "spec", "master", "nodes are grouped in pools with roles", "pools with roles: [control-plane, etcd]" },
        { "spec", "workers", "nodes are grouped in pools with roles", "a pool without roles" },
        { "spec", "nodes", "nodes are listed in pools", "pools with hosts or a count" },
        { "spec", "version", "the name is kubernetes", "kubernetes: " KUBERNETES_NEWEST },
        { "spec", "kubernetesVersion", "the name is kubernetes", "kubernetes: " KUBERNETES_NEWEST },
        { "spec", "cni", "the name is network.fabric", "network.fabric" },
        { "spec", "fabric", "it belongs under network", "network.fabric" },
        { "spec", "cloudProvider", "in-tree cloud providers were removed in Kubernetes 1.31", "provider, with cloud: {controller: true} in provider.openstack or provider.aws" },
        { "components", "cloudController", "in-tree cloud providers were removed in Kubernetes 1.31", "cloud: {controller: true} in provider.openstack or provider.aws" },
        { "pool", "roles=master", "the role is called control-plane", "control-plane" },
        { "pool", "roles=controlplane", "the role is called control-plane", "control-plane" },
        { "pool", "roles=node", "the role is called worker", "worker" },
        { "pool", "os=windows", "Windows nodes are not supported: slipway's agent and services are Linux programs", "Linux machines; Windows workers can join with kubeadm join" },
        { "pool", "os=coreos", "CoreOS Container Linux reached its end of life in 2020", "flatcar" },
        { "pool", "os=atomic", "Fedora Atomic and CentOS Atomic reached their end of life", "fedora or flatcar" },
};
const size_t gone_count = ARRAY_SIZE(gone_table);
