/* certs list. Only certificates are read from the nodes; keys in the same files stay there. */
#include <dirent.h>
#include <time.h>

#include "base/print.h"
#include "base/file.h"
#include "cluster/certs/certs.h"
#include "cluster/site/removed.h"

#define READ_MAX ((size_t)2 << 20)

/* Prints a line "= FILE" and then the certificates of that file. */
static const char script[] =
        "for f in /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt /var/lib/kubelet/pki/*.crt "
        "/var/lib/kubelet/pki/kubelet-client-current.pem; do [ -f \"$f\" ] || continue; echo \"= $f\"; "
        "sed -n '/^-----BEGIN CERTIFICATE-----/,/^-----END CERTIFICATE-----/p' \"$f\"; done; "
        "for f in /etc/kubernetes/*.conf /var/lib/kube-proxy/kubeconfig.conf; do [ -f \"$f\" ] || continue; "
        "for k in client-certificate certificate-authority; do echo \"= $f#$k\"; "
        "sed -n \"s/^ *$k-data: *//p\" \"$f\" | base64 -d; echo; done; done";

/* Which program uses a file, by the end of its path: the first matching row. */
static const struct {
        const char *end, *user;
} users[] = {
        { "#certificate-authority", "verifies the API server" },
        { "/pki/apiserver.crt", "API server" },
        { "/pki/apiserver-kubelet-client.crt", "API server, to kubelets" },
        { "/pki/apiserver-etcd-client.crt", "API server, to etcd" },
        { "/pki/front-proxy-client.crt", "API server, to aggregated APIs" },
        { "/pki/etcd/server.crt", "etcd, for clients" },
        { "/pki/etcd/peer.crt", "etcd, among members" },
        { "/pki/etcd/healthcheck-client.crt", "slipway and etcdctl, to etcd" },
        { "/pki/etcd/ca.crt", "signs etcd's certificates" },
        { "/pki/front-proxy-ca.crt", "signs the front proxy's certificates" },
        { "/pki/ca.crt", "signs the cluster's certificates" },
        { "/pki/ca-bundle.crt", "signs the cluster's certificates" },
        { "/pki/ca-signing.crt", "signs the kubelets' certificates" },
        { "/pki/oidc-ca.crt", "API server, to the identity provider" },
        { "/pki/kubelet.crt", "kubelet, its own port" },
        { "/kubelet-client-current.pem", "kubelet, to the API (the kubelet renews it)" },
        { "/controller-manager.conf#client-certificate", "controllers" },
        { "/scheduler.conf#client-certificate", "scheduler" },
        { "/super-admin.conf#client-certificate", "slipway, and anyone who has the file" },
        { "/admin.conf#client-certificate", "anyone who has the file" },
        { "/kube-proxy/kubeconfig.conf#client-certificate", "kube-proxy" },
        { "/flannel.conf#client-certificate", "flanneld" },
        { "/calico.conf#client-certificate", "calico-node" },
        { "/multus.conf#client-certificate", "multus" },
        { "/kubelet.conf#client-certificate", "kubelet, to the API" },
};

static const char *used_by(const char *file)
{
        for (size_t i = 0; i < ARRAY_SIZE(users); i++)
                if (has_suffix(file, users[i].end))
                        return users[i].user;
        return "";
}

struct listing {
        struct site *site;
        json_t *all, *unreachable;
        time_t now;
};

/* The kubelet renews its certificate after 70 to 90 % of its lifetime; it is due when it should
 * have been renewed. */
static bool due(
        const struct listing *l, const char *node, const char *file, const struct cert_info *i)
{
        if (!node && has_prefix(file, "past/"))
                return false;
        return has_suffix(file, "/kubelet-client-current.pem")
                       ? i->to - l->now < (i->to - i->from) / 12
                       : cert_due(i, l->now);
}

static void certs_add(struct listing *l, const char *node, const char *file,
        const struct cert_info *i, const char *user)
{
        char when[32];
        struct tm tm;
        long long left = (long long)i->to - (long long)l->now;
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&i->to, &tm));
        json_array_append_new(l->all,
                json_pack("{s:s?, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:s, s:b, s:s}", "node", node,
                        "file", json_text(file), "subject", json_text(i->subject), "issuer",
                        json_text(i->issuer), "serial", i->serial, "expires", when, "secondsLeft",
                        (json_int_t)left, "daysLeft", (json_int_t)(left / 86400), "state",
                        left <= 0               ? "expired"
                        : due(l, node, file, i) ? "due"
                                                : "good",
                        "authority", i->authority, "usedBy", user));
}

/* Of a chain only the leaf; of a bundle all, because each is trusted. */
static void certs_add_text(
        struct listing *l, const char *node, const char *file, const char *pem, const char *user)
{
        struct cert_info i;
        for (bool first = true; cert_describe(pem, &i, &pem) && (first || i.authority);
                first = false) {
                certs_add(l, node, file, &i, user);
                if (first && !i.authority)
                        break;
        }
}

/* ---- on nodes ---- */

static void read_node(struct listing *l, const char *node, char *text)
{
        for (char *p = text, *next; p && *p; p = next) {
                char *end = strchr(p, '\n');
                next = end ? strstr(end, "\n= ") : NULL;
                if (next)
                        *next++ = 0;
                if (!has_prefix(p, "= ") || !end)
                        continue;
                *end = 0;
                certs_add_text(l, node, p + 2, end + 1, used_by(p + 2));
        }
}

