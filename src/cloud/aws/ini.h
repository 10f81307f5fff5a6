/* ~/.aws/config and ~/.aws/credentials, read as Python's configparser does, because that is what
 * people's files were written for: names of options in lower case, = or :, values that go on in
 * indented lines, comments in lines of their own. */
#ifndef SLIPWAY_CLOUD_INI_H
#define SLIPWAY_CLOUD_INI_H

#include "base/arena.h"
#include "base/error.h"

#define INI_MAX_FILE ((size_t)1 << 20)

struct ini_option {
        const char *name, *value;
        struct ini_option *next;
};
struct ini_section {
        const char *name;
        struct ini_option *first, **last;
        struct ini_section *next;
};
struct ini {
        const char *file; /* for sentences */
        struct ini_section *first;
};

int ini_parse(struct arena *a, const char *file, const char *text, size_t n, struct ini *out,
        struct error *err);
/* A file that is not there is empty. */
int ini_load(struct arena *a, const char *path, struct ini *out, struct error *err);
const struct ini_section *ini_section(const struct ini *i, const char *name); /* NULL */
const char *ini_get(const struct ini_section *s, const char *option);         /* NULL */
/* The value of `option` within a value that has lines "option = value" of its own. */
const char *ini_nested(struct arena *a, const char *value, const char *option);
/* The words of a line as a shell divides it: "a b", 'a b', a\ b. NULL: a quote is open. */
const char **words_split(struct arena *a, const char *line, size_t *count);

#endif
