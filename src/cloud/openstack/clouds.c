#include <ctype.h>

#include "cloud/openstack/clouds.h"

extern char **environ;

/* ---- the files ---- */

static const char *clouds_env(const char *name)
{
        const char *v = getenv(name);
        return v && *v ? v : NULL;
}

/* The first of NAME.yaml, .yml and .json in the places where people have them. */
static const char *clouds_find(struct arena *a, const char *variable, const char *name)
{
        static const char *const ends[] = { "yaml", "yml", "json" };
        const char *given = variable ? clouds_env(variable) : NULL, *home = clouds_env("HOME");
        const char *xdg = clouds_env("XDG_CONFIG_HOME");
        const char *dirs[] = { ".", xdg ? arena_printf(a, "%s/openstack", xdg) : NULL,
                home ? arena_printf(a, "%s/.config/openstack", home) : NULL, "/etc/xdg/openstack",
                "/etc/openstack" };
        if (given && access(given, F_OK) == 0)
                return arena_strdup(a, given);
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
                for (size_t j = 0; dirs[i] && j < ARRAY_SIZE(ends); j++) {
                        const char *path = arena_printf(a, "%s/%s.%s", dirs[i], name, ends[j]);
                        if (access(path, F_OK) == 0)
                                return path;
                }
        return NULL;
}

static int clouds_read(struct arena *a, const char *path, struct tree **out, struct error *err)
{
        *out = NULL;
        if (!path)
                return 0;
        int r = tree_load(a, path, out, err);
        if (r == 0 && (*out)->kind != TREE_MAP)
                return error_set(err, EINVAL, EXIT_CONFIG, "%s: expected a map with clouds", path);
        return r;
}

/* ---- looking up ---- */

static bool clouds_same(const char *a, const char *b)
{
        for (; *a && *b; a++, b++)
                if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
                        return false;
        return *a == *b;
}

static const char *clouds_text(const struct tree *map, const char *name)
{
        tree_each (t, map) {
                if (t->key && clouds_same(t->key, name) && t->kind == TREE_SCALAR)
                        return t->text;
        }
        return NULL;
}

static const char *clouds_of_env(struct arena *a, const char *name)
{
        char *variable = arena_printf(a, "OS_%s", name);
        for (char *p = variable; *p; p++)
                *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        const char *v = getenv(variable);
        return v && *v ? arena_strdup(a, v) : NULL;
}

const char *os_setting(struct arena *a, const struct os_cloud *c, const char *name)
{
        const char *v = c->environment ? clouds_of_env(a, name) : NULL;
        for (size_t i = 0; !v && i < ARRAY_SIZE(c->settings); i++)
                v = clouds_text(c->settings[i], name);
        return v;
}

static const char *clouds_auth(const struct os_cloud *c, const char *name)
{
        const char *v = NULL;
        for (size_t i = 0; !v && i < ARRAY_SIZE(c->settings); i++)
                v = clouds_text(c->settings[i] ? tree_get(c->settings[i], "auth") : NULL, name);
        return v;
}

/* What stands in auth, else beside it. */
static const char *clouds_plain(struct arena *a, const struct os_cloud *c, const char *name)
{
        const char *v = clouds_auth(c, name);
        return v ? v : os_setting(a, c, name);
}

/* The last of the spellings that is there; what stands beside auth wins. */
static const char *clouds_alias(
        struct arena *a, const struct os_cloud *c, const char *old, const char *name)
{
        const char *names[] = { old, name }, *found = NULL;
        for (size_t i = 0; i < 2; i++) {
                const char *in = names[i] ? clouds_auth(c, names[i]) : NULL;
                const char *beside = names[i] ? os_setting(a, c, names[i]) : NULL;
                found = beside ? beside : in ? in : found;
        }
        return found;
}

/* ---- which cloud ---- */

