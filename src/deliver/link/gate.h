/* The gate: how many ssh connections may be in their handshake at once. sshd drops connections at
 * random when many knock before they have logged in (MaxStartups, 10 by default), and a jump host
 * is knocked at by every link. Whoever is through makes room for the next. */
#ifndef SLIPWAY_GATE_H
#define SLIPWAY_GATE_H

#include "base/base.h"

/* Part of whoever waits; starts zeroed. */
struct gate {
        const char *door; /* which sshd: what has the same name shares its limit; must live as long
                             as the gate is in use */
        void (*open)(void *arg); /* begin now: called at once from gate_wait, or later from somebody
                                    else's gate_leave */
        void *arg;
        bool waiting, inside; /* the gate's own */
        struct gate *prev, *next;
};

void gate_wait(struct gate *g);
/* The handshake is over, well or not, or it is no longer wanted. Does nothing for one that is
 * neither waiting nor inside. */
void gate_leave(struct gate *g);
/* sshd dropped one although we kept to the limit: others knock there too, or a jump host we do not
 * know of is between. Fewer from now on. */
void gate_dropped(void);

#endif
