/* No core dumps, because this program's memory has keys. Child processes are upstream programs and
 * get the original limit back. */
#ifndef SLIPWAY_CORE_H
#define SLIPWAY_CORE_H

/* Called once, first: no dump, and no other process of the same user can read this memory. */
void core_never(void);
/* In a child, before exec. Safe between fork and exec. */
void core_as_before(void);

#endif
