/* What the provider says before the plan: what it will make, and what stops it. */
#ifndef SLIPWAY_PLAN_SURVEY_H
#define SLIPWAY_PLAN_SURVEY_H

#include "cluster/site/site.h"

void step_survey(struct step *step); /* arg: site */
void survey_text(const struct site *s, struct str *out);
json_t *survey_json(const struct survey *v);

#endif
