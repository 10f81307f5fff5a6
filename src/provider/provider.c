#include <event2/event.h>

#include "provider/provider.h"
#include "provider/aws/aws.h"
#include "provider/local/local.h"
#include "provider/openstack/openstack.h"
#include "provider/ssh.h"
#include "provider/terraform/terraform.h"

const struct provider_ops *provider_for(const struct cluster *c)
{
        static const struct provider_ops *const table[] = { [PROVIDER_LOCAL] = &local_ops,
                [PROVIDER_SSH] = &ssh_ops,
                [PROVIDER_OPENSTACK] = &openstack_ops,
                [PROVIDER_AWS] = &aws_provider_ops,
                [PROVIDER_TERRAFORM] = &terraform_ops };
        return table[c->provider.kind];
}

int provider_addresses(struct cluster *c, const char *state, const char *prefix, struct error *err)
{
        const struct provider_ops *ops = provider_for(c);
        if (!ops || !ops->remote)
                return 0;
        struct event_base *base = event_base_new();
        struct provider_run run = {
                .base = base, .cluster = c, .state = state, .arena = c->arena, .prefix = prefix
        };
        struct machine *machines = arena_array(c->arena, struct machine, c->node_count + 1);
        int r = ops->list(&run, machines, err);
        if (ops->close)
                ops->close(&run);
        event_base_free(base);
        return r;
}

/* ---- what a survey says ---- */

void survey_line(struct provider_run *run, struct survey *s, const char *fmt, ...)
{
        struct str text CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&text, fmt, ap);
        va_end(ap);
        strings_add(run->arena, &s->lines, arena_strdup(run->arena, str_text(&text)));
}

void survey_problem(
        struct provider_run *run, struct survey *s, const char *hint, const char *fmt, ...)
{
        struct str text CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&text, fmt, ap);
        va_end(ap);
        struct survey_problem *all =
                arena_array(run->arena, struct survey_problem, s->problem_count + 1);
        if (s->problem_count)
                memcpy(all, s->problems, s->problem_count * sizeof(*all));
        all[s->problem_count++] =
                (struct survey_problem){ arena_strdup(run->arena, str_text(&text)),
                        hint ? arena_strdup(run->arena, hint) : NULL };
        s->problems = all;
}
