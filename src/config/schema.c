/* What cluster.yaml can say, as tables: one struct of cluster.h after the other, leaves first. A new option is a row here and a member there.
 * The macros only spell the offsets; `def` is the default as a user would write it. */
#include "config/schema.h"

#define AT(type, member) .offset = offsetof(struct type, member)
#define SCHEMA(id, type, short_field, text, ...)                                                                                                          \
        static const struct field id##_fields[] = { __VA_ARGS__ };                                                                                        \
        static const struct schema id##_schema = {                                                                                                        \
                .name = #id, .help = text, .fields = id##_fields, .count = ARRAY_SIZE(id##_fields), .size = sizeof(struct type), .shorthand = short_field \
        }

static const char *const role_names[] = { "control-plane", "etcd", "worker", NULL };
static const char *const user_data_names[] = { "cloud-init", "ignition", NULL };
static const char *const os_lb_names[] = { "octavia", "vip", "none", NULL };
static const char *const aws_lb_names[] = { "nlb", "none", NULL };
static const char *const fabric_names[] = { "flannel", "none", "custom", NULL };
static const char *const backend_names[] = { "vxlan", "host-gw", "wireguard", NULL };
static const char *const proxy_mode_names[] = { "iptables", "nftables", "ipvs", "none", NULL };
static const char *const proxy_run_names[] = { "service", "daemonset", NULL };
static const char *const etcd_run_names[] = { "service", "static-pod", NULL };
static const char *const runtime_names[] = { "containerd", "cri-o", NULL };
static const char *const oci_names[] = { "runc", "crun", NULL };
static const char *const source_names[] = { "auto", "bundle", "mirror", "upstream", "build", NULL };
static const char *const algorithm_names[] = { "ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-4096", NULL };
static const char *const encryption_names[] = { "none", "secretbox", "aescbc", "aesgcm", NULL };
static const char *const audit_names[] = { "none", "metadata", "request", "requestResponse", NULL };
static const char *const pod_security_names[] = { "privileged", "baseline", "restricted", NULL };
static const char *const update_names[] = { "manual", "reboot", NULL };
static const char *const filesystem_names[] = { "ext4", "xfs", NULL };
static const char *const os_names[] = { "debian", "ubuntu", "rhel", "centos", "rocky", "almalinux", "ol", "fedora", "opensuse-leap", "opensuse-tumbleweed",
        "sles", "flatcar", NULL };

/* clang-format off */

/* ---- pools ---- */

SCHEMA(disk, disk, NULL, "A disk the machine already has. It is formatted only if it is blank, then mounted.",
        { "device", T_ABSPATH, F_REQUIRED, AT(disk, device), .help = "The block device; a path under /dev/disk/by-id survives reordering.", .example = "/dev/sdb" },
        { "filesystem", T_STRING, 0, AT(disk, filesystem), .names = filesystem_names, .def = "ext4", .help = "What a blank device is formatted as." },
        { "mount", T_ABSPATH, F_REQUIRED, AT(disk, mount), .help = "Where it is mounted. Services that keep data there start after it.", .example = "/var/lib/etcd" },
        { "options", T_STRINGS, 0, AT(disk, options), .def = "[defaults, noatime]", .help = "Mount options." });

SCHEMA(volume, volume, NULL, "A disk that the provider makes and attaches (OpenStack, AWS).",
        { "size", T_SIZE, F_REQUIRED, AT(volume, size), .min = 1 << 30, .max = (int64_t)64 << 40, .help = "Its size.", .example = "50GiB" },
        { "type", T_STRING, 0, AT(volume, type), .help = "The provider's volume type.", .example = "gp3" },
        { "device", T_ABSPATH, 0, AT(volume, device), .help = "The device it appears as; by default the provider's usual order (/dev/vdb, /dev/nvme1n1)." },
        { "filesystem", T_STRING, 0, AT(volume, filesystem), .names = filesystem_names, .def = "ext4", .help = "What it is formatted as while blank." },
        { "mount", T_ABSPATH, F_REQUIRED, AT(volume, mount), .help = "Where it is mounted.", .example = "/var/lib/containerd" });

SCHEMA(machine, machine_shape, NULL, "The shape of machines made on this computer.",
        { "cpus", T_INT, 0, AT(machine_shape, cpus), .def = "0", .min = 0, .max = 1024, .help = "Processors; 0 does not limit." },
        { "memory", T_SIZE, 0, AT(machine_shape, memory), .min = 256 << 20, .max = (int64_t)64 << 40, .help = "Memory; not limited when absent.", .example = "2GiB" },
        { "disk", T_SIZE, 0, AT(machine_shape, disk), .min = 1 << 30, .max = (int64_t)64 << 40, .help = "Disk; not limited when absent.", .example = "20GiB" });

SCHEMA(host, host, "address", "A machine you have. Just its address will do.",
        { "name", T_HOST, 0, AT(host, name), .help = "The node's name. By default the address: a DNS name as it is, 192.0.2.11 as ip-192-0-2-11.", .example = "w1" },
        { "address", T_HOST, F_REQUIRED, AT(host, address), .help = "Where ssh goes: a name (also one of ~/.ssh/config) or an address.", .example = "192.0.2.21" },
        { "ip", T_IPS, 0, AT(host, ip), .help = "The address the cluster uses, where it differs; one of each family for dual-stack.", .example = "[10.0.0.21, \"fd00::21\"]" },
        { "user", T_STRING, 0, AT(host, user), .help = "Over provider.ssh.user." },
        { "port", T_INT, 0, AT(host, port), .min = 1, .max = 65535, .help = "Over provider.ssh.port." },
        { "labels", T_LABELS, 0, AT(host, labels), .help = "Over the pool's.", .example = "{zone: a}" },
        { "taints", T_TAINTS, 0, AT(host, taints), .help = "Beside the pool's.", .example = "[\"gpu=yes:NoSchedule\"]" });

