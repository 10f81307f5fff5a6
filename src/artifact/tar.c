#include <sys/stat.h>

#include "artifact/tar.h"
#include "base/tar_header.h"

#define BLOCK TAR_BLOCK

struct header {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100],
                magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155],
                rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

int64_t tar_room(int64_t size) { return BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK; }

int tar_member(
        const struct tar *t, const char *name, unsigned mode, int64_t size, struct error *err)
{
        struct header h = {
                .type = has_suffix(name, "/") ? '5' : '0', .magic = "ustar", .version = { '0', '0' }
        };
        if (!*name || strlen(name) > sizeof(h.name) || size < 0 || size >> 33)
                return error_set(err, EINVAL, EXIT_INTERNAL,
                        "cannot put %s into an archive: its name or size does not fit", name);
        memcpy(h.name, name, strlen(name));
        snprintf(h.mode, sizeof(h.mode), "%07o", mode & 07777);
        snprintf(h.uid, sizeof(h.uid), "%07o", 0);
        snprintf(h.gid, sizeof(h.gid), "%07o", 0);
        snprintf(h.size, sizeof(h.size), "%011" PRIo64, (uint64_t)size);
        snprintf(h.mtime, sizeof(h.mtime), "%011o", 0);
        memset(h.sum, ' ', sizeof(h.sum));
        unsigned sum = 0;
        for (size_t i = 0; i < BLOCK; i++)
                sum += ((const unsigned char *)&h)[i];
        snprintf(h.sum, sizeof(h.sum), "%06o", sum & 0777777);
        return t->write(t->arg, &h, sizeof(h), err);
}

int tar_pad(const struct tar *t, int64_t size, struct error *err)
{
        static const char zero[BLOCK];
        size_t over = (size_t)(size % BLOCK);
        return over ? t->write(t->arg, zero, BLOCK - over, err) : 0;
}

int tar_end(const struct tar *t, struct error *err)
{
        static const char zero[TAR_END];
        return t->write(t->arg, zero, sizeof(zero), err);
}

int tar_data(const struct tar *t, const char *name, unsigned mode, const void *data, size_t n,
        struct error *err)
{
        int r = tar_member(t, name, mode, (int64_t)n, err);
        if (r == 0 && n)
                r = t->write(t->arg, data, n, err);
        return r == 0 ? tar_pad(t, (int64_t)n, err) : r;
}

/* What goes through must be as much as the header said. */
struct through {
        const struct tar *tar;
        int64_t size;
};

static int pass(void *arg, const void *data, size_t n, struct error *err)
{
        struct through *x = arg;
        x->size += (int64_t)n;
        return x->tar->write(x->tar->arg, data, n, err);
}

int tar_file(const struct tar *t, const char *name, unsigned mode, const char *path, stop_flag stop,
        struct error *err)
{
        struct through x = { .tar = t };
        struct stat st;
        if (stat(path, &st) < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot read %s: %s", path, strerror(errno));
        int r = tar_member(t, name, mode, st.st_size, err);
        if (r == 0)
                r = file_pieces(path, stop, pass, &x, err);
        if (r == 0 && x.size != st.st_size)
                r = error_set(
                        err, EIO, EXIT_INTERNAL, "cannot read %s: it changed meanwhile", path);
        return r == 0 ? tar_pad(t, st.st_size, err) : r;
}
