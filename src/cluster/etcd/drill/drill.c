/* The steps of a drill, and the programs that run only during it: an etcd and an API server. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/file.h"
#include "cluster/etcd/drill/drill.h"
#include "cluster/etcd/etcd.h"

void drill_good(struct drill *d)
{
        struct step *step = TAKE(d->step);
        if (step)
                step_done(step, NULL);
}

/* ---- programs ---- */

const char *drill_path(struct drill *d, const char *name)
{
        return arena_printf(d->site->arena, "%s/%s", d->dir, name);
}

const char *drill_program(struct drill *d, const char *name)
{
        for (size_t i = 0; i < d->site->item_count; i++)
                if (!d->site->items[i].image && streq(d->site->items[i].name, name))
                        return drill_path(d, name);
        return name;
}

static void on_words(struct proc *p, const char *data, size_t n, void *arg)
{
        struct drill *d = arg;
        if (d->said.len > (64 << 10))
                str_truncate(&d->said, 0);
        str_addn(&d->said, data, n);
}

static void on_output(struct proc *p, const char *data, size_t n, void *arg)
{
        str_addn(&((struct drill *)arg)->out, data, n);
}

bool drill_start(struct drill *d, const char *const *argv, struct proc **at,
        void (*on_exit)(struct proc *, int, void *))
{
        struct error err CLEANUP(error_release) = { 0 };
        str_truncate(&d->out, 0);
        struct proc_spec spec = { .argv = argv,
                .dir = d->dir,
                .on_out = on_output,
                .on_err = on_words,
                .on_exit = on_exit,
                .arg = d };
        if (proc_start(d->site->base, &spec, at, &err) == 0) {
                proc_end_input(*at);
                return true;
        }
        drill_fail(d, EXIT_INTERNAL, NULL, "%s", err.message);
        return false;
}

void drill_ended(struct drill *d, const char *name, int status)
{
        char *line CLEANUP(free_p) = str_last_line_of(str_text(&d->said));
        drill_fail(d, EXIT_STEP, "the snapshot cannot be used as it is: take another",
                "%s ended with status %d: %.400s", name, status, *line ? line : "it said nothing");
}

int drill_port(void)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof(a);
        int fd CLEANUP(close_p) = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
                getsockname(fd, (struct sockaddr *)&a, &n) < 0)
                return 0;
        return ntohs(a.sin_port);
}

/* ---- the drill ---- */

void drill_steps(struct drill *d, struct site *s, struct snapshot *snapshot)
{
        static const struct {
                const char *name;
                void (*start)(struct step *);
        } rows[] = { { "programs", step_drill_programs }, { "restore", step_drill_restore },
                { "etcd", step_drill_etcd }, { "API server", step_drill_api },
                { "read back", step_drill_count }, { "compare", step_drill_live } };
        char *dir CLEANUP(free_p) = path_join(s->identity.dir, "drill");
        struct step *before = NULL;
        char *absolute = has_prefix(dir, "/") ? NULL : getcwd(NULL, 0);
        *d = (struct drill){ .site = s,
                .snapshot = snapshot,
                .live = -1,
                .dir = absolute ? path_join(absolute, dir) : xstrdup(dir) };
        free(absolute);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct step *step = run_step(&s->run, rows[i].name, NULL, rows[i].start, d);
                step_after(step, before);
                before = step;
        }
}

void drill_release(struct drill *d)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        kube_free(d->kube);
        proc_free(d->other);
        proc_free(d->api);
        proc_free(d->etcd);
        for (size_t i = 0; i < d->kind_count; i++)
                free(d->kinds[i].trouble);
        free(d->kinds);
        str_release(&d->said);
        str_release(&d->out);
        str_release(&d->orphans);
        if (d->dir)
                dir_remove(d->dir, &ignored);
        free(d->dir);
}
