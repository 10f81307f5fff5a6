/* No core dumps: this program's memory holds keys. What it starts is an upstream program, and gets
 * the limit back as it was. */
#ifndef SLIPWAY_CORE_H
#define SLIPWAY_CORE_H

/* Once, first thing: no dump, and no other process of the same user reads our memory. */
void core_never(void);
/* In a child, before exec. Safe between fork and exec. */
void core_as_before(void);

#endif
