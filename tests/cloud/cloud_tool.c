/* Drives src/cloud for the tests. Prints one JSON object a line.
 *
 *   cloud_tool VERB ARGUMENT... */
#include <event2/event.h>

#include "base/file.h"
#include "cloud/aws/aws.h"
#include "cloud/aws/calls.h"
#include "cloud/aws/impl.h"
#include "cloud/aws/sigv4.h"
#include "cloud/openstack/calls.h"
#include "cloud/openstack/clouds.h"
#include "cloud/openstack/openstack.h"
#include "cloud/xml.h"

static struct event_base *base;
static unsigned left; /* answers to wait for */

static void print(json_t *line)
{
        char *text = json_dumps(line, JSON_COMPACT | JSON_ENCODE_ANY);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(line);
}

static void print_error(const struct error *err)
{
        print(json_pack("{s:s, s:s?, s:i, s:i}", "error", err->message, "hint", err->hint, "code",
                err->code, "exit", (int)err->status));
}

static void read_into(const char *path, struct str *out)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (file_read(path, (size_t)128 << 20, out, &err) < 0) {
                fprintf(stderr, "%s\n", err.message);
                exit(1);
        }
}

/* ---- pure parts ---- */

/* sign ID SECRET REGION SERVICE DATE METHOD URL BODYFILE [NAME VALUE]... */
static void verb_sign(char **v)
{
        struct str body CLEANUP(str_release) = { 0 }, out CLEANUP(str_release) = { 0 },
                        canonical CLEANUP(str_release) = { 0 };
        read_into(v[7], &body);
        struct sigv4 in = { .id = v[0],
                .secret = v[1],
                .region = v[2],
                .service = v[3],
                .date = v[4],
                .method = v[5],
                .url = v[6],
                .body = str_text(&body),
                .len = body.len };
        for (size_t i = 0; v[8 + 2 * i] && i < SIGV4_HEADERS; i++)
                in.headers[i] = (struct sigv4_header){ v[8 + 2 * i], v[9 + 2 * i] };
        sigv4_sign(&out, &in);
        sigv4_canonical(&canonical, &in);
        print(json_pack(
                "{s:s, s:s}", "authorization", str_text(&out), "canonical", str_text(&canonical)));
}

/* ini FILE */
static void verb_ini(char **v)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct ini ini;
        if (ini_load(&a, v[0], &ini, &err) < 0) {
                print_error(&err);
                return;
        }
        json_t *all = json_object();
        for (const struct ini_section *s = ini.first; s; s = s->next) {
                json_t *one = json_object();
                for (const struct ini_option *o = s->first; o; o = o->next)
                        json_object_set_new(one, o->name, json_string(o->value));
                json_object_set_new(all, s->name, one);
        }
        print(json_pack("{s:o}", "ini", all));
}

static json_t *source_json(const struct source *s)
{
        static const char *const kinds[] = { "none", "static", "process", "role", "web",
                "container", "instance" };
        return json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:o?}", "kind",
                kinds[s->kind], "origin", s->origin, "id", s->id, "secret", s->secret, "token",
                s->token, "command", s->command, "role", s->role, "url", s->url, "from",
                s->from ? source_json(s->from) : NULL);
}

/* source PROFILE|- */
static void verb_source(char **v)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct aws_files f;
        const struct source *s;
        if (aws_files_load(&f, streq(v[0], "-") ? NULL : v[0], &err) < 0 ||
                aws_source_find(&f, &s, &err) < 0)
                print_error(&err);
        else
                print(json_pack("{s:o, s:s?, s:s?}", "source", source_json(s), "region",
                        aws_region(&f), "endpoint", aws_endpoint_option(&f, "ec2")));
        aws_files_release(&f);
}

