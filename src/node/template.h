/* Templates that read as what they produce. The format (by the file's ending) decides how {{name}} is escaped, so a value cannot break out:
 *   {{name}}            the value, escaped for the format
 *   {{{name}}}          the value as it is: only for texts rendered by us
 *   {{#name}}…{{/name}} once for each element of a list, or once when true and not empty; inside, names are looked up in the element first, and {{.}} is the element
 *   {{^name}}…{{/name}} when false, empty or missing
 *   {{name|indent N}}   a text of several lines, raw, each line after the first indented by N blanks
 *   {{name|base64}}     base64 of the text
 *   {{name|path}}       in a unit: the rest of a line that knows no quotes (What=, Where=, Options=)
 * A name may have dots: {{etcd.dir}}. A line with nothing but a section tag on it leaves no empty line behind. A name that is nowhere is an abort: a template is code. */
#ifndef SLIPWAY_TEMPLATE_H
#define SLIPWAY_TEMPLATE_H

#include <jansson.h>

#include "base/str.h"

enum template_format { TEMPLATE_RAW, TEMPLATE_YAML, TEMPLATE_JSON, TEMPLATE_TOML, TEMPLATE_UNIT, TEMPLATE_ENV, TEMPLATE_SHELL, TEMPLATE_CONF, TEMPLATE_LINE };

/* What src/node/meson.build lists. */
extern struct embed templates;

/* Renders the embedded template "kube-apiserver.yaml" (src/node/templates/) with the values of a JSON object. */
void template_render(const char *name, const json_t *values, struct str *out);
/* For tests: any text. */
void template_text(const char *text, enum template_format format, const json_t *values, struct str *out);
/* The format a file name stands for; an ending that nobody knows is an abort. */
enum template_format template_format_of(const char *name);

#endif
