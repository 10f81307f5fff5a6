#include "base/print.h"
#include "base/str.h"
#include "cluster/site/answer.h"

void status_problem(json_t *problems, const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        json_array_append_new(problems, json_text(str_text(&s)));
}

void status_text(json_t *o, const char *key, const char *value)
{
        json_object_set_new(o, key, value ? json_text(value) : json_null());
}
