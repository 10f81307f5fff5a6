/* Writes JSON and adds the commas. `key` is NULL inside a list. */
#ifndef SLIPWAY_JSON_H
#define SLIPWAY_JSON_H

#include "base/quote.h"

static inline void json_key(struct str *o, const char *key)
{
        if (o->len && !strchr("{[", o->data[o->len - 1]))
                str_addc(o, ',');
        if (key) {
                quote_json(o, key);
                str_addc(o, ':');
        }
}
static inline void json_begin(struct str *o, const char *key, char bracket)
{
        json_key(o, key);
        str_addc(o, bracket);
}
static inline void json_end(struct str *o, char bracket) { str_addc(o, bracket); }
static inline void json_text(struct str *o, const char *key, const char *v)
{
        json_key(o, key);
        quote_json(o, v);
}
static inline void json_number(struct str *o, const char *key, uint64_t v)
{
        json_key(o, key);
        str_addf(o, "%" PRIu64, v);
}
static inline void json_bool(struct str *o, const char *key, bool v)
{
        json_key(o, key);
        str_add(o, v ? "true" : "false");
}

#endif
