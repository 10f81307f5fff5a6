/* What Kubespray installed on top: addons.yml, and the DNS cache. */
#include "config/kubespray/kubespray_impl.h"

static const struct {
        const char *var;
        const char *addon; /* of services.addons; NULL: it has no counterpart */
        const char *what;  /* a note; NULL: the addon is the same */
} spray_addon_table[] = {
        { "argocd_enabled", NULL, "add Argo CD's chart to services.charts" },
        { "aws_ebs_csi_enabled", NULL, "add the chart aws-ebs-csi-driver to services.charts" },
        { "azure_csi_enabled", NULL, "add the chart azuredisk-csi-driver to services.charts" },
        { "cert_manager_enabled", "cert-manager", NULL },
        { "cephfs_provisioner_enabled", NULL,
                "its successor is the addon ceph-csi-cephfs: add it to services.addons, with the Ceph cluster's monitors in values" },
        { "cinder_csi_enabled", NULL, "add the chart openstack-cinder-csi to services.charts" },
        { "csi_snapshot_controller_enabled", NULL,
                "add upstream's manifests of the snapshot controller to services.manifests" },
        { "dashboard_enabled", "headlamp",
                "the dashboard was archived in 2026; Headlamp takes its place" },
        { "enable_nodelocaldns", "nodelocaldns", NULL },
        { "gcp_pd_csi_enabled", NULL, "add its driver's manifests to services.manifests" },
        { "gateway_api_enabled", NULL,
                "the addons envoy-gateway (services.addons) and others bring its definitions" },
        { "helm_enabled", NULL, "helm runs on your own computer, and tiller was removed" },
        { "ingress_alb_enabled", NULL,
                "add the chart aws-load-balancer-controller to services.charts" },
        { "ingress_nginx_enabled", "ingress",
                "ingress-nginx was retired in 2026; Traefik takes its place: give Ingresses the class traefik" },
        { "krew_enabled", NULL, "it belongs on your own computer" },
        { "kube_vip_services_enabled", NULL,
                "add the addon kube-vip (services.addons) with values.addresses, from which Services get theirs" },
        { "local_path_provisioner_enabled", "local-path", NULL },
        { "local_volume_provisioner_enabled", NULL, "add its chart to services.charts" },
        { "metallb_enabled", "metallb", NULL },
        { "metrics_server_enabled", "metrics-server", NULL },
        { "node_feature_discovery_enabled", "node-feature-discovery", NULL },
        { "persistent_volumes_enabled", NULL,
                "add the chart of your CSI driver to services.charts" },
        { "prometheus_operator_crds_enabled", NULL,
                "the addon kube-prometheus (services.addons) brings them with its operator" },
        { "rbd_provisioner_enabled", NULL,
                "its successor is the addon ceph-csi-rbd: add it to services.addons, with the Ceph cluster's monitors in values" },
        { "registry_enabled", "registry", NULL },
        { "scheduler_plugins_enabled", NULL,
                "add the chart of scheduler-plugins to services.charts" },
        { "upcloud_csi_enabled", NULL, "add its driver's manifests to services.manifests" },
        { "vsphere_csi_enabled", NULL, "add its driver's manifests to services.manifests" },
};

/* Values of addons that Kubespray has variables for. */
static const struct {
        const char *addon, *var, *value;
} spray_addon_values[] = {
        { "nodelocaldns", "nodelocaldns_ip", "address" },
        { "registry", "registry_disk_size", "storage" },
};

/* "registry", or "{name: registry, values: {storage: 20Gi}}". */
static void spray_addon(struct spray *k, const char *addon, struct str *out)
{
        struct str values CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(spray_addon_values); i++) {
                const char *v = streq(spray_addon_values[i].addon, addon)
                                        ? spray_text(k, spray_addon_values[i].var)
                                        : NULL;
                if (!v)
                        continue;
                str_addf(&values, "%s%s: ", values.len ? ", " : "", spray_addon_values[i].value);
                spray_value(&values, v);
        }
        str_add(out, out->len ? ", " : "");
        if (values.len)
                str_addf(out, "{name: %s, values: {%s}}", addon, str_text(&values));
        else
                str_add(out, addon);
}

/* Kubespray's has its own program, whose module and measure differ. */
static void spray_scaler(struct spray *k, struct str *names)
{
        if (!spray_true(k, "enable_dns_autoscaler"))
                return;
        if (spray_true(k, "metrics_server_enabled"))
                spray_addon(k, "dns-autoscaler", names);
        else
                spray_note(k,
                        "enable_dns_autoscaler was on: the addon dns-autoscaler follows the load of CoreDNS, and needs metrics-server: add both to services.addons");
}

/* Only slipway's own fabrics have it; calico is Kubespray's default. */
static void spray_multus(struct spray *k, struct str *names)
{
        const char *fabric = spray_text(k, "kube_network_plugin");
        if (!spray_true(k, "kube_network_plugin_multus"))
                return;
        if (!fabric || streq(fabric, "calico") || streq(fabric, "canal") ||
                streq(fabric, "flannel"))
                spray_addon(k, "multus", names);
        else
                spray_note(k,
                        "kube_network_plugin_multus was on: the addon multus runs over flannel, canal and calico; over %s, apply upstream's manifest",
                        fabric);
}

/* They are objects of MetalLB's own kinds, which exist once it runs. */
static void spray_pools_of_metallb(struct spray *k)
{
        struct str all CLEANUP(str_release) = { 0 };
        struct strings old = spray_list(k, "metallb_ip_range");
        const struct tree *pools = tree_get(spray_var(k, "metallb_config"), "address_pools");
        if (!spray_true(k, "metallb_enabled"))
                return;
        for (size_t i = 0; i < old.n; i++)
                str_addf(&all, "%s%s", all.len ? ", " : "", old.v[i]);
        tree_each (pool, pools)
                tree_each (range, tree_get(pool, "ip_range"))
                        if (range->kind == TREE_SCALAR)
                                str_addf(&all, "%s%s", all.len ? ", " : "", range->text);
        spray_note(k,
                "metallb_enabled was on: its address ranges%s%s%s are not converted: create an IPAddressPool and an L2Advertisement once it runs",
                all.len ? " (" : "", str_text(&all), all.len ? ")" : "");
}

static void spray_named_addons(struct spray *k)
{
        struct str names CLEANUP(str_release) = { 0 };
        struct spray_section section;
        spray_begin(k, &section, "services");
        for (size_t i = 0; i < ARRAY_SIZE(spray_addon_table); i++) {
                if (!spray_true(k, spray_addon_table[i].var))
                        continue;
                if (spray_addon_table[i].addon)
                        spray_addon(k, spray_addon_table[i].addon, &names);
                if (spray_addon_table[i].what)
                        spray_note(k, "%s was on: %s", spray_addon_table[i].var,
                                spray_addon_table[i].what);
        }
        spray_pools_of_metallb(k);
        spray_multus(k, &names);
        spray_scaler(k, &names);
        if (names.len)
                str_addf(k->out, "%*saddons: [%s]\n", k->indent, "", str_text(&names));
        spray_end(k, &section);
}

void spray_addons(struct spray *k)
{
        const char *cloud = spray_text(k, "cloud_provider"),
                   *external = spray_text(k, "external_cloud_provider");
        spray_named_addons(k);
        if (cloud && !streq(cloud, "none"))
                spray_note(k,
                        "cloud_provider was %s: in-tree cloud providers were removed in Kubernetes 1.31; install its cloud controller manager with helm or "
                        "kubectl",
                        external && streq(cloud, "external") ? external : cloud);
}
