/* Everything but the hosts and the networks: mostly variables that only change their names. */
#include "base/quote.h"
#include "config/kubespray/kubespray_impl.h"

/* ---- runtime, artifacts, registry, proxy ---- */

static void runtime(struct spray *k)
{
        static const struct spray_row data_dir = { "containerd_storage_dir", "dataDir", HOW_PATH,
                "/var/lib/containerd" };
        const char *manager = spray_text(k, "container_manager"),
                   *oci = spray_text(k, "containerd_default_runtime");
        struct spray_section section;
        spray_begin(k, &section, "runtime");
        if (manager && (streq(manager, "crio") || streq(manager, "cri-o")))
                spray_field(k, "name", "cri-o");
        else if (manager && !streq(manager, "containerd"))
                spray_note(k,
                        "the container runtime was %s, which Kubernetes no longer supports: containerd replaces it and runs the same images",
                        manager);
        if ((oci && streq(oci, "crun")) || spray_true(k, "crun_enabled"))
                spray_field(k, "oci", "crun");
        spray_rows(k, &data_dir, 1);
        spray_end(k, &section);
}

static void kubespray_spec_artifacts(struct spray *k)
{
        const char *files = spray_text(k, "files_repo");
        if (files)
                spray_note(k,
                        "files_repo was %s: if it serves upstream's files under their own hosts and paths, name it in artifacts.mirror",
                        files);
}

/* host[:port][/path] of a mirror; NULL for the registry itself, which is asked anyway. */
static const char *mirror_host(struct spray *k, const char *url, bool *insecure)
{
        static const char *const themselves[] = { "registry-1.docker.io", "docker.io",
                "registry.k8s.io", "quay.io", "ghcr.io", "gcr.io" };
        if (!url)
                return NULL;
        *insecure |= has_prefix(url, "http://");
        const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
        char *out = arena_strdup(k->arena, host);
        for (size_t n = strlen(out); n && out[n - 1] == '/'; n--)
                out[n - 1] = 0;
        for (size_t i = 0; i < ARRAY_SIZE(themselves); i++)
                if (streq(out, themselves[i]))
                        return NULL;
        return *out && !strpbrk(out, " \t\n@") ? out : NULL;
}

struct mirrors {
        struct str lines; /* of the map */
        struct index seen;
        bool insecure;
};

static void add_mirror(struct spray *k, struct mirrors *m, const char *registry, const char *url)
{
        const char *host = mirror_host(k, url, &m->insecure);
        if (!host || !registry)
                return;
        if (index_put(&m->seen, registry, m))
                return spray_note(k,
                        "%s has another mirror, %s: slipway uses one mirror per registry", registry,
                        host);
        str_addf(&m->lines, "%*s", k->indent + 2, "");
        quote_yaml(&m->lines, registry);
        str_add(&m->lines, ": ");
        spray_value(&m->lines, host);
        str_addc(&m->lines, '\n');
}

/* [{prefix: docker.io, mirrors: [{host: https://…, skip_verify: true}]}] */
static void mirror_list(struct spray *k, struct mirrors *m)
{
        const char *name = "containerd_registries_mirrors";
        tree_each (c, spray_var(k, name)) {
                const char *prefix = spray_scalar(k, k->seat[0], tree_get(c, "prefix"), name);
                tree_each (one, tree_get(c, "mirrors")) {
                        const char *skip =
                                spray_scalar(k, k->seat[0], tree_get(one, "skip_verify"), name);
                        m->insecure |= skip && !strcasecmp(skip, "true");
                        add_mirror(k, m, prefix,
                                spray_scalar(k, k->seat[0], tree_get(one, "host"), name));
                }
        }
}

/* The older {docker.io: https://…} and {docker.io: [https://…]}, and docker's own list. */
static void mirror_map(struct spray *k, struct mirrors *m)
{
        const char *name = "containerd_registries";
        const struct tree *map = spray_var(k, name);
        if (map && map->kind == TREE_MAP)
                tree_each (c, map) {
                        if (c->kind == TREE_SCALAR)
                                add_mirror(k, m, c->key, spray_scalar(k, k->seat[0], c, name));
                        tree_each (one, c)
                                add_mirror(k, m, c->key, spray_scalar(k, k->seat[0], one, name));
                }
        struct strings docker = spray_list(k, "docker_registry_mirrors");
        for (size_t i = 0; i < docker.n; i++)
                add_mirror(k, m, "docker.io", docker.v[i]);
}

