/* Any bytes, quoted for every format, must come back the same and break out of none. */
#include "quote_readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *value CLEANUP(free_p) = xstrndup((const char *)data, size);
        check_quoting(value);
        return 0;
}