SCHEMA(kubelet, kubelet_options, NULL, "The kubelet.",
        { "systemReserved", T_PAIRS, F_LOOSE, AT(kubelet_options, system_reserved), .help = "Kept for the system: cpu, memory, ephemeral-storage, pid.", .example = "{cpu: 100m, memory: 256Mi}" },
        { "kubeReserved", T_PAIRS, F_LOOSE, AT(kubelet_options, kube_reserved), .help = "Kept for Kubernetes' own services." },
        { "evictionHard", T_PAIRS, F_LOOSE, AT(kubelet_options, eviction_hard), .help = "When pods are evicted.", .example = "{memory.available: 200Mi}" },
        { "maxPods", T_INT, 0, AT(kubelet_options, max_pods), .min = 1, .max = 10000, .help = "Pods a node; the kubelet's own default is 110." },
        { "flags", T_PAIRS, F_LOOSE, AT(kubelet_options, flags), .help = "Further command-line flags, without dashes.", .example = "{v: 4}" },
        { "config", T_ANY, 0, AT(kubelet_options, config), .help = "Fields of KubeletConfiguration laid over what slipway writes.", .example = "{imageGCHighThresholdPercent: 80}" });

SCHEMA(pool, pool, NULL, "Like nodes: same roles, same shape.",
        { "name", T_NAME, F_REQUIRED, AT(pool, name), .help = "The pool's name; machines a provider makes are called NAME-1, NAME-2, and so on.", .example = "worker" },
        { "roles", T_ROLES, 0, AT(pool, roles), .names = role_names, .def = "[worker]", .help = "What its nodes do. etcd stands beside the control plane (both roles) or on hosts of its own." },
        { "count", T_INT, 0, AT(pool, count), .def = "-1", .min = 0, .max = 10000, .help = "How many machines the provider makes." },
        { "without", T_NUMBERS, 0, AT(pool, without), .min = 1, .max = 1000000, .help = "Numbers that no machine has: those of machines that were removed while later ones stayed. `remove-node` writes it.", .example = "[2]" },
        { "hosts", T_STRUCTS, 0, AT(pool, hosts), .sub = &host_schema, .help = "The machines you have (provider ssh).", .example = "[192.0.2.21, 192.0.2.22]" },
        { "os", T_STRING, 0, AT(pool, os), .names = os_names, .help = "The operating system assumed until the machine tells." },
        { "labels", T_LABELS, 0, AT(pool, labels), .help = "Labels of its nodes." },
        { "annotations", T_PAIRS, 0, AT(pool, annotations), .help = "Annotations of its nodes." },
        { "taints", T_TAINTS, 0, AT(pool, taints), .help = "Taints of its nodes: key=value:Effect. Control-plane nodes that are not workers get theirs by themselves." },
        { "disks", T_STRUCTS, 0, AT(pool, disks), .sub = &disk_schema, .help = "Disks to format (only when blank) and mount." },
        { "volumes", T_STRUCTS, 0, AT(pool, volumes), .sub = &volume_schema, .help = "Disks to make, format and mount." },
        { "machine", T_STRUCT, 0, AT(pool, machine), .sub = &machine_schema, .help = "The shape of machines on this computer (provider local)." },
        { "flavor", T_STRING, 0, AT(pool, flavor), .help = "OpenStack flavor.", .example = "m1.large" },
        { "instanceType", T_STRING, 0, AT(pool, instance_type), .help = "AWS instance type.", .example = "m7i.large" },
        { "image", T_STRING, 0, AT(pool, image), .help = "Over the provider's image." },
        { "zones", T_STRINGS, 0, AT(pool, zones), .help = "Availability zones its machines are spread over, in turn; by default the provider's." },
        { "floatingIP", T_BOOL, 0, AT(pool, floating_ip), .def = "false", .help = "Whether each machine gets a public address (OpenStack)." },
        { "kubelet", T_STRUCT, 0, AT(pool, kubelet), .sub = &kubelet_schema, .help = "Over components.kubelet, for this pool." });

/* ---- providers ---- */

SCHEMA(local, provider_local, NULL, "Machines on this computer, by systemd-nspawn. The default.",
        { "network", T_CIDR, 0, AT(provider_local, network), .def = "10.117.0.0/24", .help = "The machines' addresses; the first is this computer's." },
        { "release", T_STRING, 0, AT(provider_local, release), .def = "bookworm", .help = "The Debian release of the machines." });

SCHEMA(ssh, provider_ssh, NULL, "Machines you have, reached with the ssh command and your own configuration.",
        { "user", T_STRING, 0, AT(provider_ssh, user), .def = "root", .help = "Who logs in." },
        { "key", T_PATH, 0, AT(provider_ssh, key), .help = "The private key; by default what ssh would use.", .example = "~/.ssh/id_ed25519" },
        { "port", T_INT, 0, AT(provider_ssh, port), .def = "22", .min = 1, .max = 65535, .help = "The port." },
        { "bastion", T_STRING, 0, AT(provider_ssh, bastion), .help = "A jump host: [user@]host[:port].", .example = "ops@jump.example.net" },
        { "sudo", T_BOOL, 0, AT(provider_ssh, sudo), .def = "true", .help = "Whether a user that is not root becomes root with sudo." },
        { "sudoPasswordFile", T_PATH, 0, AT(provider_ssh, sudo_password_file),
                .help = "A file that holds the password which sudo asks for, and which nobody else may read. --ask-sudo-password and SLIPWAY_SUDO_PASSWORD "
                        "come before it.",
                .example = "~/.config/slipway/sudo" },
        { "options", T_STRINGS, 0, AT(provider_ssh, options), .help = "Further ssh options.", .example = "[\"ServerAliveInterval=15\"]" });

