#include "deliver/link/slots.h"

#include <stdio.h>
#include <unistd.h>

#define SLOTS_A_CORE 16 /* more would only keep this computer busy with cryptography */
#define SLOTS_MIN    8
#define SLOTS_MAX    48 /* 400 MB of ssh */
#define SLOT_MB      10 /* MB of memory per slot; links may use a quarter of the memory */

static struct slot *slots_first, *slots_last; /* the queue */
static struct slot_owner *slot_owners;
static size_t slots_inside, slots_queued, slots_max;

/* ---- the limit ---- */

static size_t slots_memory_mb(void)
{
        char line[128];
        unsigned long kb = 0;
        FILE *f CLEANUP(fclose_p) = fopen("/proc/meminfo", "re");
        while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemAvailable: %lu", &kb) != 1)
                ;
        return kb >> 10;
}

static size_t slots_default(void)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        size_t n = (cores > 0 ? (size_t)cores : 1) * SLOTS_A_CORE,
               room = slots_memory_mb() / 4 / SLOT_MB;
        n = n > SLOTS_MAX ? SLOTS_MAX : n;
        n = room && n > room ? room : n;
        return n < SLOTS_MIN ? SLOTS_MIN : n;
}

void slots_limit(unsigned n, bool jump) { slots_max = n ? n : slots_default() / (jump ? 2 : 1); }

/* ---- the queue ---- */

static void slots_let_in(void)
{
        while (slots_first && slots_inside < slots_max) {
                struct slot *s = slots_first;
                slots_first = s->next;
                *(s->next ? &s->next->prev : &slots_last) = NULL;
                s->prev = s->next = NULL;
                s->waiting = false;
                s->inside = true;
                slots_queued--;
                slots_inside++;
                s->open(s->arg);
        }
}

static void slots_append(struct slot *s)
{
        struct slot *before = s->urgent ? NULL : slots_last;
        s->prev = before;
        s->next = before ? NULL : slots_first;
        *(before ? &before->next : &slots_first) = s;
        *(s->next ? &s->next->prev : &slots_last) = s;
        s->waiting = true;
        slots_queued++;
}

void slot_wait(struct slot *s)
{
        if (!slots_max)
                slots_limit(0, false);
        slots_append(s);
        slots_let_in();
        for (struct slot_owner *o = slot_owners; s->waiting && o; o = o->next)
                o->wanted(o->arg);
}

void slot_leave(struct slot *s)
{
        if (s->waiting) {
                *(s->prev ? &s->prev->next : &slots_first) = s->next;
                *(s->next ? &s->next->prev : &slots_last) = s->prev;
                s->prev = s->next = NULL;
                s->waiting = false;
                slots_queued--;
        } else if (s->inside) {
                s->inside = false;
                slots_inside--;
                slots_let_in();
        }
}

size_t slots_waiting(void) { return slots_queued; }

/* ---- owners ---- */

void slots_owner_add(struct slot_owner *o)
{
        o->next = slot_owners;
        slot_owners = o;
}

void slots_owner_remove(struct slot_owner *o)
{
        for (struct slot_owner **p = &slot_owners; *p; p = &(*p)->next)
                if (*p == o) {
                        *p = o->next;
                        return;
                }
}
