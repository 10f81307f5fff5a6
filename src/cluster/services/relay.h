/* A port on this computer whose connections go to a unix socket, for programs that cannot use the
 * socket of a tunnel. TLS stays end to end. */
#ifndef SLIPWAY_RELAY_H
#define SLIPWAY_RELAY_H

#include "base/error.h"

struct event_base;
struct relay;

int relay_open(struct event_base *base, const char *socket, struct relay **out, struct error *err);
unsigned relay_port(const struct relay *r); /* on 127.0.0.1 */
void relay_free(struct relay *r);           /* may be NULL */

#endif
