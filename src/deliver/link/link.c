#include <event2/event.h>
#include <signal.h>
#include <sys/random.h>

#include "deliver/link/state.h"

/* Ssh has its own, shorter timeout; this one is for shells and sudo that never answer. */
#define OPEN_SECONDS  120
#define CLOSE_SECONDS 20
#define END_SECONDS   5 /* from asking ssh to end until killing it */
/* attempts for a connection that sshd drops; the pause starts at 200 ms and doubles */
#define DROPS_MAX 6

/* ---- lifetime ---- */

static void wipe_password(struct link *l)
{
        if (l->password)
                wipe(l->password, strlen(l->password));
        free_p(&l->password);
}

static void release(struct link *l)
{
        gate_leave(&l->gate);
        proc_free(l->proc);
        if (l->timer)
                event_free(l->timer);
        link_run_end(l, false);
        link_job_release(l);
        link_talk_release(&l->talk);
        str_wipe_release(&l->in);
        wipe_password(l);
        error_release(&l->err);
        arena_release(&l->arena);
        slot_leave(&l->slot); /* its ssh has ended: the next may start */
        free(l);
}

void link_free(struct link *l)
{
        if (!l)
                return;
        l->dead = true;
        if (!l->busy)
                release(l);
}

/* Around all calls of the owner, who may free the link there. */
static void enter(struct link *l) { l->busy++; }

static void leave(struct link *l)
{
        if (--l->busy)
                return;
        if (l->dead)
                release(l);
        else if (l->events.on_idle && link_idle(l))
                l->events.on_idle(l, l->events.arg);
}

bool link_queued(const struct link *l) { return l->slot.waiting; }

bool link_idle(const struct link *l)
{
        return l->phase == PHASE_IDLE && l->proc && !l->runs && !l->job.spec && !l->closing &&
               !l->err.code && !l->busy;
}

void link_patience(struct link *l, unsigned seconds)
{
        if (seconds)
                event_add(l->timer, &(struct timeval){ .tv_sec = seconds });
        else
                evtimer_del(l->timer);
}

int link_failed(struct link *l)
{
        if (l->proc)
                proc_kill(l->proc, SIGTERM);
        link_patience(l, END_SECONDS);
        return -l->err.code;
}

static void link_fail(struct link *l, int code)
{
        if (l->err.code)
                return;
        link_explain(l, -code, &l->err);
        link_failed(l);
}

/* Reports the end to the owner; afterwards the link is freed. */
static void end(struct link *l)
{
        enter(l);
        gate_leave(&l->gate);
        link_run_end(l, true);
        if (!l->dead && l->events.on_closed)
                l->events.on_closed(l, l->err.code ? &l->err : NULL, l->events.arg);
        l->dead = true;
        leave(l);
}

/* Without ssh: a pause has ended, or the link never got its turn. */
static void on_link_timer(int fd, short what, void *arg)
{
        struct link *l = arg;
        bool ended = l->closing || l->err.code;
        if (!l->proc && ended)
                end(l);
        else if (!l->proc)
                gate_wait(&l->gate);
        else if (ended)
                proc_kill(l->proc, SIGKILL);
        else
                link_fail(l, ETIMEDOUT);
}

/* ---- ssh ---- */

static void on_link_out(struct proc *p, const char *data, size_t n, void *arg)
{
        struct link *l = arg;
        enter(l);
        if (!l->closing && !l->err.code && link_who_said(l))
                link_read(l, data, n);
        leave(l);
}

static void on_link_errors(struct proc *p, const char *data, size_t n, void *arg)
{
        struct link *l = arg;
        enter(l);
        link_talk(l, data, n);
        if (!l->dead && l->talk.changed_key)
                link_fail(l, EKEYREJECTED);
        else if (!l->dead && l->talk.wrong_password)
                link_fail(l, EPERM);
        else if (!l->dead)
                link_who_key(l);
        leave(l);
}

static void on_drain(struct proc *p, void *arg)
{
        struct link *l = arg;
        enter(l);
        link_pump(l);
        leave(l);
}

/* The pause is random, because many links pause at the same time. */
static void link_try_again(struct link *l)
{
        unsigned chance = 0, ms = 200U << l->drops;
        (void)!getrandom(&chance, sizeof(chance), 0);
        ms += chance % ms;
        l->drops++;
        gate_dropped();
        link_talk_release(&l->talk);
        event_add(l->timer, &(struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 });
        gate_leave(&l->gate);
}

