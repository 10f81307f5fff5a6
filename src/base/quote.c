#include "base/quote.h"
#include "base/utf8.h"

#define LOWER       "abcdefghijklmnopqrstuvwxyz"
#define UPPER       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT       "0123456789"
#define REPLACEMENT 0xfffd

/* The next character and its length in bytes; what is not UTF-8 is one byte and U+FFFD. */
static uint32_t next_char(const char *v, size_t *len)
{
        uint32_t u;
        *len = utf8_decode(v, strnlen(v, 4), &u);
        if (*len)
                return u;
        *len = 1;
        return REPLACEMENT;
}

/* Appends the character's own bytes, or those of U+FFFD for what was none. */
static void add_char(struct str *s, const char *v, size_t len, uint32_t u)
{
        if (u == REPLACEMENT)
                str_add(s, "\xef\xbf\xbd");
        else
                str_addn(s, v, len);
}

static bool quote_is_control(uint32_t u) { return u < 0x20 || u == 0x7f; }

/* Characters that a reader of YAML, JSON or TOML may refuse, drop or take for a line end when they
 * stand there as they are. */
static bool is_special(uint32_t u)
{
        return quote_is_control(u) || (u >= 0x80 && u < 0xa0) || u == 0x2028 || u == 0x2029 ||
               u == 0xfeff || u == 0xfffe || u == 0xffff;
}

/* The escapes here mean the same in JSON, in YAML's double quotes and in TOML's basic strings. */
static void quote_escaped(struct str *s, const char *v)
{
        str_addc(s, '"');
        for (size_t len; *v; v += len) {
                uint32_t u = next_char(v, &len);
                if (u == '"' || u == '\\')
                        str_addf(s, "\\%c", (char)u);
                else if (u == '\n')
                        str_add(s, "\\n");
                else if (u == '\t')
                        str_add(s, "\\t");
                else if (is_special(u))
                        str_addf(s, "\\u%04X", u);
                else
                        add_char(s, v, len, u);
        }
        str_addc(s, '"');
}

void quote_json(struct str *s, const char *v) { quote_escaped(s, v); }

void quote_toml(struct str *s, const char *v) { quote_escaped(s, v); }

/* Words that some YAML reader takes for a boolean, a null or a number. */
static bool yaml_means_something(const char *v)
{
        static const char *const words[] = { "y", "n", "yes", "no", "on", "off", "true", "false",
                "null", "nan", "inf", "infinity" };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (!strcasecmp(v, words[i]))
                        return true;
        return false;
}

/* Starts with a letter, a slash or a long flag, and nothing in it can end a plain scalar: no
 * number, date, anchor or comment looks like that. */
static bool yaml_plain(const char *v)
{
        const char *first = has_prefix(v, "--") ? v + 2 : v;
        size_t n = strlen(v);
        if (!*first || !strchr(LOWER UPPER, *first)) {
                if (*v != '/')
                        return false;
        }
        return strspn(v, LOWER UPPER DIGIT "_./=@+:-") == n && v[n - 1] != ':' &&
               !yaml_means_something(v);
}

void quote_yaml(struct str *s, const char *v)
{
        if (yaml_plain(v))
                str_add(s, v);
        else
                quote_escaped(s, v);
}

#define UNIT_SAFE LOWER UPPER DIGIT "_./:=,@+-"

void quote_unit(struct str *s, const char *v)
{
        if (*v && strspn(v, UNIT_SAFE) == strlen(v)) {
                str_add(s, v);
                return;
        }
        str_addc(s, '"');
        for (size_t len; *v; v += len) {
                uint32_t u = next_char(v, &len);
                if (u == '"' || u == '\\')
                        str_addf(s, "\\%c", (char)u);
                else if (u == '%' || u == '$')
                        str_addf(s, "%c%c", (char)u, (char)u);
                else if (quote_is_control(u))
                        str_addf(s, "\\x%02x", u);
                else
                        add_char(s, v, len, u);
        }
        str_addc(s, '"');
}

void quote_path(struct str *s, const char *v)
{
        for (size_t len; *v; v += len) {
                uint32_t u = next_char(v, &len);
                if (u == '%')
                        str_add(s, "%%");
                else
                        add_char(s, quote_is_control(u) || u == '\\' ? "_" : v, len, u);
        }
}

void quote_word(struct str *s, const char *v)
{
        if (*v && strspn(v, UNIT_SAFE) == strlen(v)) {
                str_add(s, v);
                return;
        }
        str_addc(s, '"');
        for (; *v; v++) {
                if (*v == '"' || *v == '\\')
                        str_addc(s, '\\');
                str_addc(s, *v);
        }
        str_addc(s, '"');
}

/* systemd drops a variable that holds a control character other than tab and newline, and a newline
 * would be one line too many for simpler readers. */
static bool env_control(uint32_t u) { return quote_is_control(u) && u != '\t'; }

void quote_env(struct str *s, const char *v)
{
        str_addc(s, '"');
        for (size_t len; *v; v += len) {
                uint32_t u = next_char(v, &len);
                if (u && u < 0x80 && strchr("\"\\`$", (int)u))
                        str_addf(s, "\\%c", (char)u);
                else
                        add_char(s, v, len, env_control(u) ? REPLACEMENT : u);
        }
        str_addc(s, '"');
}

void quote_shell(struct str *s, const char *v)
{
        if (*v && strspn(v, LOWER UPPER DIGIT "_./:=,@%+-") == strlen(v) && *v != '=') {
                str_add(s, v);
                return;
        }
        str_addc(s, '\'');
        for (; *v; v++) {
                if (*v == '\'')
                        str_add(s, "'\\''");
                else
                        str_addc(s, *v);
        }
        str_addc(s, '\'');
}

void quote_conf(struct str *s, const char *v)
{
        if (*v && strspn(v, LOWER UPPER DIGIT "_./:-") == strlen(v)) {
                str_add(s, v);
                return;
        }
        str_addc(s, '"');
        for (size_t len; *v; v += len) {
                uint32_t u = next_char(v, &len);
                bool bad = quote_is_control(u) || (u < 0x80 && strchr("\"\\$#!~{}", (int)u));
                add_char(s, bad ? "_" : v, len, u);
        }
        str_addc(s, '"');
}

void quote_line(struct str *s, const char *v)
{
        for (size_t len; *v; v += len) {
                uint32_t u = next_char(v, &len);
                add_char(s, quote_is_control(u) ? " " : u == '\\' ? "_" : v, len, u);
        }
}
