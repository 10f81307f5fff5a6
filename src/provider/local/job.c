/* Operations on one machine: create, destroy, stop, start. Several may run at once. */
#include <event2/event.h>
#include <signal.h>

#include "base/proc.h"
#include "provider/local/local.h"

#define HALT_SECONDS 90
#define POLL_MS      20
#define OFF_POLLS    (30 * 1000 / POLL_MS)

struct machine_job {
        struct provider_run *run;
        struct machine *m;
        void (*fn)(struct machine *m, struct error *err, void *arg);
        void *arg;
        struct local l;
        char *dir;
        char id[ID_LEN + 1];
        struct event *timer;
        unsigned polls;
        bool found; /* it ran before: a down that was killed may be ending it */
};

static void machine_job_end(struct machine_job *j, struct error *err)
{
        struct machine_job copy = *j;
        if (err)
                error_wrap(err, "machine %s", j->m->node->name);
        local_release(&j->l);
        if (j->timer)
                event_free(j->timer);
        free(j->dir);
        free(j);
        copy.fn(copy.m, err, copy.arg);
}

static void machine_job_start(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg,
        void (*begin)(int fd, short what, void *arg))
{
        struct machine_job *j = xcalloc(1, sizeof(*j));
        *j = (struct machine_job){ .run = run, .m = m, .fn = fn, .arg = arg };
        j->timer = evtimer_new(run->base, begin, j);
        event_active(j->timer, EV_TIMEOUT, 0);
}

static int machine_job_open(struct machine_job *j, struct error *err)
{
        int r = local_able(false, err);
        if (r == 0)
                r = local_open(j->run, &j->l, err);
        if (r == 0) {
                j->dir = machine_dir(&j->l, j->m->node->name);
                machine_id(&j->l, j->m->node->name, j->id);
        }
        return r;
}

/* "10.117.0.10", "10.117.0.10 and fd00:117::a"; the second may have a prefix length. */
static char *address_words(const char *first, const char *second)
{
        int n = second ? (int)strcspn(second, "/") : 0;
        return xasprintf("%s%s%.*s", first ? first : "none", n ? " and " : "", n, n ? second : "");
}

/* The addresses in cluster.yaml must be those that the machine was created with. */
static int machine_same_address(
        const struct local_machine *m, const struct node *n, struct error *err)
{
        char text[IP_TEXT];
        char *has CLEANUP(free_p) = address_words(m->address, m->address2),
                  *wants CLEANUP(free_p) = address_words(n->address, node_address2(n, text));
        if (streq(has, wants))
                return 0;
        error_set(err, EEXIST, EXIT_PREFLIGHT,
                "it was created with the address %s, but cluster.yaml now gives it %s", has, wants);
        return error_hint(err, "restore the address, or remove the node and create it again");
}

/* Everything up to the boot. */
static int machine_job_make(struct machine_job *j, struct local_machine *m, struct error *err)
{
        char *base CLEANUP(free_p) = NULL;
        j->found = keeper_pid(j->dir);
        if (!j->found) { /* parts of it may be left after a crash */
                if (machine_off(j->dir, j->id, err) < 0 ||
                        base_path(j->run->cluster->provider.local.release, &base, err) < 0)
                        return -err->code;
                if ((!link_there(j->l.bridge) && local_ready(j->run, &j->l, err) < 0) ||
                        machine_make(&j->l, j->run, j->m->node, base, err) < 0)
                        return -err->code;
        }
        int r = machine_read(j->dir, m, err);
        if (r == 0)
                return error_set(err, ENOENT, EXIT_STATE,
                        "it is running, but its machine.json does not exist");
        return r < 0 ? r : machine_same_address(m, j->m->node, err);
}

static void machine_create(struct machine_job *j);

static void machine_on_booted(struct error *err, void *arg)
{
        struct machine_job *j = arg;
        if (err && j->found && !keeper_pid(j->dir)) {
                machine_create(j);
                return;
        }
        if (!err) {
                j->m->state = MACHINE_RUNNING;
                local_target(j->run, &j->l, j->m);
        }
        machine_job_end(j, err);
}

static void machine_create(struct machine_job *j)
{
        struct local_machine m CLEANUP(machine_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        if (machine_job_make(j, &m, &err) < 0)
                machine_job_end(j, &err);
        else
                machine_boot(j->run->base, &m, machine_on_booted, j);
}

static void create_now(int fd, short what, void *arg)
{
        struct machine_job *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (machine_job_open(j, &err) < 0)
                machine_job_end(j, &err);
        else
                machine_create(j);
}

void local_create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        machine_job_start(run, m, fn, arg, create_now);
}

