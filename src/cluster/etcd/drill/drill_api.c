/* The API server of a drill. */
#include "cluster/etcd/drill/drill.h"

static void on_api_end(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->api = NULL;
        drill_ended(d, "kube-apiserver", status);
}

static void on_drill_api_ready(void *arg)
{
        struct drill *d = arg;
        d->site->wait = NULL;
        drill_good(d);
}

static void run_api(struct drill *d)
{
        struct arena *a = d->site->arena;
        struct error err CLEANUP(error_release) = { 0 };
        char cidr[IP_TEXT + 4];
        const char *v[40] = { drill_path(d, "kube-apiserver"),
                arena_printf(a, "--etcd-servers=https://127.0.0.1:%d", d->client_port),
                "--etcd-cafile=etcd-ca.crt", "--etcd-certfile=client.crt",
                "--etcd-keyfile=client.key", "--etcd-compaction-interval=0",
                "--bind-address=127.0.0.1", arena_printf(a, "--secure-port=%d", d->api_port),
                "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
                "--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key",
                "--client-ca-file=ca.crt", "--service-account-key-file=sa.pub",
                "--service-account-signing-key-file=sa.key",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--authorization-mode=RBAC", "--anonymous-auth=false",
                "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
                "--runtime-config=api/all=true", "--cert-dir=.", "--profiling=false" };
        size_t n = 22;
        if (d->site->cluster->network.services.n)
                v[n++] = arena_printf(a, "--service-cluster-ip-range=%s",
                        cidr_format(&d->site->cluster->network.services.v[0], cidr));
        if (access(drill_path(d, "encryption.yaml"), F_OK) == 0)
                v[n++] = "--encryption-provider-config=encryption.yaml";
        size_t i = 0;
        const struct member *m =
                site_member(d->site, cluster_next(d->site->cluster, ROLE_CONTROL_PLANE, &i)->name);
        const struct leaf *admin = &m->plan.leaves.leaf[LEAF_SUPER_ADMIN];
        const char **servers = arena_array(a, const char *, 2);
        servers[0] = arena_printf(a, "https://127.0.0.1:%d", d->api_port);
        struct kube_target target = { .servers = servers,
                .ca = d->site->identity.ca[CA_CLUSTER].bundle,
                .cert = admin->cert,
                .key = admin->key };
        if (!drill_start(d, v, &d->api, on_api_end))
                return;
        if (kube_open(d->site->base, &target, &d->kube, &err) < 0)
                drill_fail(d, EXIT_INTERNAL, NULL, "%s", err.message);
        else
                d->site->wait = kube_wait_ready(d->kube, 300, on_drill_api_ready, d);
}

static void on_drill_api_cleared(struct proc *p, int status, void *arg)
{
        struct drill *d = arg;
        d->other = NULL;
        if (status)
                drill_ended(d, "etcdctl del", status);
        else
                run_api(d);
}

/* Aggregated APIs are deleted first: otherwise their servers in the live cluster would be called.
 * They can still be read at the restored revision. */
void step_drill_api(struct step *s)
{
        struct drill *d = s->arg;
        d->step = s;
        step_deadline(s, DRILL_PATIENCE, "run it again when this computer is less busy");
        drill_start(d,
                drill_etcdctl(d, (const char *const[]){ "del",
                                         "/registry/apiregistration.k8s.io/apiservices/",
                                         "--prefix", NULL }),
                &d->other, on_drill_api_cleared);
}