SCHEMA(openstack, provider_openstack, NULL, "Machines made in OpenStack.",
        { "cloud", T_STRING, F_REQUIRED, AT(provider_openstack, cloud), .help = "The entry of clouds.yaml that holds the credentials.", .example = "taco-openstack" },
        { "region", T_STRING, 0, AT(provider_openstack, region), .help = "Over the region of clouds.yaml." },
        { "network", T_STRING, F_REQUIRED, AT(provider_openstack, network), .help = "The network the machines are on, by name or id.", .example = "private-net" },
        { "subnet", T_STRING, 0, AT(provider_openstack, subnet), .help = "The subnet, where the network has several." },
        { "externalNetwork", T_STRING, 0, AT(provider_openstack, external_network), .help = "Where floating addresses come from.", .example = "public-net" },
        { "image", T_STRING, F_REQUIRED, AT(provider_openstack, image), .help = "The image, by name or id.", .example = "debian-12" },
        { "user", T_STRING, 0, AT(provider_openstack, user), .def = "debian", .help = "Who logs in." },
        { "keypair", T_STRING, 0, AT(provider_openstack, keypair), .help = "A key pair that OpenStack knows; by default slipway makes its own." },
        { "userData", T_ENUM, 0, AT(provider_openstack, user_data), .names = user_data_names, .def = "cloud-init", .help = "How the image takes its first configuration." },
        { "loadBalancer", T_ENUM, 0, AT(provider_openstack, load_balancer), .names = os_lb_names, .def = "octavia", .help = "What stands in front of the API servers." },
        { "securityGroups", T_STRINGS, 0, AT(provider_openstack, security_groups), .def = "[managed]", .help = "`managed`: slipway makes them; or the names of yours." },
        { "zones", T_STRINGS, 0, AT(provider_openstack, zones), .help = "Availability zones." },
        { "metadata", T_PAIRS, 0, AT(provider_openstack, metadata), .help = "Metadata of every machine." },
        { "bastion", T_STRING, 0, AT(provider_openstack, bastion), .help = "A jump host: [user@]host[:port]." });

SCHEMA(vpc, aws_vpc, NULL, "The network in AWS.",
        { "cidr", T_CIDR, 0, AT(aws_vpc, cidr), .help = "Its range, when slipway makes it.", .example = "10.32.0.0/16" },
        { "id", T_STRING, 0, AT(aws_vpc, id), .help = "An existing VPC." },
        { "subnets", T_STRINGS, 0, AT(aws_vpc, subnets), .help = "Its subnets, one a zone, when it exists." });
SCHEMA(dns, aws_dns, NULL, "Names in Route 53.",
        { "zone", T_HOST, F_REQUIRED, AT(aws_dns, zone), .help = "The zone; the API gets the name NAME.ZONE.", .example = "example.net" },
        { "private", T_BOOL, 0, AT(aws_dns, private), .def = "true", .help = "Whether the zone is known in the VPC only." });
SCHEMA(aws, provider_aws, NULL, "Machines made in AWS.",
        { "region", T_STRING, F_REQUIRED, AT(provider_aws, region), .help = "The region.", .example = "eu-central-1" },
        { "profile", T_STRING, 0, AT(provider_aws, profile), .help = "The profile of ~/.aws; by default the environment decides." },
        { "zones", T_STRINGS, 0, AT(provider_aws, zones), .help = "Availability zones, used in turn.", .example = "[eu-central-1a, eu-central-1b]" },
        { "vpc", T_STRUCT, 0, AT(provider_aws, vpc), .sub = &vpc_schema, .help = "The network." },
        { "image", T_STRING, F_REQUIRED, AT(provider_aws, image), .help = "The AMI, by id or name.", .example = "ami-debian-12" },
        { "user", T_STRING, 0, AT(provider_aws, user), .def = "admin", .help = "Who logs in." },
        { "keypair", T_STRING, 0, AT(provider_aws, keypair), .help = "A key pair that AWS knows; by default slipway makes its own." },
        { "instanceProfile", T_STRING, 0, AT(provider_aws, instance_profile), .help = "The IAM instance profile of every machine." },
        { "userData", T_ENUM, 0, AT(provider_aws, user_data), .names = user_data_names, .def = "cloud-init", .help = "How the image takes its first configuration." },
        { "loadBalancer", T_ENUM, 0, AT(provider_aws, load_balancer), .names = aws_lb_names, .def = "nlb", .help = "What stands in front of the API servers." },
        { "dns", T_STRUCT, 0, AT(provider_aws, dns), .sub = &dns_schema, .help = "Names for the API and the nodes." },
        { "securityGroups", T_STRINGS, 0, AT(provider_aws, security_groups), .def = "[managed]", .help = "`managed`: slipway makes them; or the ids of yours." },
        { "tags", T_PAIRS, 0, AT(provider_aws, tags), .help = "Tags of everything that is made." },
        { "bastion", T_STRING, 0, AT(provider_aws, bastion), .help = "A jump host: [user@]host[:port]." });

SCHEMA(provider, provider, NULL, "Where machines come from. Exactly one of these; machines on this computer when none is given.",
        { "local", T_STRUCT, F_ONE_OF, AT(provider, local), .sub = &local_schema, .help = "Machines on this computer." },
        { "ssh", T_STRUCT, F_ONE_OF, AT(provider, ssh), .sub = &ssh_schema, .help = "Machines you have." },
        { "openstack", T_STRUCT, F_ONE_OF, AT(provider, openstack), .sub = &openstack_schema, .help = "Machines made in OpenStack." },
        { "aws", T_STRUCT, F_ONE_OF, AT(provider, aws), .sub = &aws_schema, .help = "Machines made in AWS." });

/* ---- the API and the networks ---- */

SCHEMA(api, api, NULL, "The endpoint in front of the API servers.",
        { "vip", T_ADDRESS, 0, AT(api, vip), .help = "A virtual IP, held by one control-plane node at a time (keepalived).", .example = "192.0.2.10" },
        { "vipInterface", T_STRING, 0, AT(api, vip_interface), .help = "The interface that takes the virtual IP; by default the one with the node's address." },
        { "virtualRouterID", T_INT, 0, AT(api, virtual_router_id), .min = 1, .max = 255, .help = "VRRP's id; by default the sum of the last two numbers of the VIP, folded into 1–255." },
        { "names", T_STRINGS, 0, AT(api, names), .item = T_HOST, .help = "Further names and addresses in the API's certificate; the first is the endpoint where there is neither VIP nor load balancer.", .example = "[k8s.example.net]" },
        { "loadBalancer", T_HOSTPORT, 0, AT(api, load_balancer), .help = "Your own load balancer in front of the API servers: host or host:port.", .example = "lb.example.net:6443" },
        { "port", T_INT, 0, AT(api, port), .def = "6443", .min = 1, .max = 65535, .help = "The port of every API server." },
        { "localPort", T_INT, 0, AT(api, local_port), .def = "7443", .min = 1, .max = 65535, .help = "The port of the balancer on every node's loopback." },
        { "localBalancer", T_BOOL, 0, AT(api, local_balancer), .def = "true", .help = "A balancer on every node, so that none depends on one API server. `false`: nodes ask the endpoint (`adopt` keeps it so)." });

