/* Slots: how many links may be open at once. Each is a process of ssh (about 8 MB, twice that
 * through a jump host), so a thousand nodes take turns. A link waits here before the gate and
 * leaves when it is closed. Whoever keeps links open that it does not use (an owner) is told when
 * others wait, and closes some. Shared by all links of the program. */
#ifndef SLIPWAY_SLOTS_H
#define SLIPWAY_SLOTS_H

#include "base/base.h"

/* Part of a link; starts zeroed. */
struct slot {
        void (*open)(void *arg); /* begin now: called at once from slot_wait, or later from somebody
                                    else's slot_leave */
        void *arg;
        bool urgent;          /* others wait for what it does: it is next */
        bool waiting, inside; /* the slots' own */
        struct slot *prev, *next;
};

struct slot_owner {
        void (*wanted)(void *arg); /* somebody waits; must not close a link before it returns */
        void *arg;
        struct slot_owner *next;
};

/* 0: as many as this computer bears. `jump`: each goes through a jump host. */
void slots_limit(unsigned n, bool jump);
void slots_owner_add(struct slot_owner *o);
void slots_owner_remove(struct slot_owner *o);
size_t slots_waiting(void);
void slot_wait(struct slot *s);
/* Does nothing for one that is neither waiting nor inside. */
void slot_leave(struct slot *s);

#endif
