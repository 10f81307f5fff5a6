/* Answers of a cloud as structs, by one table of fields for each: where a value stands, its type
 * and its bound. An answer is data: what is missing is NULL, zero or empty unless it is required,
 * and what has another type or exceeds its bound is an error that names the field. */
#ifndef SLIPWAY_CLOUD_ANSWER_H
#define SLIPWAY_CLOUD_ANSWER_H

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "config/cluster.h"

enum answer_type {
        A_TEXT,   /* const char *; a number is its text; null and {} are NULL */
        A_NUMBER, /* int64_t; also a text of digits, as XML has it */
        A_FLAG,   /* bool; also "true" and "false" */
        A_TEXTS,  /* struct strings; one text is a list of one */
        A_PAIRS,  /* struct pairs: an object, or a list of {key, value} or {Key, Value} */
        A_ONE,    /* the struct itself, by sub */
        A_MANY,   /* struct answers, elements by sub; one object is a list of one */
};

struct answers {
        size_t n;
        void *v; /* of sub->size each */
};

struct answer_schema;

struct answer_field {
        const char *path; /* "placement.availabilityZone": names divided by dots */
        const struct answer_schema *sub;
        uint32_t max; /* bytes of a text, elements of a list; 0: 1020 and 1000 */
        uint16_t offset;
        uint8_t type; /* enum answer_type */
        bool required;
};

struct answer_schema {
        const char *name; /* "server": what errors say */
        const struct answer_field *fields;
        size_t count, size;
};

/* The value at the path, borrowed; NULL. */
const json_t *answer_at(const json_t *j, const char *path);
/* Fills `out`, of s->size zeroed bytes. Texts live in the arena. */
int answer_read(const struct answer_schema *s, const json_t *j, struct arena *a, void *out,
        struct error *err);
/* All elements of a list. */
int answer_read_list(const struct answer_schema *s, const json_t *list, size_t max, struct arena *a,
        struct answers *out, struct error *err);

#endif
