#include "cloud/openstack/auth.h"
#include "cloud/openstack/openstack.h"
#include "cloud/retry.h"
#include "cloud/session.h"

#define OLDEST "2.53" /* of nova: enough for lists */

struct os_session {
        struct session session;
        struct session_plain plain;
        struct arena arena;
        struct os_cloud cloud;
        char *auth_url;
        char *token, *project, *user;
        json_t *catalogue, *roles;
        int64_t expires, life; /* clock_ms, milliseconds */
        int64_t again;         /* clock_ms: no renewal before, after one that failed */
        unsigned serial;       /* of the token */
        struct call *renewal, *negotiation;
        const char *compute; /* microversion */
        bool balancer;       /* Octavia is new enough */
        bool refused;        /* nova does not know the oldest version that lists are asked with */
};

static const struct os_service {
        const char *type, *name; /* in rows; in sentences */
        const char *others[2];   /* in catalogues */
        const char *version;     /* put behind an address that has none */
} os_services[] = {
        { "compute", "nova", { NULL }, "/v2.1" },
        { "network", "neutron", { NULL }, "/v2.0" },
        { "block-storage", "cinder", { "volumev3", "block-store" }, "/v3" },
        { "load-balancer", "octavia", { NULL }, "/v2" },
        { "image", "glance", { NULL }, "/v2" },
        { "identity", "keystone", { NULL }, "/v3" },
};

static const struct call_row os_token_row = { .name = "issue a token",
        .service = "identity",
        .method = "POST",
        .path = "{url}",
        .body = BODY_JSON }; /* a second one hurts nobody */
static const struct call_row os_compute_row = {
        .name = "ask for its versions", .service = "compute", .method = "GET", .path = "{url}"
};
static const struct call_row os_balancer_row = {
        .name = "ask for its versions", .service = "load-balancer", .method = "GET", .path = "{url}"
};

static const struct os_service *os_service_of(const char *type)
{
        for (size_t i = 0; i < ARRAY_SIZE(os_services); i++)
                if (streq(os_services[i].type, type))
                        return &os_services[i];
        abort();
}

/* ---- the token ---- */

static void os_set(char **to, const char *value)
{
        free_wiped(*to);
        *to = value ? xstrdup(value) : NULL;
}

/* How long it lives is counted by the cloud's own clock: ours may be off. */
static bool os_take_token(struct os_session *s, const struct call_reply *reply)
{
        const json_t *t = json_object_get(reply->body, "token");
        const char *until = json_string_value(json_object_get(t, "expires_at"));
        const char *since = json_string_value(json_object_get(t, "issued_at"));
        int64_t end = until ? iso_date(until) : -1, start = since ? iso_date(since) : -1;
        int64_t now = reply->date > 0 ? reply->date : start > 0 ? start : clock_wall_ms() / 1000;
        if (!reply->token || !*reply->token || end <= now)
                return false;
        os_set(&s->token, reply->token);
        os_set(&s->project, json_string_value(answer_at(t, "project.id")));
        os_set(&s->user, json_string_value(answer_at(t, "user.id")));
        json_decref(s->catalogue);
        s->catalogue = json_incref(json_object_get(t, "catalog"));
        json_decref(s->roles);
        s->roles = json_incref(json_object_get(t, "roles"));
        s->life = (end - now) * 1000;
        s->expires = clock_ms() + s->life;
        s->serial++;
        secrets_add(&s->session.cloud->secrets, s->token);
        return true;
}

static void os_on_token(const struct call_reply *reply, void *arg)
{
        struct os_session *s = arg;
        struct fault odd = { .kind = FAULT_ANSWER,
                .service = (char *)"keystone",
                .call = (char *)"issue a token",
                .cause = (char *)"the answer has no token that is still good" };
        const struct fault *f = reply->fault;
        s->renewal = NULL;
        if (!f && !os_take_token(s, reply))
                f = &odd;
        bool old = s->token && s->expires > clock_ms();
        s->again = f ? clock_ms() + 10000 : 0;
        session_wake(&s->session, f && !old ? f : NULL);
}