static bool clouds_env_has_one(void)
{
        static const char *const selectors[] = { "OS_CLOUD=", "OS_REGION_NAME=",
                "OS_CLIENT_CONFIG_FILE=", "OS_CLIENT_SECURE_FILE=", "OS_CLOUD_NAME=", "OS_TEST",
                "OS_STD", "OS_LOG" };
        for (char **e = environ; *e; e++) {
                bool other = has_prefix(*e, "OS_");
                for (size_t i = 0; other && i < ARRAY_SIZE(selectors); i++)
                        other = !has_prefix(*e, selectors[i]);
                if (other)
                        return true;
        }
        return false;
}

static int clouds_unknown(
        const struct tree *clouds, const char *file, const char *name, struct error *err)
{
        struct str names CLEANUP(str_release) = { 0 };
        tree_each (t, clouds)
                str_addf(&names, "%s%s", names.len ? ", " : "", t->key);
        if (!file)
                error_set(err, ENOENT, EXIT_UNREACHABLE,
                        "OpenStack: there is no clouds.yaml, and no cloud in the environment");
        else if (name)
                error_set(err, ENOENT, EXIT_UNREACHABLE, "OpenStack: there is no cloud %s in %s",
                        name, file);
        else
                error_set(err, EINVAL, EXIT_UNREACHABLE,
                        "OpenStack: %s has several clouds, and none is named", file);
        return names.len
                       ? error_hint(err, "name one of: %s", str_text(&names))
                       : error_hint(err,
                                 "put it into ~/.config/openstack/clouds.yaml, or name the file in OS_CLIENT_CONFIG_FILE");
}

static int clouds_choose(struct arena *a, const struct tree *clouds, const char *file,
        const char *name, struct os_cloud *c, struct error *err)
{
        const char *own = clouds_env("OS_CLOUD_NAME");
        bool env = clouds_env_has_one();
        own = own ? own : "envvars";
        name = name ? name : clouds_env("OS_CLOUD");
        if (!name && env)
                name = own;
        if (!name && clouds && clouds->kind == TREE_MAP && clouds->count == 1)
                name = clouds->first->key;
        c->environment = env && name && streq(name, own);
        c->name = name ? arena_strdup(a, name) : NULL;
        c->settings[1] = name && !c->environment ? tree_get(clouds, name) : NULL;
        if (!c->environment && (!c->settings[1] || c->settings[1]->kind != TREE_MAP))
                return clouds_unknown(clouds, file, name, err);
        return 0;
}

/* A vendor's profile lies below the cloud's own settings. */
static int clouds_vendor(struct arena *a, struct os_cloud *c, struct error *err)
{
        const char *profile = clouds_text(c->settings[1], "profile");
        struct tree *vendors = NULL;
        const char *file = clouds_find(a, NULL, "clouds-public");
        profile = profile ? profile : clouds_text(c->settings[1], "cloud");
        if (!profile)
                return 0;
        if (clouds_read(a, file, &vendors, err) < 0)
                return -err->code;
        const struct tree *all = vendors ? tree_get(vendors, "public-clouds") : NULL;
        c->settings[2] = all ? tree_get(all, profile) : NULL;
        if (c->settings[2])
                return 0;
        error_set(err, ENOENT, EXIT_CONFIG,
                "OpenStack: cloud %s uses the profile %s, which no clouds-public.yaml has", c->name,
                profile);
        return error_hint(err, "write its auth_url and the other settings into clouds.yaml");
}

/* ---- regions ---- */

/* A name, or {name, values}. */
static const char *clouds_region_name(const struct tree *t)
{
        return t->kind == TREE_SCALAR ? t->text : clouds_text(t, "name");
}

static const struct tree *clouds_regions(const struct os_cloud *c)
{
        const struct tree *r = c->settings[1] ? tree_get(c->settings[1], "regions") : NULL;
        if (!r && clouds_text(c->settings[1], "region_name"))
                return NULL;
        return r || !c->settings[2] ? r : tree_get(c->settings[2], "regions");
}

