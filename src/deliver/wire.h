/* The agent's protocol: frames over a byte stream (standard input and output of ssh). Shared by the
 * program and the agent, so it uses only base/.
 *
 *   frame   = length (u32, little-endian, of what follows the type), type (u8), payload
 *   payload = fields: tag (u8), length (u32, little-endian), bytes; numbers are 8 bytes,
 * little-endian; a tag may occur several times
 * The agent speaks first: HELLO has its facts and the digest of the spec it applied last. If that
 * is the wanted one and nothing has drifted, the operator closes the connection: a run that changes
 * nothing takes one round trip. A frame has at most WIRE_MAX bytes; longer contents are sent as
 * blobs. The operator keeps the connection open until DONE: at the end of input the agent stops
 * before the next entry. Digests are SHA-256 as 64 lower-case hexadecimal digits. Texts have no
 * control characters. Unknown tags are skipped. */
#ifndef SLIPWAY_WIRE_H
#define SLIPWAY_WIRE_H

#include "base/str.h"

#define WIRE_MAX     ((size_t)1 << 20)
#define WIRE_CHUNK   ((size_t)256 << 10) /* of a blob in one DATA frame */
#define WIRE_VERSION 1

enum wire_type {
        /* agent → operator */
        /* VERSION, FACTS (JSON), DIGEST (of the spec applied last, absent if none), DRIFT (paths
         * and units, one field each) */
        WIRE_HELLO = 1,
        /* DIGEST, OFFSET (bytes that the node has): a frame for each missing
         * blob, after SPEC_END */
        WIRE_NEED,
        WIRE_READY, /* all NEEDs are sent: blobs may follow, then APPLY */
        /* INDEX (of the entry; one that is no longer in the spec has KIND and NAME instead), STATE
         * (enum wire_state), DETAIL (optional) */
        WIRE_EVENT,
        WIRE_DONE,  /* COUNT of changed entries, STATUS: how many failed */
        WIRE_OUT,   /* ID, STREAM (1, 2), BYTES: of a RUN */
        WIRE_EXIT,  /* ID, STATUS (0–255, 128+n for signal n): of a RUN */
        WIRE_ERROR, /* TEXT, HINT: the agent stops */

        /* operator → agent */
        /* DIGEST, COUNT, NAME (the cluster's id: a node of another cluster refuses), NODE: ENTRY
         * frames follow */
        WIRE_SPEC = 32,
        /* one spec_entry: CONTENT, or DIGEST of its blob (file, artifact, image) */
        WIRE_ENTRY,
        WIRE_SPEC_END,
        WIRE_BLOB,  /* DIGEST, SIZE, OFFSET: DATA frames follow until SIZE is reached */
        WIRE_DATA,  /* BYTES */
        WIRE_APPLY, /* NODE, MODE (enum apply_mode) */
        WIRE_RUN,   /* ID, NODE, ARG (one each), INPUT (optional): runs a program without a shell */
};

/* The numbers are on the wire: they stay. */
enum apply_mode {
        APPLY_ALL = 0,
        APPLY_PLACE = 1,   /* all but starting units */
        APPLY_COMPARE = 2, /* only report what would change */
        /* Remove everything from the host. The spec has only the directories (DIR) of
         * programs; NAME is the program (etcd, runtime, audit with the log as TARGET), which
         * decides what is removed in them (with SPEC_ONCE: only in a directory that did not
         * exist before slipway). */
        APPLY_RESET = 3,
        APPLY_STAGE = 4, /* only store the blobs for later */
        APPLY_MODES
};

enum wire_state {
        STATE_SAME,
        STATE_CREATED,
        STATE_CHANGED,
        STATE_RESTARTED,
        STATE_STARTED,
        STATE_REMOVED,
        STATE_FAILED
};

enum wire_tag {
        TAG_VERSION = 1,
        TAG_FACTS,
        TAG_DIGEST,
        TAG_DRIFT,
        TAG_OFFSET,
        TAG_INDEX,
        TAG_STATE,
        TAG_DETAIL,
        TAG_COUNT,
        TAG_ID,
        TAG_STREAM,
        TAG_BYTES,
        TAG_STATUS,
        TAG_TEXT,
        TAG_HINT,
        TAG_SIZE,
        TAG_MODE,
        TAG_ARG,
        TAG_INPUT,
        /* of an entry; names as in nodespec.h */
        TAG_KIND,
        TAG_CLASS,
        TAG_FLAGS,
        TAG_PATH,
        TAG_NAME,
        TAG_TARGET,
        TAG_ARTIFACT_VERSION,
        TAG_OWNER,
        TAG_FILE_MODE,
        TAG_CONTENT,
        TAG_UNITS,
        /* of SPEC, APPLY and RUN: the addressed node; other nodes refuse */
        TAG_NODE,
};

/* Writing: wire_begin, fields, wire_end; the frame is appended to the buffer. */
size_t wire_begin(struct str *s, enum wire_type type);
void wire_bytes(struct str *s, enum wire_tag tag, const void *data, size_t n);
void wire_text(struct str *s, enum wire_tag tag, const char *text); /* NULL: no field */
void wire_number(struct str *s, enum wire_tag tag, uint64_t n);
void wire_end(struct str *s, size_t begin);

/* Reading: 1 when the buffer begins with a complete frame, 0 when more bytes are needed, -EPROTO
 * when it is not a frame. */
struct wire_frame {
        enum wire_type type;
        const uint8_t *payload;
        size_t len, whole; /* whole: bytes of the frame in the buffer */
};
int wire_frame(const void *data, size_t n, struct wire_frame *out);
/* Walks the fields: *at starts at 0. 1 with a field, 0 at the end, -EPROTO. */
struct wire_field {
        enum wire_tag tag;
        const uint8_t *data;
        size_t len;
};
int wire_field(const struct wire_frame *f, size_t *at, struct wire_field *out);
bool wire_find(const struct wire_frame *f, enum wire_tag tag, struct wire_field *out);
uint64_t wire_value(const struct wire_frame *f, enum wire_tag tag, uint64_t otherwise);
/* malloc'd; NULL when absent or with a NUL inside. */
char *wire_string(const struct wire_frame *f, enum wire_tag tag);

#endif
