/* From systemd's journal (units), from the kubelet's files (static pods), or of the first boot. */
#include "cluster/status/logs.h"
#include "config/fabric.h"
#include "deliver/userdata.h"

#define ON_KUBE (ROLE_CONTROL_PLANE | ROLE_WORKER)
#define ON_ALL  (ON_KUBE | ROLE_ETCD)

static bool logs_containerd(const struct cluster *c)
{
        return c->runtime.kind == RUNTIME_CONTAINERD;
}
static bool logs_crio(const struct cluster *c) { return c->runtime.kind == RUNTIME_CRIO; }
static bool logs_proxied(const struct cluster *c) { return c->network.proxy_mode != PROXY_NONE; }
static bool logs_flannel(const struct cluster *c) { return fabric_has(c, FABRIC_FLANNELD); }
static bool logs_calico(const struct cluster *c) { return fabric_has(c, FABRIC_FELIX); }
static bool logs_vip(const struct cluster *c) { return c->api.vip; }

/* What reads the user-data at the first boot of machines that get some. */
static bool logs_cloud_init(const struct cluster *c)
{
        return userdata_is_given(c, USER_DATA_CLOUD_INIT);
}
static bool logs_ignition(const struct cluster *c)
{
        return userdata_is_given(c, USER_DATA_IGNITION);
}

static const struct log_component {
        const char *name;
        const char *also;  /* another common name, or NULL */
        const char *unit;  /* systemd unit, or NULL */
        const char *pod;   /* static pod, or NULL; if both are set, the node's OS decides */
        const char *inner; /* the pod's container */
        unsigned roles;
        bool (*wanted)(const struct cluster *c); /* NULL: always */
        const char *file, *tag; /* without unit and pod: a file, or who wrote into the journal */
} components[] = {
        { "apiserver", "kube-apiserver", NULL, "kube-apiserver", "kube-apiserver",
                ROLE_CONTROL_PLANE, NULL },
        { "controller-manager", "kube-controller-manager", NULL, "kube-controller-manager",
                "kube-controller-manager", ROLE_CONTROL_PLANE, NULL },
        { "scheduler", "kube-scheduler", NULL, "kube-scheduler", "kube-scheduler",
                ROLE_CONTROL_PLANE, NULL },
        { "etcd", NULL, "etcd.service", NULL, NULL, ROLE_ETCD, NULL },
        { "kubelet", NULL, "kubelet.service", NULL, NULL, ON_KUBE, NULL },
        { "containerd", NULL, "containerd.service", NULL, NULL, ON_KUBE, logs_containerd },
        { "crio", "cri-o", "crio.service", NULL, NULL, ON_KUBE, logs_crio },
        { "kube-proxy", "proxy", "kube-proxy.service", NULL, NULL, ON_KUBE, logs_proxied },
        { "flanneld", "flannel", "flanneld.service", NULL, NULL, ON_KUBE, logs_flannel },
        { "calico-node", "felix", "calico-node.service", NULL, NULL, ON_KUBE, logs_calico },
        { "haproxy", "slipway-haproxy", "slipway-haproxy.service", "slipway-haproxy", "haproxy",
                ON_KUBE, NULL },
        { "keepalived", "slipway-keepalived", "slipway-keepalived.service", "slipway-keepalived",
                "keepalived", ROLE_CONTROL_PLANE, logs_vip },
        { .name = "cloud-init",
                .roles = ON_ALL,
                .wanted = logs_cloud_init,
                .file = "/var/log/cloud-init-output.log" },
        { .name = "ignition", .roles = ON_ALL, .wanted = logs_ignition, .tag = "ignition" },
};

static bool logs_runs_on(const struct log_component *row, const struct member *m)
{
        return row->roles & m->node->pool->roles && (!row->wanted || row->wanted(m->site->cluster));
}

void logs_list(const struct member *m, struct str *out, const char *between)
{
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_SIZE(components); i++)
                if (logs_runs_on(&components[i], m))
                        str_addf(out, "%s%s", n++ ? between : "", components[i].name);
        if (m->site->ops->console)
                str_addf(out, "%sconsole", between);
}

const struct log_component *logs_find(const struct member *m, const char *name, struct error *err)
{
        const char *names[2 * ARRAY_SIZE(components)];
        size_t n = 0;
        struct str all CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < ARRAY_SIZE(components); i++) {
                const struct log_component *row = &components[i];
                bool is = streq(row->name, name) || (row->also && streq(row->also, name));
                if (is && logs_runs_on(row, m))
                        return row;
                if (logs_runs_on(row, m)) {
                        names[n++] = row->name;
                        if (row->also)
                                names[n++] = row->also;
                }
        }
        logs_list(m, &all, ", ");
        const char *near = nearest(name, names, n);
        error_set(err, EINVAL, EXIT_USAGE, "node %s runs no component '%s'", m->node->name, name);
        if (near)
                error_hint(err, "did you mean %s? it runs: %s", near, str_text(&all));
        else
                error_hint(err, "it runs: %s", str_text(&all));
        return NULL;
}

/* The script that runs on the node as root. It removes the runtime's time and stream from a
 * container's lines, because the component writes its own. */
static const char *logs_script(
        const struct log_component *row, const char *lines, bool follow, struct arena *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        const char *journal =
                arena_printf(a, "exec journalctl --no-pager %s %s -n %s%s", row->tag ? "-t" : "-u",
                        row->tag    ? row->tag
                        : row->unit ? row->unit
                                    : "",
                        lines, follow ? " -f" : "");
        if (row->unit && row->pod)
                str_addf(&s, "if systemctl cat %s >/dev/null 2>&1; then %s; fi; ", row->unit,
                        journal);
        else if (row->unit || row->tag)
                str_add(&s, journal);
        if (row->file)
                str_addf(&s,
                        "test -e %s || { echo \"there is no %s on this node\" >&2; exit 1; }; exec tail -n %s%s %s",
                        row->file, row->file, lines, follow ? " -F" : "", row->file);
        if (row->pod)
                str_addf(&s,
                        "f=$(ls -t /var/log/pods/kube-system_%s-*/%s/*.log 2>/dev/null | head -n 1); "
                        "if test -z \"$f\"; then echo \"%s has not run on this node yet\" >&2; exit 1; fi; "
                        "tail -n %s%s \"$f\" | sed -u \"s/^[^ ]* std[a-z]* [FP] //\"",
                        row->pod, row->inner, row->name, lines, follow ? " -F" : "");
        return arena_strdup(a, str_text(&s));
}

static const char **logs_words(const struct link_target *t, const char *text, struct arena *a)
{
        const char **v = arena_array(a, const char *, 8);
        size_t n = 0;
        if (t->sudo) {
                v[n++] = "sudo";
                v[n++] = t->sudo_password ? "-S" : "-n";
                if (t->sudo_password) {
                        v[n++] = "-p";
                        v[n++] = "";
                }
        }
        v[n++] = "sh";
        v[n++] = "-c";
        v[n++] = text;
        return v;
}

const char *const *logs_command(const struct member *m, const struct log_component *row,
        const char *lines, bool follow, struct arena *a)
{
        const struct link_target *t = &m->machine->target;
        return link_argv(t, logs_words(t, logs_script(row, lines, follow, a), a), a);
}