/* clouds NAME|- REGION|- */
static void verb_clouds(char **v)
{
        static const struct {
                const char *name;
                size_t at;
        } rows[] = {
#define ROW(name) { #name, offsetof(struct os_cloud, name) }
                ROW(name), ROW(auth_url), ROW(username), ROW(user_id), ROW(password),
                ROW(user_domain_id), ROW(user_domain_name), ROW(token), ROW(credential_id),
                ROW(credential_name), ROW(credential_secret), ROW(project_id), ROW(project_name),
                ROW(project_domain_id), ROW(project_domain_name), ROW(domain_id), ROW(domain_name),
                ROW(region), ROW(interface), ROW(ca_file), ROW(cert_file), ROW(key_file)
        };
        struct error err CLEANUP(error_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct os_cloud c;
        if (os_cloud_load(&a, streq(v[0], "-") ? NULL : v[0], streq(v[1], "-") ? NULL : v[1], &c,
                    &err) < 0) {
                print_error(&err);
                return;
        }
        json_t *j = json_pack("{s:i, s:b, s:s?}", "auth", (int)c.auth, "insecure", c.insecure,
                "override", os_setting(&a, &c, "compute_endpoint_override"));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const char *text = *(const char **)((char *)&c + rows[i].at);
                json_object_set_new(j, rows[i].name, text ? json_string(text) : json_null());
        }
        print(j);
}

/* xml FILE */
static void verb_xml(char **v)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct str text CLEANUP(str_release) = { 0 };
        json_t *j;
        read_into(v[0], &text);
        if (xml_read(str_text(&text), text.len, &j, &err) < 0)
                print_error(&err);
        else
                print(j);
}

/* ---- what came, by its schema ---- */

static json_t *decoded(const struct answer_schema *s, const void *at);

static json_t *decoded_list(const struct answer_schema *s, const struct answers *list)
{
        json_t *all = json_array();
        for (size_t i = 0; i < list->n; i++)
                json_array_append_new(all, decoded(s, (const char *)list->v + i * s->size));
        return all;
}

static json_t *decoded_field(const struct answer_field *f, const void *at)
{
        const struct strings *texts = at;
        const struct pairs *pairs = at;
        json_t *j;
        switch (f->type) {
        case A_TEXT:
                return *(char *const *)at ? json_string(*(char *const *)at) : json_null();
        case A_NUMBER:
                return json_integer(*(const int64_t *)at);
        case A_FLAG:
                return json_boolean(*(const bool *)at);
        case A_TEXTS:
                j = json_array();
                for (size_t i = 0; i < texts->n; i++)
                        json_array_append_new(j, json_string(texts->v[i]));
                return j;
        case A_PAIRS:
                j = json_object();
                for (size_t i = 0; i < pairs->n; i++)
                        json_object_set_new(j, pairs->v[i].key, json_string(pairs->v[i].value));
                return j;
        case A_ONE:
                return decoded(f->sub, at);
        case A_MANY:
                return decoded_list(f->sub, at);
        }
        abort();
}

static json_t *decoded(const struct answer_schema *s, const void *at)
{
        json_t *j = json_object();
        for (size_t i = 0; i < s->count; i++)
                json_object_set_new(j, s->fields[i].path,
                        decoded_field(&s->fields[i], (const char *)at + s->fields[i].offset));
        return j;
}

static json_t *decoded_reply(const struct call_row *row, const struct call_reply *r)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct arena a CLEANUP(arena_release) = { 0 };
        struct answers list;
        if (!row->answer)
                return json_null();
        if (row->list) {
                if (call_read_list(row, r, &a, &list, &err) < 0)
                        return json_string(err.message);
                return decoded_list(row->answer, &list);
        }
        void *one = arena_alloc(&a, row->answer->size);
        return call_read(row, r, &a, one, &err) < 0 ? json_string(err.message)
                                                    : decoded(row->answer, one);
}

/* ---- calls ---- */

static const struct call_row *find_row(const char *name, bool *aws)
{
        const char *slash = strchr(name, '/');
        for (size_t i = 0; i < AWS_CALLS + OS_CALLS; i++) {
                const struct call_row *r = i < AWS_CALLS ? &aws_calls[i] : &os_calls[i - AWS_CALLS];
                if (strlen(r->service) == (size_t)(slash - name) && has_prefix(name, r->service) &&
                        streq(r->name, slash + 1)) {
                        *aws = i < AWS_CALLS;
                        return r;
                }
        }
        fprintf(stderr, "no such call: %s\n", name);
        exit(2);
}

static struct cloud *cloud;
static struct aws_session *aws;
static struct os_session *os;

