/* Shared by the files of the decoder: one function per field type. Each reads the value `t` into
 * `out`, or reports the problem and leaves it zero. */
#ifndef SLIPWAY_DECODE_H
#define SLIPWAY_DECODE_H

#include "config/schema.h"

struct decoder {
        struct arena *arena;
        struct problems *p;
        const struct schema *schema; /* of the struct that is being filled */
        const struct field *field;
        bool is_default; /* the value is the table's own: no range */
};

typedef bool decode_fn(struct decoder *d, const struct tree *t, void *out);

decode_fn decode_string, decode_lines, decode_bool, decode_int, decode_duration, decode_size,
        decode_enum, decode_amount, decode_version;
decode_fn decode_address, decode_cidr, decode_cidrs, decode_ips;
decode_fn decode_pairs, decode_strings, decode_numbers, decode_roles, decode_taints;

/* "the number 12": the value for messages, truncated. */
const char *decode_seen(struct decoder *d, const struct tree *t);
/* "WANTED is wanted, got …", with a hint that fits. Returns false. */
bool decode_wrong(struct decoder *d, const struct tree *t, const char *wanted);
/* The text of a string value without control characters, or NULL. `empty`: may be "". */
const char *decode_text(struct decoder *d, const struct tree *t, const char *wanted, bool empty);
/* A string of one of the types that are kept as text. */
const char *decode_word(struct decoder *d, const struct tree *t, enum field_type type);
/* The index of the text among the names, or -1. */
int decode_name(struct decoder *d, const struct tree *t);
/* Reports a field or "field=value" that gone_table knows. */
bool decode_gone(struct decoder *d, const struct tree *t, const char *field, const char *value);

#endif