SCHEMA(fabric, fabric, "name", "The pod network.",
        { "name", T_ENUM, 0, AT(fabric, kind), .names = fabric_names, .def = "flannel", .help = "Which one. `none` leaves it to you; `custom` applies your manifests." },
        { "backend", T_ENUM, 0, AT(fabric, backend), .names = backend_names, .def = "vxlan", .help = "How flannel carries packets between nodes." },
        { "mtu", T_INT, 0, AT(fabric, mtu), .min = 576, .max = 65535, .help = "By default found out." },
        { "interface", T_STRING, 0, AT(fabric, interface), .help = "The interface between nodes; by default the one with the node's address." },
        { "manifests", T_STRINGS, 0, AT(fabric, manifests), .item = T_PATH, .help = "Files to apply, for `custom`." });

SCHEMA(network, network, NULL, "Addresses and names.",
        { "pods", T_CIDRS, 0, AT(network, pods), .def = "10.244.0.0/16", .help = "The pods' range; one of each family for dual-stack.", .example = "[10.244.0.0/16, \"fd00:10:244::/56\"]" },
        { "services", T_CIDRS, 0, AT(network, services), .def = "10.96.0.0/12", .help = "The services' range; one of each family for dual-stack." },
        { "nodeMask", T_INT, 0, AT(network, node_mask), .def = "24", .min = 16, .max = 30, .help = "Prefix length of one node's IPv4 pod range." },
        { "nodeMaskV6", T_INT, 0, AT(network, node_mask6), .def = "64", .min = 48, .max = 124, .help = "Prefix length of one node's IPv6 pod range." },
        { "domain", T_HOST, 0, AT(network, domain), .def = "cluster.local", .help = "The cluster's DNS domain." },
        { "dns", T_ADDRESS, 0, AT(network, dns), .help = "The DNS service's address; by default the tenth of services." },
        { "dnsUpstream", T_STRINGS, 0, AT(network, dns_upstream), .item = T_HOSTPORT, .help = "Where names outside the cluster are asked; by default as on the node." },
        { "hosts", T_CIDRS, 0, AT(network, hosts), .help = "The hosts' own network; checks use it." },
        { "fabric", T_STRUCT, 0, AT(network, fabric), .sub = &fabric_schema, .help = "The pod network.", .example = "flannel" },
        { "proxyMode", T_ENUM, 0, AT(network, proxy_mode), .names = proxy_mode_names, .def = "iptables", .help = "How kube-proxy does services; `none` when the fabric does them." },
        { "proxyRun", T_ENUM, 0, AT(network, proxy_run), .names = proxy_run_names, .def = "service", .help = "How kube-proxy runs. `daemonset`: as the one that is in the cluster already, which is left alone but for its image (`adopt` keeps it so)." },
        { "proxyImage", T_STRING, 0, AT(network, proxy_image), .help = "Of the kube-proxy that is in the cluster already; `upgrade` changes it to the new version.", .example = "registry.k8s.io/kube-proxy:v1.36.3" },
        { "manageDNS", T_BOOL, 0, AT(network, manage_dns), .def = "true", .help = "CoreDNS is slipway's. `false`: the cluster's own is left alone but for its image (`adopt` keeps it so)." },
        { "dnsImage", T_STRING, 0, AT(network, dns_image), .help = "Of the CoreDNS that is in the cluster already; `upgrade` changes it when the new version has a newer one.", .example = "registry.k8s.io/coredns/coredns:v1.14.6" });

/* ---- runtime and artifacts ---- */

SCHEMA(runtime, runtime, "name", "The container runtime.",
        { "name", T_ENUM, 0, AT(runtime, kind), .names = runtime_names, .def = "containerd", .help = "Which one." },
        { "oci", T_ENUM, 0, AT(runtime, oci), .names = oci_names, .def = "runc", .help = "What starts a container." },
        { "dataDir", T_ABSPATH, 0, AT(runtime, data_dir), .help = "Where images and containers are kept; by default the runtime's own place." },
        { "pause", T_STRING, 0, AT(runtime, pause), .help = "The pause image, over the catalogue's." },
        { "managed", T_BOOL, 0, AT(runtime, managed), .def = "true", .help = "The runtime and the CNI plugins are slipway's. `false`: those that the hosts have are left alone (`adopt` keeps it so)." });

SCHEMA(artifacts, artifacts, NULL, "Where programs and images come from.",
        { "source", T_ENUM, 0, AT(artifacts, source), .names = source_names, .def = "auto", .help = "`auto` tries bundle, mirror, upstream and build, in that order, and says which it took." },
        { "bundle", T_PATH, 0, AT(artifacts, bundle), .help = "A bundle directory: the whole offline install.", .example = "./bundle" },
        { "mirror", T_URL, 0, AT(artifacts, mirror), .help = "A mirror of the upstream files.", .example = "https://mirror.example.net/k8s" });

SCHEMA(registry, registry, NULL, "Where nodes pull images.",
        { "mirror", T_STRING, 0, AT(registry, mirror), .help = "Asked first, for every registry: host[:port][/path].", .example = "registry.example.net:5000" },
        { "mirrors", T_PAIRS, 0, AT(registry, mirrors), .help = "Asked first, for one registry each.", .example = "{docker.io: mirror.example.net}" },
        { "insecure", T_BOOL, 0, AT(registry, insecure), .def = "false", .help = "The mirror speaks plain HTTP or has a certificate that nobody signed." },
        { "caFile", T_PATH, 0, AT(registry, ca_file), .help = "The authority of the mirror's certificate." },
        { "username", T_STRING, 0, AT(registry, username), .help = "Who pulls from the mirror." },
        { "passwordFile", T_PATH, 0, AT(registry, password_file), .help = "A file with the password: secrets do not stand in cluster.yaml." });

