/* What the user-data writers share: encodings, and questions about a NodeSpec. */
#ifndef SLIPWAY_ENCODE_H
#define SLIPWAY_ENCODE_H

#include "node/nodespec.h"

/* gzip without a time or a system in its header: same input, same bytes. */
void gzip_add(struct str *out, const void *data, size_t n);
/* A data: URL, RFC 2397: text percent-encoded, so that it can be read and compresses well; anything else base64. */
void data_url_add(struct str *out, const void *data, size_t n);
/* Only bytes that every mail, YAML and shell reader takes as they are: printable ASCII, tabs and newlines. */
bool plain_text(const char *data, size_t n);
/* A word of a space-separated list; the list may be NULL. */
bool word_in(const char *list, const char *word);
/* The name below /etc/systemd/system/ ("kubelet.service", "kubelet.service.d/10-x.conf"), or NULL for files elsewhere. */
const char *unit_path(const struct spec_entry *e);
/* An entry of another class is a mistake of ours: aborts. */
void userdata_assert(const struct nodespec *s);
/* A proxy's URL with a user or password in it is a secret. */
bool url_has_credentials(const char *url);

/* ignition.c: `gzip` compresses big files one by one; without it the text is as even as possible, to be compressed as a whole. */
void ignition_text(const struct cluster *c, const struct nodespec *s, bool gzip, struct str *out);
/* boothook.c: the part that must run before packages: the script that lays out and starts the disks' units. False: there is none. */
bool boothook_write(const struct nodespec *s, struct str *out);
/* A file that the boothook writes: not again in write_files. */
bool boothook_has(const struct nodespec *s, const struct spec_entry *e);

#endif
