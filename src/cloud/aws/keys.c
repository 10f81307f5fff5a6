/* Keys from where the chain found them. Each way ends once, in keys_done. */
#include <signal.h>

#include "base/file.h"
#include "base/proc.h"
#include "cloud/aws/impl.h"

#define INSTANCE_MS 4000 /* on a computer that is no instance nobody answers */
#define PROGRAM_MAX ((size_t)64 << 10)

const struct call_row aws_assume_role = { .name = "assume role",
        .service = "sts",
        .method = "POST",
        .path = "AssumeRole",
        .body = BODY_FORM };
const struct call_row aws_assume_web = { .name = "assume role by web identity",
        .service = "sts",
        .method = "POST",
        .path = "AssumeRoleWithWebIdentity",
        .body = BODY_FORM };
static const struct call_row keys_get = {
        .name = "fetch credentials", .service = "metadata", .method = "GET", .path = "{url}"
};
static const struct call_row keys_get_text = { .name = "fetch the role's name",
        .service = "metadata",
        .method = "GET",
        .path = "{url}",
        .wrap = CALL_TEXT };
static const struct call_row keys_put = { .name = "fetch a metadata token",
        .service = "metadata",
        .method = "PUT",
        .path = "{url}",
        .wrap = CALL_TEXT };

static void keys_failed(struct aws_session *s, const struct fault *f)
{
        struct error err CLEANUP(error_release) = { 0 };
        fault_error(f, &err);
        keys_done(s, NULL, err.message);
}

/* ---- a program ---- */

static void keys_on_out(struct proc *p, const char *data, size_t n, void *arg)
{
        struct aws_session *s = arg;
        if (n <= PROGRAM_MAX - s->said.len)
                str_addn(&s->said, data, n);
}

static void keys_on_exit(struct proc *p, int status, void *arg)
{
        struct aws_session *s = arg;
        s->proc = NULL;
        json_t *d = json_loadb(str_text(&s->said), s->said.len, 0, NULL);
        str_wipe_release(&s->said);
        bool version = json_integer_value(json_object_get(d, "Version")) == 1;
        if (status)
                keys_done(s, NULL, "the program failed");
        else
                keys_done(s, version ? d : NULL,
                        version ? NULL : "the program did not print a document with Version 1");
        json_decref(d);
}

static void keys_of_program(struct aws_session *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        size_t n = 0;
        const char **argv = words_split(&a, s->source->command, &n);
        struct proc_spec spec = {
                .argv = argv, .on_out = keys_on_out, .on_exit = keys_on_exit, .arg = s
        };
        if (!argv || !n)
                keys_done(s, NULL, "the command is empty, or has a quote that is not closed");
        else if (proc_start(s->session.cloud->base, &spec, &s->proc, &err) < 0)
                keys_done(s, NULL, err.message);
        else
                proc_end_input(s->proc);
}

/* ---- roles ---- */

static void keys_on_role(const struct call_reply *reply, void *arg)
{
        struct aws_session *s = arg, *helper = TAKE(s->helper);
        s->call = NULL;
        if (reply->fault) {
                keys_failed(s, reply->fault);
        } else {
                const json_t *d = answer_at(reply->body, "AssumeRoleResult.Credentials");
                keys_done(s,
                        d ? d
                          : answer_at(reply->body, "AssumeRoleWithWebIdentityResult.Credentials"),
                        NULL);
        }
        aws_free(helper);
}

static void keys_of_role(struct aws_session *s)
{
        const struct source *src = s->source;
        struct pair args[] = { { "RoleArn", src->role },
                { "RoleSessionName", src->session_name ? src->session_name : "slipway" },
                { "ExternalId", src->external_id }, { "DurationSeconds", src->duration }, { 0 } };
        s->helper = aws_helper(s, src->from);
        s->call = call_start(&s->helper->session, &aws_assume_role,
                &(struct call_args){ .args = args }, keys_on_role, s);
}

static void keys_of_web(struct aws_session *s)
{
        static const struct source nobody = { .kind = SOURCE_NONE, .origin = "nobody" };
        struct error err CLEANUP(error_release) = { 0 };
        struct str token CLEANUP(str_wipe_release) = { 0 };
        const struct source *src = s->source;
        if (file_read(src->token_file, PROGRAM_MAX, &token, &err) < 0) {
                keys_done(s, NULL, err.message);
                return;
        }
        secrets_add(&s->session.cloud->secrets, str_text(&token));
        struct pair args[] = { { "RoleArn", src->role },
                { "RoleSessionName", src->session_name ? src->session_name : "slipway" },
                { "WebIdentityToken", str_text(&token) }, { 0 } };
        s->helper = aws_helper(s, &nobody);
        s->call = call_start(&s->helper->session, &aws_assume_web,
                &(struct call_args){ .args = args }, keys_on_role, s);
}