static void kubespray_spec_registry(struct spray *k)
{
        struct spray_section section;
        struct mirrors m = { 0 };
        spray_begin(k, &section, "registry");
        const char *all = mirror_host(k, spray_text(k, "registry_host"), &m.insecure);
        if (all)
                spray_field(k, "mirror", all);
        mirror_list(k, &m);
        mirror_map(k, &m);
        if (m.lines.len)
                str_addf(k->out, "%*smirrors:\n%s", k->indent, "", m.lines.data);
        if (m.insecure && (all || m.lines.len)) {
                spray_note(k,
                        "one of the mirrors used plain HTTP or an unverified certificate: insecure applies to all of them");
                str_addf(k->out, "%*sinsecure: true\n", k->indent, "");
        }
        if (spray_var(k, "containerd_registry_auth"))
                spray_note(k,
                        "containerd_registry_auth is not converted: use username and passwordFile here");
        spray_end(k, &section);
        str_release(&m.lines);
        index_release(&m.seen);
}

static void proxy(struct spray *k)
{
        static const struct spray_row rows[] = {
                { "http_proxy", "http", HOW_URL },
                { "https_proxy", "https", HOW_URL },
        };
        struct spray_section section;
        spray_begin(k, &section, "proxy");
        spray_rows(k, rows, ARRAY_SIZE(rows));
        struct strings none = spray_list(k, "no_proxy"),
                       more = spray_list(k, "additional_no_proxy");
        if (section.body.len)
                spray_words(k, "noProxy", none.n ? &none : &more);
        spray_end(k, &section);
}

void spray_images(struct spray *k)
{
        runtime(k);
        kubespray_spec_artifacts(k);
        kubespray_spec_registry(k);
        proxy(k);
}

/* ---- auth, encryption, audit, admission ---- */

static void kubespray_spec_oidc(struct spray *k)
{
        static const struct spray_row rows[] = {
                { "kube_oidc_url", "issuer", HOW_URL },
                { "kube_oidc_client_id", "clientID", HOW_TEXT },
                { "kube_oidc_username_claim", "usernameClaim", HOW_TEXT, "sub" },
                { "kube_oidc_username_prefix", "usernamePrefix", HOW_TEXT },
                { "kube_oidc_groups_claim", "groupsClaim", HOW_TEXT, "groups" },
                { "kube_oidc_groups_prefix", "groupsPrefix", HOW_TEXT },
        };
        struct spray_section section;
        if (!spray_true(k, "kube_oidc_auth"))
                return;
        spray_begin(k, &section, "oidc");
        spray_rows(k, rows, ARRAY_SIZE(rows));
        if (spray_var(k, "kube_oidc_ca_file") || spray_var(k, "kube_oidc_ca_cert"))
                spray_note(k,
                        "the provider's CA certificate was on the nodes: copy the file to this directory and name it in caFile");
        spray_end(k, &section);
}

/* {alice: {pass: …, role: admin, groups: [system:masters]}}: they keep their names
 * and get certificates. */
static void kubespray_spec_users(struct spray *k)
{
        const struct tree *map = spray_var(k, "kube_users");
        if (!map || map->kind != TREE_MAP || !map->count)
                return;
        spray_note(k,
                "users had passwords, which Kubernetes 1.19 removed: each gets a client certificate");
        str_addf(k->out, "%*susers:\n", k->indent, "");
        tree_each (c, map) {
                const char *role = spray_scalar(k, k->seat[0], tree_get(c, "role"), "kube_users");
                bool admin = role && streq(role, "admin"), any = false;
                struct str groups CLEANUP(str_release) = { 0 };
                tree_each (g, tree_get(c, "groups")) {
                        const char *group = spray_scalar(k, k->seat[0], g, "kube_users");
                        admin |= group && streq(group, "system:masters");
                        if (!group || has_prefix(group, "system:"))
                                continue;
                        str_add(&groups, any ? ", " : "");
                        quote_yaml(&groups, group);
                        any = true;
                }
                str_addf(k->out, "%*s- {name: ", k->indent + 2, "");
                quote_yaml(k->out, c->key);
                if (any)
                        str_addf(k->out, ", groups: [%s]", groups.data);
                str_add(k->out, admin ? ", admin: true}\n" : "}\n");
        }
}

