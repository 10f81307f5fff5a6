/* The gate limits how many ssh connections are in their handshake at the same time. sshd drops
 * connections at random if many clients have not logged in yet (MaxStartups, 10 by default), and
 * every link uses the same jump host. A connection that has logged in makes room for the next. */
#ifndef SLIPWAY_GATE_H
#define SLIPWAY_GATE_H

#include "base/base.h"

/* Part of the waiting object; starts zeroed. */
struct gate {
        /* names the sshd: gates with the same name share its limit; must stay valid while in use */
        const char *door;
        /* starts the connection: called at once from gate_wait, or later from
         * another one's gate_leave */
        void (*open)(void *arg);
        void *arg;
        bool waiting, inside; /* internal */
        struct gate *prev, *next;
};

void gate_wait(struct gate *g);
/* The handshake has succeeded or failed, or is no longer wanted. No effect if it is neither
 * waiting nor inside. */
void gate_leave(struct gate *g);
/* sshd dropped a connection in spite of the limit: other clients connect there too, or there is an
 * unknown jump host. Lowers the limit. */
void gate_dropped(void);

#endif
