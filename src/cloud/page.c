/* Lists that come in pages, templates that are filled in, and answers by their rows. */
#include <event2/event.h>

#include "cloud/session.h"

#define PAGES_MAX    2000
#define ELEMENTS_MAX 200000

/* ---- pages ---- */

static int page_append(struct call *c, const json_t *list, struct error *err)
{
        if (!c->list)
                c->list = json_array();
        if (json_is_array(list))
                json_array_extend(c->list, (json_t *)list);
        else if (json_is_object(list) && json_object_size(list))
                json_array_append(c->list, (json_t *)list);
        else if (json_is_string(list) && json_string_length(list))
                json_array_append(c->list, (json_t *)list); /* a list of one text, in XML */
        if (json_array_size(c->list) > ELEMENTS_MAX || ++c->pages > PAGES_MAX)
                return error_set(err, EPROTO, EXIT_STEP, "the list does not end");
        return 0;
}

/* The marker in "…?limit=2&marker=abc&…", unescaped. NULL: it has none. */
static char *page_marker(const char *href)
{
        const char *q = strchr(href, '?');
        const char *m = q ? strstr(q, "&marker=") : NULL;
        m = m ? m + 8 : q && has_prefix(q, "?marker=") ? q + 8 : NULL;
        if (!m)
                return NULL;
        char *raw CLEANUP(free_p) = xstrndup(m, strcspn(m, "&#"));
        int n = 0;
        char *plain = curl_easy_unescape(NULL, raw, 0, &n);
        char *out = plain && strlen(plain) == (size_t)n ? xstrdup(plain) : NULL;
        curl_free(plain);
        return out;
}

/* OpenStack says "next" as KEY_links [{rel, href}], as links {next}, or as next. Only the marker is
 * taken: the address may be one that this computer cannot reach, or anybody's. */
static char *page_link(const struct call *c, const json_t *body)
{
        char *key CLEANUP(free_p) = xasprintf("%s_links", c->row->list);
        const json_t *links = json_object_get(body, key), *l;
        const char *next = json_string_value(answer_at(body, "links.next"));
        size_t i;
        next = next ? next : json_string_value(json_object_get(body, "next"));
        json_array_foreach(links, i, l)
        {
                const char *rel = json_string_value(json_object_get(l, "rel"));
                if (rel && streq(rel, "next"))
                        next = json_string_value(json_object_get(l, "href"));
        }
        return next ? page_marker(next) : NULL;
}

static void page_set(struct call *c, size_t i, const char *key, const char *value)
{
        free((char *)c->page[i].value);
        c->page[i] = (struct pair){ key, value && *value ? xstrdup(value) : NULL };
}

int page_take(struct call *c, const json_t *body, bool *more, struct error *err)
{
        const json_t *list = answer_at(body, c->row->list);
        struct str all CLEANUP(str_release) = { 0 };
        if (page_append(c, list, err) < 0)
                return -err->code;
        const struct call_page *p = c->row->pages;
        for (size_t i = 0; p && p->from; i++, p++) {
                char *link CLEANUP(free_p) = streq(p->from, PAGE_LINKS) ? page_link(c, body) : NULL;
                page_set(c, i, p->to, link ? link : json_string_value(answer_at(body, p->from)));
                str_addf(&all, "%s\n", c->page[i].value ? c->page[i].value : "");
                *more |= c->page[i].value != NULL;
        }
        if (*more && c->marker && streq(c->marker, str_text(&all)))
                return error_set(err, EPROTO, EXIT_STEP, "the list repeats a page");
        free(c->marker);
        c->marker = str_take(&all);
        return 0;
}

/* ---- templates ---- */

void uri_escape(struct str *s, const char *text, const char *also_safe)
{
        for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
                bool safe = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                            (*p >= '0' && *p <= '9') || strchr("-_.~", *p) || strchr(also_safe, *p);
                if (safe)
                        str_addc(s, (char)*p);
                else
                        str_addf(s, "%%%02X", *p);
        }
}

const char *call_arg(const struct call *c, const char *name)
{
        for (size_t i = 0; i < c->nargs; i++)
                if (streq(c->args.args[i].key, name))
                        return c->args.args[i].value;
        return NULL;
}

/* The value of {name} at `p`, and behind it. */
static const char *call_hole(const struct call *c, const char **p, char **name)
{
        size_t n = strcspn(*p + 1, "}");
        *name = xstrndup(*p + 1, n);
        *p += n + 2;
        return call_arg(c, *name);
}

int call_fill(const struct call *c, struct str *s, const char *template, struct error *err)
{
        for (const char *p = template; *p;) {
                char *name CLEANUP(free_p) = NULL;
                if (*p != '{') {
                        str_addc(s, *p++);
                        continue;
                }
                const char *value = call_hole(c, &p, &name);
                /* "." and ".." would be another path */
                if (!value || !*value || streq(value, ".") || streq(value, ".."))
                        return error_set(err, EINVAL, EXIT_INTERNAL, "%s has no usable %s",
                                c->row->name, name);
                uri_escape(s, value, "");
        }
        return 0;
}

