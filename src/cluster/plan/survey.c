#include "cluster/plan/survey.h"
#include "base/print.h"

/* The problems of the provider are listed all at once, before anything is made. */
static void survey_error(const struct survey *v, struct error *err)
{
        struct str all CLEANUP(str_release) = { 0 };
        for (size_t i = 0; i < v->problem_count; i++) {
                const struct survey_problem *one = &v->problems[i];
                str_addf(&all, "%s%s", i ? "; " : "", one->what);
                if (one->hint && v->problem_count > 1)
                        str_addf(&all, " (%s)", one->hint);
        }
        if (v->problem_count == 1)
                error_set(err, EINVAL, EXIT_PREFLIGHT, "%s", str_text(&all));
        else
                error_set(err, EINVAL, EXIT_PREFLIGHT, "%zu problems: %s", v->problem_count,
                        str_text(&all));
        if (v->problem_count == 1 && v->problems[0].hint)
                error_hint(err, "%s; nothing was changed", v->problems[0].hint);
        else
                error_hint(err, "nothing was changed; fix the problems and run again");
}

void step_survey(struct step *step)
{
        const struct site *s = step->arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (!s->found.survey.problem_count) {
                step_unchanged(step);
                return;
        }
        survey_error(&s->found.survey, &err);
        step_done(step, &err);
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
