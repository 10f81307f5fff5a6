/* Readers of the formats of base/quote.h, written from each format's own rules: what one of them
 * reads must be what was quoted. Each takes the whole text, and aborts when anything of it is left
 * over: that would be a breakout. */
#ifndef QUOTE_READERS_H
#define QUOTE_READERS_H

#include <yaml.h>

#include "base/quote.h"
#include "base/utf8.h"

static inline void reader_fail(const char *format, const char *text, const char *why)
{
        fprintf(stderr, "%s: %s: %s\n", format, why, text);
        abort();
}

/* The value as a format that demands UTF-8 can hold it. */
static inline void clean_utf8(struct str *out, const char *v)
{
        while (*v) {
                uint32_t cp;
                size_t n = utf8_decode(v, strlen(v), &cp);
                if (n)
                        str_addn(out, v, n);
                else
                        str_add(out, "\xef\xbf\xbd");
                v += n ? n : 1;
        }
}

static inline void put_utf8(struct str *out, uint32_t u)
{
        if (u < 0x80) {
                str_addc(out, (char)u);
        } else if (u < 0x800) {
                str_addc(out, (char)(0xc0 | u >> 6));
                str_addc(out, (char)(0x80 | (u & 0x3f)));
        } else {
                str_addc(out, (char)(0xe0 | u >> 12));
                str_addc(out, (char)(0x80 | (u >> 6 & 0x3f)));
                str_addc(out, (char)(0x80 | (u & 0x3f)));
        }
}

/* JSON's strings and TOML's basic strings, in what they have in common; no raw control character
 * may stand in either. */
static inline void read_basic(struct str *out, const char *q)
{
        const char *p = q;
        if (*p++ != '"')
                reader_fail("basic string", q, "no opening quote");
        for (; *p && *p != '"'; p++) {
                unsigned u;
                if ((unsigned char)*p < 0x20 || *p == 0x7f)
                        reader_fail("basic string", q, "a raw control character");
                if (*p != '\\') {
                        str_addc(out, *p);
                        continue;
                }
                p++;
                if (*p == 'n' || *p == 't')
                        str_addc(out, *p == 'n' ? '\n' : '\t');
                else if (*p == '"' || *p == '\\')
                        str_addc(out, *p);
                else if (*p == 'u' && sscanf(p + 1, "%4x", &u) == 1 && strlen(p) > 4 &&
                         (u < 0xd800 || u > 0xdfff))
                        put_utf8(out, u), p += 4;
                else
                        reader_fail("basic string", q,
                                "an escape that one of the formats does not know");
        }
        if (p[0] != '"' || p[1])
                reader_fail("basic string", q, "it does not end where it should");
}

/* "key: <quoted>" must be one map of one pair, with libyaml. */
static inline void read_yaml(struct str *out, const char *q)
{
        static const yaml_event_type_t want[] = { YAML_STREAM_START_EVENT,
                YAML_DOCUMENT_START_EVENT, YAML_MAPPING_START_EVENT, YAML_SCALAR_EVENT,
                YAML_SCALAR_EVENT, YAML_MAPPING_END_EVENT, YAML_DOCUMENT_END_EVENT,
                YAML_STREAM_END_EVENT };
        struct str text CLEANUP(str_release) = { 0 };
        yaml_parser_t p;
        str_addf(&text, "key: %s\n", q);
        if (!yaml_parser_initialize(&p))
                abort();
        yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&p, (const unsigned char *)text.data, text.len);
        for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
                yaml_event_t e;
                if (!yaml_parser_parse(&p, &e))
                        reader_fail("YAML", q, p.problem ? p.problem : "no YAML");
                if (e.type != want[i])
                        reader_fail("YAML", q, "another structure");
                if (i == 4) {
                        if (e.data.scalar.anchor || e.data.scalar.tag)
                                reader_fail("YAML", q, "an anchor or a tag");
                        str_addn(out, e.data.scalar.value, e.data.scalar.length);
                }
                yaml_event_delete(&e);
        }
        yaml_parser_delete(&p);
}

/* One word as systemd splits it: quotes, backslashes; with `exec` also C escapes, %% and $$. */
static inline void read_word(struct str *out, const char *q, bool exec)
{
        const char *p = q;
        bool quoted = *p == '"';
        for (p += quoted; *p && !(quoted && *p == '"'); p++) {
                unsigned u;
                if (!quoted && strchr(" \t\n\r'\"\\;", *p))
                        reader_fail("word", q, "something that ends or opens a word");
                if (exec && (*p == '\n' || *p == '\r'))
                        reader_fail("word", q, "a line end");
                if (exec && (*p == '%' || *p == '$')) {
                        if (p[1] != *p)
                                reader_fail("word", q, "a specifier or a variable");
                        p++;
                } else if (*p == '\\') {
                        p++;
                        if (exec && *p == 'x' && sscanf(p + 1, "%2x", &u) == 1 && strlen(p) > 2) {
                                str_addc(out, (char)u);
                                p += 2;
                                continue;
                        }
                        if (*p != '"' && *p != '\\')
                                reader_fail("word", q, "an escape");
                }
                str_addc(out, *p);
        }
        if (quoted && *p != '"')
                reader_fail("word", q, "it does not end");
        if (quoted && p[1])
                reader_fail("word", q, "something behind it");
        if (p == q)
                reader_fail("word", q, "no word at all");
}

