#include "base/error.h"
#include "base/str.h"
#include "base/utf8.h"

#define TEXT_MAX 8192 /* characters: what a node says may be any text of any length */

/* One line that may be shown anywhere. */
static char *sentence(struct str *s)
{
        struct str clean = { 0 };
        text_harmless(&clean, str_text(s), TEXT_MAX);
        str_release(s);
        return str_take(&clean);
}

int error_vset(struct error *err, int code, enum exit_status status, const char *hint,
        const char *fmt, va_list ap)
{
        struct str s = { 0 };
        str_vaddf(&s, fmt, ap);
        char *message = sentence(&s); /* its parts may be of the error before */
        error_release(err);
        err->code = code ? code : EINVAL;
        err->status = status;
        err->message = message;
        return hint ? error_hint(err, "%s", hint) : -err->code;
}

int error_set(struct error *err, int code, enum exit_status status, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        int r = error_vset(err, code, status, NULL, fmt, ap);
        va_end(ap);
        return r;
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
        err->message = sentence(&s);
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
        err->hint = sentence(&s);
        return -err->code;
}

void error_release(struct error *err)
{
        free(err->message);
        free(err->hint);
        *err = (struct error){ 0 };
}
