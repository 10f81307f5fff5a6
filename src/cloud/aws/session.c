#include "cloud/aws/impl.h"
#include "cloud/aws/sigv4.h"
#include "cloud/retry.h"

#define SKEW_MIN 60 /* seconds: less is no reason for a refusal */

/* ---- services and their addresses ---- */

static const struct aws_service {
        const char *name;    /* in rows, and unless `wire` is set in addresses and signatures */
        const char *id;      /* in AWS_ENDPOINT_URL_… */
        const char *version; /* of the Query protocol */
        bool global;         /* one for the whole partition */
        const char *wire;    /* of another API of the same service */
} aws_services[] = {
        { "ec2", "ec2", "2016-11-15", false },
        { "elasticloadbalancing", "elastic_load_balancing_v2", "2015-12-01", false },
        { "elb", "elastic_load_balancing", "2012-06-01", false, "elasticloadbalancing" },
        { "sts", "sts", "2011-06-15", false },
        { "iam", "iam", "2010-05-08", true },
        { "route53", "route_53", NULL, true },
        { "tagging", "resource_groups_tagging_api", NULL, false },
        { "servicequotas", "service_quotas", NULL, false },
        { "ssm", "ssm", NULL, false },
};

static const struct {
        const char *regions;       /* prefix */
        const char *suffix, *home; /* home: the region in the signatures of global services */
        const char *iam, *route53;
} aws_partitions[] = {
        { "cn-", "amazonaws.com.cn", "cn-north-1", "iam.cn-north-1", "route53" },
        { "us-gov-", "amazonaws.com", "us-gov-west-1", "iam.us-gov", "route53.us-gov" },
        { "", "amazonaws.com", "us-east-1", "iam", "route53" },
};

static const struct aws_service *aws_service_of(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(aws_services); i++)
                if (streq(aws_services[i].name, name))
                        return &aws_services[i];
        return NULL;
}

static const char *aws_wire(const struct aws_service *v) { return v->wire ? v->wire : v->name; }

static size_t aws_partition(const char *region)
{
        size_t i = 0;
        while (!has_prefix(region, aws_partitions[i].regions))
                i++;
        return i;
}

static struct aws_session *aws_settings(struct aws_session *s) { return s->owner ? s->owner : s; }

static const char *aws_signing_region(struct aws_session *s, const struct aws_service *v)
{
        size_t p = aws_partition(s->region);
        if (v->global && streq(v->name, "route53") && has_prefix(s->region, "cn-"))
                return "cn-northwest-1";
        return v->global ? aws_partitions[p].home : s->region;
}

static void aws_address(struct aws_session *s, const struct aws_service *v, struct str *url)
{
        struct aws_session *o = aws_settings(s);
        size_t p = aws_partition(s->region);
        const char *set = o->endpoint ? o->endpoint : aws_endpoint_option(&o->files, v->id);
        if (set)
                str_addn(url, set, strlen(set) - has_suffix(set, "/"));
        else if (v->global)
                str_addf(url, "https://%s.%s",
                        streq(v->name, "iam") ? aws_partitions[p].iam : aws_partitions[p].route53,
                        aws_partitions[p].suffix);
        else
                str_addf(url, "https://%s.%s.%s", aws_wire(v), s->region, aws_partitions[p].suffix);
}

/* ---- what is sent ---- */

static void aws_form(struct call *c, const struct aws_service *v, struct str *body)
{
        struct str holes CLEANUP(str_release) = { 0 };
        str_addf(body, "Action=%s&Version=%s", c->row->path, v->version);
        call_query(c, body);
        str_addf(&holes, "&%s&", c->row->query ? c->row->query : "");
        for (size_t i = 0; i < c->nargs; i++) {
                char *hole CLEANUP(free_p) = xasprintf("={%s}&", c->args.args[i].key);
                if (!c->args.args[i].value || strstr(str_text(&holes), hole))
                        continue; /* it has its place in the row */
                str_addc(body, '&');
                uri_escape(body, c->args.args[i].key, "");
                str_addc(body, '=');
                uri_escape(body, c->args.args[i].value, "");
        }
}

static int aws_envelope(struct call *c, const struct aws_service *v, struct message *m,
        const char **type, struct error *err)
{
        m->has_body = c->row->body != BODY_NONE;
        switch (c->row->body) {
        case BODY_FORM:
                str_addc(&m->url, '/');
                aws_form(c, v, &m->body);
                *type = "application/x-www-form-urlencoded; charset=utf-8";
                return 0;
        case BODY_AMZ:
        case BODY_JSON: {
                json_t *body = c->args.body ? json_copy((json_t *)c->args.body) : json_object();
                for (size_t i = 0; i < ARRAY_SIZE(c->page); i++)
                        if (c->page[i].value)
                                json_object_set_new(
                                        body, c->page[i].key, json_string(c->page[i].value));
                char *text = json_dumps(body, JSON_COMPACT);
                json_decref(body);
                str_addc(&m->url, '/');
                str_add(&m->body, text);
                free_wiped(text);
                *type = "application/x-amz-json-1.1";
                return 0;
        }
        case BODY_XML:
                str_add(&m->body, c->args.text ? c->args.text : "");
                *type = "application/xml";
                break;
        case BODY_NONE:
                break;
        }
        return call_url(c, m, err);
}

