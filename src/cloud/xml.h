/* An XML answer as JSON: an element with children is an object, one without is its text, and
 * children of the same name are an array. A list of one is therefore not an array: answer.h takes
 * both. Attributes, namespaces and comments are left out; a document type, and with it every
 * entity, is refused. */
#ifndef SLIPWAY_CLOUD_XML_H
#define SLIPWAY_CLOUD_XML_H

#include <jansson.h>

#include "base/error.h"

#define XML_MAX_DEPTH    32
#define XML_MAX_ELEMENTS 1000000

/* The content of the root element. */
int xml_read(const char *text, size_t n, json_t **out, struct error *err);

#endif
