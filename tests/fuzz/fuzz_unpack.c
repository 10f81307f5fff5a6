/* An archive of upstream's, as a mirror may send it: the first byte says whether its headers get
 * their sums. Blobs must be no longer than what was in it. */
#include "artifact/pack.h"
#include "pieces.h"
#include "tar_sums.h"

#define MOST 1100 /* that deflate can make of a byte */

static const char *fuzz_cache(void)
{
        static const char *const dirs[] = { "tmp", "blobs/sha256" };
        static bool made;
        for (size_t i = 0; !made && i < ARRAY_SIZE(dirs); i++) {
                struct error err CLEANUP(error_release) = { 0 };
                char *path CLEANUP(free_p) = path_join(fuzz_dir(), dirs[i]);
                if (dir_make(path, 0700, &err) < 0)
                        abort();
        }
        if (!made)
                atexit(fuzz_dir_remove);
        made = true;
        return fuzz_dir();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct unpack wanted[] = { { .member = "etcd-v1/etcd" }, { .member = "*" },
                { .member = "kubectl" } };
        const char *cache = fuzz_cache();
        char *path CLEANUP(free_p) = path_join(cache, "archive");
        uint8_t *copy CLEANUP(free_p) = xmalloc(size + 1);
        if (!size)
                return 0;
        memcpy(copy, data + 1, size - 1);
        if (data[0] & 1)
                tar_sums(copy, size - 1);
        fuzz_file(path, copy, size - 1);
        size_t count = 1 + (data[0] >> 1) % ARRAY_SIZE(wanted);
        int r = unpack_members(cache, path, (int64_t)1 << 30, wanted, count, NULL, &err);
        if ((r < 0) != (err.message != NULL))
                abort();
        for (size_t i = 0; i < count; i++)
                if (wanted[i].found) {
                        char *blob CLEANUP(free_p) = blob_path(cache, wanted[i].digest);
                        if (wanted[i].size < 0 || wanted[i].size > (int64_t)(size + 10) * MOST * 3)
                                abort();
                        unlink(blob);
                }
        return 0;
}
