/* Files of the user that kube-apiserver reads: its audit policy and its encryption configuration.
 * They become options of the Cluster, and its key. */
#include "cluster/adopt/adopt_files.h"
#include "pki/pki.h"

static const char *adopt_extra_text_of(const json_t *o, const char *key)
{
        const char *t = json_string_value(json_object_get(o, key));
        return t ? t : "";
}

/* ---- the host path of a file in a pod ---- */

static bool is_under(const char *path, const char *dir)
{
        size_t n = strlen(dir);
        while (n > 1 && dir[n - 1] == '/')
                n--;
        return n && strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/' || n == 1);
}

static const char *volume_path(const json_t *pod, const char *name)
{
        const json_t *v;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(pod, "spec"), "volumes"), i,
                v) if (streq(adopt_extra_text_of(v, "name"), name))
        {
                return adopt_extra_text_of(json_object_get(v, "hostPath"), "path");
        }
        return "";
}

const char *adopt_host_path(struct adopt *a, const json_t *pod, const char *path)
{
        const json_t *container = json_array_get(
                             json_object_get(json_object_get(pod, "spec"), "containers"), 0),
                     *m, *best = NULL;
        size_t i;
        json_array_foreach(json_object_get(container, "volumeMounts"), i, m)
        {
                const char *at = adopt_extra_text_of(m, "mountPath");
                if (is_under(path, at) &&
                        (!best || strlen(at) > strlen(adopt_extra_text_of(best, "mountPath"))))
                        best = m;
        }
        const char *host = best ? volume_path(pod, adopt_extra_text_of(best, "name")) : "";
        return *host ? arena_printf(a->arena, "%s%s", host,
                               path + strlen(adopt_extra_text_of(best, "mountPath")))
                     : NULL;
}

bool adopt_knows_volume(const json_t *flags, const json_t *pod, const char *volume)
{
        static const char *const files[] = { "audit-policy-file", "audit-log-path",
                "encryption-provider-config" };
        const json_t *container = json_array_get(
                             json_object_get(json_object_get(pod, "spec"), "containers"), 0),
                     *m;
        size_t i;
        json_array_foreach(json_object_get(container, "volumeMounts"), i, m)
        {
                if (!streq(adopt_extra_text_of(m, "name"), volume))
                        continue;
                for (size_t k = 0; k < ARRAY_SIZE(files); k++) {
                        const char *path = adopt_flag(flags, files[k]);
                        if (path && is_under(path, adopt_extra_text_of(m, "mountPath")))
                                return true;
                }
        }
        return false;
}

void adopt_extra_paths(struct adopt *a, const char *out[EXTRA_COUNT])
{
        static const char *const names[EXTRA_COUNT] = { [EXTRA_AUDIT] = "audit-policy-file",
                [EXTRA_ENCRYPTION] = "encryption-provider-config" };
        struct error none CLEANUP(error_release) = { 0 };
        json_t *pod = a->files[AT_APISERVER]
                              ? adopt_yaml(a, "kube-apiserver", a->files[AT_APISERVER], &none)
                              : NULL,
               *flags = adopt_flags(pod);
        for (size_t i = 0; i < EXTRA_COUNT; i++) {
                const char *path = adopt_flag(flags, names[i]);
                out[i] = path ? adopt_host_path(a, pod, path) : NULL;
        }
        json_decref(flags);
        json_decref(pod);
}

/* ---- audit ---- */

