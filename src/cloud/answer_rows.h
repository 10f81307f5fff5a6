/* How tables of answers are written: FIELD is a value, NEED a text that must be there, SCHEMA the
 * table TYPE_schema of TYPE_fields. For the two files of answers only. */
#ifndef SLIPWAY_CLOUD_ANSWER_ROWS_H
#define SLIPWAY_CLOUD_ANSWER_ROWS_H

#include "cloud/answer.h"

#define FIELD(type_, member, path_, kind, ...) \
        { \
                .path = path_, .type = kind, .offset = offsetof(struct type_, member), \
                ##__VA_ARGS__ \
        }
#define NEED(type_, member, path) FIELD(type_, member, path, A_TEXT, .required = true)
#define SCHEMA(type_, name) \
        static const struct answer_schema type_##_schema = { name, type_##_fields, \
                ARRAY_SIZE(type_##_fields), sizeof(struct type_) }

#endif
