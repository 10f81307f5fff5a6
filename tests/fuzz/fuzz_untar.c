/* A set of programs as the agent unpacks it: the first byte says whether headers get their sums.
 * Nothing may land outside of the set's directory. */
#include <dirent.h>

#include "agent/agent.h"
#include "no_children.h"
#include "pieces.h"
#include "tar_sums.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static size_t files_in(const char *path, bool plain)
{
        size_t n = 0;
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));) {
                n += !streq(e->d_name, ".") && !streq(e->d_name, "..");
                if (plain && e->d_type != DT_REG && e->d_name[0] != '.')
                        abort();
        }
        if (d)
                closedir(d);
        return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char store[80], set[80];
        struct error err CLEANUP(error_release) = { 0 };
        struct agent a = { .root = fuzz_dir(),
                .lock = -1,
                .blob.fd = -1,
                .session = { .in = -1, .out = -1, .signals = -1 } };
        struct entry e = { .kind = SPEC_ARTIFACT,
                .flags = SPEC_SET,
                .mode = 0755,
                .path = (char *)"/set",
                .id = (char *)"4 /set",
                .digest = DIGEST,
                .state = STATE_CREATED };
        uint8_t *copy CLEANUP(free_p) = xmalloc(size + 1);
        if (!*store)
                atexit(fuzz_dir_remove);
        snprintf(store, sizeof(store), "%s/var/lib/slipway/store", fuzz_dir());
        snprintf(set, sizeof(set), "%s/set", fuzz_dir());
        a.state = agent_path(&a, "/var/lib/slipway");
        if (dir_make(store, 0700, &err) < 0 || dir_make(set, 0700, &err) < 0)
                abort();
        struct pieces in = { data, size };
        bool sums = piece_byte(&in) & 1;
        memcpy(copy, data + size - in.n, in.n);
        if (sums)
                tar_sums(copy, in.n);
        char *blob CLEANUP(free_p) = store_path(&a, DIGEST);
        fuzz_file(blob, copy, in.n);
        apply_sets(&a, &e, 1);
        if (a.changed + a.failed != 1 || files_in(set, true) > 4096 ||
                files_in(fuzz_dir(), false) > 2)
                abort();
        str_release(&a.session.outgoing);
        record_release(&a.record);
        before_release(&a);
        free(a.state);
        if (dir_remove(set, &err) < 0 || dir_remove(fuzz_dir(), &err) < 0 ||
                dir_make(fuzz_dir(), 0700, &err) < 0)
                abort();
        return 0;
}