int adopt_audit(
        struct adopt *a, const json_t *pod, const json_t *flags, json_t *spec, struct error *err)
{
        static const struct {
                const char *flag, *key;
        } numbers[] = { { "audit-log-maxage", "maxAge" }, { "audit-log-maxbackup", "maxBackups" },
                { "audit-log-maxsize", "maxSize" } };
        const char *policy = adopt_flag(flags, "audit-policy-file"),
                   *log = adopt_flag(flags, "audit-log-path");
        const char *path = log && *log == '/' ? adopt_host_path(a, pod, log) : NULL;
        if (!policy)
                return 0;
        if (!a->extra[EXTRA_AUDIT] || !path) {
                error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                        "kube-apiserver on %s has an audit policy (%s), and %s", a->target.host,
                        policy,
                        a->extra[EXTRA_AUDIT]
                                ? "no log file on the host that slipway could go on with"
                                : "that file cannot be read on the host");
                return error_hint(err,
                        "let apiServer.extraArgs of kubeadm-config name audit-policy-file and audit-log-path under a path that "
                        "apiServer.extraVolumes mounts, run 'kubeadm init phase control-plane apiserver' there, and adopt again");
        }
        json_t *audit = json_pack("{s:s, s:s}", "policyFile", ADOPT_POLICY, "path", path);
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                /* without the flag it keeps everything, in one file of up to 100 MiB */
                const char *n = adopt_flag(flags, numbers[i].flag);
                json_object_set_new(audit, numbers[i].key,
                        json_integer(n                                  ? strtol(n, NULL, 10)
                                     : streq(numbers[i].key, "maxSize") ? 100
                                                                        : 0));
        }
        json_object_set_new(spec, "audit", audit);
        return 0;
}

/* ---- encryption ---- */

static int adopt_extra_unfit(struct adopt *a, const char *why, const char *how, struct error *err)
{
        error_set(err, ENOTSUP, EXIT_PREFLIGHT,
                "the encryption configuration of kube-apiserver on %s cannot be kept: %s",
                a->target.host, why);
        return error_hint(err,
                "%s, restart kube-apiserver, write every encrypted object again (kubectl get secrets -A -o json | kubectl replace -f -), and adopt again",
                how);
}

/* Accepts one group of resources with a cipher that slipway supports and one key, followed
 * only by identity. */
static int read_encryption(struct adopt *a, const json_t *config, json_t *spec, struct error *err)
{
        static const char *const ciphers[] = { "secretbox", "aescbc", "aesgcm" };
        const json_t *groups = json_object_get(config, "resources"),
                     *group = json_array_get(groups, 0),
                     *providers = json_object_get(group, "providers");
        const json_t *first = json_array_get(providers, 0), *keys = NULL, *key;
        const char *cipher = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(ciphers) && !cipher; i++)
                if ((keys = json_object_get(json_object_get(first, ciphers[i]), "keys")))
                        cipher = ciphers[i];
        if (json_array_size(groups) != 1)
                return adopt_extra_unfit(
                        a, "it has more than one group of resources", "leave one group in it", err);
        if (!cipher || json_array_size(providers) > 2 ||
                (json_array_size(providers) == 2 &&
                        !json_object_get(json_array_get(providers, 1), "identity")))
                return adopt_extra_unfit(a,
                        "its providers are not one of secretbox, aescbc and aesgcm with identity behind it",
                        "let its providers be secretbox with one key, then identity, with the old ones behind them until every object is written again",
                        err);
        if (json_array_size(keys) != 1)
                return adopt_extra_unfit(a, "its provider has more than one key",
                        "leave only the first key in it once everything is written with that one",
                        err);
        key = json_array_get(keys, 0);
        if (!encryption_key_believable(adopt_extra_text_of(key, "secret")))
                return adopt_extra_unfit(a, "its key is not the base64 of 32 bytes",
                        "put a key of 32 bytes first (head -c 32 /dev/urandom | base64)", err);
        a->key = arena_strdup(a->arena, adopt_extra_text_of(key, "secret"));
        a->key_name = arena_strdup(a->arena, adopt_extra_text_of(key, "name"));
        json_object_set_new(spec, "encryption",
                json_pack("{s:s, s:O}", "provider", cipher, "resources",
                        json_object_get(group, "resources")));
        return 0;
}

int adopt_encryption(struct adopt *a, const json_t *flags, json_t *spec, struct error *err)
{
        const char *path = adopt_flag(flags, "encryption-provider-config");
        if (!path)
                return 0;
        if (!a->extra[EXTRA_ENCRYPTION])
                return adopt_extra_unfit(a, "its file cannot be read on the host",
                        "let apiServer.extraVolumes of kubeadm-config mount it from there", err);
        json_t *config = adopt_yaml(a, "encryption configuration", a->extra[EXTRA_ENCRYPTION], err);
        int r = config ? read_encryption(a, config, spec, err) : -err->code;
        json_decref(config);
        return r;
}