static void aws_sign(struct aws_session *s, struct call *c, const struct aws_service *v,
        struct message *m, const char *type)
{
        struct str authorization CLEANUP(str_wipe_release) = { 0 };
        char date[SIGV4_DATE];
        struct sigv4 in = { .method = m->method,
                .url = str_text(&m->url),
                .body = str_text(&m->body),
                .len = m->body.len,
                .id = s->keys.id,
                .secret = s->keys.secret,
                .region = aws_signing_region(s, v),
                .service = aws_wire(v),
                .date = date };
        size_t n = 0;
        sigv4_date(clock_wall_ms() / 1000 + aws_settings(s)->skew, date);
        in.headers[n++] = (struct sigv4_header){ "x-amz-date", date };
        if (type)
                in.headers[n++] = (struct sigv4_header){ "content-type", type };
        if (s->keys.token)
                in.headers[n++] = (struct sigv4_header){ "x-amz-security-token", s->keys.token };
        if (c->row->body == BODY_AMZ)
                in.headers[n++] = (struct sigv4_header){ "x-amz-target", c->row->path };
        if (s->source->kind != SOURCE_NONE) {
                sigv4_sign(&authorization, &in);
                message_header(m, "Authorization", str_text(&authorization));
        }
        for (size_t i = s->source->kind == SOURCE_NONE; i < n; i++)
                message_header(m, in.headers[i].name, in.headers[i].value);
        message_header(m, "Accept",
                c->row->body == BODY_AMZ ? "application/json" : "text/xml, application/xml");
        m->headers = curl_slist_append(m->headers, "Expect:");
}

static int aws_write(struct session *base, struct call *c, struct message *m, struct error *err)
{
        struct aws_session *s = (struct aws_session *)base;
        const struct aws_service *v = aws_service_of(c->row->service);
        const char *type = NULL;
        aws_address(s, v, &m->url);
        if (aws_envelope(c, v, m, &type, err) < 0)
                return -err->code;
        aws_sign(s, c, v, m, type);
        c->stamp = s->serial;
        return 0;
}

/* ---- credentials ---- */

static enum session_state aws_ready(struct session *base, struct call *c, struct fault *f)
{
        struct aws_session *s = (struct aws_session *)base;
        int64_t now = clock_ms(), left = s->keys.expires - now;
        bool due = !s->keys.id || (s->keys.expires && renewal_due(s->keys.life, left));
        if (s->source->kind == SOURCE_NONE || !due || (s->keys.id && left > 0 && now < s->again))
                return SESSION_READY;
        if (s->fetching)
                return SESSION_WAIT;
        s->starting = f;
        keys_fetch(s);
        s->starting = NULL;
        return s->fetching ? SESSION_WAIT : f->kind ? SESSION_FAILED : SESSION_READY;
}

void keys_release(struct keys *k)
{
        free_wiped(k->id);
        free_wiped(k->secret);
        free_wiped(k->token);
        *k = (struct keys){ 0 };
}

static const char *keys_text(const json_t *d, const char *name)
{
        const char *v = json_string_value(json_object_get(d, name));
        return v && *v && strlen(v) < 8192 ? v : NULL;
}

static bool keys_take(struct aws_session *s, const json_t *d)
{
        const char *id = keys_text(d, "AccessKeyId"), *secret = keys_text(d, "SecretAccessKey");
        const char *token = keys_text(d, "SessionToken"), *until = keys_text(d, "Expiration");
        struct keys k = { 0 };
        token = token ? token : keys_text(d, "Token");
        int64_t end = until ? iso_date(until) : 0;
        int64_t left = end ? (end - clock_wall_ms() / 1000 - aws_settings(s)->skew) * 1000 : 0;
        if (!id || !secret || end < 0 || (end && left <= 0))
                return false;
        k = (struct keys){ xstrdup(id), xstrdup(secret), token ? xstrdup(token) : NULL,
                end ? clock_ms() + left : 0, left };
        keys_release(&s->keys);
        s->keys = k;
        s->serial++;
        secrets_add(&s->session.cloud->secrets, secret);
        secrets_add(&s->session.cloud->secrets, token);
        return true;
}

