/* The application credential of the cloud's controller and CSI driver. Its secret comes from the
 * Identity, so it is known before the credential is made, and nothing has to be kept: the name says
 * which secret it has. One with our mark and another name is old. It has few roles, and cannot make
 * further credentials. */
#include "base/file.h"
#include "base/quote.h"
#include "base/sha256.h"
#include "cloud/openstack/clouds.h"
#include "provider/openstack/openstack.h"

#define CA_MAX ((size_t)1 << 20)
#define NO_CREDENTIAL \
        "log in with a password or with an application credential that is unrestricted, delete credentials that nobody uses (`openstack application credential list`), or leave cloud.controller and cloud.csi out"

bool os_wants_credential(const struct os *os)
{
        const struct os_cloud_options *c = &os->options->cloud;
        return os->mark && os->run->secret && (c->controller || c->csi);
}

/* NAME-P-DIGEST */
static const char *credential_name(const struct os *os)
{
        char digest[SHA256_HEX];
        sha256_hex(os->run->secret, strlen(os->run->secret), digest);
        return arena_printf(os->run->arena, "%s-%.8s", os->name, digest);
}

static const struct os_credential *credential_of(const struct os *os)
{
        const struct os_credential *all = os->found.credentials.v;
        const char *name = credential_name(os);
        for (size_t i = 0; i < os->found.credentials.n; i++)
                if (all[i].name && streq(all[i].name, name) && os_marked(os, all[i].description))
                        return &all[i];
        return NULL;
}

bool os_credential_missing(const struct os *os)
{
        return os_wants_credential(os) && !credential_of(os);
}

void os_look_credentials(struct os_job *j)
{
        struct pair user[] = { { "user", os_user_id(j->os) }, { 0 } };
        if (os_wants_credential(j->os))
                job_list(j, OS_LIST_CREDENTIALS, user, &j->os->found.credentials);
}

/* ---- making it ---- */

/* What a member of a project has, under the names that clouds give it. Who has none of them gets a
 * credential with all their roles. */
static json_t *credential_roles(const struct os *os)
{
        static const char *const enough[] = { "member", "_member_", "Member",
                "load-balancer_member", "creator" };
        const json_t *has = os_roles(os->sync.session), *role;
        json_t *list = json_array();
        bool member = false;
        size_t i;
        json_array_foreach(has, i, role)
        {
                const char *name = json_string_value(json_object_get(role, "name"));
                for (size_t k = 0; name && k < ARRAY_SIZE(enough); k++) {
                        if (!streq(name, enough[k]))
                                continue;
                        member |= k < 3;
                        json_array_append_new(list, json_pack("{s:s}", "name", name));
                }
        }
        if (!member)
                json_array_clear(list);
        return list;
}

static json_t *credential_body(const struct os *os)
{
        json_t *roles = credential_roles(os);
        json_t *o = json_pack("{s:s, s:s, s:s, s:b}", "name", credential_name(os), "description",
                os->mark, "secret", os->run->secret, "unrestricted", 0);
        if (json_array_size(roles))
                json_object_set(o, "roles", roles);
        json_decref(roles);
        return o;
}

static void on_credential(struct os_job *j, const struct call_reply *reply, void *arg)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (reply->fault && reply->fault->kind == FAULT_CONFLICT)
                return; /* it has the name of its secret, so it is this one, not listed yet */
        if (reply->fault && reply->fault->kind == FAULT_FORBIDDEN) {
                fault_error(reply->fault, &err);
                error_hint(&err, NO_CREDENTIAL);
                job_fail(j, &err);
        } else if (reply->fault) {
                job_fault(j, &os_calls[OS_CREATE_CREDENTIAL], reply->fault);
        }
}

void stage_credential(struct os_job *j)
{
        struct os *os = j->os;
        struct pair user[] = { { "user", os_user_id(j->os) }, { 0 } };
        if (os_credential_missing(os))
                job_ask(j, &(struct os_ask){ .call = OS_CREATE_CREDENTIAL,
                                   .args = user,
                                   .body = credential_body(os),
                                   .resource = credential_name(os),
                                   .fn = on_credential,
                                   .optional = true });
}

/* Of an earlier secret. */
void stage_credential_old(struct os_job *j)
{
        struct os *os = j->os;
        const struct os_credential *all = os->found.credentials.v;
        const char *name = os_wants_credential(os) ? credential_name(os) : "";
        for (size_t i = 0; *name && i < os->found.credentials.n; i++) {
                struct pair args[] = { { "user", os_user_id(j->os) }, { "id", all[i].id }, { 0 } };
                if (os_marked(os, all[i].description) && !(all[i].name && streq(all[i].name, name)))
                        job_ask(j, &(struct os_ask){ .call = OS_DELETE_CREDENTIAL,
                                           .args = args,
                                           .resource = all[i].name });
        }
}

/* ---- cloud.conf ---- */

/* Strings as git writes them: JSON's without \u, which none of these needs. */
static void conf_line(struct str *s, const char *key, const char *value)
{
        if (!value)
                return;
        str_addf(s, "%s = ", key);
        quote_json(s, value);
        str_addc(s, '\n');
}

static const char *conf_external(const struct os *os)
{
        const struct provider_openstack *o = os->options;
        return o->external_network ? os_network_id(os, o->external_network) : NULL;
}

static int conf_ca(struct os *os, const struct os_cloud *cloud, struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        if (!cloud->ca_file)
                return 0;
        int r = file_read(cloud->ca_file, CA_MAX, &text, err);
        if (r == 0)
                os->run->cluster->cloud_ca = arena_strdup(os->run->cluster->arena, str_text(&text));
        return r;
}

int os_conf(struct os *os, struct error *err)
{
        struct cluster *c = os->run->cluster;
        const struct os_cloud *cloud = os_entry(os->sync.session);
        struct str s CLEANUP(str_wipe_release) = { 0 };
        if (!os_wants_credential(os))
                return 0;
        int r = conf_ca(os, cloud, err);
        str_add(&s, "[Global]\n");
        conf_line(&s, "auth-url", os_auth_address(os->sync.session));
        conf_line(&s, "region", cloud->region);
        conf_line(&s, "os-endpoint-type", cloud->interface);
        conf_line(&s, "user-id", os_user_id(os));
        conf_line(&s, "application-credential-name", credential_name(os));
        conf_line(&s, "application-credential-secret", os->run->secret);
        conf_line(&s, "ca-file", c->cloud_ca ? "/etc/cloud/ca.crt" : NULL);
        conf_line(&s, "tls-insecure", cloud->insecure ? "true" : NULL);
        str_add(&s, "[Metadata]\nsearch-order = \"configDrive,metadataService\"\n[LoadBalancer]\n");
        conf_line(&s, "floating-network-id", conf_external(os));
        /* deleted with all that belongs to them; nodes' own rules let their traffic in */
        str_add(&s, "cascade-delete = true\nmanage-security-groups = false\n");
        c->cloud_name = os->name;
        c->cloud_config = arena_strdup(c->arena, str_text(&s));
        return r;
}
