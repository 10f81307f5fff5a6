#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>

#include "base/core.h"
#include "cmd/reach.h"

int reach_open(struct reach *r, const struct options *o, struct error *err)
{
        int e = cmd_load(o, &r->arena, &r->cluster, err);
        if (e < 0)
                return e;
        r->base = event_base_new();
        r->opened = true;
        return site_look(
                &r->site, r->base, &r->arena, r->cluster, o->state ? o->state : ".slipway", err);
}

int reach_api(struct reach *r, const struct options *o, struct error *err)
{
        int e = reach_open(r, o, err);
        if (e == 0 && !r->site.identity.prefix) {
                error_set(err, ENOENT, EXIT_STATE,
                        "cluster %s does not exist yet from this state directory",
                        r->cluster->name);
                e = error_hint(err, "slipway up creates it; --state names another directory");
        }
        return e == 0 ? site_kube(&r->site, err) : e;
}

void reach_release(struct reach *r)
{
        if (r->opened)
                site_release(&r->site);
        if (r->base)
                event_base_free(r->base);
        arena_release(&r->arena);
}

static int no_node(struct reach *r, const char *name, struct error *err)
{
        struct site *s = &r->site;
        const char **names = arena_array(&r->arena, const char *, s->count + 1);
        struct str all CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < s->count; i++) {
                names[i] = s->members[i].node->name;
                if (i < 20)
                        str_addf(&all, "%s%s", i ? ", " : "", names[i]);
        }
        if (s->count > 20)
                str_addf(&all, " and %zu more", s->count - 20);
        const char *near = nearest(name, names, s->count);
        error_set(err, EINVAL, EXIT_USAGE, "cluster %s has no node '%s'", r->cluster->name, name);
        return near ? error_hint(err, "did you mean %s?", near)
                    : error_hint(err, "it has: %s", str_text(&all));
}

static struct member *reach_if(
        struct reach *r, const char *name, bool stopped_too, struct error *err)
{
        struct member *m = site_member(&r->site, name);
        if (!m) {
                no_node(r, name, err);
                return NULL;
        }
        if (m->machine->state == MACHINE_RUNNING && m->machine->target.host)
                return m;
        if (stopped_too && m->machine->state != MACHINE_ABSENT)
                return m;
        error_set(err, EHOSTUNREACH, EXIT_UNREACHABLE, "node %s: its machine %s", name,
                m->machine->state == MACHINE_STOPPED  ? "is stopped"
                : m->machine->state == MACHINE_ABSENT ? "does not exist yet"
                                                      : "has no address yet");
        error_hint(err, "%s",
                m->machine->state == MACHINE_STOPPED ? "slipway up starts it"
                : r->site.ops->missing               ? r->site.ops->missing
                                                     : "slipway up creates it");
        return NULL;
}

struct member *reach_member(struct reach *r, const char *name, struct error *err)
{
        return reach_if(r, name, false, err);
}

struct member *reach_machine(struct reach *r, const char *name, struct error *err)
{
        return reach_if(r, name, true, err);
}

int reach_way(const struct member *m, struct error *err)
{
        if (!link_nowhere(&m->machine->target))
                return 0;
        error_set(err, ENXIO, EXIT_UNREACHABLE,
                "node %s: it is reached through a bastion that does not run", m->node->name);
        return error_hint(err, "slipway up makes or starts it");
}

/* A line always fits into the pipe's buffer. */
int reach_input(const char *line, struct error *err)
{
        int fd[2];
        if (pipe2(fd, O_CLOEXEC) < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot make a pipe: %s", strerror(errno));
        bool ok = write(fd[1], line, strlen(line)) == (ssize_t)strlen(line) &&
                  write(fd[1], "\n", 1) == 1 && dup2(fd[0], STDIN_FILENO) == STDIN_FILENO;
        close_p(&fd[0]);
        close_p(&fd[1]);
        return ok ? 0
                  : error_set(err, errno, EXIT_INTERNAL, "cannot give ssh its input: %s",
                            strerror(errno));
}

int reach_exec(const char *const *argv, struct error *err)
{
        /* a child would inherit that it is ignored */
        signal(SIGPIPE, SIG_DFL);
        fflush(stdout);
        core_as_before();
        execvp(argv[0], (char *const *)argv);
        int code = errno;
        signal(SIGPIPE, SIG_IGN);
        error_set(err, code, EXIT_INTERNAL, "cannot run %s: %s", argv[0], strerror(code));
        return code == ENOENT ? error_hint(err, "on Debian: apt-get install openssh-client")
                              : -code;
}
