#include <time.h>

#include "base/print.h"
#include "cluster/certs/certs.h"
#include "cluster/certs/rotate.h"
#include "kube/wait.h"

static const char *const rotate_sentences[] = { "", "all nodes trust the old and the new one",
        "the new one signs, the old one is still trusted", "the old one is removed" };

static const char *const rotate_encrypting[] = { "", "all API servers receive the new key",
        "all API servers encrypt with the new key", "" };

int rotate_parse(const char *const *names, size_t n, unsigned *set, struct error *err)
{
        unsigned all = (1U << ROTATE_ENCRYPTION) - 1;
        *set = n ? 0 : all;
        for (size_t i = 0; i < n; i++) {
                unsigned bit = streq(names[i], "all") ? all : 0;
                for (int k = 0; k < ROTATE_ENCRYPTION; k++)
                        if (streq(names[i], rotate_name(k)))
                                bit |= 1U << k;
                if (!bit) {
                        error_set(err, EINVAL, EXIT_USAGE,
                                "certs rotate-ca: '%s' is nothing that can be rotated", names[i]);
                        return error_hint(
                                err, "name one or more of: cluster, etcd, front-proxy, sa, all");
                }
                *set |= bit;
        }
        return 0;
}

int rotate_check_encryption(const struct cluster *c, struct error *err)
{
        if (c->encryption.provider == ENCRYPTION_NONE) {
                error_set(err, EINVAL, EXIT_CONFIG,
                        "nothing is encrypted: encryption.provider is none");
                return error_hint(err, "set encryption: secretbox, and run slipway up");
        }
        for (size_t i = 0; i < c->encryption.resources.n; i++)
                if (strchr(c->encryption.resources.v[i], '*')) {
                        error_set(err, EINVAL, EXIT_CONFIG,
                                "encryption.resources: '%s' does not name the resources that must be encrypted again",
                                c->encryption.resources.v[i]);
                        return error_hint(
                                err, "name the resources one by one: secrets, configmaps");
                }
        return 0;
}

int rotate_check_joined(struct site *s, struct error *err)
{
        static const char *const path =
                "/api/v1/nodes?limit=100&labelSelector=node-role.kubernetes.io%2Fcontrol-plane%2C%21slipway.dev%2Fpool";
        struct error ignored CLEANUP(error_release) = { 0 };
        json_t *nodes = NULL, *n;
        size_t i;
        int r = 0;
        if (identity_rotating(&s->identity) || kube_get(s->kube, path, &nodes, &ignored) < 0)
                return 0;
        json_array_foreach(json_object_get(nodes, "items"), i, n)
        {
                if (r < 0 || cluster_node(s->cluster, object_name(n)))
                        continue;
                error_set(err, EBUSY, EXIT_PREFLIGHT,
                        "%.64s is a control plane that joined with kubeadm: it would get neither the new certificate authority nor the new key",
                        object_name(n));
                r = error_hint(err,
                        "remove it first (kubectl drain, kubeadm reset there, kubectl delete node), and let it join again afterwards; nothing was changed");
        }
        json_decref(nodes);
        return r;
}

void rotate_text(const struct identity *id, struct str *out)
{
        for (int i = 0; i < ROTATE_COUNT; i++)
                if (id->rotation.phase[i] != ROTATE_NOT)
                        text_addf(out, "rotation of %s, phase %s: %s\n", rotate_name(i),
                                rotate_phase_name(id->rotation.phase[i]),
                                (i == ROTATE_ENCRYPT ? rotate_encrypting
                                                     : rotate_sentences)[id->rotation.phase[i]]);
}

/* The old key is removed only when no object is encrypted with it any more. */
static int rotate_rewrite(struct site *s, struct str *told, struct error *err)
{
        size_t n = 0;
        if (s->identity.rotation.phase[ROTATE_ENCRYPTION] != ROTATE_ISSUE &&
                s->identity.rotation.phase[ROTATE_ENCRYPT] != ROTATE_ISSUE)
                return 0;
        int r = certs_rewrite(s, &n, err);
        if (r == 0)
                text_addf(told, "%zu objects were written again, encrypted\n", n);
        return r;
}

static void rotate_waiting(const struct identity *id, struct str *told)
{
        char when[32];
        struct tm tm;
        time_t end = id->rotation.issued + SA_KEEP;
        if (id->rotation.phase[ROTATE_SA] != ROTATE_ISSUE)
                return;
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime_r(&end, &tm));
        text_addf(told,
                "service-account tokens are signed with the new key; the old key is trusted until %s, when the token of every pod has been renewed. The first "
                "'slipway up' after that removes the old key ('slipway certs rotate-ca sa --finish' removes it now).\n",
                when);
}

int rotate_on(struct site *s, bool finish, struct str *told, struct error *err)
{
        int r = rotate_rewrite(s, told, err);
        if (r == 0)
                r = identity_people(&s->identity, s->cluster, err);
        if (r == 0)
                r = identity_rotate_on(&s->identity, s->cluster, finish, err);
        if (r == 0)
                rotate_waiting(&s->identity, told);
        return r;
}
