/* Encodings and predicates for the user-data writers. */
#ifndef SLIPWAY_ENCODE_H
#define SLIPWAY_ENCODE_H

#include "node/nodespec.h"

/* gzip without time and system in its header: same input, same bytes. */
void gzip_add(struct str *out, const void *data, size_t n);
/* A data: URL (RFC 2397): text percent-encoded, which is readable and compresses
 * well, otherwise base64. */
void data_url_add(struct str *out, const void *data, size_t n);
/* Only printable ASCII, tabs and newlines, which MIME, YAML and shells leave unchanged. */
bool plain_text(const char *data, size_t n);
/* Whether a space-separated list, which may be NULL, has the word. */
bool word_in(const char *list, const char *word);
/* The name below /etc/systemd/system/ ("kubelet.service", "kubelet.service.d/10-x.conf"), or NULL
 * for files elsewhere. */
const char *unit_path(const struct spec_entry *e);
/* Aborts if an entry is not immutable. */
void userdata_assert(const struct nodespec *s);
/* A proxy URL with a user or password is a secret. */
bool url_has_credentials(const char *url);

/* ignition.c: `gzip` compresses each big file; without it the text is to be compressed
 * as a whole. */
void ignition_text(const struct cluster *c, const struct nodespec *s, bool gzip, struct str *out);
/* boothook.c: the script that writes and starts the units of disks before packages are installed.
 * False: there are no disks. */
bool boothook_write(const struct nodespec *s, struct str *out);
/* Whether the boothook writes the file, so that write_files does not. */
bool boothook_has(const struct nodespec *s, const struct spec_entry *e);

#endif
