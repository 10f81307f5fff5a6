/* An answer of AWS: whatever it is, a tree of bounded depth comes out, or a sentence; and what came
 * out is read by fault.h without a control character in it. */
#include "cloud/fault.h"
#include "cloud/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t fuzz_depth(const json_t *j)
{
        size_t most = 0, n, i;
        const char *key;
        json_t *v;
        json_object_foreach((json_t *)j, key, v) if ((n = fuzz_depth(v)) > most) most = n;
        json_array_foreach(j, i, v) if ((n = fuzz_depth(v)) > most) most = n;
        return most + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct error err CLEANUP(error_release) = { 0 }, said CLEANUP(error_release) = { 0 };
        struct fault f = { .status = 400, .service = xstrdup("ec2"), .call = xstrdup("call") };
        json_t *j = NULL;
        if (xml_read((const char *)data, size, &j, &err) < 0) {
                if (!err.message || j)
                        abort();
        } else if (fuzz_depth(j) > 2 * XML_MAX_DEPTH) {
                abort();
        }
        fault_read(&f, NULL, j, "", NULL, NULL);
        fault_error(&f, &said);
        for (const char *p = said.message; *p; p++)
                if ((unsigned char)*p < ' ')
                        abort();
        fault_release(&f);
        json_decref(j);
        return 0;
}
