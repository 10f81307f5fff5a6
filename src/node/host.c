/* Values that never change on a host: no address, no version, no peer. */
#include "node/context.h"

static json_t *runtime_values(const struct context *x)
{
        const struct runtime *r = &x->cluster->runtime;
        bool crio = r->kind == RUNTIME_CRIO;
        const char *oci = r->oci == OCI_CRUN ? "crun" : "runc";
        json_t *v = json_object();
        json_put(v, "unit", crio ? "crio.service" : "containerd.service");
        json_put(v, "dir",
                r->data_dir ? r->data_dir
                : crio      ? "/var/lib/containers/storage"
                            : "/var/lib/containerd");
        json_put(v, "socket",
                crio ? "unix:///var/run/crio/crio.sock"
                     : "unix:///var/run/containerd/containerd.sock");
        json_put(v, "oci", oci);
        json_put(v, "oci_path", arena_printf(x->arena, "%s/%s", x->os->bin_dir, oci));
        json_put(v, "oci_root", arena_printf(x->arena, "/run/%s", oci));
        json_put(v, "conmon", arena_printf(x->arena, "%s/conmon", x->os->bin_dir));
        return v;
}

/* A URL for files without quoting: other characters are percent-encoded. */
static const char *clean_url(struct arena *a, const char *url)
{
        struct str s CLEANUP(str_wipe_release) = { 0 };
        for (; url && *url; url++) {
                if ((unsigned char)*url > 0x20 && (unsigned char)*url < 0x7f &&
                        !strchr("\"'\\<>^`{|}$;", *url))
                        str_addc(&s, *url);
                else
                        str_addf(&s, "%%%02X", (unsigned char)*url);
        }
        return arena_strdup(a, str_text(&s));
}

static json_t *proxy_values(const struct context *x)
{
        const struct proxies *p = &x->cluster->proxy;
        json_t *v = json_object();
        if (!(x->with & WITH_HTTP_PROXY))
                return v;
        json_put(v, "http", clean_url(x->arena, p->http));
        json_put(v, "https", clean_url(x->arena, p->https));
        json_put(v, "any", clean_url(x->arena, p->http ? p->http : p->https));
        return v;
}

static void sysctl_values(struct context *x)
{
        static const struct pair base[] = {
                { "net.ipv4.ip_forward", "1" },
                { "net.bridge.bridge-nf-call-iptables", "1" },
                { "net.bridge.bridge-nf-call-ip6tables", "1" },
                { "vm.overcommit_memory", "1" },
                { "kernel.panic", "10" },
                { "kernel.panic_on_oops", "1" },
                { "fs.inotify.max_user_instances", "8192" },
                { "fs.inotify.max_user_watches", "524288" },
        };
        static const struct pair v6[] = { { "net.ipv6.conf.all.forwarding", "1" } };
        struct pairs all = { 0 };
        if (x->with & ON_KUBE) {
                struct pairs first = { ARRAY_SIZE(base), (struct pair *)base },
                             second = { any_ipv6(x->cluster) ? ARRAY_SIZE(v6) : 0,
                                     (struct pair *)v6 };
                all = pairs_over(x->arena, &first, &second);
        }
        struct pairs hard = hardening_sysctls(x);
        all = pairs_over(x->arena, &all, &hard);
        all = pairs_over(x->arena, &all, &x->cluster->os.sysctls);
        x->with |= all.n ? WITH_SYSCTLS : 0;
        json_object_set_new(x->host, "sysctls", json_pairs(&all));
}

static void module_values(struct context *x)
{
        static const char *const kube[] = { "overlay", "br_netfilter" };
        static const char *const ipvs[] = { "ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh",
                "nf_conntrack" };
        json_t *list = json_array();
        for (size_t i = 0; x->with & ON_KUBE && i < ARRAY_SIZE(kube); i++)
                json_add(list, kube[i]);
        for (size_t i = 0; x->with & ON_KUBE && x->cluster->network.proxy_mode == PROXY_IPVS &&
                           i < ARRAY_SIZE(ipvs);
                i++)
                json_add(list, ipvs[i]);
        for (size_t i = 0; i < x->cluster->os.modules.n; i++)
                json_add(list, x->cluster->os.modules.v[i]);
        x->with |= json_array_size(list) ? WITH_MODULES : 0;
        json_object_set_new(x->host, "modules", list);
}

static json_t *update_values(const struct context *x)
{
        const struct os_updates *u = &x->cluster->os.updates;
        json_t *v = json_object();
        json_put(v, "group", u->group);
        json_put(v, "server", u->server);
        json_put(v, "strategy", u->strategy == UPDATE_REBOOT ? "reboot" : "off");
        json_put(v, "window_start", u->strategy == UPDATE_REBOOT ? u->window_start : NULL);
        json_put(v, "window_length", u->window_length ? u->window_length : "1h");
        return v;
}

void host_values(struct context *x)
{
        json_t *v = x->host = json_object();
        json_put(v, "bin", x->os->bin_dir);
        json_put(v, "kubelet_env", x->os->kubelet_env);
        json_put(v, "etcd_dir", x->cluster->etcd.data_dir);
        json_object_set_new(v, "etcd_user", json_boolean(etcd_own_user(x)));
        json_object_set_new(v, "bridge", json_boolean(x->with & WITH_BRIDGE));
        json_object_set_new(v, "multus", json_boolean(x->with & WITH_MULTUS));
        json_object_set_new(v, "calico_ipam", json_boolean(x->with & WITH_CALICO_IPAM));
        json_object_set_new(v, "nice", json_boolean(x->facts->sys_nice));
        json_object_set_new(v, "oom", json_boolean(x->facts->sys_resource));
        json_object_set_new(v, "selinux", json_boolean(x->os->selinux));
        json_object_set_new(v, "runtime", runtime_values(x));
        json_object_set_new(v, "proxy", proxy_values(x));
        /* The environment of pods is readable in the API, so it gets no proxy with a password. */
        json_object_set_new(
                v, "pod_proxy", x->with & WITH_SECRET_PROXY ? json_object() : proxy_values(x));
        json_object_set_new(v, "updates", update_values(x));
        json_t *ntp = json_array();
        for (size_t i = 0; i < x->cluster->os.ntp.n; i++)
                json_add(ntp, x->cluster->os.ntp.v[i]);
        json_object_set_new(v, "ntp", ntp);
        json_put(v, "ntp_line", strings_join(x->arena, &x->cluster->os.ntp, " "));
        sysctl_values(x);
        module_values(x);
}