/* ---- containers and instances ---- */

static void keys_on_document(const struct call_reply *reply, void *arg)
{
        struct aws_session *s = arg;
        s->call = NULL;
        if (reply->fault)
                keys_failed(s, reply->fault);
        else
                keys_done(s, reply->body, NULL);
}

static void keys_of_container(struct aws_session *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str key CLEANUP(str_wipe_release) = { 0 };
        const struct source *src = s->source;
        if (src->authorization_file &&
                file_read(src->authorization_file, PROGRAM_MAX, &key, &err) < 0) {
                keys_done(s, NULL, err.message);
                return;
        }
        const char *word = src->authorization_file ? str_text(&key) : src->authorization;
        secrets_add(&s->session.cloud->secrets, word);
        struct pair args[] = { { "url", src->url }, { word ? "Authorization" : NULL, word },
                { 0 } };
        s->call = call_start(&s->plain.session, &keys_get, &(struct call_args){ .args = args },
                keys_on_document, s);
}

#define INSTANCE_PATH "/latest/meta-data/iam/security-credentials/"

static void keys_ask_instance(struct aws_session *s, const struct call_row *row, const char *name,
        const char *header, const char *value, call_fn fn)
{
        char *url CLEANUP(free_p) = xasprintf("%s%s", s->source->url, name);
        struct pair args[] = { { "url", url }, { header, value }, { 0 } };
        s->call = call_start(&s->plain.session, row,
                &(struct call_args){ .args = args, .timeout_ms = INSTANCE_MS }, fn, s);
}

static void keys_on_role_name(const struct call_reply *reply, void *arg)
{
        struct aws_session *s = arg;
        struct str path CLEANUP(str_release) = { 0 };
        const char *name = json_string_value(reply->body);
        s->call = NULL;
        if (reply->fault || !name || !*name) {
                keys_done(s, NULL, "the instance has no profile with a role");
                return;
        }
        char *first CLEANUP(free_p) = xstrndup(name, strcspn(name, " \r\n"));
        str_add(&path, INSTANCE_PATH);
        uri_escape(&path, first, "");
        keys_ask_instance(s, &keys_get, str_text(&path), "X-aws-ec2-metadata-token",
                s->instance_token, keys_on_document);
}

static void keys_on_instance_token(const struct call_reply *reply, void *arg)
{
        struct aws_session *s = arg;
        const char *token = json_string_value(reply->body);
        s->call = NULL;
        if (reply->fault || !token || strlen(token) > 1024 || strpbrk(token, "\r\n")) {
                keys_done(s, NULL,
                        "there are no credentials in the environment or a profile, and no metadata service answers");
                return;
        }
        free_wiped(s->instance_token);
        s->instance_token = xstrdup(token);
        secrets_add(&s->session.cloud->secrets, token);
        keys_ask_instance(s, &keys_get_text, INSTANCE_PATH, "X-aws-ec2-metadata-token", token,
                keys_on_role_name);
}

/* ---- all ---- */

static void keys_of_file(struct aws_session *s)
{
        const struct source *src = s->source;
        json_t *d = json_pack("{s:s, s:s, s:s?}", "AccessKeyId", src->id, "SecretAccessKey",
                src->secret, "SessionToken", src->token);
        keys_done(s, d, d ? NULL : "the keys are not UTF-8");
        json_decref(d);
}

static const char *keys_name(struct session *s, const struct call_row *row)
{
        return "AWS credentials";
}

void keys_fetch(struct aws_session *s)
{
        s->fetching = true;
        session_plain_init(&s->plain, s->session.cloud, keys_name);
        switch (s->source->kind) {
        case SOURCE_NONE:
                break;
        case SOURCE_STATIC:
                keys_of_file(s);
                break;
        case SOURCE_PROCESS:
                keys_of_program(s);
                break;
        case SOURCE_ROLE:
                keys_of_role(s);
                break;
        case SOURCE_WEB:
                keys_of_web(s);
                break;
        case SOURCE_CONTAINER:
                keys_of_container(s);
                break;
        case SOURCE_INSTANCE:
                keys_ask_instance(s, &keys_put, "/latest/api/token",
                        "X-aws-ec2-metadata-token-ttl-seconds", "21600", keys_on_instance_token);
                break;
        }
}

void keys_stop(struct aws_session *s)
{
        call_cancel(TAKE(s->call));
        proc_free(TAKE(s->proc));
        aws_free(TAKE(s->helper));
        str_wipe_release(&s->said);
        free_wiped(TAKE(s->instance_token));
}
