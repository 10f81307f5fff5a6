#include <ctype.h>
#include <strings.h>

#include "cloud/fault.h"
#include "cloud/retry.h"

#define CAUSE_MAX 600
#define CODE_MAX  100

void fault_release(struct fault *f)
{
        free(f->service);
        free(f->call);
        free(f->resource);
        free(f->code);
        free(f->cause);
        free(f->request_id);
        free(f->hint);
        *f = (struct fault){ 0 };
}

/* ---- what kind it is ---- */

struct fault_row {
        const char *code; /* a prefix with *, a suffix behind *, or the whole of it */
        enum fault_kind kind;
};
/* Codes of AWS, and types of neutron; the first that fits. */
static const struct fault_row fault_codes[] = {
        { "*.NotFound", FAULT_ABSENT },
        { "*NotFound", FAULT_ABSENT },
        { "NoSuchEntity", FAULT_ABSENT },
        { "NoSuchHostedZone", FAULT_ABSENT },
        { "AuthFailure", FAULT_CREDENTIALS },
        { "InvalidClientTokenId", FAULT_CREDENTIALS },
        { "SignatureDoesNotMatch", FAULT_CREDENTIALS },
        { "UnrecognizedClientException", FAULT_CREDENTIALS },
        { "MissingAuthenticationToken*", FAULT_CREDENTIALS },
        { "IncompleteSignature*", FAULT_CREDENTIALS },
        { "ExpiredToken*", FAULT_CREDENTIALS },
        { "RequestExpired", FAULT_CREDENTIALS },
        { "RequestTimeTooSkewed", FAULT_CREDENTIALS },
        { "UnauthorizedOperation", FAULT_FORBIDDEN },
        { "AccessDenied*", FAULT_FORBIDDEN },
        { "OptInRequired", FAULT_FORBIDDEN },
        { "DependencyViolation", FAULT_CONFLICT },
        { "*.InUse", FAULT_CONFLICT },
        { "*InUse", FAULT_CONFLICT },
        { "*.Duplicate", FAULT_CONFLICT },
        { "*AlreadyExists", FAULT_CONFLICT },
        { "*.Conflict", FAULT_CONFLICT },
        { "IdempotentParameterMismatch", FAULT_CONFLICT },
        { "OverQuota", FAULT_QUOTA },
        { "*LimitExceeded", FAULT_QUOTA },
        { "*QuotaExceeded", FAULT_QUOTA },
        { "TooMany*", FAULT_QUOTA },
        { "InsufficientInstanceCapacity", FAULT_QUOTA },
};

static bool fault_fits(const char *pattern, const char *code)
{
        size_t n = strlen(pattern);
        if (*pattern == '*')
                return has_suffix(code, pattern + 1);
        return pattern[n - 1] == '*' ? !strncmp(code, pattern, n - 1) : streq(code, pattern);
}

static enum fault_kind fault_of_status(int status)
{
        switch (status) {
        case 401:
                return FAULT_CREDENTIALS;
        case 403:
                return FAULT_FORBIDDEN;
        case 404:
        case 410:
                return FAULT_ABSENT;
        case 409:
        case 412:
                return FAULT_CONFLICT;
        case 413:
                return FAULT_QUOTA; /* nova and neutron say it so */
        case 429:
                return FAULT_THROTTLED;
        default:
                return status >= 500 ? FAULT_SERVER : FAULT_WRONG;
        }
}

static enum fault_kind fault_judge(const struct fault *f)
{
        if (f->code && retry_throttle_code(f->code))
                return FAULT_THROTTLED;
        for (size_t i = 0; f->code && i < ARRAY_SIZE(fault_codes); i++)
                if (fault_fits(fault_codes[i].code, f->code))
                        return fault_codes[i].kind;
        if (f->status == 403 && f->cause && strcasestr(f->cause, "quota"))
                return FAULT_QUOTA;
        return fault_of_status(f->status);
}

/* ---- what it says ---- */

static const char *fault_text(const json_t *o, const char *a, const char *b)
{
        const char *s = json_string_value(json_object_get(o, a));
        return s && *s ? s : b ? json_string_value(json_object_get(o, b)) : NULL;
}

/* The object that has the words: {"badRequest": {"message"}}, {"NeutronError": {…}}, {"error":
 * {…}}, {"Errors": {"Error": {…}}}, {"Error": {…}}, or the body itself. */
static const json_t *fault_inner(const json_t *body)
{
        const json_t *errors = json_object_get(body, "Errors");
        const json_t *one = errors ? json_object_get(errors, "Error") : NULL;
        const char *key;
        json_t *value;
        if (json_is_array(one))
                one = json_array_get(one, 0);
        if (json_is_object(one))
                return one;
        if (fault_text(body, "message", "Message") || fault_text(body, "faultstring", NULL))
                return body;
        json_object_foreach((json_t *)body, key,
                value) if (fault_text(value, "message", "Message")) return value;
        return body;
}

