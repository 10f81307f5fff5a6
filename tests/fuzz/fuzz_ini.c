/* ~/.aws/config: sections with options, or a sentence with the line. */
#include "cloud/aws/ini.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct ini ini;
        size_t n;
        if (ini_parse(&a, "config", (const char *)data, size, &ini, &err) < 0)
                return 0;
        for (const struct ini_section *s = ini.first; s; s = s->next) {
                if (ini_section(&ini, s->name) != s)
                        abort();
                words_split(&a, s->name, &n);
                for (const struct ini_option *o = s->first; o; o = o->next) {
                        if (!o->value || ini_get(s, o->name) != o->value)
                                abort();
                        ini_nested(&a, o->value, "endpoint_url");
                        words_split(&a, o->value, &n);
                }
        }
        return 0;
}