static void os_renew(struct os_session *s)
{
        char *url CLEANUP(free_p) = xasprintf("%s/auth/tokens", s->auth_url);
        struct pair args[] = { { "url", url }, { 0 } };
        json_t *body = os_token_body(&s->cloud);
        s->renewal = call_start(&s->plain.session, &os_token_row,
                &(struct call_args){ .args = args, .body = body }, os_on_token, s);
        json_decref(body);
}

/* ---- addresses ---- */

static bool os_versioned(const char *url)
{
        for (const char *p = url; (p = strstr(p, "/v")); p++)
                if (p[2] >= '1' && p[2] <= '9' && p != strchr(url, '/') + 1)
                        return true;
        return false;
}

static bool os_type_fits(const struct os_service *v, const char *type)
{
        return type && (streq(type, v->type) || (v->others[0] && streq(type, v->others[0])) ||
                               (v->others[1] && streq(type, v->others[1])));
}

static bool os_is(const json_t *o, const char *name, const char *value)
{
        const char *v = json_string_value(json_object_get(o, name));
        return v && streq(v, value);
}

static const char *os_in_catalogue(const struct os_session *s, const struct os_service *v)
{
        const json_t *entry, *e;
        size_t i, j;
        json_array_foreach(s->catalogue, i, entry)
        {
                if (!os_type_fits(v, json_string_value(json_object_get(entry, "type"))))
                        continue;
                json_array_foreach(json_object_get(entry, "endpoints"), j, e)
                {
                        bool here = !s->cloud.region || os_is(e, "region", s->cloud.region) ||
                                    os_is(e, "region_id", s->cloud.region);
                        const char *url = json_string_value(json_object_get(e, "url"));
                        if (here && os_is(e, "interface", s->cloud.interface) && url &&
                                has_prefix(url, "http"))
                                return url;
                }
        }
        return NULL;
}

bool os_has(const struct os_session *s, const char *service)
{
        return os_in_catalogue(s, os_service_of(service)) != NULL;
}

static const char *os_override(struct os_session *s, const struct os_service *v)
{
        const char *names[] = { v->type, v->others[0], v->others[1], NULL };
        for (size_t i = 0; names[i]; i++) {
                char *key CLEANUP(free_p) = xasprintf("%s_endpoint_override", names[i]);
                const char *url = os_setting(&s->arena, &s->cloud, key);
                if (url)
                        return url;
        }
        return NULL;
}

static int os_address(
        struct os_session *s, const struct os_service *v, struct str *url, struct error *err)
{
        const char *at = streq(v->type, "identity") ? s->auth_url : os_override(s, v);
        at = at ? at : os_in_catalogue(s, v);
        if (!at) {
                error_set(err, ENOENT, EXIT_STEP, "the catalogue has no %s address of %s%s%s",
                        s->cloud.interface, v->type, s->cloud.region ? " in region " : "",
                        s->cloud.region ? s->cloud.region : "");
                return error_hint(err,
                        "check region_name and interface in clouds.yaml, and that the cloud has this service");
        }
        str_addn(url, at, strlen(at) - has_suffix(at, "/"));
        if (!os_versioned(str_text(url)))
                str_add(url, v->version);
        return 0;
}

/* ---- versions ---- */

/* "2.96" and "v2.26" are 296 and 226; 0: it is none of major 2. */
static unsigned os_minor(const char *text)
{
        text += text && *text == 'v';
        if (!text || !has_prefix(text, "2."))
                return 0;
        return 1 + (unsigned)strtoul(text + 2, NULL, 10);
}

/* The highest minor, plus one, that a version document offers. */
static unsigned os_highest(const json_t *body)
{
        const json_t *one = json_object_get(body, "version"), *v;
        const char *said = json_string_value(json_object_get(one, "version"));
        unsigned most = said ? os_minor(said) : 0;
        size_t i;
        json_array_foreach(json_object_get(body, "versions"), i, v)
        {
                const char *max = json_string_value(json_object_get(v, "version"));
                const char *id = json_string_value(json_object_get(v, "id"));
                unsigned n = max && *max ? os_minor(max) : id ? os_minor(id) : 0;
                most = n > most ? n : most;
        }
        return most;
}