static void auth(struct spray *k)
{
        static const struct {
                const char *var, *what;
        } gone[] = {
                { "kube_basic_auth",
                        "basic authentication was removed in Kubernetes 1.19: use auth.users or auth.oidc" },
                { "kube_token_auth",
                        "a static token file is not supported: use auth.users or auth.oidc" },
                { "kube_webhook_token_auth",
                        "an authentication webhook is set with components.apiserver.flags (authentication-token-webhook-config-file)" },
                { "kube_webhook_authorization",
                        "an authorization webhook is set with components.apiserver.flags (authorization-config)" },
        };
        struct spray_section section;
        spray_begin(k, &section, "auth");
        for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
                if (spray_true(k, gone[i].var))
                        spray_note(k, "%s was on: %s", gone[i].var, gone[i].what);
        kubespray_spec_users(k);
        kubespray_spec_oidc(k);
        spray_end(k, &section);
}

static void kubespray_spec_encryption(struct spray *k)
{
        const char *algorithm = spray_text(k, "kube_encryption_algorithm");
        bool known = algorithm && (streq(algorithm, "aescbc") || streq(algorithm, "aesgcm"));
        if (spray_true(k, "kube_encrypt_secret_data"))
                spray_field(k, "encryption", known ? algorithm : "secretbox");
}

static void kubespray_spec_audit(struct spray *k)
{
        static const struct spray_row rows[] = {
                { "audit_log_path", "path", HOW_PATH },
                { "audit_log_maxage", "maxAge", HOW_NUMBER, "30", 0, 36500 },
                { "audit_log_maxbackups", "maxBackups", HOW_NUMBER, "10", 0, 10000 },
                { "audit_log_maxsize", "maxSize", HOW_NUMBER, "100", 1, 100000 },
        };
        struct spray_section section;
        if (!spray_true(k, "kubernetes_audit"))
                return;
        spray_begin(k, &section, "audit");
        spray_field(k, "level", "metadata");
        spray_rows(k, rows, ARRAY_SIZE(rows));
        if (spray_var(k, "audit_policy_custom_rules"))
                spray_note(k,
                        "audit_policy_custom_rules: write them to a policy file and name it in policyFile");
        spray_end(k, &section);
}

/* Plugins without PodSecurityPolicy, which 1.25 removed. */
static void plugins(struct spray *k, const char *var, const char *field)
{
        struct strings s = spray_list(k, var),
                       kept = { 0, arena_array(k->arena, const char *, s.n + 1) };
        for (size_t i = 0; i < s.n; i++)
                if (!streq(s.v[i], "PodSecurityPolicy"))
                        kept.v[kept.n++] = s.v[i];
        if (kept.n < s.n && !spray_true(k, "podsecuritypolicy_enabled"))
                spray_note(k,
                        "PodSecurityPolicy was removed in Kubernetes 1.25: podSecurity: baseline replaces it");
        spray_words(k, field, &kept);
}

static void kubespray_spec_admission(struct spray *k)
{
        struct spray_section section;
        spray_begin(k, &section, "admission");
        plugins(k, "kube_apiserver_enable_admission_plugins", "enable");
        plugins(k, "kube_apiserver_disable_admission_plugins", "disable");
        if (spray_true(k, "podsecuritypolicy_enabled")) {
                spray_note(k,
                        "pod security policies were removed in Kubernetes 1.25: namespaces without a label enforce the baseline instead");
                spray_field(k, "podSecurity", "baseline");
        } else if (spray_true(k, "kube_pod_security_use_default")) {
                const char *level = spray_text(k, "kube_pod_security_default_enforce");
                spray_field(k, "podSecurity",
                        level && (streq(level, "restricted") || streq(level, "privileged"))
                                ? level
                                : "baseline");
        }
        spray_end(k, &section);
}

void spray_access(struct spray *k)
{
        auth(k);
        kubespray_spec_encryption(k);
        kubespray_spec_audit(k);
        kubespray_spec_admission(k);
}
