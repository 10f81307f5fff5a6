/* The password that sudo on the nodes asks for. Three sources, the first that is there: asked for on the terminal, the environment, a file. It is never an
 * argument, never in a child's environment, and no log or journal sees it. */
#ifndef SLIPWAY_SUDO_H
#define SLIPWAY_SUDO_H

#include "config/cluster.h"

/* Takes SLIPWAY_SUDO_PASSWORD out of the environment, before any child is started. */
void sudo_password_take(void);
/* Asks once on the terminal, without echo. */
int sudo_password_ask(struct error *err);
/* NULL when there is none. The text lives until the program ends. */
int sudo_password(struct arena *a, const struct cluster *c, const char **out, struct error *err);

#endif