static void os_refuse(struct os_session *s, const char *name, const char *what, unsigned most)
{
        char *cause CLEANUP(free_p) = xasprintf("it offers %s2.%u, and slipway needs %s",
                most ? "at most " : "no API ", most ? most - 1 : 0, what);
        struct fault f = { .kind = FAULT_WRONG,
                .service = (char *)name,
                .call = (char *)"ask for its versions",
                .cause = cause,
                .hint = (char *)"the cloud must be upgraded" };
        session_wake(&s->session, &f);
}

static void os_on_compute(const struct call_reply *reply, void *arg)
{
        struct os_session *s = arg;
        unsigned most = reply->fault ? 0 : os_highest(reply->body);
        s->negotiation = NULL;
        s->compute = most > 64 ? "2.64" : most > 53 ? OLDEST : NULL;
        if (reply->fault)
                session_wake(&s->session, reply->fault);
        else if (!s->compute)
                os_refuse(s, "nova", OLDEST, most);
        else
                session_wake(&s->session, NULL);
}

static void os_on_balancer(const struct call_reply *reply, void *arg)
{
        struct os_session *s = arg;
        unsigned most = reply->fault ? 0 : os_highest(reply->body);
        s->negotiation = NULL;
        s->balancer = most > 5;
        if (reply->fault)
                session_wake(&s->session, reply->fault);
        else if (!s->balancer)
                os_refuse(s, "octavia", "2.5 (tags)", most);
        else
                session_wake(&s->session, NULL);
}

/* Nova's document is at its versioned address, Octavia's above it. */
static void os_root(struct str *url, const char *address, const char *project, bool above)
{
        size_t n = strlen(address);
        if (project && has_suffix(address, project))
                n -= strlen(project);
        while (n && address[n - 1] == '/')
                n--;
        str_addn(url, address, n);
        char *slash = strrchr(url->data, '/');
        if (above && slash && slash[1] == 'v')
                str_truncate(url, (size_t)(slash - url->data));
        str_addc(url, '/');
}

static int os_negotiate(
        struct os_session *s, const struct os_service *v, bool compute, struct error *err)
{
        struct str url CLEANUP(str_release) = { 0 }, at CLEANUP(str_release) = { 0 };
        if (os_address(s, v, &at, err) < 0)
                return -err->code;
        os_root(&url, str_text(&at), s->project, !compute);
        struct pair args[] = { { "url", str_text(&url) }, { "X-Auth-Token", s->token }, { 0 } };
        s->negotiation = call_start(&s->plain.session, compute ? &os_compute_row : &os_balancer_row,
                &(struct call_args){ .args = args }, compute ? os_on_compute : os_on_balancer, s);
        return 0;
}

/* ---- the session ---- */

/* A list is asked without knowing more: an older Octavia answers without tags, and then nothing is
 * ours; an older nova refuses, and is asked for its versions then. */
static bool os_needs_version(const struct os_session *s, const struct call_row *row)
{
        if (streq(row->service, "compute"))
                return !s->compute && (!row->list || s->refused);
        return streq(row->service, "load-balancer") && !s->balancer && !row->list;
}

static enum session_state os_ready(struct session *base, struct call *c, struct fault *f)
{
        struct os_session *s = (struct os_session *)base;
        struct error err CLEANUP(error_release) = { 0 };
        int64_t now = clock_ms(), left = s->expires - now;
        bool compute = streq(c->row->service, "compute");
        if (!s->token || left <= 0 || (renewal_due(s->life, left) && now >= s->again)) {
                if (!s->renewal)
                        os_renew(s);
                return SESSION_WAIT;
        }
        if (!os_needs_version(s, c->row))
                return SESSION_READY;
        if (s->negotiation || os_negotiate(s, os_service_of(c->row->service), compute, &err) == 0)
                return SESSION_WAIT;
        *f = (struct fault){ .kind = FAULT_WRONG, .cause = xstrdup(err.message) };
        return SESSION_FAILED;
}

