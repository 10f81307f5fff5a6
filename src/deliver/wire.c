#include "deliver/wire.h"

#define HEAD  5 /* of a frame: length, type */
#define FIELD 5 /* of a field: tag, length */

static void put32(uint8_t *p, size_t v)
{
        for (int i = 0; i < 4; i++)
                p[i] = (uint8_t)(v >> 8 * i);
}

static size_t get32(const uint8_t *p)
{
        return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

size_t wire_begin(struct str *s, enum wire_type type)
{
        uint8_t head[HEAD] = { [4] = (uint8_t)type };
        size_t begin = s->len;
        str_addn(s, head, sizeof(head));
        return begin;
}

void wire_bytes(struct str *s, enum wire_tag tag, const void *data, size_t n)
{
        uint8_t head[FIELD] = { (uint8_t)tag };
        if (n > WIRE_MAX)
                abort();
        put32(head + 1, n);
        str_addn(s, head, sizeof(head));
        str_addn(s, data, n);
}

void wire_text(struct str *s, enum wire_tag tag, const char *text)
{
        if (text)
                wire_bytes(s, tag, text, strlen(text));
}

void wire_number(struct str *s, enum wire_tag tag, uint64_t n)
{
        uint8_t b[8];
        for (int i = 0; i < 8; i++)
                b[i] = (uint8_t)(n >> 8 * i);
        wire_bytes(s, tag, b, sizeof(b));
}

void wire_end(struct str *s, size_t begin)
{
        size_t len = s->len - begin - HEAD;
        if (len > WIRE_MAX) /* longer contents are blobs: otherwise a bug in slipway */
                abort();
        put32((uint8_t *)s->data + begin, len);
}

static bool known_type(unsigned t)
{
        return (t >= WIRE_HELLO && t <= WIRE_ERROR) || (t >= WIRE_SPEC && t <= WIRE_RUN);
}

/* Checks all fields once, so that readers of a single tag cannot take a broken frame for one
 * without that tag. */
int wire_frame(const void *data, size_t n, struct wire_frame *out)
{
        const uint8_t *p = data;
        if (n >= 4 && get32(p) > WIRE_MAX)
                return -EPROTO;
        if (n >= HEAD && !known_type(p[4]))
                return -EPROTO;
        if (n < HEAD || n - HEAD < get32(p))
                return 0;
        *out = (struct wire_frame){
                .type = p[4], .payload = p + HEAD, .len = get32(p), .whole = HEAD + get32(p)
        };
        struct wire_field f;
        int r;
        for (size_t at = 0; (r = wire_field(out, &at, &f)) > 0;)
                ;
        return r < 0 ? r : 1;
}

int wire_field(const struct wire_frame *f, size_t *at, struct wire_field *out)
{
        size_t left = f->len - *at;
        const uint8_t *p = f->payload + *at;
        if (*at > f->len)
                return -EPROTO;
        if (left == 0)
                return 0;
        if (left < FIELD || left - FIELD < get32(p + 1))
                return -EPROTO;
        *out = (struct wire_field){ .tag = p[0], .data = p + FIELD, .len = get32(p + 1) };
        *at += FIELD + out->len;
        return 1;
}

bool wire_find(const struct wire_frame *f, enum wire_tag tag, struct wire_field *out)
{
        for (size_t at = 0; wire_field(f, &at, out) > 0;)
                if (out->tag == tag)
                        return true;
        return false;
}

uint64_t wire_value(const struct wire_frame *f, enum wire_tag tag, uint64_t otherwise)
{
        struct wire_field v;
        uint64_t n = 0;
        if (!wire_find(f, tag, &v) || v.len != 8)
                return otherwise;
        for (int i = 0; i < 8; i++)
                n |= (uint64_t)v.data[i] << 8 * i;
        return n;
}

char *wire_string(const struct wire_frame *f, enum wire_tag tag)
{
        struct wire_field v;
        if (!wire_find(f, tag, &v) || memchr(v.data, 0, v.len))
                return NULL;
        return xstrndup((const char *)v.data, v.len);
}