SCHEMA(proxy, proxies, NULL, "HTTP proxies for the nodes.",
        { "http", T_URL, 0, AT(proxies, http), .help = "For http.", .example = "http://proxy.example.net:3128" },
        { "https", T_URL, 0, AT(proxies, https), .help = "For https." },
        { "noProxy", T_STRINGS, 0, AT(proxies, no_proxy), .help = "Reached directly, beside the nodes, pods, services and the cluster's domain, which always are." });

/* ---- who may do what ---- */

SCHEMA(user, user, NULL, "A person with a client certificate and a kubeconfig entry.",
        { "name", T_STRING, F_REQUIRED, AT(user, name), .help = "The name Kubernetes sees.", .example = "alice" },
        { "groups", T_STRINGS, 0, AT(user, groups), .help = "The groups Kubernetes sees.", .example = "[platform]" },
        { "admin", T_BOOL, 0, AT(user, admin), .def = "false", .help = "May do everything." },
        { "lifetime", T_DURATION, 0, AT(user, lifetime), .min = 600, .max = (int64_t)100 * 365 * 86400, .help = "How long the certificate is good; by default certificates.lifetime.", .example = "90d" });

SCHEMA(oidc, oidc, NULL, "People from an OpenID Connect provider.",
        { "issuer", T_URL, 0, AT(oidc, issuer), .help = "The provider's address, https.", .example = "https://dex.example.net" },
        { "clientID", T_STRING, 0, AT(oidc, client_id), .def = "kubernetes", .help = "The audience that tokens must name." },
        { "usernameClaim", T_STRING, 0, AT(oidc, username_claim), .def = "sub", .help = "Which claim is the user's name." },
        { "usernamePrefix", T_STRING, 0, AT(oidc, username_prefix), .help = "Put before it.", .example = "\"oidc:\"" },
        { "groupsClaim", T_STRING, 0, AT(oidc, groups_claim), .def = "groups", .help = "Which claim lists the groups." },
        { "groupsPrefix", T_STRING, 0, AT(oidc, groups_prefix), .help = "Put before each." },
        { "caFile", T_PATH, 0, AT(oidc, ca_file), .help = "The authority of the provider's certificate; by default those of the system." },
        { "requiredClaims", T_PAIRS, 0, AT(oidc, required_claims), .help = "Claims that must be so." },
        { "signingAlgs", T_STRINGS, 0, AT(oidc, signing_algs), .help = "Accepted signatures; RS256 by default." });

SCHEMA(auth, auth, NULL, "Who gets in.",
        { "users", T_STRUCTS, F_KEY, AT(auth, users), .sub = &user_schema, .help = "People with certificates.", .example = "[{name: alice, groups: [platform]}]" },
        { "oidc", T_STRUCT, 0, AT(auth, oidc), .sub = &oidc_schema, .help = "People from a provider." });

SCHEMA(ownCA, own_ca, NULL, "An authority of your own, root or intermediate.",
        { "certificate", T_PATH, 0, AT(own_ca, certificate), .help = "PEM; behind an intermediate, its chain." },
        { "key", T_PATH, 0, AT(own_ca, key), .help = "PEM, not encrypted." });

SCHEMA(certificates, certificates, NULL, "Keys and lifetimes.",
        { "algorithm", T_ENUM, 0, AT(certificates, algorithm), .names = algorithm_names, .def = "ecdsa-p256", .help = "Of every key." },
        { "caLifetime", T_DURATION, 0, AT(certificates, ca_lifetime), .def = "3650d", .min = 1200, .max = (int64_t)100 * 365 * 86400, .help = "Of authorities." },
        { "lifetime", T_DURATION, 0, AT(certificates, lifetime), .def = "365d", .min = 180, .max = (int64_t)100 * 365 * 86400, .help = "Of everything they sign." },
        { "ca", T_STRUCT, 0, AT(certificates, ca), .sub = &ownCA_schema, .help = "Your own cluster authority." },
        { "etcdCA", T_STRUCT, 0, AT(certificates, etcd_ca), .sub = &ownCA_schema, .help = "Your own authority for etcd." },
        { "frontProxyCA", T_STRUCT, 0, AT(certificates, front_proxy_ca), .sub = &ownCA_schema, .help = "Your own authority for the front proxy." });

SCHEMA(encryption, encryption, "provider", "Encryption of secrets in etcd.",
        { "provider", T_ENUM, 0, AT(encryption, provider), .names = encryption_names, .def = "none", .help = "The cipher." },
        { "resources", T_STRINGS, 0, AT(encryption, resources), .def = "[secrets]", .help = "What is encrypted." });

SCHEMA(audit, audit, "level", "The API's audit log.",
        { "level", T_ENUM, 0, AT(audit, level), .names = audit_names, .def = "none", .help = "How much of each request is written." },
        { "policyFile", T_PATH, 0, AT(audit, policy_file), .help = "Your own audit policy instead." },
        { "path", T_ABSPATH, 0, AT(audit, path), .def = "/var/log/kubernetes/audit/audit.log", .help = "The log, on every control-plane node." },
        { "maxAge", T_INT, 0, AT(audit, max_age), .def = "30", .min = 0, .max = 36500, .help = "Days a file is kept." },
        { "maxBackups", T_INT, 0, AT(audit, max_backups), .def = "10", .min = 0, .max = 10000, .help = "Files kept." },
        { "maxSize", T_INT, 0, AT(audit, max_size), .def = "100", .min = 1, .max = 100000, .help = "MiB a file." });

SCHEMA(admission, admission, NULL, "What the API lets in.",
        { "enable", T_STRINGS, 0, AT(admission, enable), .help = "Further plugins.", .example = "[AlwaysPullImages]" },
        { "disable", T_STRINGS, 0, AT(admission, disable), .help = "Plugins that are on by default." },
        { "podSecurity", T_ENUM, 0, AT(admission, pod_security), .names = pod_security_names, .def = "privileged", .help = "What namespaces without a label enforce. kube-system is exempt." },
        { "configFile", T_PATH, 0, AT(admission, config_file), .help = "Your own AdmissionConfiguration instead." });

