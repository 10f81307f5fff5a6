/* YAML or JSON text of many documents → objects. */
#ifndef SLIPWAY_KUBE_DOCUMENTS_H
#define SLIPWAY_KUBE_DOCUMENTS_H

#include <jansson.h>

#include "base/error.h"

/* An array of objects in their order: documents of nothing but comments are left out, a List is opened. Every object has apiVersion, kind and metadata.name.
 * Errors say the line. */
int documents_read(const char *text, json_t **out, struct error *err);

#endif