static int clouds_region(struct arena *a, struct os_cloud *c, const char *wanted, struct error *err)
{
        struct str names CLEANUP(str_release) = { 0 };
        const struct tree *list = clouds_regions(c);
        const char *own = os_setting(a, c, "region_name");
        if (!list || !list->count) {
                if (wanted && own && !streq(own, wanted))
                        str_add(&names, own);
                c->region = wanted ? arena_strdup(a, wanted) : own;
        }
        tree_each (t, list) {
                const char *name = clouds_region_name(t);
                str_addf(&names, "%s%s", names.len ? ", " : "", name ? name : "");
                if (c->region || !name || (wanted && !streq(name, wanted)))
                        continue;
                c->region = name;
                c->settings[0] = tree_get(t, "values");
        }
        if (c->region ? !names.len || (list && list->count) : !wanted)
                return 0;
        error_set(
                err, ENOENT, EXIT_CONFIG, "OpenStack: cloud %s has no region %s", c->name, wanted);
        return error_hint(err, "it has: %s", str_text(&names));
}

/* ---- what it says ---- */

static int clouds_auth_type(struct arena *a, struct os_cloud *c, struct error *err)
{
        static const struct {
                const char *name;
                enum os_auth auth;
        } types[] = { { "password", OS_PASSWORD }, { "v3password", OS_PASSWORD },
                { "token", OS_TOKEN }, { "v3token", OS_TOKEN },
                { "v3applicationcredential", OS_APPLICATION_CREDENTIAL } };
        const char *type = os_setting(a, c, "auth_type");
        type = type ? type : os_setting(a, c, "auth_plugin");
        if (!type) /* as the command line client guesses */
                type = c->credential_secret       ? "v3applicationcredential"
                       : c->token && !c->password ? "token"
                                                  : "password";
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (streq(types[i].name, type)) {
                        c->auth = types[i].auth;
                        return 0;
                }
        error_set(err, ENOTSUP, EXIT_UNREACHABLE,
                "OpenStack: cloud %s has auth_type %s, which is not supported", c->name, type);
        return error_hint(err,
                "use an application credential (auth_type: v3applicationcredential), a password or a token");
}

/* A domain that is said once is the user's and the project's. */
static void clouds_domains(struct os_cloud *c)
{
        bool scoped = c->project_id || c->project_name;
        if (!scoped)
                return;
        c->user_domain_id = c->user_domain_id ? c->user_domain_id : c->domain_id;
        c->user_domain_name = c->user_domain_name ? c->user_domain_name : c->domain_name;
        c->project_domain_id = c->project_domain_id ? c->project_domain_id : c->domain_id;
        c->project_domain_name = c->project_domain_name ? c->project_domain_name : c->domain_name;
        c->domain_id = c->domain_name = NULL;
}

static const char *clouds_file(struct arena *a, const char *path)
{
        const char *home = clouds_env("HOME");
        return path && has_prefix(path, "~/") && home ? arena_printf(a, "%s%s", home, path + 1)
                                                      : path;
}

/* Only {region_name} is filled in. */
static const char *clouds_format(struct arena *a, const char *text, const char *region)
{
        const char *hole = text ? strstr(text, "{region_name}") : NULL;
        return hole ? arena_printf(a, "%.*s%s%s", (int)(hole - text), text, region ? region : "",
                              hole + strlen("{region_name}"))
                    : text;
}

