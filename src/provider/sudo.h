/* The password for sudo on the nodes, from the first of three sources: asked for at the terminal,
 * the environment, a file. It is never an argument, never in a child's environment, and never in a
 * log or journal. */
#ifndef SLIPWAY_SUDO_H
#define SLIPWAY_SUDO_H

#include "config/cluster.h"

/* Reads SLIPWAY_SUDO_PASSWORD and removes it from the environment, before any child is started. */
void sudo_password_take(void);
/* Asks once at the terminal, without echo. */
int sudo_password_ask(struct error *err);
/* NULL when there is none. The text lives until the program ends. */
int sudo_password(struct arena *a, const struct cluster *c, const char **out, struct error *err);

#endif
