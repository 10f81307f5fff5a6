/* What the harnesses share: the input as a series of choices, frames made of it (random bytes
 * hardly ever are one), and a directory in memory. */
#ifndef FUZZ_PIECES_H
#define FUZZ_PIECES_H

#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "deliver/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct pieces {
        const uint8_t *p;
        size_t n;
};

static inline uint8_t piece_byte(struct pieces *in) { return in->n ? (in->n--, *in->p++) : 0; }

static inline struct pieces piece_take(struct pieces *in, size_t want)
{
        struct pieces out = { in->p, want < in->n ? want : in->n };
        in->p += out.n;
        in->n -= out.n;
        return out;
}

/* Up to the line "%%" or the end. */
static inline struct pieces piece_part(struct pieces *in)
{
        const uint8_t *mark = in->n ? memmem(in->p, in->n, "\n%%\n", 4) : NULL;
        struct pieces out = piece_take(in, mark ? (size_t)(mark - in->p) : in->n);
        piece_take(in, 4);
        return out;
}

/* One frame of the type: a byte says how many fields, and for each come its tag, its kind and
 * its value. `texts` are words worth trying, NULL at the end. */
static inline void piece_frame(
        struct str *out, struct pieces *in, uint8_t type, const char *const *texts)
{
        size_t count = 0, begin = wire_begin(out, type);
        while (texts[count])
                count++;
        for (unsigned fields = piece_byte(in) % 12; fields; fields--) {
                enum wire_tag tag = piece_byte(in);
                uint8_t kind = piece_byte(in), value = piece_byte(in);
                struct pieces bytes = { 0 };
                if (kind % 4 == 0)
                        wire_number(out, tag,
                                value == 255   ? UINT64_MAX
                                : value == 254 ? INT64_MAX
                                               : value);
                else if (kind % 4 == 1)
                        wire_text(out, tag, texts[value % count]);
                else
                        bytes = piece_take(in, kind % 4 == 2 ? value : 8U);
                if (kind % 4 > 1)
                        wire_bytes(out, tag, bytes.p, bytes.n);
        }
        wire_end(out, begin);
}

/* Made once, in memory where there is some; it is there until the program ends. */
static inline const char *fuzz_dir(void)
{
        static char path[64];
        if (!*path) {
                snprintf(path, sizeof(path), "%s/slipway-fuzz-XXXXXX",
                        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
                if (!mkdtemp(path))
                        abort();
        }
        return path;
}

static inline void fuzz_dir_remove(void)
{
        struct error err CLEANUP(error_release) = { 0 };
        dir_remove(fuzz_dir(), &err);
}

static inline void fuzz_file(const char *path, const void *data, size_t n)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (file_write(path, data, n, 0600, 0, NULL, &err) < 0)
                abort();
}

#endif
