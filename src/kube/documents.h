/* Reads YAML or JSON text with many documents. */
#ifndef SLIPWAY_KUBE_DOCUMENTS_H
#define SLIPWAY_KUBE_DOCUMENTS_H

#include <jansson.h>

#include "base/error.h"
#include "base/str.h"

/* An array of objects in their order, without empty documents and with the items of Lists. Every
 * object has apiVersion, kind and metadata.name. Errors name the line. */
int documents_read(const char *text, json_t **out, struct error *err);
/* The same for a file that must have an object in it. Errors name the file too. */
int documents_load(const char *path, struct str *text, json_t **out, struct error *err);

#endif