static void on_reply(const struct call_reply *r, void *arg)
{
        const struct call_row *row = arg;
        struct error err CLEANUP(error_release) = { 0 };
        left--;
        if (r->fault) {
                fault_error(r->fault, &err);
                print(json_pack("{s:s, s:s?, s:i, s:i, s:i, s:b, s:i, s:s?, s:s?}", "error",
                        err.message, "hint", err.hint, "exit", (int)err.status, "kind",
                        (int)r->fault->kind, "status", r->status, "lost", r->fault->lost,
                        "attempts", (int)r->attempts, "id", r->fault->request_id, "fault",
                        r->fault->code));
                return;
        }
        print(json_pack("{s:i, s:i, s:o, s:s?, s:s?, s:s?}", "status", r->status, "attempts",
                (int)r->attempts, "answer", decoded_reply(row, r), "project",
                os ? os_project(os) : NULL, "compute", os ? os_compute_version(os) : NULL, "origin",
                aws ? aws_session_origin(aws) : NULL));
}

static void open_session(bool is_aws)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (is_aws ? aws || aws_open(cloud,
                                    &(struct aws_options){ .profile = getenv("TOOL_PROFILE") },
                                    &aws, &err) == 0
                   : os || os_open(cloud, &(struct openstack_options){ 0 }, &os, &err) == 0)
                return;
        print_error(&err);
        exit(0);
}

static void start_call(char ***at)
{
        static struct pair args[64];
        char **v = *at, *text = NULL;
        bool is_aws;
        size_t n = 0;
        unsigned times = 1, timeout = 0;
        json_t *body = NULL;
        const struct call_row *row = find_row(*v++, &is_aws);
        for (; *v && !streq(*v, "+") && !streq(*v, "then"); v++) {
                char *eq = strchr(*v, '=');
                if (has_prefix(*v, "body="))
                        body = json_loads(*v + 5, 0, NULL);
                else if (has_prefix(*v, "text="))
                        text = *v + 5;
                else if (has_prefix(*v, "times="))
                        times = (unsigned)strtoul(*v + 6, NULL, 10);
                else if (has_prefix(*v, "timeout="))
                        timeout = (unsigned)strtoul(*v + 8, NULL, 10);
                else {
                        *eq = 0;
                        args[n++] = (struct pair){ *v, eq + 1 };
                }
        }
        args[n] = (struct pair){ 0 };
        *at = v;
        open_session(is_aws);
        for (; times; times--, left++)
                call_start(is_aws ? aws_session(aws) : os_session(os), row,
                        &(struct call_args){ .args = args,
                                .body = body,
                                .text = text,
                                .timeout_ms = timeout,
                                .resource = getenv("TOOL_RESOURCE") },
                        on_reply, (void *)row);
        json_decref(body);
}

static void run_loop(void)
{
        while (left)
                if (event_base_loop(base, EVLOOP_ONCE) != 0)
                        exit(3);
}

static double number(const char *name)
{
        const char *v = getenv(name);
        return v ? strtod(v, NULL) : 0;
}

static void open_cloud(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct cloud_options o = { .rate = number("TOOL_RATE"),
                .at_once = (unsigned)number("TOOL_AT_ONCE"),
                .attempt_ms = (unsigned)number("TOOL_ATTEMPT_MS"),
                .max = (size_t)number("TOOL_MAX") };
        base = event_base_new();
        if (cloud_open(base, &o, &cloud, &err) < 0)
                exit(3);
}

static void close_cloud(void)
{
        aws_free(aws);
        os_free(os);
        cloud_free(cloud);
        event_base_free(base);
}

/* call SERVICE/NAME [ARG=VALUE]... [+ …: at the same time] [then …: afterwards] */
static void verb_call(char **v)
{
        open_cloud();
        for (char **at = v; *at;) {
                start_call(&at);
                if (*at && streq(*at++, "then"))
                        run_loop();
        }
        run_loop();
        close_cloud();
}

static void never(const struct call_reply *r, void *arg)
{
        puts("\"a cancelled call was answered\"");
        exit(3);
}

