/* The agent's protocol: frames over a byte pipe (ssh's standard input and output). Shared by the program and the agent, so it uses base/ alone.
 *
 *   frame   = length (u32, little-endian, of what follows the type), type (u8), payload
 *   payload = fields: tag (u8), length (u32, little-endian), bytes; numbers are 8 bytes, little-endian; a tag may come several times
 *
 * The agent speaks first: HELLO has its facts and what it applied last. Where that is what is wanted and nothing has drifted, the operator
 * just closes: a run that changes nothing costs one round trip. A frame is at most WIRE_MAX bytes: contents longer than that travel as blobs.
 * The operator keeps its end open until DONE: the end of input means that the connection was cut, and the agent stops before the next entry.
 * Digests are SHA-256 as 64 lower-case hexadecimal digits. Texts have no control characters. A tag nobody knows is passed over. */
#ifndef SLIPWAY_WIRE_H
#define SLIPWAY_WIRE_H

#include "base/str.h"

#define WIRE_MAX     ((size_t)1 << 20)
#define WIRE_CHUNK   ((size_t)256 << 10) /* of a blob in one DATA frame */
#define WIRE_VERSION 1

enum wire_type {
        /* agent → operator */
        WIRE_HELLO = 1, /* VERSION, FACTS (JSON), DIGEST (spec applied last, absent if none), DRIFT (path or unit, one field each) */
        WIRE_NEED,      /* DIGEST, OFFSET (bytes there already): one frame for each blob missing, after SPEC_END */
        WIRE_READY,     /* all NEEDs are sent: blobs may follow, then APPLY */
        WIRE_EVENT, /* INDEX (of the entry; absent for one that is no longer in the spec, then KIND and NAME say which), STATE (enum wire_state), DETAIL (optional) */
        WIRE_DONE,  /* COUNT of changed entries, STATUS: how many failed */
        WIRE_OUT,   /* ID, STREAM (1, 2), BYTES: of a RUN */
        WIRE_EXIT,  /* ID, STATUS (0–255, 128+n for signal n): of a RUN */
        WIRE_ERROR, /* TEXT, HINT: the agent stops */

        /* operator → agent */
        WIRE_SPEC = 32, /* DIGEST, COUNT, NAME (the cluster's id: a node of another cluster refuses): ENTRY frames follow */
        WIRE_ENTRY,     /* one spec_entry: CONTENT, or DIGEST of the blob that holds it (file, artifact, image) */
        WIRE_SPEC_END,
        WIRE_BLOB,  /* DIGEST, SIZE, OFFSET: DATA frames follow until SIZE is reached */
        WIRE_DATA,  /* BYTES */
        WIRE_APPLY, /* MODE: 0 all, 1 everything but starting units, 2 only say what would change, 4 only keep the blobs for later, 3 take everything off the host: the spec has no more than the
                     * directories (DIR) whose contents are the cluster's (with SPEC_ONCE: if they came with it) */
        WIRE_RUN,   /* ID, ARG (one each), INPUT (optional): runs a program, no shell */
};

enum wire_state { STATE_SAME, STATE_CREATED, STATE_CHANGED, STATE_RESTARTED, STATE_STARTED, STATE_REMOVED, STATE_FAILED };

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
};

/* Writing: wire_begin, fields, wire_end; the frame is appended to the buffer. */
size_t wire_begin(struct str *s, enum wire_type type);
void wire_bytes(struct str *s, enum wire_tag tag, const void *data, size_t n);
void wire_text(struct str *s, enum wire_tag tag, const char *text); /* NULL: no field */
void wire_number(struct str *s, enum wire_tag tag, uint64_t n);
void wire_end(struct str *s, size_t begin);

/* Reading: 1 when a whole frame stands at the front of the buffer, 0 when more bytes are needed, -EPROTO when it cannot be one. */
struct wire_frame {
        enum wire_type type;
        const uint8_t *payload;
        size_t len, whole; /* whole: bytes of the frame, to be dropped when it has been dealt with */
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
char *wire_string(const struct wire_frame *f, enum wire_tag tag); /* malloc'd, NULL when absent or with a NUL inside */

#endif
