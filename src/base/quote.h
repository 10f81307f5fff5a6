/* Escaping, one function for each format a value can land in. Each appends the quoted form of `v`
 * to `s`, quotes included where the format wants them, and cannot be broken out of by any byte but
 * NUL (which C strings cannot hold). Bytes that are not UTF-8 become U+FFFD where the format
 * demands UTF-8 (YAML, TOML, JSON). */
#ifndef SLIPWAY_QUOTE_H
#define SLIPWAY_QUOTE_H

#include "base/str.h"

void quote_json(struct str *s, const char *v); /* "…": a JSON string */
/* Plain when plain is unambiguous in YAML 1.1 and 1.2 (block style), else "…". */
void quote_yaml(struct str *s, const char *v);
void quote_toml(struct str *s, const char *v); /* "…": a TOML basic string */
/* One word of a systemd Exec line: % and $ doubled. */
void quote_unit(struct str *s, const char *v);
/* The whole rest of a unit's What=, Where= or Options= line, which knows % but no quotes: \ and
 * control characters become _. */
void quote_path(struct str *s, const char *v);
/* One word of a variable that systemd splits into words ($ARGS in an Exec line); goes through
 * quote_env as part of it. */
void quote_word(struct str *s, const char *v);
/* The value of one line of an EnvironmentFile= (systemd's and sh's rules at once); control
 * characters become U+FFFD. */
void quote_env(struct str *s, const char *v);
void quote_shell(struct str *s, const char *v); /* one shell word: plain when safe, else '…' */
/* One haproxy or keepalived word: "…", with what means something inside quotes to either made _. */
void quote_conf(struct str *s, const char *v);
/* The rest of a line in a format without quotes (sysctl.d): control characters become blanks, \
 * (which continues a line) _. */
void quote_line(struct str *s, const char *v);

#endif
