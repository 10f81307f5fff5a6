/* The first half of `up`, for tests/bench/ansible.py and grow.py: load the file, open the Identity,
 * reach every node, render its NodeSpec, and put its directories, files and links there, through
 * the same steps, journal and links as `up`. What is left out is what its hosts cannot have:
 * programs, images, and anything that a systemd would have to start.
 *
 *   apply_tool CLUSTER.yaml STATE
 *
 * The last line is {"nodes": …, "entries": …, "kilobytes": …}: the most that was ever resident, of
 * this program alone. */
#include <event2/event.h>
#include <signal.h>

#include "cluster/site/op.h"
#include "config/problem.h"

static size_t entries;

static void only_files(struct nodespec *s)
{
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++)
                if (s->entries[i].kind == SPEC_DIR || s->entries[i].kind == SPEC_FILE ||
                        s->entries[i].kind == SPEC_LINK || s->entries[i].kind == SPEC_USER)
                        s->entries[n++] = s->entries[i];
        s->count = n;
}

static int files_render(struct member *m, struct error *err)
{
        int r = member_render(m, err);
        if (r < 0)
                return r;
        only_files(&m->plan.spec);
        link_digest(&m->plan.spec, NULL, 0, m->plan.wanted);
        return 0;
}

static void step_files(struct step *s)
{
        struct member *m = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (files_render(m, &err) < 0) {
                step_done(s, &err);
                return;
        }
        entries += m->plan.spec.count;
        if (streq(m->plan.wanted, m->seen.applied) &&
                !json_array_size(m->seen.drift)) { /* as step_apply has it */
                member_drop_spec(m);
                step_unchanged(s);
                return;
        }
        member_apply(m, s, &(struct apply_request){ .mode = APPLY_PLACE, .make = files_render });
}

static void step_looked(struct step *s) { step_unchanged(s); }

/* As in `up`: nothing changes anywhere before every node has answered. */
static void steps(struct site *s)
{
        struct step *looked = run_step(&s->run, "preflight", NULL, step_looked, s);
        for (size_t i = 0; i < s->count; i++) {
                struct member *m = &s->members[i];
                step_after(looked, run_step(&s->run, "connect", m->node->name, step_connect, m));
                step_after(run_step(&s->run, "apply", m->node->name, step_files, m), looked);
        }
}

static int apply(const char *file, const char *state, struct arena *a, struct error *err)
{
        struct event_base *base = event_base_new();
        struct problems problems = { .arena = a };
        struct site s = { .identity.lock = -1 };
        struct journal *j = NULL;
        struct cluster *c;
        const char *last;
        int r = cluster_load(a, &file, 1, &c, &problems, err);
        if (r == 0)
                r = site_open(&s, base, a, c, state, "up", err);
        if (r == 0)
                r = journal_open(s.identity.dir, &s.run, &j, &last, err);
        if (r == 0) {
                steps(&s);
                r = run_execute(&s.run, err);
                if (r == 0)
                        r = identity_sync(&s.identity, err);
                journal_close(j, r < 0 ? "failed" : "done");
        }
        printf("{\"nodes\": %zu, \"entries\": %zu, ", s.count, entries);
        site_release(&s);
        event_base_free(base);
        return r;
}

static long kilobytes(void)
{
        char line[256];
        long n = 0;
        FILE *f CLEANUP(fclose_p) = fopen("/proc/self/status", "re");
        while (f && fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %ld", &n) != 1)
                ;
        return n;
}

int main(int argc, char **argv)
{
        struct arena a = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        if (argc != 3) {
                fprintf(stderr, "usage: apply_tool CLUSTER.yaml STATE\n");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        int r = apply(argv[1], argv[2], &a, &err);
        printf("\"kilobytes\": %ld}\n", kilobytes());
        if (r < 0)
                fprintf(stderr, "apply_tool: %s\n", err.message);
        arena_release(&a);
        return r < 0;
}