/* cancel SERVICE/NAME TURNS: calls that are cancelled or freed after so many turns of the loop */
static void verb_cancel(char **v)
{
        bool is_aws;
        const struct call_row *row = find_row(v[0], &is_aws);
        unsigned turns = (unsigned)strtoul(v[1], NULL, 10);
        struct call *calls[8];
        open_cloud();
        open_session(is_aws);
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                calls[i] = call_start(
                        is_aws ? aws_session(aws) : os_session(os), row, NULL, never, NULL);
        for (; turns; turns--)
                event_base_loop(base, EVLOOP_NONBLOCK);
        for (size_t i = 0; i < 4; i++)
                call_cancel(calls[i]);
        close_cloud();
        print(json_string("freed"));
}

/* do SERVICE/NAME: the synchronous way */
static void verb_do(char **v)
{
        bool is_aws;
        const struct call_row *row = find_row(v[0], &is_aws);
        struct fault f = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        json_t *out = NULL;
        open_cloud();
        open_session(is_aws);
        if (call_do(is_aws ? aws_session(aws) : os_session(os), row, NULL, &out, &f) == 0) {
                print(out);
        } else {
                fault_error(&f, &err);
                print_error(&err);
        }
        fault_release(&f);
        close_cloud();
}

/* address SERVICE/NAME: where a call would go, and the region that it would be signed for */
static void verb_address(char **v)
{
        bool is_aws;
        struct error err CLEANUP(error_release) = { 0 };
        const struct call_row *row = find_row(v[0], &is_aws);
        open_cloud();
        open_session(true);
        struct call c = { .row = row, .session = &aws->session };
        struct message m = { .method = row->method };
        aws->keys = (struct keys){ .id = xstrdup("ID"), .secret = xstrdup("x") };
        aws->session.ops->write(&aws->session, &c, &m, &err);
        char *end = strchr(strstr(str_text(&m.url), "//") + 2, '/');
        *end = 0;
        for (struct curl_slist *h = m.headers; h; h = h->next) {
                char *scope = has_prefix(h->data, "Authorization") ? strstr(h->data, "ID/") : NULL;
                if (scope)
                        print(json_pack("{s:s, s:s%}", "url", str_text(&m.url), "region",
                                scope + 12, strcspn(scope + 12, "/")));
        }
        curl_slist_free_all(m.headers);
        str_release(&m.url);
        str_release(&m.body);
        close_cloud();
}

/* calls: the tables */
static void verb_calls(char **v)
{
        for (size_t i = 0; i < AWS_CALLS + OS_CALLS; i++) {
                const struct call_row *r = i < AWS_CALLS ? &aws_calls[i] : &os_calls[i - AWS_CALLS];
                json_t *fields = json_array(), *pages = json_array();
                for (size_t j = 0; r->answer && j < r->answer->count; j++)
                        json_array_append_new(fields, json_string(r->answer->fields[j].path));
                for (size_t j = 0; r->pages && r->pages[j].from; j++)
                        json_array_append_new(
                                pages, json_pack("[s, s]", r->pages[j].from, r->pages[j].to));
                print(json_pack("{s:b, s:s, s:s, s:s, s:s, s:i, s:i, s:s?, s:s?, s:s?, s:o, s:o}",
                        "aws", i < AWS_CALLS, "service", r->service, "name", r->name, "method",
                        r->method, "path", r->path, "body", (int)r->body, "retry", (int)r->retry,
                        "list", r->list, "wrap", r->wrap, "query", r->query, "fields", fields,
                        "pages", pages));
        }
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                int least;
                void (*run)(char **v);
        } verbs[] = { { "sign", 8, verb_sign }, { "ini", 1, verb_ini },
                { "source", 1, verb_source }, { "clouds", 2, verb_clouds }, { "xml", 1, verb_xml },
                { "call", 1, verb_call }, { "cancel", 2, verb_cancel }, { "do", 1, verb_do },
                { "calls", 0, verb_calls }, { "address", 1, verb_address } };
        for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(verbs); i++)
                if (streq(argv[1], verbs[i].name) && argc - 2 >= verbs[i].least) {
                        verbs[i].run(argv + 2);
                        return 0;
                }
        fprintf(stderr, "usage: see the comments of cloud_tool.c\n");
        return 2;
}
