/* The display of a run: a live block on a terminal, a line an event elsewhere, or JSON; and its
 * report. */
#ifndef SLIPWAY_UI_H
#define SLIPWAY_UI_H

#include <jansson.h>

#include "run/run.h"

struct ui;

#define RESULT_DECLINED "nothing changed"

struct ui_options {
        bool json; /* events on stdout, one object a line */
};

/* Shows the run from now on: call it before the run starts. */
struct ui *ui_observe(struct run *r, const struct ui_options *o);
/* ui_say shows a text on stderr (with JSON: an event on stdout). ui_ask waits for a person's
 * answer: false is no. */
void ui_say(struct ui *u, const char *text, json_t *json);
bool ui_ask(struct ui *u, const char *question);
/* Shows the text, and reads a line: is it exactly this? */
bool ui_ask_for(struct ui *u, const char *text, const char *wanted);
/* Call when the run has ended with `result` ("done", "failed", "interrupted", or RESULT_DECLINED,
 * which keeps the previous report): restores the terminal, writes a report (reports.h), prints its
 * path, and frees the ui. The run must not be released before. A report that cannot be written is
 * printed, but is no failure of the run. */
void ui_end(struct ui *u, const char *dir, const char *result);

#endif
