#include <ctype.h>

#include "base/file.h"
#include "cloud/aws/source.h"

#define ROLES_MAX 8 /* profiles that a role's keys come from, one behind the other */

static const char *source_env(const char *name)
{
        const char *v = getenv(name);
        return v && *v ? v : NULL;
}

/* ---- the files ---- */

static const char *source_path(struct arena *a, const char *variable, const char *name)
{
        const char *path = source_env(variable), *home = source_env("HOME");
        if (!path)
                return arena_printf(a, "%s/.aws/%s", home ? home : "", name);
        return has_prefix(path, "~/") && home ? arena_printf(a, "%s%s", home, path + 1)
                                              : arena_strdup(a, path);
}

int aws_files_load(struct aws_files *f, const char *profile, struct error *err)
{
        *f = (struct aws_files){ .explicit = profile != NULL };
        struct arena *a = &f->arena;
        const char *named = profile ? profile : source_env("AWS_DEFAULT_PROFILE");
        named = named ? named : source_env("AWS_PROFILE");
        f->profile = arena_strdup(a, named ? named : "default");
        if (ini_load(a, source_path(a, "AWS_CONFIG_FILE", "config"), &f->config, err) < 0 ||
                ini_load(a, source_path(a, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                        &f->credentials, err) < 0)
                return error_hint(err,
                        "correct the file, or name another in AWS_CONFIG_FILE or AWS_SHARED_CREDENTIALS_FILE");
        return 0;
}

void aws_files_release(struct aws_files *f)
{
        arena_release(&f->arena);
        *f = (struct aws_files){ 0 };
}

/* The section "[KIND NAME]" of config, whose name may be quoted; the last one counts. */
static const struct ini_section *source_titled(
        const struct aws_files *f, const char *kind, const char *name)
{
        const struct ini_section *found = NULL;
        struct arena a CLEANUP(arena_release) = { 0 };
        for (const struct ini_section *s = f->config.first; s; s = s->next) {
                size_t n = 0;
                if (!has_prefix(s->name, kind))
                        continue;
                const char **words = words_split(&a, s->name, &n);
                if (words && n == 2 && streq(words[1], name))
                        found = s;
        }
        return found;
}

static const struct ini_section *source_config(const struct aws_files *f, const char *profile)
{
        const struct ini_section *s = source_titled(f, "profile", profile), *plain = NULL;
        if (streq(profile, "default"))
                plain = ini_section(&f->config, profile);
        return s ? s : plain;
}

const char *aws_option(const struct aws_files *f, const char *profile, const char *option)
{
        const char *v = ini_get(ini_section(&f->credentials, profile), option);
        return v ? v : ini_get(source_config(f, profile), option);
}

const char *aws_region(const struct aws_files *f)
{
        const char *r = source_env("AWS_REGION");
        r = r ? r : source_env("AWS_DEFAULT_REGION");
        return r ? r : aws_option(f, f->profile, "region");
}

const char *aws_endpoint_option(struct aws_files *f, const char *service)
{
        struct arena *a = &f->arena;
        const char *ignore = source_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
        const char *services = aws_option(f, f->profile, "services");
        if (ignore && !strcasecmp(ignore, "true"))
                return NULL;
        char *variable = arena_printf(a, "AWS_ENDPOINT_URL_%s", service);
        for (char *p = variable; *p; p++)
                *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        const char *v = source_env(variable);
        v = v ? v : source_env("AWS_ENDPOINT_URL");
        if (!v && services)
                v = ini_nested(a, ini_get(source_titled(f, "services", services), service),
                        "endpoint_url");
        return v ? v : aws_option(f, f->profile, "endpoint_url");
}

/* ---- the chain ---- */

static int source_partial(const char *where, const char *missing, struct error *err)
{
        error_set(err, EINVAL, EXIT_UNREACHABLE, "AWS credentials: %s has no %s", where, missing);
        return error_hint(err, "set both parts of the key");
}

static struct source *source_new(struct aws_files *f, enum source_kind kind, const char *origin)
{
        struct source *s = arena_new(&f->arena, struct source);
        s->kind = kind;
        s->origin = origin;
        return s;
}

/* 1: found. 0: not here. */
static int source_of_env(struct aws_files *f, const struct source **out, struct error *err)
{
        const char *id = source_env("AWS_ACCESS_KEY_ID"),
                   *secret = source_env("AWS_SECRET_ACCESS_KEY");
        const char *token = source_env("AWS_SESSION_TOKEN");
        if (!id)
                return 0;
        if (!secret)
                return source_partial("the environment", "AWS_SECRET_ACCESS_KEY", err);
        struct source *s = source_new(f, SOURCE_STATIC, "the environment");
        s->id = arena_strdup(&f->arena, id);
        s->secret = arena_strdup(&f->arena, secret);
        token = token ? token : source_env("AWS_SECURITY_TOKEN");
        s->token = token ? arena_strdup(&f->arena, token) : NULL;
        *out = s;
        return 1;
}

static int source_of_section(struct aws_files *f, const struct ini *file,
        const struct ini_section *section, const char *profile, const struct source **out,
        struct error *err)
{
        const char *id = ini_get(section, "aws_access_key_id");
        const char *token = ini_get(section, "aws_session_token");
        if (!id)
                return 0;
        const char *origin = arena_printf(&f->arena, "profile %s in %s", profile, file->file);
        struct source *s = source_new(f, SOURCE_STATIC, origin);
        s->id = id;
        s->secret = ini_get(section, "aws_secret_access_key");
        s->token = token ? token : ini_get(section, "aws_security_token");
        if (!s->secret)
                return source_partial(origin, "aws_secret_access_key", err);
        *out = s;
        return 1;
}

static int source_of_web(
        struct aws_files *f, const char *profile, bool env, const struct source **out)
{
        const char *file = env ? source_env("AWS_WEB_IDENTITY_TOKEN_FILE") : NULL;
        const char *role = env ? source_env("AWS_ROLE_ARN") : NULL;
        const char *name = env ? source_env("AWS_ROLE_SESSION_NAME") : NULL;
        file = file ? file : aws_option(f, profile, "web_identity_token_file");
        role = role ? role : aws_option(f, profile, "role_arn");
        name = name ? name : aws_option(f, profile, "role_session_name");
        if (!file || !role)
                return 0;
        struct source *s =
                source_new(f, SOURCE_WEB, arena_printf(&f->arena, "the web identity of %s", role));
        s->token_file = file;
        s->role = role;
        s->session_name = name;
        *out = s;
        return 1;
}

static int source_no_sso(const struct aws_files *f, const char *profile, struct error *err)
{
        if (!aws_option(f, profile, "sso_session") && !aws_option(f, profile, "sso_start_url") &&
                !aws_option(f, profile, "sso_account_id"))
                return 0;
        error_set(err, ENOTSUP, EXIT_UNREACHABLE,
                "AWS credentials: profile %s uses single sign-on, which only AWS's own program can do",
                profile);
        return error_hint(err,
                "log in, put the keys into the environment with: eval \"$(aws configure export-credentials --profile %s --format env)\", and leave the profile out",
                profile);
}

/* The providers of one profile, without roles. */
static int source_of_profile(struct aws_files *f, const char *profile, bool env,
        const struct source **out, struct error *err)
{
        const char *command = aws_option(f, profile, "credential_process");
        int r = source_of_web(f, profile, env, out);
        if (r == 0)
                r = source_no_sso(f, profile, err);
        if (r == 0)
                r = source_of_section(f, &f->credentials, ini_section(&f->credentials, profile),
                        profile, out, err);
        if (r == 0 && command) {
                struct source *s = source_new(f, SOURCE_PROCESS,
                        arena_printf(&f->arena, "credential_process of profile %s", profile));
                s->command = command;
                *out = s;
                r = 1;
        }
        return r ? r
                 : source_of_section(f, &f->config, source_config(f, profile), profile, out, err);
}

static int source_of_container(struct aws_files *f, const struct source **out, struct error *err)
{
        static const char *const near[] = { "http://127.", "http://localhost", "http://[::1]",
                "http://169.254.170.2/", "http://169.254.170.23/", "http://[fd00:ec2::23]",
                "https://" };
        const char *relative = source_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        const char *full = source_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        const char *key = source_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
        const char *file = source_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        bool fine = relative != NULL;
        if (!relative && !full)
                return 0;
        for (size_t i = 0; !relative && i < ARRAY_SIZE(near); i++)
                fine |= has_prefix(full, near[i]);
        if (!fine)
                return error_set(err, EINVAL, EXIT_UNREACHABLE,
                        "AWS credentials: AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor this host");
        struct source *s = source_new(f, SOURCE_CONTAINER, "the container's credentials");
        s->url = relative ? arena_printf(&f->arena, "http://169.254.170.2%s", relative)
                          : arena_strdup(&f->arena, full);
        s->authorization = key ? arena_strdup(&f->arena, key) : NULL;
        s->authorization_file = file ? arena_strdup(&f->arena, file) : NULL;
        *out = s;
        return 1;
}

static int source_of_instance(struct aws_files *f, const struct source **out)
{
        const char *off = source_env("AWS_EC2_METADATA_DISABLED");
        const char *at = source_env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        at = at ? at : aws_option(f, f->profile, "ec2_metadata_service_endpoint");
        if (off && !strcasecmp(off, "true"))
                return 0;
        struct source *s = source_new(f, SOURCE_INSTANCE, "the instance's metadata");
        at = at ? at : "http://169.254.169.254";
        s->url = arena_strndup(&f->arena, at, strlen(at) - has_suffix(at, "/"));
        *out = s;
        return 1;
}

static int source_of_role(struct aws_files *f, const char *profile, unsigned depth,
        const struct source **out, struct error *err);

/* The keys that a role is assumed with. */
static int source_behind(struct aws_files *f, const char *profile, unsigned depth,
        const struct source **out, struct error *err)
{
        const char *named = aws_option(f, profile, "source_profile");
        const char *kind = aws_option(f, profile, "credential_source");
        int r = 0;
        if (named && !aws_option(f, named, "aws_access_key_id") && !streq(named, profile))
                r = source_of_role(f, named, depth + 1, out, err);
        if (named && r == 0)
                r = source_of_profile(f, named, false, out, err);
        else if (kind && streq(kind, "Environment"))
                r = source_of_env(f, out, err);
        else if (kind && streq(kind, "EcsContainer"))
                r = source_of_container(f, out, err);
        else if (kind && streq(kind, "Ec2InstanceMetadata"))
                r = source_of_instance(f, out);
        if (r)
                return r;
        error_set(err, EINVAL, EXIT_UNREACHABLE,
                "AWS credentials: profile %s has role_arn, and nothing to assume it with", profile);
        return error_hint(err, "set source_profile, or credential_source");
}

static int source_of_role(struct aws_files *f, const char *profile, unsigned depth,
        const struct source **out, struct error *err)
{
        const char *role = aws_option(f, profile, "role_arn");
        const struct source *from = NULL;
        if (!role || aws_option(f, profile, "web_identity_token_file"))
                return 0;
        if (depth >= ROLES_MAX)
                return error_set(err, ELOOP, EXIT_UNREACHABLE,
                        "AWS credentials: the source_profile of profile %s leads back to it",
                        profile);
        if (aws_option(f, profile, "mfa_serial")) {
                error_set(err, ENOTSUP, EXIT_UNREACHABLE,
                        "AWS credentials: profile %s asks for a second factor", profile);
                return error_hint(err,
                        "put the keys into the environment with: eval \"$(aws configure export-credentials --profile %s --format env)\"",
                        profile);
        }
        int r = source_behind(f, profile, depth, &from, err);
        if (r < 0)
                return r;
        struct source *s = source_new(
                f, SOURCE_ROLE, arena_printf(&f->arena, "role %s of profile %s", role, profile));
        s->role = role;
        s->session_name = aws_option(f, profile, "role_session_name");
        s->external_id = aws_option(f, profile, "external_id");
        s->duration = aws_option(f, profile, "duration_seconds");
        s->from = from;
        *out = s;
        return 1;
}

int aws_source_find(struct aws_files *f, const struct source **out, struct error *err)
{
        bool known = source_config(f, f->profile) || ini_section(&f->credentials, f->profile);
        bool named = f->explicit || source_env("AWS_PROFILE") || source_env("AWS_DEFAULT_PROFILE");
        int r = f->explicit ? 0 : source_of_env(f, out, err);
        if (r == 0 && named && !known) {
                error_set(err, ENOENT, EXIT_UNREACHABLE,
                        "AWS credentials: there is no profile %s in %s or %s", f->profile,
                        f->config.file, f->credentials.file);
                return error_hint(err, "check the name of the profile, and AWS_PROFILE");
        }
        if (r == 0)
                r = source_of_role(f, f->profile, 0, out, err);
        if (r == 0)
                r = source_of_profile(f, f->profile, !f->explicit, out, err);
        if (r == 0)
                r = source_of_container(f, out, err);
        if (r == 0)
                r = source_of_instance(f, out);
        if (r == 0) {
                error_set(err, ENOENT, EXIT_UNREACHABLE, "AWS credentials: there are none");
                return error_hint(
                        err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE");
        }
        return r < 0 ? r : 0;
}
