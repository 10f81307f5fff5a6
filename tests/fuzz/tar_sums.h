/* Random bytes hardly ever have the sum that a header of tar wants: it is put in. */
#ifndef FUZZ_TAR_SUMS_H
#define FUZZ_TAR_SUMS_H

#include "base/base.h"

static inline void tar_sums(uint8_t *data, size_t n)
{
        for (size_t at = 0, size; at + 512 <= n && data[at]; at += 512 + (size + 511) / 512 * 512) {
                uint8_t *h = data + at;
                char digits[13] = { 0 }, sum_text[8];
                unsigned sum = 0;
                memset(h + 148, ' ', 8);
                for (size_t i = 0; i < 512; i++)
                        sum += h[i];
                snprintf(sum_text, sizeof(sum_text), "%06o", sum);
                memcpy(h + 148, sum_text, sizeof(sum_text));
                memcpy(digits, h + 124, 12);
                size = strtoull(digits, NULL, 8);
                if (size > n)
                        return;
        }
}

#endif