/* ---- components ---- */

SCHEMA(component, component, NULL, "One component.",
        { "flags", T_PAIRS, F_LOOSE, AT(component, flags), .help = "Further command-line flags, without dashes; they win over slipway's.", .example = "{v: 2, profiling: false}" });

SCHEMA(components, components, NULL, "Flags of the components.",
        { "apiserver", T_STRUCT, 0, AT(components, apiserver), .sub = &component_schema, .help = "kube-apiserver." },
        { "controllerManager", T_STRUCT, 0, AT(components, controller_manager), .sub = &component_schema, .help = "kube-controller-manager." },
        { "scheduler", T_STRUCT, 0, AT(components, scheduler), .sub = &component_schema, .help = "kube-scheduler." },
        { "kubeProxy", T_STRUCT, 0, AT(components, kube_proxy), .sub = &component_schema, .help = "kube-proxy." },
        { "etcd", T_STRUCT, 0, AT(components, etcd), .sub = &component_schema, .help = "etcd." },
        { "kubelet", T_STRUCT, 0, AT(components, kubelet), .sub = &kubelet_schema, .help = "The kubelet, on every node." });

SCHEMA(snapshots, etcd_snapshots, NULL, "Snapshots taken on the nodes.",
        { "every", T_DURATION, 0, AT(etcd_snapshots, every), .def = "6h", .min = 60, .max = 365 * 86400, .help = "How often." },
        { "keep", T_INT, 0, AT(etcd_snapshots, keep), .def = "8", .min = 0, .max = 10000, .help = "How many; 0 takes none." },
        { "copyTo", T_STRING, 0, AT(etcd_snapshots, copy_to), .help = "A directory of the nodes or an S3 URL that gets a copy.", .example = "s3://backups/etcd?region=eu-central-1" },
        { "copyKeyFile", T_PATH, 0, AT(etcd_snapshots, copy_key_file), .help = "A file with the key for S3, one line: ID:SECRET. It is laid down on the etcd nodes, readable by root alone." });

SCHEMA(etcd, etcd_options, NULL, "The store.",
        { "run", T_ENUM, 0, AT(etcd_options, run), .names = etcd_run_names, .def = "service", .help = "How it runs. `static-pod`: beside the API server, as kubeadm does it (`adopt` keeps it so)." },
        { "image", T_STRING, 0, AT(etcd_options, image), .help = "Of the static pod, over the catalogue's.", .example = "registry.k8s.io/etcd:3.6.8-0" },
        { "dataDir", T_ABSPATH, 0, AT(etcd_options, data_dir), .def = "/var/lib/etcd", .help = "Where it keeps its data." },
        { "quota", T_SIZE, 0, AT(etcd_options, quota), .def = "8GiB", .min = 64 << 20, .max = (int64_t)64 << 30, .help = "The largest it may grow." },
        { "heartbeat", T_MILLIS, 0, AT(etcd_options, heartbeat), .def = "100ms", .min = 10, .max = 10000, .help = "Between members; about the round trip." },
        { "election", T_MILLIS, 0, AT(etcd_options, election), .def = "1s", .min = 50, .max = 50000, .help = "Silence after which a new leader is elected." },
        { "snapshots", T_STRUCT, 0, AT(etcd_options, snapshots), .sub = &snapshots_schema, .help = "Snapshots." });

/* ---- the operating system ---- */

SCHEMA(updates, os_updates, "strategy", "Updates of the operating system (Flatcar's update engine and locksmith).",
        { "strategy", T_ENUM, 0, AT(os_updates, strategy), .names = update_names, .def = "manual", .help = "`manual` never reboots by itself; `reboot` does, in the window." },
        { "group", T_STRING, 0, AT(os_updates, group), .def = "stable", .help = "The release channel." },
        { "server", T_URL, 0, AT(os_updates, server), .help = "Your own update server." },
        { "windowStart", T_STRING, 0, AT(os_updates, window_start), .help = "When reboots may begin: [day] HH:MM.", .example = "Sun 02:00" },
        { "windowLength", T_STRING, 0, AT(os_updates, window_length), .help = "For how long.", .example = "2h" });

SCHEMA(os, os_options, NULL, "The operating system of every node.",
        { "updates", T_STRUCT, 0, AT(os_options, updates), .sub = &updates_schema, .help = "Its updates." },
        { "sysctls", T_PAIRS, F_LOOSE, AT(os_options, sysctls), .help = "Further kernel settings.", .example = "{vm.max_map_count: 262144}" },
        { "modules", T_STRINGS, 0, AT(os_options, modules), .help = "Further kernel modules." },
        { "packages", T_STRINGS, 0, AT(os_options, packages), .help = "Further packages." },
        { "authorizedKeys", T_STRINGS, 0, AT(os_options, authorized_keys), .help = "SSH keys put on machines that a provider makes." },
        { "ntp", T_STRINGS, 0, AT(os_options, ntp), .item = T_HOST, .help = "Time servers; by default the system's." });

/* ---- policies ---- */

SCHEMA(upgrade, upgrade, NULL, "How upgrades go.",
        { "workersAtOnce", T_AMOUNT, 0, AT(upgrade, workers_at_once), .def = "10%", .min = 1, .max = 10000, .help = "How many workers are drained at once: a number or a share.", .example = "20%" },
        { "drainTimeout", T_DURATION, 0, AT(upgrade, drain_timeout), .def = "5m", .min = 1, .max = 7 * 86400, .help = "How long a drain may wait for pods before it stops." },
        { "healthTimeout", T_DURATION, 0, AT(upgrade, health_timeout), .def = "10m", .min = 10, .max = 7 * 86400, .help = "How long an upgraded node may take to be well before it goes back to the version it had." });

