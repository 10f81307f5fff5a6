/* kube-proxy as a systemd service with a configuration file. With a file it ignores most flags, so
 * those of cluster.yaml become fields. */
#include "node/context.h"
#include "node/template.h"
#include "base/quote.h"

static const struct flag_field fields[] = {
        { "bind-address", "bindAddress", FIELD_TEXT },
        { "bind-address-hard-fail", "bindAddressHardFail", FIELD_BOOL },
        { "config-sync-period", "configSyncPeriod", FIELD_TEXT },
        { "conntrack-max-per-core", "conntrack.maxPerCore", FIELD_NUMBER },
        { "conntrack-min", "conntrack.min", FIELD_NUMBER },
        { "conntrack-tcp-be-liberal", "conntrack.tcpBeLiberal", FIELD_BOOL },
        { "conntrack-tcp-timeout-close-wait", "conntrack.tcpCloseWaitTimeout", FIELD_TEXT },
        { "conntrack-tcp-timeout-established", "conntrack.tcpEstablishedTimeout", FIELD_TEXT },
        { "conntrack-udp-timeout", "conntrack.udpTimeout", FIELD_TEXT },
        { "conntrack-udp-timeout-stream", "conntrack.udpStreamTimeout", FIELD_TEXT },
        { "detect-local-mode", "detectLocalMode", FIELD_TEXT },
        { "healthz-bind-address", "healthzBindAddress", FIELD_TEXT },
        { "iptables-localhost-nodeports", "iptables.localhostNodePorts", FIELD_BOOL },
        { "iptables-masquerade-bit", "iptables.masqueradeBit", FIELD_NUMBER },
        { "iptables-min-sync-period", "iptables.minSyncPeriod", FIELD_TEXT },
        { "iptables-sync-period", "iptables.syncPeriod", FIELD_TEXT },
        { "ipvs-exclude-cidrs", "ipvs.excludeCIDRs", FIELD_LIST },
        { "ipvs-min-sync-period", "ipvs.minSyncPeriod", FIELD_TEXT },
        { "ipvs-scheduler", "ipvs.scheduler", FIELD_TEXT },
        { "ipvs-strict-arp", "ipvs.strictARP", FIELD_BOOL },
        { "ipvs-sync-period", "ipvs.syncPeriod", FIELD_TEXT },
        { "ipvs-tcp-timeout", "ipvs.tcpTimeout", FIELD_TEXT },
        { "ipvs-tcpfin-timeout", "ipvs.tcpFinTimeout", FIELD_TEXT },
        { "ipvs-udp-timeout", "ipvs.udpTimeout", FIELD_TEXT },
        { "kube-api-burst", "clientConnection.burst", FIELD_NUMBER },
        { "kube-api-content-type", "clientConnection.contentType", FIELD_TEXT },
        { "kube-api-qps", "clientConnection.qps", FIELD_NUMBER },
        { "masquerade-all", "iptables.masqueradeAll", FIELD_BOOL },
        { "metrics-bind-address", "metricsBindAddress", FIELD_TEXT },
        { "nodeport-addresses", "nodePortAddresses", FIELD_LIST },
        { "oom-score-adj", "oomScoreAdj", FIELD_NUMBER },
        { "pod-bridge-interface", "detectLocal.bridgeInterface", FIELD_TEXT },
        { "pod-interface-name-prefix", "detectLocal.interfaceNamePrefix", FIELD_TEXT },
        { "profiling", "enableProfiling", FIELD_BOOL },
        { "show-hidden-metrics-for-version", "showHiddenMetricsForVersion", FIELD_TEXT },
};

static const struct flag_field *field_of(const char *flag)
{
        return flag_field_find(fields, ARRAY_SIZE(fields), flag_name(flag));
}

json_t *kube_proxy_values(const struct context *x)
{
        static const char *const modes[] = { [PROXY_IPTABLES] = "iptables",
                [PROXY_NFTABLES] = "nftables",
                [PROXY_IPVS] = "ipvs",
                [PROXY_NONE] = "" };
        const struct pairs *user = &x->cluster->components.kube_proxy.flags;
        struct str args CLEANUP(str_release) = { 0 };
        json_t *v = json_object();
        for (size_t i = 0; i < user->n; i++) {
                if (field_of(user->v[i].key))
                        continue;
                str_add(&args, args.len ? " " : "");
                quote_word(&args, arena_printf(x->arena, "--%s=%s", flag_name(user->v[i].key),
                                          user->v[i].value));
        }
        json_put(v, "mode", modes[x->cluster->network.proxy_mode]);
        json_object_set_new(v, "ipvs", json_boolean(x->cluster->network.proxy_mode == PROXY_IPVS));
        json_put(v, "bind", x->node->ip[0].family == 6 ? "::" : "0.0.0.0");
        json_put(v, "args", str_text(&args));
        return v;
}

void kube_proxy_config(const struct context *x, struct str *out)
{
        const struct pairs *user = &x->cluster->components.kube_proxy.flags;
        struct str text CLEANUP(str_release) = { 0 };
        json_t *config = NULL;
        template_render("kube-proxy-config.yaml", x->values, &text);
        for (size_t i = 0; i < user->n; i++) {
                const struct flag_field *f = field_of(user->v[i].key);
                if (f && !config)
                        config = json_from_yaml(str_text(&text));
                if (f)
                        flag_field_set(config, f, user->v[i].value);
        }
        if (config)
                yaml_from_json(config, out);
        else
                str_addn(out, str_text(&text), text.len);
        json_decref(config);
}
