#include "base/error.h"
#include "base/str.h"

int error_set(struct error *err, int code, enum exit_status status, const char *fmt, ...)
{
        struct str s = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        error_release(err);
        err->code = code ? code : EINVAL;
        err->status = status;
        err->message = str_take(&s);
        return -err->code;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
        struct str s = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        str_addf(&s, ": %s", err->message ? err->message : "failed");
        free(err->message);
        err->message = str_take(&s);
        return -err->code;
}

int error_hint(struct error *err, const char *fmt, ...)
{
        struct str s = { 0 };
        va_list ap;
        va_start(ap, fmt);
        str_vaddf(&s, fmt, ap);
        va_end(ap);
        free(err->hint);
        err->hint = str_take(&s);
        return -err->code;
}

void error_release(struct error *err)
{
        free(err->message);
        free(err->hint);
        *err = (struct error){ 0 };
}