static void query_put(struct str *s, const char *name, size_t n, const char *value)
{
        char *key CLEANUP(free_p) = xstrndup(name, n);
        if (s->len && s->data[s->len - 1] != '&')
                str_addc(s, '&');
        uri_escape(s, key, "");
        str_addc(s, '=');
        uri_escape(s, value, "");
}

void call_query(const struct call *c, struct str *s)
{
        const char *p = c->row->query ? c->row->query : "";
        while (*p) {
                size_t whole = strcspn(p, "&"), n = strcspn(p, "=");
                char *word CLEANUP(free_p) = xstrndup(p + n + 1, whole - n - 1);
                char *name CLEANUP(free_p) = NULL;
                const char *at = word;
                const char *value = *word == '{' ? call_hole(c, &at, &name) : word;
                if (value)
                        query_put(s, p, n, value);
                p += whole + (p[whole] == '&');
        }
        for (size_t i = 0; i < c->nargs; i++)
                if (*c->args.args[i].key == '?')
                        query_put(s, c->args.args[i].key + 1, strlen(c->args.args[i].key) - 1,
                                c->args.args[i].value);
        for (size_t i = 0; i < ARRAY_SIZE(c->page); i++)
                if (c->page[i].value)
                        query_put(s, c->page[i].key, strlen(c->page[i].key), c->page[i].value);
}

int call_url(const struct call *c, struct message *m, struct error *err)
{
        struct str query CLEANUP(str_release) = { 0 };
        if (call_fill(c, &m->url, c->row->path, err) < 0)
                return -err->code;
        call_query(c, &query);
        if (query.len)
                str_addf(&m->url, "?%s", str_text(&query));
        return 0;
}

void message_header(struct message *m, const char *name, const char *value)
{
        char *line CLEANUP(free_p) = xasprintf("%s: %s", name, value);
        /* a line break in a value would be another header */
        line[strcspn(line, "\r\n")] = 0;
        m->headers = curl_slist_append(m->headers, line);
        wipe(line, strlen(line));
}

/* ---- a session without credentials ---- */

static enum session_state plain_ready(struct session *s, struct call *c, struct fault *f)
{
        return SESSION_READY;
}

/* Arguments whose name begins with a capital are headers. */
static int plain_write(struct session *s, struct call *c, struct message *m, struct error *err)
{
        const char *url = call_arg(c, "url");
        str_add(&m->url, url ? url : "");
        for (size_t i = 0; i < c->nargs; i++)
                if (c->args.args[i].key[0] >= 'A' && c->args.args[i].key[0] <= 'Z')
                        message_header(m, c->args.args[i].key, c->args.args[i].value);
        if (c->args.body) {
                char *text = json_dumps(c->args.body, JSON_COMPACT);
                str_add(&m->body, text);
                free_wiped(text);
                m->has_body = true;
                message_header(m, "Content-Type", "application/json");
        }
        return 0;
}

static enum session_verdict plain_judge(
        struct session *s, struct call *c, const struct exchange *x, const struct fault *f)
{
        return VERDICT_FINAL;
}

static const struct fault *plain_trouble(struct session *s) { return NULL; }

void session_plain_init(struct session_plain *s, struct cloud *c,
        const char *(*name)(struct session *s, const struct call_row *row))
{
        s->ops = (struct session_ops){ plain_ready, plain_write, plain_judge, plain_trouble, name };
        s->session = (struct session){ .ops = &s->ops, .cloud = c };
}

/* ---- answers ---- */

int call_read(const struct call_row *row, const struct call_reply *reply, struct arena *a,
        void *out, struct error *err)
{
        const json_t *j = row->wrap ? json_object_get(reply->body, row->wrap) : reply->body;
        if (answer_read(row->answer, j, a, out, err) < 0)
                return error_wrap(err, "%s: the answer is not as expected", row->name);
        return 0;
}

int call_read_list(const struct call_row *row, const struct call_reply *reply, struct arena *a,
        struct answers *out, struct error *err)
{
        if (answer_read_list(row->answer, reply->list, ELEMENTS_MAX, a, out, err) < 0)
                return error_wrap(err, "%s: the answer is not as expected", row->name);
        return 0;
}

struct done {
        json_t **out;
        struct fault *fault;
        bool over;
};

static void call_on_done(const struct call_reply *reply, void *arg)
{
        struct done *d = arg;
        d->over = true;
        if (reply->fault)
                fault_copy(d->fault, reply->fault);
        else if (d->out)
                *d->out = json_incref((json_t *)(reply->list ? reply->list : reply->body));
}

int call_do(struct session *s, const struct call_row *row, const struct call_args *args,
        json_t **out, struct fault *fault)
{
        struct done d = { .out = out, .fault = fault };
        struct call *c = call_start(s, row, args, call_on_done, &d);
        while (!d.over)
                if (event_base_loop(s->cloud->base, EVLOOP_ONCE) != 0) {
                        call_cancel(c);
                        *fault = (struct fault){ .kind = FAULT_UNREACHABLE,
                                .service = xstrdup(s->ops->service_name(s, row)),
                                .call = xstrdup(row->name),
                                .cause = xstrdup("the event loop ended before the answer") };
                        break;
                }
        return fault->kind ? -EIO : 0;
}