/* An earlier error is kept; the agent's exit status gives the kind of failure. */
static void on_link_exit_(struct proc *p, int status, void *arg)
{
        struct link *l = arg;
        bool wanted = !l->err.code && !l->closing && !l->dead;
        l->proc = NULL;
        enter(l);
        if (l->err.code == EIO && status > EXIT_USAGE && status <= EXIT_STATE)
                l->err.status = (enum exit_status)status;
        if (wanted)
                link_talk(l, "\n", 1); /* a last line without a newline */
        if (wanted && !l->dead && l->drops + 1 < DROPS_MAX && link_dropped(l)) {
                link_try_again(l);
        } else {
                if (wanted)
                        link_explain(l, status, &l->err);
                end(l);
        }
        leave(l);
}

/* ---- open and close ---- */

static const char *link_copy(struct link *l, const char *s)
{
        return s ? arena_strdup(&l->arena, s) : NULL;
}

static void copy_target(struct link *l, const struct link_target *t)
{
        const char **texts[] = { &l->target.name, &l->target.cluster, &l->target.host,
                &l->target.user, &l->target.key, &l->target.bastion, &l->target.known_hosts,
                &l->target.root, &l->target.host_key, &l->target.machine_id, &l->target.digest };
        l->target = *t;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                *texts[i] = link_copy(l, *texts[i]);
        if (t->options) {
                l->options = (struct strings){ t->options->n,
                        arena_array(&l->arena, const char *, t->options->n + 1) };
                for (size_t i = 0; i < t->options->n; i++)
                        l->options.v[i] = link_copy(l, t->options->v[i]);
                l->target.options = &l->options;
        }
        l->target.sudo_password = NULL;
        if (t->sudo && t->sudo_password)
                l->password = xstrdup(t->sudo_password);
}

static int start(struct link *l, struct error *err)
{
        /* The jump host's ssh does not get BatchMode: these make it fail instead of
         * asking the user. */
        static const char *const env[] = { "LC_ALL=C", "SSH_ASKPASS=/bin/false",
                "SSH_ASKPASS_REQUIRE=force", NULL };
        struct proc_spec spec = { .argv = link_command(&l->target, l->password != NULL, &l->arena),
                .env = env,
                .on_out = on_link_out,
                .on_err = on_link_errors,
                .on_drain = on_drain,
                .on_exit = on_link_exit_,
                .arg = l };
        if (proc_start(l->base, &spec, &l->proc, err) < 0) {
                l->proc = NULL;
                return error_wrap(err, "node %s", l->target.name);
        }
        link_patience(l, OPEN_SECONDS);
        return 0;
}

/* A failure to start is reported from the loop, because this may run inside
 * another link's callback. */
static void on_link_turn(void *arg)
{
        struct link *l = arg;
        if (start(l, &l->err) < 0)
                event_add(l->timer, &(struct timeval){ 0 });
}

static void on_slot(void *arg) { gate_wait(&((struct link *)arg)->gate); }

int link_open(struct event_base *base, const struct link_target *target,
        const struct link_events *events, struct link **out, struct error *err)
{
        struct link *l = xcalloc(1, sizeof(*l));
        *l = (struct link){ .base = base, .events = *events, .job.fd = -1 };
        copy_target(l, target);
        l->timer = evtimer_new(base, on_link_timer, l);
        l->gate = (struct gate){
                .door = link_door(&l->target, &l->arena), .open = on_link_turn, .arg = l
        };
        l->slot = (struct slot){ .open = on_slot, .arg = l, .urgent = target->urgent };
        slot_wait(&l->slot);
        if (l->err.code) {
                *err = l->err;
                l->err = (struct error){ 0 };
                release(l);
                return -err->code;
        }
        *out = l;
        return 0;
}

void link_close(struct link *l)
{
        if (l->closing || l->err.code)
                return;
        l->closing = true;
        if (!l->proc) { /* not started yet */
                event_add(l->timer, &(struct timeval){ 0 });
                return;
        }
        if (l->phase < PHASE_IDLE)
                proc_kill(l->proc, SIGTERM);
        proc_end_input(l->proc);
        link_patience(l, CLOSE_SECONDS);
}
