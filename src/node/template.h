/* Templates that look like the files they produce. The format (by the file's suffix) decides how
 * {{name}} is escaped, so a value cannot change the structure of the file:
 *
 *   {{name}}            the value, escaped for the format
 *   {{{name}}}          the value unescaped: only for texts that slipway rendered
 *   {{#name}}…{{/name}} once for each element of a list, or once if true and not empty; inside,
 *                       names are looked up in the element first, and {{.}} is the element
 *   {{^name}}…{{/name}} if false, empty or missing
 *   {{name|indent N}}   an unescaped text of several lines, those after the first indented by N
 *   {{name|base64}}     base64 of the text
 *   {{name|path}}       in a unit: a value without quoting (What=, Where=, Options=)
 *
 * A name may have dots: {{etcd.dir}}. A line with only a section tag leaves no empty line. An
 * unknown name aborts: a template is code. */
#ifndef SLIPWAY_TEMPLATE_H
#define SLIPWAY_TEMPLATE_H

#include <jansson.h>

#include "base/str.h"

enum template_format {
        TEMPLATE_RAW,
        TEMPLATE_YAML,
        TEMPLATE_JSON,
        TEMPLATE_TOML,
        TEMPLATE_UNIT,
        TEMPLATE_ENV,
        TEMPLATE_SHELL,
        TEMPLATE_CONF,
        TEMPLATE_LINE
};

/* The files listed in src/node/meson.build. */
extern struct embed templates;

/* Renders the embedded template "kube-apiserver.yaml" (src/node/templates/) with the values of a
 * JSON object. */
void template_render(const char *name, const json_t *values, struct str *out);
/* For tests: any text. */
void template_text(
        const char *text, enum template_format format, const json_t *values, struct str *out);
/* The format of a file name; aborts on an unknown suffix. */
enum template_format template_format_of(const char *name);

#endif
