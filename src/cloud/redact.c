#include <ctype.h>

#include "base/utf8.h"
#include "cloud/redact.h"

#define SHORTEST 6
#define MOST     64 /* values: tokens are renewed again and again, the oldest is forgotten */

void secrets_add(struct secrets *s, const char *value)
{
        if (!value || strlen(value) < SHORTEST)
                return;
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->v[i], value))
                        return;
        if (!s->v)
                s->v = xcalloc(MOST, sizeof(*s->v));
        if (s->n == MOST) {
                free_wiped(s->v[0]);
                memmove(s->v, s->v + 1, (MOST - 1) * sizeof(*s->v));
                s->n--;
        }
        s->v[s->n++] = xstrdup(value);
}

void secrets_release(struct secrets *s)
{
        for (size_t i = 0; i < s->n; i++)
                free_wiped(s->v[i]);
        free(s->v);
        *s = (struct secrets){ 0 };
}

/* What stands in front of a secret, lower case: blanks, quotes, = and : may follow. */
static const char *const redact_words[] = { "x-auth-token", "x-subject-token",
        "x-amz-security-token", "x-amz-signature", "signature", "secretaccesskey",
        "secret_access_key", "sessiontoken", "session_token", "security-token", "password",
        "adminpass", "user_data", "userdata", "user-data", "authorization",
        "application_credential_secret", "\"secret", "webidentitytoken", "passcode" };

/* The length of a secret's introduction at `p`, 0: there is none. */
static size_t redact_intro(const char *p)
{
        for (size_t i = 0; i < ARRAY_SIZE(redact_words); i++) {
                size_t n = strlen(redact_words[i]), gap;
                if (strncasecmp(p, redact_words[i], n))
                        continue;
                if (!strncasecmp(p + n, "\"", 1) || !strncasecmp(p + n, "'", 1))
                        n++;
                gap = strspn(p + n, " ");
                if (p[n + gap] == '=' || p[n + gap] == ':' || p[n + gap] == '>')
                        return n + gap + 1;
        }
        return 0;
}

/* The value: a quoted string, or what reaches to a blank or a mark of punctuation. Authorization
 * has words in its value. */
static size_t redact_value(const char *p, bool words)
{
        size_t skip = strspn(p, " "), n;
        if (p[skip] == '"' || p[skip] == '\'') {
                for (n = skip + 1; p[n] && p[n] != p[skip]; n++)
                        if (p[n] == '\\' && p[n + 1])
                                n++;
                return p[n] ? n + 1 : n;
        }
        return skip + strcspn(p + skip, words ? "\n\r\"}<" : " &,;}<\n\r\"'");
}

static const char *redact_known(const struct secrets *s, const char *p)
{
        for (size_t i = 0; s && i < s->n; i++)
                if (has_prefix(p, s->v[i]))
                        return s->v[i];
        return NULL;
}

void redact(struct str *out, const struct secrets *s, const char *text, size_t max)
{
        struct str clean CLEANUP(str_wipe_release) = { 0 };
        for (const char *p = text; *p;) {
                const char *known = redact_known(s, p);
                bool start = p == text || !isalnum((unsigned char)p[-1]);
                size_t intro = known || !start ? 0 : redact_intro(p);
                if (known) {
                        str_add(&clean, REDACTED);
                        p += strlen(known);
                } else if (intro && redact_value(p + intro, false)) {
                        str_addn(&clean, p, intro);
                        str_add(&clean, REDACTED);
                        p += intro + redact_value(p + intro, !strncasecmp(p, "authorization", 13));
                } else {
                        str_addc(&clean, *p++);
                }
        }
        text_harmless(out, str_text(&clean), max);
}
