/* Evaluates the controls from rendered files: connects to nothing and leaves nothing on disk. */
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "node/cis.h"

/* Addresses are not evaluated: nodes without one get an unused one. */
static void cis_fill_addresses(struct cluster *c)
{
        for (size_t i = 0; i < c->node_count; i++)
                if (!c->nodes[i].ip[0].family)
                        ip_parse(c->network.pods.v[0].ip.family == 6 ? "2001:db8::1" : "192.0.2.1",
                                &c->nodes[i].ip[0]);
}

static int cis_judge(const struct cluster *c, struct identity *id, const struct node *n,
        json_t *report, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct node_identity leaves CLEANUP(node_identity_release) = { 0 };
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct facts facts = { 0 };
        struct spec_input in = {
                .cluster = c, .identity = id, .leaves = &leaves, .node = n, .facts = &facts
        };
        int r = facts_for(NULL, n, &facts, err);
        if (r == 0)
                r = identity_node(id, c, n, &leaves, err);
        if (r < 0 || (r = node_render(&in, &s, err)) < 0)
                return r;
        struct cis_files files = cis_from_spec(&a, &s);
        cis_node(report, c, n, &files);
        return 0;
}

/* One node of each pool, since the others are equal. The keys are deleted afterwards. */
static int cis_judge_all(struct cluster *c, const char *state, json_t *report, struct error *err)
{
        struct identity id = { .lock = -1 };
        int r = identity_open(state, c, time(NULL), &id, err);
        for (size_t i = 0; r == 0 && i < c->node_count; i++)
                if (!i || c->nodes[i].pool != c->nodes[i - 1].pool)
                        r = cis_judge(c, &id, &c->nodes[i], report, err);
        identity_release(&id);
        return r;
}

int cis_check(struct cluster *c, json_t **out, struct error *err)
{
        const char *tmp = getenv("TMPDIR");
        char *state CLEANUP(free_p) =
                xasprintf("%s/slipway-check.XXXXXX", tmp && *tmp ? tmp : "/tmp");
        struct error ignored CLEANUP(error_release) = { 0 };
        if (!mkdtemp(state))
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot make %s: %s", state, strerror(errno));
        cis_fill_addresses(c);
        *out = cis_begin(c);
        int r = cis_judge_all(c, state, *out, err);
        dir_remove(state, &ignored);
        cis_end(*out);
        return r;
}