static void machine_on_removed(struct proc *p, int status, void *arg)
{
        struct machine_job *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        int r = status ? error_set(&err, EIO, EXIT_INTERNAL,
                                 "cannot remove %s (rm failed with status %d)", j->dir, status)
                       : known_hosts_write(&j->l, &err);
        if (r == 0)
                j->m->state = MACHINE_ABSENT;
        machine_job_end(j, r < 0 ? &err : NULL);
}

/* machine.json is removed first, so that the rest is not taken for a machine after a kill. */
static void machine_remove_files(struct machine_job *j)
{
        struct error err CLEANUP(error_release) = { 0 };
        char *file CLEANUP(free_p) = path_join(j->dir, "machine.json");
        const char *const argv[] = { "rm", "-rf", "--one-file-system", "--", j->dir, NULL };
        struct proc_spec spec = { .argv = argv, .on_exit = machine_on_removed, .arg = j };
        struct proc *p;
        unlink(file);
        if (proc_start(j->run->base, &spec, &p, &err) < 0)
                machine_job_end(j, &err);
        else
                proc_end_input(p);
}

static void destroy_now(int fd, short what, void *arg)
{
        struct machine_job *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (!j->dir && machine_job_open(j, &err) < 0) {
                machine_job_end(j, &err);
        } else if (access(j->dir, F_OK) < 0) {
                machine_job_end(j, NULL);
        } else if (machine_kill(j->dir) == 0 && machine_sweep(j->dir, j->id) == 0) {
                machine_remove_files(j);
        } else if (++j->polls > OFF_POLLS) {
                machine_off(j->dir, j->id, &err); /* a last attempt, which sets the error */
                machine_job_end(j, err.code ? &err : NULL);
        } else {
                event_add(j->timer, &(struct timeval){ .tv_usec = POLL_MS * 1000 });
        }
}

void local_destroy(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg)
{
        machine_job_start(run, m, fn, arg, destroy_now);
}

/* ---- power ---- */

static int power_open(struct provider_run *run, const struct machine *m, struct local *l,
        struct local_machine *out, struct error *err)
{
        int r = local_able(false, err);
        if (r == 0)
                r = local_open(run, l, err);
        if (r < 0)
                return r;
        char *dir CLEANUP(free_p) = machine_dir(l, m->node->name);
        r = machine_read(dir, out, err);
        return r ? r
                 : error_set(err, ENOENT, EXIT_STATE, "machine %s does not exist", m->node->name);
}

int local_stop(struct provider_run *run, const struct machine *m, bool hard, struct error *err)
{
        struct local l CLEANUP(local_release) = { 0 };
        struct local_machine lm CLEANUP(machine_release) = { 0 };
        if (power_open(run, m, &l, &lm, err) < 0)
                return -err->code;
        pid_t keeper = hard ? 0 : keeper_pid(lm.dir);
        if (keeper)
                kill(keeper, SIGTERM);
        for (unsigned i = 0; keeper && i < HALT_SECONDS * 10 && keeper_pid(lm.dir) == keeper; i++)
                pause_ms(100);
        return machine_off(lm.dir, lm.id, err) < 0 ? error_wrap(err, "machine %s", m->node->name)
                                                   : 0;
}

struct started {
        struct error *err;
        int r;
};

static void machine_on_started(struct error *err, void *arg)
{
        struct started *s = arg;
        if (err) {
                s->r = -err->code;
                *s->err = *err;
                *err = (struct error){ 0 };
        }
}

int local_start(struct provider_run *run, const struct machine *m, struct error *err)
{
        struct local l CLEANUP(local_release) = { 0 };
        struct local_machine lm CLEANUP(machine_release) = { 0 };
        struct started s = { .err = err };
        if (power_open(run, m, &l, &lm, err) < 0 || local_ready(run, &l, err) < 0)
                return -err->code;
        if (!keeper_pid(lm.dir) && machine_off(lm.dir, lm.id, err) < 0)
                return error_wrap(err, "machine %s", m->node->name);
        struct event_base *base = event_base_new();
        machine_boot(base, &lm, machine_on_started, &s);
        event_base_dispatch(base);
        event_base_free(base);
        return s.r < 0 ? error_wrap(err, "machine %s", m->node->name) : 0;
}