static int os_write(struct session *base, struct call *c, struct message *m, struct error *err)
{
        struct os_session *s = (struct os_session *)base;
        if (os_address(s, os_service_of(c->row->service), &m->url, err) < 0 ||
                call_url(c, m, err) < 0)
                return -err->code;
        message_header(m, "X-Auth-Token", s->token);
        message_header(m, "Accept", "application/json");
        m->headers = curl_slist_append(m->headers, "Expect:");
        if (streq(c->row->service, "compute")) {
                const char *number = s->compute ? s->compute : OLDEST;
                message_header(m, "X-OpenStack-Nova-API-Version", number);
                char *version CLEANUP(free_p) = xasprintf("compute %s", number);
                message_header(m, "OpenStack-API-Version", version);
        }
        c->stamp = s->serial;
        if (c->args.stream)
                message_header(m, "Content-Type", "application/octet-stream");
        if (!(m->has_body = c->row->body == BODY_JSON))
                return 0;
        json_t *body = c->row->wrap && c->args.body ? json_pack("{s:O}", c->row->wrap, c->args.body)
                                                    : json_incref((json_t *)c->args.body);
        char *text = body ? json_dumps(body, JSON_COMPACT) : xstrdup("{}");
        str_add(&m->body, text);
        free_wiped(text);
        json_decref(body);
        message_header(m, "Content-Type", "application/json");
        return 0;
}

static enum session_verdict os_judge(
        struct session *base, struct call *c, const struct exchange *x, const struct fault *f)
{
        struct os_session *s = (struct os_session *)base;
        if (x->status == 406 && streq(c->row->service, "compute") && !s->compute) {
                s->refused = true;
                return VERDICT_AGAIN;
        }
        if (x->status != 401)
                return VERDICT_FINAL;
        if (c->stamp == s->serial && s->token) { /* another call may have seen it first */
                s->expires = 0;
                s->again = 0;
        }
        return VERDICT_AGAIN_SAFE;
}

static const struct fault *os_trouble(struct session *base)
{
        const struct os_session *s = (const struct os_session *)base;
        const struct call *c = s->renewal ? s->renewal : s->negotiation;
        return c && c->last.kind ? &c->last : NULL;
}

static const char *os_name(struct session *s, const struct call_row *row)
{
        return os_service_of(row->service)->name;
}

/* ---- life ---- */

/* …/v3, whatever is written there. */
static char *os_auth_url(const char *url)
{
        size_t n = strlen(url);
        while (n && url[n - 1] == '/')
                n--;
        if (n > 5 && !strncmp(url + n - 5, "/v2.0", 5))
                n -= 5;
        return xasprintf(
                "%.*s%s", (int)n, url, n > 3 && !strncmp(url + n - 3, "/v3", 3) ? "" : "/v3");
}

int os_open(struct cloud *c, const struct openstack_options *o, struct os_session **out,
        struct error *err)
{
        static const struct session_ops ops = { os_ready, os_write, os_judge, os_trouble, os_name };
        struct os_session *s = xcalloc(1, sizeof(*s));
        s->session = (struct session){ .ops = &ops, .cloud = c };
        session_plain_init(&s->plain, c, os_name);
        int r = os_cloud_load(&s->arena, o->cloud, o->region, &s->cloud, err);
        if (r < 0) {
                os_free(s);
                return r;
        }
        s->session.trust = s->plain.session.trust = (struct trust){ s->cloud.ca_file,
                s->cloud.cert_file, s->cloud.key_file, s->cloud.insecure };
        s->auth_url = os_auth_url(s->cloud.auth_url);
        secrets_add(&c->secrets, s->cloud.password);
        secrets_add(&c->secrets, s->cloud.token);
        secrets_add(&c->secrets, s->cloud.credential_secret);
        *out = s;
        return 0;
}

void os_free(struct os_session *s)
{
        if (!s)
                return;
        session_cancel(&s->session);
        session_cancel(&s->plain.session);
        free_wiped(s->token);
        free(s->project);
        free(s->user);
        free(s->auth_url);
        json_decref(s->catalogue);
        json_decref(s->roles);
        arena_release(&s->arena);
        free(s);
}

struct session *os_session(struct os_session *s) { return &s->session; }
const char *os_project(const struct os_session *s) { return s->project; }
const char *os_user(const struct os_session *s) { return s->user; }
void os_hide(struct os_session *s, const char *secret)
{
        secrets_add(&s->session.cloud->secrets, secret);
}
const json_t *os_roles(const struct os_session *s) { return s->roles; }
const struct os_cloud *os_entry(const struct os_session *s) { return &s->cloud; }
const char *os_auth_address(const struct os_session *s) { return s->auth_url; }
const char *os_compute_version(const struct os_session *s) { return s->compute; }