struct reading {
        struct listing *listing;
        struct member *member;
        struct step *step;
};

static void unreachable(struct listing *l, const char *node, const char *why)
{
        json_array_append_new(
                l->unreachable, json_pack("{s:s, s:o}", "node", node, "why", json_text(why)));
}

static void on_read(struct link *link, int status, const char *out, const char *errors, void *arg)
{
        struct reading *r = arg;
        char *text CLEANUP(free_p) = status == 0 ? xstrdup(out) : NULL;
        if (text)
                read_node(r->listing, r->member->node->name, text);
        else
                unreachable(r->listing, r->member->node->name,
                        *errors ? errors : "the connection was cut");
        step_done(r->step, NULL);
}

static void step_read(struct step *s)
{
        static const char *const argv[] = { "sh", "-c", script, NULL };
        struct reading *r = s->arg;
        r->step = s;
        if (member_reachable(r->member) && r->member->seen.said) {
                member_run(r->member, argv, NULL, READ_MAX, on_read, r);
                return;
        }
        unreachable(r->listing, r->member->node->name,
                r->member->run.connect && r->member->run.connect->doing
                        ? r->member->run.connect->doing
                        : "its machine is not running");
        step_done(s, NULL);
}

/* ---- in the state directory ---- */

static void add_file(struct listing *l, const char *path, const char *name, const char *user)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_wipe_release) = { 0 };
        char *full CLEANUP(free_p) = path_join(l->site->identity.dir, path);
        if (access(full, R_OK) == 0 && file_read(full, READ_MAX, &text, &ignored) == 0)
                certs_add_text(l, NULL, name, str_text(&text), user);
}

/* Certificates that users got earlier and that are still valid. */
static void read_past(struct listing *l)
{
        char *dir CLEANUP(free_p) = path_join(l->site->identity.dir, "past");
        struct dirent **list = NULL;
        int n = scandir(dir, &list, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                struct error ignored CLEANUP(error_release) = { 0 };
                struct str text CLEANUP(str_release) = { 0 };
                char *path CLEANUP(free_p) = path_join(dir, list[i]->d_name),
                           *name CLEANUP(free_p) = xasprintf("past/%s", list[i]->d_name);
                if (has_suffix(name, ".pem") && file_read(path, READ_MAX, &text, &ignored) == 0 &&
                        identity_lets_in(&l->site->identity, str_text(&text)))
                        certs_add_text(l, NULL, name, str_text(&text),
                                "a removed user; it cannot be revoked");
                free(list[i]);
        }
        free(list);
}

static void read_state(struct listing *l)
{
        const struct users *u = &l->site->cluster->auth.users;
        static const char *const files[][2] = { { "pki/ca.crt",
                                                        "signs the cluster's certificates" },
                { "pki/etcd/ca.crt", "signs etcd's certificates" },
                { "pki/front-proxy-ca.crt", "signs the front proxy's certificates" },
                { "pki/lb.crt", "load balancer" }, { "pki/dex.crt", "dex" },
                { "admin.pem", "slipway kubeconfig: the administrator" } };
        static const char *const next[CA_COUNT] = { "next/pki/ca.crt", "next/pki/etcd/ca.crt",
                "next/pki/front-proxy-ca.crt" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                add_file(l, files[i][0], files[i][0], files[i][1]);
        /* CAs of an earlier rotation may still be there during another one */
        for (int ca = 0; ca < CA_COUNT; ca++)
                if (l->site->identity.rotation.phase[ca] != ROTATE_NOT)
                        add_file(l, next[ca], next[ca], "the new CA of the current rotation");
        for (size_t i = 0; i < u->n; i++) {
                char *path CLEANUP(free_p) = xasprintf("users/%s.pem", u->v[i].name),
                           *user CLEANUP(free_p) = xasprintf("user %s", u->v[i].name);
                add_file(l, path, path, user);
        }
        read_past(l);
}

int certs_list(struct site *s, json_t **out, struct error *err)
{
        struct listing l = {
                .site = s, .all = json_array(), .unreachable = json_array(), .now = time(NULL)
        };
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                struct reading *r = arena_new(s->arena, struct reading);
                *r = (struct reading){ .listing = &l, .member = m };
                struct step *read = run_step(&s->run, "read", m->node->name, step_read, r);
                m->plan.optional = true;
                if (m->machine->state == MACHINE_RUNNING && m->machine->target.host) {
                        m->run.connect =
                                run_step(&s->run, "connect", m->node->name, step_connect, m);
                        step_after(read, m->run.connect);
                }
        }
        int e = run_execute(&s->run, err);
        read_state(&l);
        *out = json_pack("{s:o, s:o}", "certificates", l.all, "unreachable", l.unreachable);
        return e;
}

/* ---- renew ---- */

int certs_renew_begin(struct site *s, const struct strings *nodes, struct error *err)
{
        struct identity *id = &s->identity;
        for (size_t i = 0; i < nodes->n; i++)
                if (!site_member(s, nodes->v[i])) {
                        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no node '%s'",
                                s->cluster->name, nodes->v[i]);
                        return error_hint(err, "'slipway status' lists its nodes");
                }
        int r = site_must_exist(s, err);
        if (r < 0)
                return r;
        id->renew = true;
        id->renew_nodes = nodes;
        if (nodes->n)
                return 0;
        r = identity_extras(id, s->cluster, err);
        return r < 0 ? r : identity_people(id, s->cluster, err);
}