/* A page of a proxy or of WebOb, without its tags. */
static char *fault_plain(const char *text)
{
        struct str s = { 0 };
        bool tag = false, blank = true;
        for (const char *p = text; *p && s.len < 4 * CAUSE_MAX; p++) {
                if (*p == '<')
                        tag = true;
                bool gap = tag || isspace((unsigned char)*p);
                if (*p == '>')
                        tag = false;
                if (gap && !blank)
                        str_addc(&s, ' ');
                else if (!gap)
                        str_addc(&s, *p);
                blank = gap;
        }
        return str_take(&s);
}

static char *fault_tidy(const struct secrets *secrets, const char *text, size_t max)
{
        struct str s = { 0 };
        char *copy CLEANUP(free_p) = xstrdup(text);
        for (size_t n = strlen(copy);
                n && (isspace((unsigned char)copy[n - 1]) || copy[n - 1] == '.'); n--)
                copy[n - 1] = 0;
        redact(&s, secrets, copy, max);
        return str_take(&s);
}

/* "com.amazonaws.servicequotas#NoSuchResourceException:http://…" is NoSuchResourceException. */
static char *fault_code_of(const struct secrets *secrets, const char *said)
{
        const char *hash = strchr(said, '#');
        char *word CLEANUP(free_p) = xstrdup(hash ? hash + 1 : said);
        word[strcspn(word, ":")] = 0;
        return fault_tidy(secrets, word, CODE_MAX);
}

void fault_read(struct fault *f, const struct secrets *secrets, const json_t *body,
        const char *text, const char *code, const char *id)
{
        const json_t *inner = fault_inner(body);
        const char *said = fault_text(inner, "message", "Message");
        const char *type = fault_text(inner, "Code", "type");
        const char *request = fault_text(body, "RequestID", "RequestId");
        char *plain CLEANUP(free_p) = NULL;
        said = said ? said : fault_text(inner, "faultstring", NULL);
        type = type ? type : fault_text(inner, "__type", "faultcode");
        code = code && *code ? code : type;
        id = id && *id ? id : request;
        if (!said && !body)
                said = plain = fault_plain(text);
        f->code = code && *code ? fault_code_of(secrets, code) : NULL;
        f->cause = said && *said ? fault_tidy(secrets, said, CAUSE_MAX) : NULL;
        f->request_id = id && *id ? fault_tidy(secrets, id, CODE_MAX) : NULL;
        f->kind = fault_judge(f);
}

/* ---- the sentence ---- */

static const struct {
        int code;
        enum exit_status status;
        const char *hint;
} fault_kinds[] = {
        [FAULT_UNREACHABLE] = { EHOSTUNREACH, EXIT_UNREACHABLE,
                "check that this computer reaches the cloud's address, and run the command again" },
        [FAULT_CREDENTIALS] = { EACCES, EXIT_UNREACHABLE,
                "check the credentials (expired, revoked, of another cloud?), and run the command again" },
        [FAULT_FORBIDDEN] = { EPERM, EXIT_STEP, "ask for a role that allows this call" },
        [FAULT_ABSENT] = { ENOENT, EXIT_STEP, NULL },
        [FAULT_CONFLICT] = { EEXIST, EXIT_STEP, NULL },
        [FAULT_QUOTA] = { EDQUOT, EXIT_PREFLIGHT,
                "ask for a larger quota, or remove what is not needed" },
        [FAULT_THROTTLED] = { EBUSY, EXIT_UNREACHABLE,
                "the cloud limits requests: run the command again later" },
        [FAULT_WRONG] = { EINVAL, EXIT_STEP, NULL },
        [FAULT_SERVER] = { EREMOTEIO, EXIT_STEP,
                "the cloud itself failed: give the request id to its operators, or run the command again" },
        [FAULT_ANSWER] = { EPROTO, EXIT_STEP, NULL },
};

int fault_error(const struct fault *f, struct error *err)
{
        struct str s CLEANUP(str_release) = { 0 };
        const char *hint = f->hint ? f->hint : fault_kinds[f->kind].hint;
        str_addf(&s, "%s: %s", f->service, f->call);
        if (f->resource)
                str_addf(&s, " %s", f->resource);
        if (f->status)
                str_addf(&s, ": status %d", f->status);
        if (f->code)
                str_addf(&s, ": %s", f->code);
        if (f->cause)
                str_addf(&s, ": %s", f->cause);
        if (f->lost)
                str_add(&s, "; the call may have been done");
        if (f->request_id)
                str_addf(&s, " (request %s)", f->request_id);
        error_set(err, fault_kinds[f->kind].code ? fault_kinds[f->kind].code : EIO,
                fault_kinds[f->kind].status ? fault_kinds[f->kind].status : EXIT_STEP, "%s",
                str_text(&s));
        if (hint)
                error_hint(err, "%s", hint);
        return -err->code;
}
