/* Slots limit how many links are open at the same time. Each link is an ssh process (about 8 MB,
 * twice that through a jump host), so a thousand nodes take turns. A link waits here before the
 * gate, and releases its slot when it is closed. An owner of idle links is notified when others
 * wait, and closes some. Shared by all links of the program. */
#ifndef SLIPWAY_SLOTS_H
#define SLIPWAY_SLOTS_H

#include "base/base.h"

/* Part of a link; starts zeroed. */
struct slot {
        /* starts the link: called at once from slot_wait, or later from another one's slot_leave */
        void (*open)(void *arg);
        void *arg;
        bool urgent;          /* others depend on it: it is next */
        bool waiting, inside; /* internal */
        struct slot *prev, *next;
};

struct slot_owner {
        /* called when a link waits; must not close a link before it returns */
        void (*wanted)(void *arg);
        void *arg;
        struct slot_owner *next;
};

/* 0: as many as this computer can handle. `jump`: each goes through a jump host. */
void slots_limit(unsigned n, bool jump);
void slots_owner_add(struct slot_owner *o);
void slots_owner_remove(struct slot_owner *o);
size_t slots_waiting(void);
void slot_wait(struct slot *s);
/* No effect if it is neither waiting nor inside. */
void slot_leave(struct slot *s);

#endif
