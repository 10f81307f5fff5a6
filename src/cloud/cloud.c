/* The room's engine: curl on the loop, services with their limits, and the calls between them. */
#include <event2/event.h>

#include "cloud/session.h"

/* What each service stands. The first row that fits; clouds say more when it is too much. */
static const struct {
        const char *name;
        double rate, burst;
        unsigned at_once;
} cloud_limits[] = {
        { "route53", 2, 2, 2 }, /* five a second for the whole account */
        { "iam", 5, 10, 4 },
        { "sts", 10, 10, 4 },
        { "servicequotas", 4, 8, 4 },
        { "elasticloadbalancing", 8, 20, 8 },
        { "elb", 8, 20, 8 },
        { "identity", 10, 20, 4 },
        { NULL, 20, 40, 16 },
};

static void cloud_on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct cloud *c = arg;
        cloud_enter(c);
        cloud_turn(c);
        cloud_leave(c);
}

struct service *cloud_service(struct cloud *c, const char *name)
{
        const struct cloud_options *o = &c->options;
        size_t i = 0;
        for (struct service *s = c->services; s; s = s->next)
                if (streq(s->name, name))
                        return s;
        while (cloud_limits[i].name && !streq(cloud_limits[i].name, name))
                i++;
        struct service *s = xcalloc(1, sizeof(*s));
        s->name = xstrdup(name);
        limit_init(&s->limit, o->rate > 0 ? o->rate : cloud_limits[i].rate,
                o->rate > 0 ? 1 + o->rate : cloud_limits[i].burst,
                o->at_once ? o->at_once : cloud_limits[i].at_once, clock_ms());
        s->timer = evtimer_new(c->base, cloud_on_timer, c);
        if (!s->timer)
                abort();
        s->next = c->services;
        c->services = s;
        return s;
}

void cloud_enter(struct cloud *c) { c->busy++; }

static void cloud_release(struct cloud *c)
{
        while (c->first)
                call_free(c->first);
        for (struct service *s; (s = c->services);) {
                c->services = s->next;
                event_free(s->timer);
                free(s->name);
                free(s);
        }
        curl_loop_release(&c->loop);
        secrets_release(&c->secrets);
        free(c);
}

void cloud_leave(struct cloud *c)
{
        if (!--c->busy && c->dead)
                cloud_release(c);
}

void cloud_free(struct cloud *c)
{
        if (!c)
                return;
        c->dead = true;
        cloud_enter(c);
        cloud_leave(c);
}

struct secrets *cloud_secrets(struct cloud *c) { return &c->secrets; }

static void cloud_act(curl_socket_t s, int what, void *arg)
{
        struct cloud *c = arg;
        int n;
        cloud_enter(c);
        curl_multi_socket_action(c->loop.curl, s, what, &n);
        for (CURLMsg *m; !c->dead && (m = curl_multi_info_read(c->loop.curl, &n));) {
                struct exchange *x;
                if (m->msg != CURLMSG_DONE)
                        continue;
                CURLcode code = m->data.result;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
                exchange_done(x, code);
        }
        if (!c->dead)
                cloud_turn(c);
        cloud_leave(c);
}

int cloud_open(struct event_base *base, const struct cloud_options *options, struct cloud **out,
        struct error *err)
{
        struct cloud *c = xcalloc(1, sizeof(*c));
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
                curl_loop_init(&c->loop, base, cloud_act, c) < 0) {
                free(c);
                return error_set(err, ENOMEM, EXIT_INTERNAL, "cannot start libcurl");
        }
        c->base = base;
        c->options = options ? *options : (struct cloud_options){ 0 };
        curl_multi_setopt(c->loop.curl, CURLMOPT_MAXCONNECTS, 32L);
        *out = c;
        return 0;
}