static void clouds_fill(struct arena *a, struct os_cloud *c)
{
        static const struct {
                const char *name, *old;
                size_t at;
                bool alias; /* the rules of clouds_alias, else those of clouds_plain */
        } rows[] = {
                { "auth_url", NULL, offsetof(struct os_cloud, auth_url), false },
                { "username", NULL, offsetof(struct os_cloud, username), false },
                { "user_id", NULL, offsetof(struct os_cloud, user_id), false },
                { "password", NULL, offsetof(struct os_cloud, password), false },
                { "system_scope", NULL, offsetof(struct os_cloud, system_scope), false },
                { "application_credential_id", NULL, offsetof(struct os_cloud, credential_id),
                        false },
                { "application_credential_name", NULL, offsetof(struct os_cloud, credential_name),
                        false },
                { "application_credential_secret", NULL,
                        offsetof(struct os_cloud, credential_secret), false },
                { "token", "auth_token", offsetof(struct os_cloud, token), true },
                { "domain_id", NULL, offsetof(struct os_cloud, domain_id), true },
                { "domain_name", NULL, offsetof(struct os_cloud, domain_name), true },
                { "user_domain_id", NULL, offsetof(struct os_cloud, user_domain_id), true },
                { "user_domain_name", NULL, offsetof(struct os_cloud, user_domain_name), true },
                { "project_domain_id", NULL, offsetof(struct os_cloud, project_domain_id), true },
                { "project_domain_name", NULL, offsetof(struct os_cloud, project_domain_name),
                        true },
                { "project_id", "tenant_id", offsetof(struct os_cloud, project_id), true },
                { "project_name", "tenant_name", offsetof(struct os_cloud, project_name), true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                *(const char **)((char *)c + rows[i].at) =
                        rows[i].alias ? clouds_alias(a, c, rows[i].old, rows[i].name)
                                      : clouds_plain(a, c, rows[i].name);
}

static void clouds_connection(struct arena *a, struct os_cloud *c)
{
        const char *verify = os_setting(a, c, "verify"), *insecure = os_setting(a, c, "insecure");
        const char *interface = os_setting(a, c, "interface");
        interface = interface ? interface : os_setting(a, c, "endpoint_type");
        c->interface = interface ? arena_strndup(a, interface,
                                           strlen(interface) - 3 * has_suffix(interface, "URL"))
                                 : "public";
        c->insecure = (insecure && !strcasecmp(insecure, "true")) ||
                      (verify && !strcasecmp(verify, "false"));
        c->ca_file = clouds_file(a, os_setting(a, c, "cacert"));
        c->cert_file = clouds_file(a, os_setting(a, c, "cert"));
        c->key_file = clouds_file(a, os_setting(a, c, "key"));
}

static int clouds_missing(const struct os_cloud *c, struct error *err)
{
        const char *missing = !c->auth_url ? "auth_url" : NULL;
        if (!missing && c->auth == OS_PASSWORD)
                missing = !c->password                  ? "password"
                          : !c->username && !c->user_id ? "username"
                                                        : NULL;
        if (!missing && c->auth == OS_TOKEN)
                missing = c->token ? NULL : "token";
        if (!missing && c->auth == OS_APPLICATION_CREDENTIAL)
                missing = !c->credential_secret ? "application_credential_secret"
                          : !c->credential_id && !c->credential_name ? "application_credential_id"
                                                                     : NULL;
        if (!missing && !has_prefix(c->auth_url, "https://") && !has_prefix(c->auth_url, "http://"))
                return error_set(err, EINVAL, EXIT_UNREACHABLE,
                        "OpenStack: the auth_url of cloud %s is no http address", c->name);
        if (!missing)
                return 0;
        error_set(err, EINVAL, EXIT_UNREACHABLE, "OpenStack: cloud %s has no %s", c->name, missing);
        return error_hint(err,
                c->environment ? "set it with OS_…" : "put it into clouds.yaml or secure.yaml");
}

int os_cloud_load(struct arena *a, const char *name, const char *region, struct os_cloud *c,
        struct error *err)
{
        const char *file = clouds_find(a, "OS_CLIENT_CONFIG_FILE", "clouds");
        const char *secure = clouds_find(a, "OS_CLIENT_SECURE_FILE", "secure");
        struct tree *t, *over;
        *c = (struct os_cloud){ 0 };
        if (clouds_read(a, file, &t, err) < 0 || clouds_read(a, secure, &over, err) < 0)
                return -err->code;
        t = t && over ? tree_merge(t, over) : t ? t : over;
        if (clouds_choose(a, t ? tree_get(t, "clouds") : NULL, file, name, c, err) < 0 ||
                clouds_vendor(a, c, err) < 0 || clouds_region(a, c, region, err) < 0)
                return -err->code;
        clouds_fill(a, c);
        clouds_domains(c);
        clouds_connection(a, c);
        c->auth_url = clouds_format(a, c->auth_url, c->region);
        if (clouds_auth_type(a, c, err) < 0)
                return -err->code;
        return clouds_missing(c, err);
}