/* The value of NAME=… as both systemd's EnvironmentFile= and sh read it. */
static inline void read_env(struct str *out, const char *q)
{
        const char *p = q;
        if (*p++ != '"')
                reader_fail("environment", q, "no opening quote");
        for (; *p && *p != '"'; p++) {
                if (*p == '$' || *p == '`' || *p == '\n')
                        reader_fail("environment", q, "an expansion or a line end");
                if (*p == '\\' && !strchr("\"\\`$", *++p))
                        reader_fail("environment", q, "a backslash that stays");
                str_addc(out, *p);
        }
        if (p[0] != '"' || p[1])
                reader_fail("environment", q, "it does not end where it should");
}

static inline void read_shell(struct str *out, const char *q)
{
        if (*q != '\'') {
                if (strpbrk(q, " \t\n\r'\"\\$`;&|<>()*?[]#~!{}^") || !*q || *q == '=')
                        reader_fail("shell", q, "something that means something");
                str_add(out, q);
                return;
        }
        for (const char *p = q; *p;) {
                const char *end = strchr(p + 1, '\'');
                if (*p != '\'' || !end)
                        reader_fail("shell", q, "outside of quotes");
                str_addn(out, p + 1, (size_t)(end - p - 1));
                p = end + 1;
                if (*p && (p[0] != '\\' || p[1] != '\''))
                        reader_fail("shell", q, "outside of quotes");
                if (*p) {
                        str_addc(out, '\'');
                        p += 2;
                }
        }
}

/* haproxy and keepalived: what the two agree on is that nothing here means anything. */
static inline void check_conf(const char *q)
{
        bool quoted = *q == '"';
        size_t n = strlen(q);
        if (!n || (quoted && (n < 2 || q[n - 1] != '"')))
                reader_fail("conf", q, "no word");
        for (size_t i = quoted; i < n - quoted; i++)
                if ((unsigned char)q[i] < 0x20 || q[i] == 0x7f || strchr("\"\\$#!~{}", q[i]) ||
                        (!quoted && strchr(" '", q[i])))
                        reader_fail("conf", q, "something that means something");
}

static inline void check_line(const char *q)
{
        for (const char *p = q; *p; p++)
                if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\')
                        reader_fail("line", q, "a control character or a continuation");
}

static inline void check_path(const char *q)
{
        check_line(q);
        for (const char *p = q; *p; p++)
                if (*p == '%' && *++p != '%')
                        reader_fail("path", q, "a specifier");
}

/* Quotes the value for every format and reads it back. */
static inline void check_quoting(const char *value)
{
        struct str clean CLEANUP(str_release) = { 0 };
        clean_utf8(&clean, value);
        const struct {
                const char *name;
                void (*quote)(struct str *, const char *);
                int reader;
        } formats[] = {
                { "json", quote_json, 0 },
                { "toml", quote_toml, 0 },
                { "yaml", quote_yaml, 1 },
                { "unit", quote_unit, 2 },
                { "word", quote_word, 3 },
                { "env", quote_env, 4 },
                { "shell", quote_shell, 5 },
                { "conf", quote_conf, 6 },
                { "line", quote_line, 7 },
                { "path", quote_path, 8 },
        };
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
                struct str q CLEANUP(str_release) = { 0 }, back CLEANUP(str_release) = { 0 };
                const char *want = str_text(&clean);
                formats[i].quote(&q, value);
                switch (formats[i].reader) {
                case 0:
                        read_basic(&back, str_text(&q));
                        break;
                case 1:
                        read_yaml(&back, str_text(&q));
                        break;
                case 2:
                        read_word(&back, str_text(&q), true);
                        break;
                case 3:
                        read_word(&back, str_text(&q), false);
                        want = value;
                        break;
                case 4:
                        read_env(&back, str_text(&q));
                        for (const char *p = value; *p; p++) /* these become U+FFFD */
                                if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
                                        want = NULL;
                        break;
                case 5:
                        read_shell(&back, str_text(&q));
                        want = value;
                        break;
                case 6:
                        check_conf(str_text(&q));
                        want = NULL;
                        break;
                case 7:
                        check_line(str_text(&q));
                        want = NULL;
                        break;
                case 8:
                        check_path(str_text(&q));
                        want = NULL;
                        break;
                }
                if (want && !streq(str_text(&back), want))
                        reader_fail(formats[i].name, str_text(&q), "another value");
        }
}

#endif
