/* Bytes from the other end of the pipe. */
#include "deliver/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct wire_frame f;
        struct wire_field v;
        unsigned sum = 0;
        for (size_t at = 0; wire_frame(data + at, size - at, &f) > 0; at += f.whole)
                for (size_t i = 0; wire_field(&f, &i, &v) > 0;) {
                        for (size_t k = 0; k < v.len; k++)
                                sum += v.data[k];
                        char *text CLEANUP(free_p) = wire_string(&f, v.tag);
                        sum += (unsigned)wire_value(&f, v.tag, sum) +
                               (text ? (unsigned)strlen(text) : 0);
                }
        return sum == UINT32_MAX ? -1 : 0;
}
