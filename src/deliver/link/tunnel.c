#include <event2/event.h>
#include <signal.h>

#include "deliver/link/state.h"
#include "deliver/link/tunnel.h"

#define FIRST_PAUSE 500 /* milliseconds; doubles up to the maximum */
#define LONGEST     8000
#define SAID_MAX    ((size_t)8 << 10)

struct tunnel {
        struct event_base *base;
        struct arena arena;
        const char **argv;
        const char *name, *socket;
        struct gate gate;
        struct proc *proc;
        struct event *timer;
        unsigned pause;
        bool in;         /* the login succeeded */
        struct str said; /* ssh's standard error since it was started */
        char *trouble;
};

/* ---- ssh's output ---- */

static const struct {
        const char *said, *means;
} meanings[] = {
        { "administratively prohibited",
                "sshd there forwards nothing: set AllowTcpForwarding to yes in its sshd_config" },
        { "Permission denied", "it refuses the login" },
        { "REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key has changed" },
        { "Connection refused", "the connection was refused" },
        { "timed out", "it did not answer in time" },
        { "No route to host", "there is no route" },
        { "not responding", "the connection was cut" },
};

static void set_trouble(struct tunnel *t, const char *why)
{
        free(t->trouble);
        t->trouble = why ? xasprintf("the ssh tunnel to %s: %s", t->name, why) : NULL;
}

static const char *meaning(const struct tunnel *t)
{
        for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
                if (strstr(str_text(&t->said), meanings[i].said))
                        return meanings[i].means;
        return NULL;
}

/* The tunnel is open after the login: only then ssh binds the socket. Later messages are
 * about single connections. */
static void on_tunnel_errors(struct proc *p, const char *data, size_t n, void *arg)
{
        struct tunnel *t = arg;
        if (t->said.len + n > SAID_MAX)
                str_truncate(&t->said, 0);
        str_addn(&t->said, data, n < SAID_MAX ? n : SAID_MAX);
        if (!t->in && strstr(str_text(&t->said), "Authenticated to ")) {
                t->in = true;
                t->pause = FIRST_PAUSE;
                set_trouble(t, NULL);
                gate_leave(&t->gate);
        }
        if (t->in && strstr(str_text(&t->said), meanings[0].said))
                set_trouble(t, meanings[0].means);
}

static void on_tunnel_exit_(struct proc *p, int status, void *arg)
{
        struct tunnel *t = arg;
        const char *why = meaning(t);
        t->proc = NULL;
        t->in = false;
        unlink(t->socket); /* ssh does not remove it */
        set_trouble(t, why ? why : "ssh has ended");
        gate_leave(&t->gate);
        event_add(t->timer,
                &(struct timeval){ t->pause / 1000, (suseconds_t)(t->pause % 1000) * 1000 });
        t->pause = t->pause * 2 < LONGEST ? t->pause * 2 : LONGEST;
}

/* ---- lifetime ---- */

static void on_tunnel_turn(void *arg)
{
        static const char *const env[] = { "LC_ALL=C", "SSH_ASKPASS=/bin/false",
                "SSH_ASKPASS_REQUIRE=force", NULL };
        struct tunnel *t = arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct proc_spec spec = { .argv = t->argv,
                .env = env,
                .on_err = on_tunnel_errors,
                .on_exit = on_tunnel_exit_,
                .arg = t };
        str_truncate(&t->said, 0);
        if (proc_start(t->base, &spec, &t->proc, &err) == 0)
                return;
        t->proc = NULL;
        set_trouble(t, err.message);
        event_add(t->timer, &(struct timeval){ LONGEST / 1000, 0 });
}

static void on_tunnel_timer(evutil_socket_t fd, short what, void *arg)
{
        struct tunnel *t = arg;
        gate_leave(&t->gate);
        gate_wait(&t->gate);
}

struct tunnel *tunnel_open(struct event_base *base, const struct link_target *target,
        const char *to, const char *socket)
{
        struct tunnel *t = xcalloc(1, sizeof(*t));
        *t = (struct tunnel){ .base = base, .pause = FIRST_PAUSE };
        t->name = arena_strdup(&t->arena, target->name);
        t->socket = arena_strdup(&t->arena, socket);
        t->argv = link_forward(target, arena_printf(&t->arena, "%s:%s", socket, to), &t->arena);
        t->timer = evtimer_new(base, on_tunnel_timer, t);
        t->gate = (struct gate){
                .door = link_door(target, &t->arena), .open = on_tunnel_turn, .arg = t
        };
        set_trouble(t, "it is not open yet");
        gate_wait(&t->gate);
        return t;
}

const char *tunnel_trouble(const struct tunnel *t) { return t->trouble; }

void tunnel_free(struct tunnel *t)
{
        if (!t)
                return;
        gate_leave(&t->gate);
        proc_free(t->proc);
        event_free(t->timer);
        unlink(t->socket);
        str_release(&t->said);
        free(t->trouble);
        arena_release(&t->arena);
        free(t);
}

bool tunnel_wanted(const struct link_target *target)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct str out CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        int status = -1;
        if (target->bastion)
                return true;
        if (!target->host ||
                proc_run(link_settings(target, &a), NULL, 0, 256 << 10, &out, NULL, &status,
                        &ignored) < 0 ||
                status != 0)
                return false;
        return strstr(str_text(&out), "\nproxyjump ") || strstr(str_text(&out), "\nproxycommand ");
}