void keys_done(struct aws_session *s, const json_t *document, const char *why)
{
        struct str cause CLEANUP(str_release) = { 0 };
        bool good = document && keys_take(s, document);
        bool old = s->keys.id && (!s->keys.expires || s->keys.expires > clock_ms());
        redact(&cause, &s->session.cloud->secrets,
                why ? why : "the answer has no usable keys, or they have expired", 600);
        struct fault f = { .kind = FAULT_CREDENTIALS,
                .service = (char *)"AWS credentials",
                .call = (char *)s->source->origin,
                .cause = cause.data };
        s->fetching = false;
        s->again = good ? 0 : clock_ms() + 30000;
        if (!s->starting)
                session_wake(&s->session, good || old ? NULL : &f);
        else if (!good && !old)
                fault_copy(s->starting, &f);
}

/* ---- refusals ---- */

static bool aws_code_in(const struct fault *f, const char *const *codes)
{
        for (; f->code && *codes; codes++)
                if (streq(f->code, *codes))
                        return true;
        return false;
}

/* A clock that is off is refused with many codes: the Date of the answer decides. */
static bool aws_skewed(struct aws_session *s, const struct exchange *x)
{
        int64_t theirs = x->heads[HEAD_DATE] ? http_date(x->heads[HEAD_DATE]) : -1;
        struct aws_session *o = aws_settings(s);
        int64_t off = theirs - clock_wall_ms() / 1000;
        if (theirs < 0 || (off - o->skew < SKEW_MIN && o->skew - off < SKEW_MIN))
                return false;
        o->skew = off;
        s->serial++;
        return true;
}

static enum session_verdict aws_judge(
        struct session *base, struct call *c, const struct exchange *x, const struct fault *f)
{
        static const char *const clocks[] = { "RequestTimeTooSkewed", "RequestExpired",
                "RequestInTheFuture", "SignatureDoesNotMatch", "InvalidSignatureException",
                "AuthFailure", "IncompleteSignature", NULL };
        static const char *const expired[] = { "ExpiredToken", "ExpiredTokenException",
                "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException", NULL };
        struct aws_session *s = (struct aws_session *)base;
        if (aws_code_in(f, clocks) && (aws_skewed(s, x) || c->stamp != s->serial))
                return VERDICT_AGAIN; /* or another call has set the clock since it was signed */
        if (!aws_code_in(f, expired) || s->source->kind <= SOURCE_STATIC)
                return VERDICT_FINAL;
        if (c->stamp == s->serial) /* another call may have seen it first */
                keys_release(&s->keys);
        return VERDICT_AGAIN;
}

static const struct fault *aws_trouble(struct session *base)
{
        const struct aws_session *s = (const struct aws_session *)base;
        return s->call && s->call->last.kind ? &s->call->last : NULL;
}

static const char *aws_name(struct session *s, const struct call_row *row) { return row->service; }

/* ---- life ---- */

static const struct session_ops aws_ops = { aws_ready, aws_write, aws_judge, aws_trouble,
        aws_name };

static bool aws_region_valid(const char *r)
{
        return *r && strlen(r) < 40 && !r[strspn(r, "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

int aws_open(
        struct cloud *c, const struct aws_options *o, struct aws_session **out, struct error *err)
{
        struct aws_session *s = xcalloc(1, sizeof(*s));
        s->session = (struct session){ .ops = &aws_ops, .cloud = c };
        int r = aws_files_load(&s->files, o->profile, err);
        if (r == 0)
                r = aws_source_find(&s->files, &s->source, err);
        const char *region = r < 0 ? NULL : o->region ? o->region : aws_region(&s->files);
        if (r == 0 && (!region || !aws_region_valid(region))) {
                r = error_set(err, EINVAL, EXIT_CONFIG, "AWS: %s",
                        region ? "the name of the region has other characters than a-z, 0-9 and -"
                               : "no region is set");
                error_hint(err, "set the region, for example eu-central-1");
        }
        if (r < 0) {
                aws_free(s);
                return r;
        }
        s->region = xstrdup(region);
        s->endpoint = o->endpoint ? xstrdup(o->endpoint) : NULL;
        *out = s;
        return 0;
}

struct aws_session *aws_helper(struct aws_session *owner, const struct source *source)
{
        struct aws_session *s = xcalloc(1, sizeof(*s));
        s->session = owner->session;
        s->source = source;
        s->owner = aws_settings(owner);
        s->region = xstrdup(owner->region);
        return s;
}

/* Its calls end with it, without callbacks. */
void aws_free(struct aws_session *s)
{
        if (!s)
                return;
        keys_stop(s);
        session_cancel(&s->session);
        keys_release(&s->keys);
        aws_files_release(&s->files);
        free(s->region);
        free(s->endpoint);
        free(s);
}

struct session *aws_session(struct aws_session *s) { return &s->session; }

const char *aws_session_region(const struct aws_session *s) { return s->region; }

const char *aws_session_origin(const struct aws_session *s) { return s->source->origin; }
