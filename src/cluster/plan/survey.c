#include "cluster/plan/survey.h"
#include "base/print.h"

/* The problems of the provider are listed all at once, before anything is made. */
void step_survey(struct step *step)
{
        const struct site *s = step->arg;
        const struct survey *v = &s->found.survey;
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i < v->problem_count; i++)
                step_changed(step, "%s%s%s", v->problems[i].what, v->problems[i].hint ? "; " : "",
                        v->problems[i].hint ? v->problems[i].hint : "");
        if (v->problem_count) {
                error_set(&err, EINVAL, EXIT_PREFLIGHT, "%zu problem%s", v->problem_count,
                        v->problem_count == 1 ? "" : "s");
                error_hint(
                        &err, "nothing was changed; fix the problems listed above and run again");
                step_done(step, &err);
        } else
                step_unchanged(step);
}

void survey_text(const struct site *s, struct str *out)
{
        for (size_t i = 0; i < s->found.survey.lines.n; i++)
                text_addf(out, "  %s: %s\n", s->ops->name, s->found.survey.lines.v[i]);
}

json_t *survey_json(const struct survey *v)
{
        json_t *lines = json_array();
        for (size_t i = 0; i < v->lines.n; i++)
                json_array_append_new(lines, json_string(v->lines.v[i]));
        return lines;
}
