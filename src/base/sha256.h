/* SHA-256, for digests of contents: names of blobs, drift, what was applied. */
#ifndef SLIPWAY_SHA256_H
#define SLIPWAY_SHA256_H

#include "base/base.h"

#define SHA256_HEX 65 /* room for a digest as text */

struct sha256 {
        uint32_t h[8];
        uint64_t len;
        uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t n);
/* Ends it, as 64 lower-case hexadecimal digits; the state is wiped. */
void sha256_end(struct sha256 *s, char out[SHA256_HEX]);
void sha256_hex(const void *data, size_t n, char out[SHA256_HEX]);
/* From where the descriptor stands to its end. Negative errno. */
int sha256_fd(int fd, char out[SHA256_HEX]);
/* 64 lower-case hexadecimal digits. */
bool sha256_valid(const char *text);

#endif