SCHEMA(heal, heal, NULL, "When machines are replaced (by the controller).",
        { "enabled", T_BOOL, 0, AT(heal, enabled), .def = "true", .help = "Whether they are." },
        { "unhealthyAfter", T_DURATION, 0, AT(heal, unhealthy_after), .def = "5m", .min = 10, .max = 7 * 86400, .help = "How long a node may be not Ready." },
        { "startupTimeout", T_DURATION, 0, AT(heal, startup_timeout), .def = "10m", .min = 10, .max = 7 * 86400, .help = "How long a new machine may take." },
        { "maxAtOnce", T_AMOUNT, 0, AT(heal, max_at_once), .def = "1", .min = 1, .max = 10000, .help = "How many at once; more unhealthy than that looks like an outage, and nothing is replaced." });

/* ---- services ---- */

SCHEMA(repository, repository, NULL, "A chart repository.",
        { "name", T_NAME, F_REQUIRED, AT(repository, name), .help = "Its name in chart references.", .example = "corp" },
        { "url", T_URL, F_REQUIRED, AT(repository, url), .help = "Its address.", .example = "https://charts.example.net" });

SCHEMA(chart, chart, NULL, "A chart to install.",
        { "name", T_NAME, F_REQUIRED, AT(chart, name), .help = "The release's name.", .example = "prometheus" },
        { "chart", T_STRING, F_REQUIRED, AT(chart, chart), .help = "REPOSITORY/CHART, an oci:// reference, or a path.", .example = "corp/prometheus" },
        { "version", T_STRING, 0, AT(chart, version), .help = "Its version; pin it.", .example = "27.1.0" },
        { "namespace", T_NAME, 0, AT(chart, namespace), .def = "default", .help = "Where it goes." },
        { "values", T_ANY, 0, AT(chart, values), .help = "Its values.", .example = "{server: {retention: 15d}}" },
        { "valuesFile", T_PATH, 0, AT(chart, values_file), .help = "A file of values." },
        { "timeout", T_DURATION, 0, AT(chart, timeout), .def = "5m", .min = 1, .max = 86400, .help = "How long it may take." });

SCHEMA(dex, dex, "host", "An identity provider in the cluster; auth.oidc follows from it.",
        { "host", T_HOST, 0, AT(dex, host), .help = "The name people reach it by.", .example = "dex.example.net" },
        { "port", T_INT, 0, AT(dex, port), .def = "443", .min = 1, .max = 65535, .help = "The port people reach it by." },
        { "connectors", T_ANY, 0, AT(dex, connectors), .help = "Dex's own list of connectors." });

SCHEMA(services, services, NULL, "What is installed on top.",
        { "namespaces", T_STRINGS, 0, AT(services, namespaces), .item = T_NAME, .help = "Namespaces to make." },
        { "manifests", T_STRINGS, 0, AT(services, manifests), .item = T_PATH, .help = "Files to apply." },
        { "repositories", T_STRUCTS, F_KEY, AT(services, repositories), .sub = &repository_schema, .help = "Chart repositories." },
        { "charts", T_STRUCTS, 0, AT(services, charts), .sub = &chart_schema, .help = "Charts, installed in order." },
        { "dex", T_STRUCT, 0, AT(services, dex), .sub = &dex_schema, .help = "An identity provider." });

/* ---- the whole ---- */

static const struct field spec_fields[] = {
        { "kubernetes", T_VERSION, F_REQUIRED, AT(cluster, kubernetes), .help = "The Kubernetes version.", .example = "1.36.3" },
        { "provider", T_STRUCT, 0, AT(cluster, provider), .sub = &provider_schema, .help = "Where machines come from." },
        { "pools", T_STRUCTS, F_REQUIRED | F_KEY, AT(cluster, pools), .sub = &pool_schema, .help = "The nodes.", .example = "[{name: control, roles: [control-plane, etcd], count: 1}]" },
        { "api", T_STRUCT, 0, AT(cluster, api), .sub = &api_schema, .help = "The endpoint in front of the API servers." },
        { "network", T_STRUCT, 0, AT(cluster, network), .sub = &network_schema, .help = "Addresses and names." },
        { "runtime", T_STRUCT, 0, AT(cluster, runtime), .sub = &runtime_schema, .help = "The container runtime." },
        { "artifacts", T_STRUCT, 0, AT(cluster, artifacts), .sub = &artifacts_schema, .help = "Where programs and images come from." },
        { "registry", T_STRUCT, 0, AT(cluster, registry), .sub = &registry_schema, .help = "Where nodes pull images." },
        { "proxy", T_STRUCT, 0, AT(cluster, proxy), .sub = &proxy_schema, .help = "HTTP proxies for the nodes." },
        { "auth", T_STRUCT, 0, AT(cluster, auth), .sub = &auth_schema, .help = "Who gets in." },
        { "certificates", T_STRUCT, 0, AT(cluster, certificates), .sub = &certificates_schema, .help = "Keys and lifetimes." },
        { "encryption", T_STRUCT, 0, AT(cluster, encryption), .sub = &encryption_schema, .help = "Encryption of secrets in etcd.", .example = "secretbox" },
        { "audit", T_STRUCT, 0, AT(cluster, audit), .sub = &audit_schema, .help = "The API's audit log.", .example = "metadata" },
        { "admission", T_STRUCT, 0, AT(cluster, admission), .sub = &admission_schema, .help = "What the API lets in." },
        { "featureGates", T_GATES, 0, AT(cluster, feature_gates), .help = "Feature gates of every component.", .example = "{UserNamespacesSupport: true}" },
        { "components", T_STRUCT, 0, AT(cluster, components), .sub = &components_schema, .help = "Flags of the components." },
        { "etcd", T_STRUCT, 0, AT(cluster, etcd), .sub = &etcd_schema, .help = "The store." },
        { "os", T_STRUCT, 0, AT(cluster, os), .sub = &os_schema, .help = "The operating system of every node." },
        { "upgrade", T_STRUCT, 0, AT(cluster, upgrade), .sub = &upgrade_schema, .help = "How upgrades go." },
        { "heal", T_STRUCT, 0, AT(cluster, heal), .sub = &heal_schema, .help = "When machines are replaced." },
        { "services", T_STRUCT, 0, AT(cluster, services), .sub = &services_schema, .help = "What is installed on top." },
};
const struct schema cluster_schema = { .name = "spec", .help = "The cluster.", .fields = spec_fields, .count = ARRAY_SIZE(spec_fields), .size = sizeof(struct cluster) };

