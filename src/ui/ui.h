/* How a run is shown: a live block on a terminal, one line an event elsewhere, or JSON; and the report it leaves. */
#ifndef SLIPWAY_UI_H
#define SLIPWAY_UI_H

#include <jansson.h>

#include "cluster/run.h"

struct ui;

#define RESULT_DECLINED "nothing changed"

struct ui_options {
        bool json; /* events on stdout, one object a line */
};

/* Shows the run from now on: call it before the run begins. */
struct ui *ui_observe(struct run *r, const struct ui_options *o);
/* Shows a text on stderr (as JSON: an event on stdout) and, with a question, waits for the answer of a person: false is no. */
void ui_say(struct ui *u, const char *text, json_t *json);
bool ui_ask(struct ui *u, const char *question);
/* The run has ended with `result` ("done", "failed", "interrupted", or that its plan was declined: then the report of the run before stays): leaves the terminal as it was, writes DIR/report.html, says where, and frees the ui.
 * The run must still be whole. A report that cannot be written is said too, but is no failure of the run. */
void ui_end(struct ui *u, const char *dir, const char *result);

#endif
