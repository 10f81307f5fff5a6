#include "deliver/link/gate.h"

#define AT_A_DOOR  8  /* less than sshd's 10, with room for the user's own connections */
#define AT_ALL     32 /* more would only overload this computer */
#define AFTER_DROP 8

/* All gates that wait or are inside, in order of arrival. There are hundreds at most, so they
 * are simply counted. */
static struct gate *first, *last;
static unsigned at_all = AT_ALL;

static void gate_append(struct gate *g)
{
        g->prev = last;
        g->next = NULL;
        *(last ? &last->next : &first) = g;
        last = g;
}

static void take_out(struct gate *g)
{
        *(g->prev ? &g->prev->next : &first) = g->next;
        *(g->next ? &g->next->prev : &last) = g->prev;
        g->prev = g->next = NULL;
}

static bool room_for(const struct gate *g)
{
        unsigned here = 0, all = 0;
        for (const struct gate *o = first; o; o = o->next) {
                all += o->inside;
                here += o->inside && streq(o->door, g->door);
        }
        return here < AT_A_DOOR && all < at_all;
}

/* Restarts after each call, because open may change the list. */
static void let_in(void)
{
        struct gate *g;
        do {
                for (g = first; g && !(g->waiting && room_for(g)); g = g->next)
                        ;
                if (g) {
                        g->waiting = false;
                        g->inside = true;
                        g->open(g->arg);
                }
        } while (g);
}

void gate_wait(struct gate *g)
{
        g->waiting = true;
        gate_append(g);
        let_in();
}

void gate_leave(struct gate *g)
{
        if (!g->waiting && !g->inside)
                return;
        g->waiting = g->inside = false;
        take_out(g);
        let_in();
}

void gate_dropped(void) { at_all = AFTER_DROP; }