/* What the predecessors had and Kubernetes has no more, or never had under this name. */
const struct gone gone_table[] = {
        { "auth", "basic", "Kubernetes 1.19 removed basic authentication", "auth.users (certificates) or auth.oidc" },
        { "auth", "basicAuth", "Kubernetes 1.19 removed basic authentication", "auth.users (certificates) or auth.oidc" },
        { "auth", "basicAuthFile", "Kubernetes 1.19 removed basic authentication", "auth.users (certificates) or auth.oidc" },
        { "auth", "tokens", "static token files cannot be revoked without restarting the API server", "auth.users (certificates) or auth.oidc" },
        { "user", "password", "Kubernetes 1.19 removed basic authentication", "the user without it: a client certificate is made; for passwords there is auth.oidc" },
        { "runtime", "name=docker", "Kubernetes 1.24 removed dockershim", "containerd; images built with docker run on it as they are" },
        { "runtime", "name=dockershim", "Kubernetes 1.24 removed dockershim", "containerd; images built with docker run on it as they are" },
        { "runtime", "name=cri-dockerd", "slipway does not run dockerd", "containerd; images built with docker run on it as they are" },
        { "runtime", "name=rkt", "rkt was archived in 2020 and Kubernetes 1.11 removed it", "containerd" },
        { "runtime", "name=rktlet", "rkt was archived in 2020", "containerd" },
        { "runtime", "name=frakti", "frakti was archived", "containerd" },
        { "runtime", "name=crio", "its name is cri-o", "cri-o" },
        { "fabric", "name=weave", "Weave Net was archived in 2024", "flannel, or custom with the manifests of a living fabric" },
        { "fabric", "name=contiv", "Contiv was archived", "flannel, or custom with the manifests of a living fabric" },
        { "fabric", "name=romana", "Romana was archived", "flannel, or custom with the manifests of a living fabric" },
        { "fabric", "name=canal", "slipway does not carry canal", "flannel, or custom with calico's canal.yaml under manifests" },
        { "fabric", "name=calico", "slipway does not carry calico", "custom with calico.yaml under manifests" },
        { "fabric", "name=cilium", "slipway does not carry cilium", "custom with cilium's manifests, and proxyMode: none if it replaces kube-proxy" },
        { "fabric", "name=kube-router", "slipway does not carry kube-router", "custom with its manifests" },
        { "fabric", "name=kube-ovn", "slipway does not carry kube-ovn", "custom with its manifests" },
        { "fabric", "name=multus", "multus stands on top of a fabric", "a fabric here, and multus under services.manifests" },
        { "fabric", "name=macvlan", "slipway does not carry macvlan as a fabric", "custom with its manifests" },
        { "fabric", "name=cloud", "the cloud's routes are made by its cloud controller", "none, and its cloud controller manager under services" },
        { "fabric", "backend=udp", "flannel's udp backend was for kernels without VXLAN", "vxlan" },
        { "fabric", "backend=ipsec", "flannel removed its ipsec backend", "wireguard" },
        { "services", "tiller", "Helm 3 has no tiller", "services.charts; slipway runs helm itself" },
        { "services", "helm", "Helm 3 has nothing to install in the cluster", "services.charts" },
        { "services", "dashboard", "the Kubernetes dashboard was archived in 2026", "a chart of your choice under services.charts" },
        { "updates", "strategy=etcd-lock", "locksmith's etcd-lock needs etcd's v2 API, which etcd 3.6 removed", "manual with a reboot coordinator such as kured under services.charts, or reboot with a window" },
        { "updates", "strategy=best-effort", "locksmith's best-effort falls back on etcd's v2 API, which etcd 3.6 removed", "reboot with windowStart and windowLength" },
        { "encryption", "provider=identity", "identity is no encryption", "none" },
        { "encryption", "provider=kms", "slipway does not configure KMS plugins", "secretbox" },
        { "audit", "level=RequestResponse", "its name is requestResponse", "requestResponse" },
        { "aws", "loadBalancer=elb", "classic load balancers are the past", "nlb" },
        { "aws", "loadBalancer=classic", "classic load balancers are the past", "nlb" },
        { "spec", "docker", "Kubernetes 1.24 removed dockershim", "runtime: containerd" },
        { "spec", "masters", "there are pools with roles", "pools with roles: [control-plane, etcd]" },
        { "spec", "master", "there are pools with roles", "pools with roles: [control-plane, etcd]" },
        { "spec", "workers", "there are pools with roles", "a pool without roles" },
        { "spec", "nodes", "there are pools with hosts", "pools with hosts or a count" },
        { "spec", "version", "its name is kubernetes", "kubernetes: 1.36.3" },
        { "spec", "kubernetesVersion", "its name is kubernetes", "kubernetes: 1.36.3" },
        { "spec", "cni", "its name is network.fabric", "network.fabric" },
        { "spec", "fabric", "it stands under network", "network.fabric" },
        { "spec", "cloudProvider", "in-tree cloud providers were removed in Kubernetes 1.31", "provider, and the cloud's controller manager under services" },
        { "components", "cloudController", "in-tree cloud providers were removed in Kubernetes 1.31", "the cloud's controller manager under services.charts" },
        { "pool", "roles=master", "the word is control-plane", "control-plane" },
        { "pool", "roles=controlplane", "the word is control-plane", "control-plane" },
        { "pool", "roles=node", "the word is worker", "worker" },
        { "pool", "os=windows", "Windows nodes are not supported: slipway's agent and services are Linux programs", "Linux machines; join Windows workers with kubeadm join" },
        { "pool", "os=coreos", "CoreOS Container Linux ended in 2020", "flatcar" },
        { "pool", "os=atomic", "Fedora and CentOS Atomic ended", "fedora or flatcar" },
};
const size_t gone_count = ARRAY_SIZE(gone_table);
