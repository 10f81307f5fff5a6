#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cluster/services/relay.h"

#define WAITING_MAX ((size_t)1 << 20) /* maximum of bytes not yet read by the other side */

struct relayed {
        struct relay *relay;
        struct bufferevent *side[2]; /* the program, the socket */
        /* after one side closed: the side that still gets data; otherwise NULL */
        struct bufferevent *last;
        struct relayed *prev, *next;
};

struct relay {
        struct event_base *base;
        struct evconnlistener *listener;
        struct sockaddr_un to;
        unsigned port;
        struct relayed *first;
};

static void relayed_free(struct relayed *c)
{
        if (c->prev)
                c->prev->next = c->next;
        else
                c->relay->first = c->next;
        if (c->next)
                c->next->prev = c->prev;
        for (size_t i = 0; i < 2; i++)
                if (c->side[i])
                        bufferevent_free(c->side[i]);
        free(c);
}

static struct bufferevent *relay_other(const struct relayed *c, const struct bufferevent *side)
{
        return c->side[side == c->side[0]];
}

static void on_relay_read(struct bufferevent *from, void *arg)
{
        struct bufferevent *to = relay_other(arg, from);
        evbuffer_add_buffer(bufferevent_get_output(to), bufferevent_get_input(from));
        if (evbuffer_get_length(bufferevent_get_output(to)) > WAITING_MAX)
                bufferevent_disable(from, EV_READ); /* until the other side has read the rest */
}

static void on_relay_written(struct bufferevent *to, void *arg)
{
        struct relayed *c = arg;
        if (c->last == to)
                relayed_free(c);
        else if (!c->last)
                bufferevent_enable(relay_other(c, to), EV_READ);
}

/* Data sent by one side before it closed is still passed to the other. */
static void on_relay_event(struct bufferevent *side, short what, void *arg)
{
        struct relayed *c = arg;
        struct bufferevent *to = relay_other(c, side);
        if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
                return;
        if (!c->last && what & BEV_EVENT_EOF)
                on_relay_read(side, c);
        if (c->last || what & BEV_EVENT_ERROR || !evbuffer_get_length(bufferevent_get_output(to))) {
                relayed_free(c);
                return;
        }
        c->last = to;
        bufferevent_disable(side, EV_READ | EV_WRITE);
        bufferevent_disable(to, EV_READ);
}

static void on_relay_accept(
        struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len, void *arg)
{
        struct relay *r = arg;
        struct relayed *c = xcalloc(1, sizeof(*c));
        c->relay = r;
        c->next = r->first;
        if (r->first)
                r->first->prev = c;
        r->first = c;
        c->side[0] = bufferevent_socket_new(r->base, fd, BEV_OPT_CLOSE_ON_FREE);
        c->side[1] = bufferevent_socket_new(r->base, -1, BEV_OPT_CLOSE_ON_FREE);
        if (!c->side[0] || !c->side[1])
                abort();
        for (size_t i = 0; i < 2; i++) {
                bufferevent_setcb(c->side[i], on_relay_read, on_relay_written, on_relay_event, c);
                bufferevent_enable(c->side[i], EV_READ | EV_WRITE);
        }
        if (bufferevent_socket_connect(c->side[1], (struct sockaddr *)&r->to, (int)sizeof(r->to)) <
                0)
                relayed_free(c);
}

int relay_open(struct event_base *base, const char *socket, struct relay **out, struct error *err)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof(at);
        struct relay *r = xcalloc(1, sizeof(*r));
        r->base = base;
        r->to.sun_family = AF_UNIX;
        snprintf(r->to.sun_path, sizeof(r->to.sun_path), "%s", socket);
        r->listener = evconnlistener_new_bind(base, on_relay_accept, r,
                LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, (struct sockaddr *)&at,
                (int)sizeof(at));
        if (!r->listener ||
                getsockname(evconnlistener_get_fd(r->listener), (struct sockaddr *)&at, &n) < 0) {
                error_set(err, errno, EXIT_INTERNAL,
                        "cannot listen on 127.0.0.1 for helm's way to the API: %s",
                        strerror(errno));
                relay_free(r);
                return -err->code;
        }
        r->port = ntohs(at.sin_port);
        *out = r;
        return 0;
}

unsigned relay_port(const struct relay *r) { return r->port; }

void relay_free(struct relay *r)
{
        if (!r)
                return;
        while (r->first)
                relayed_free(r->first);
        if (r->listener)
                evconnlistener_free(r->listener);
        free(r);
}
