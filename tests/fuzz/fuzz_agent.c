/* The agent as a whole: a record of earlier runs (up to a line "%%"), then the operator's frames
 * on its standard input. It starts no program and ends none (fork and kill are fuzz_'s). Without
 * a record specs of directories and files are applied too, below a root in memory; with one, or
 * with other kinds, it only compares. */
#include <sys/mman.h>

#include "agent/agent.h"
#include "no_children.h"
#include "pieces.h"

#define DIGEST "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* of nothing */

int agent_program(int argc, char **argv);

/* In place of facts.c, which looks at every process of this computer. */
void facts_write(struct agent *a, struct str *o) { str_add(o, "{}"); }

static const char *const texts[] = { DIGEST, "/etc/a", "/etc/a/b", "/etc/a/../b", "kubelet.service",
        "net.ipv4.ip_forward", "abcde", "daemon:12", "a.service b.service", "1", "", "../x", NULL };

/* Whose kind comes first counts: what the input adds cannot make a link of it, over which files
 * would land elsewhere. */
static void entry(struct str *out, struct pieces *in, bool applies)
{
        static const enum spec_kind harmless[] = { SPEC_DIR, SPEC_FILE, SPEC_ARTIFACT };
        uint8_t kind = piece_byte(in);
        size_t begin = wire_begin(out, WIRE_ENTRY);
        wire_number(out, TAG_KIND, applies ? harmless[kind % 3] : kind % (SPEC_KIND_COUNT + 1));
        wire_text(out, kind & 16 ? TAG_NAME : TAG_PATH, texts[1 + piece_byte(in) % 5]);
        if (kind & 32)
                wire_text(out, TAG_DIGEST, DIGEST);
        size_t end = out->len;
        piece_frame(out, in, WIRE_ENTRY, texts);
        memmove(out->data + end, out->data + end + 5,
                out->len - end - 5); /* its fields are this one's */
        str_truncate(out, out->len - 5);
        wire_end(out, begin);
}

static void frames(struct str *out, struct pieces *in, bool applies)
{
        static const uint8_t types[] = { WIRE_SPEC, WIRE_SPEC_END, WIRE_BLOB, WIRE_DATA, WIRE_RUN,
                WIRE_HELLO };
        unsigned entries = piece_byte(in) % 8;
        size_t begin = wire_begin(out, WIRE_SPEC);
        wire_text(out, TAG_DIGEST, DIGEST);
        wire_number(out, TAG_COUNT, entries);
        wire_text(out, TAG_NAME, "abcde");
        wire_text(out, TAG_NODE, "w1");
        wire_end(out, begin);
        for (unsigned i = 0; i < entries; i++)
                entry(out, in, applies);
        wire_end(out, wire_begin(out, WIRE_SPEC_END));
        while (in->n) {
                uint8_t what = piece_byte(in);
                if (what % 8 < ARRAY_SIZE(types)) {
                        piece_frame(out, in, types[what % 8], texts);
                } else if (what % 8 == 6) {
                        entry(out, in, applies);
                } else {
                        static const uint8_t modes[] = { APPLY_COMPARE, APPLY_ALL, APPLY_PLACE,
                                APPLY_STAGE };
                        begin = wire_begin(out, WIRE_APPLY);
                        wire_text(out, TAG_NODE, "w1");
                        wire_number(out, TAG_MODE, applies ? modes[what >> 3 & 3] : APPLY_COMPARE);
                        wire_end(out, begin);
                }
        }
}

static void put_input(const struct str *s)
{
        int in = memfd_create("input", MFD_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (in < 0 || null < 0 || pwrite(in, str_text(s), s->len, 0) != (ssize_t)s->len ||
                dup2(in, 0) < 0 || dup2(null, 1) < 0)
                abort();
        close(in);
        close(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static bool made;
        struct error err CLEANUP(error_release) = { 0 };
        struct str s CLEANUP(str_release) = { 0 };
        struct pieces in = { data, size }, record = piece_part(&in);
        char *state CLEANUP(free_p) = path_join(fuzz_dir(), "var/lib/slipway"),
                    *path CLEANUP(free_p) = path_join(state, "record");
        if (!made)
                atexit(fuzz_dir_remove);
        made = true;
        if (dir_remove(fuzz_dir(), &err) < 0 || dir_make(state, 0700, &err) < 0)
                abort();
        if (record.n)
                fuzz_file(path, record.p, record.n);
        frames(&s, &in, !record.n);
        put_input(&s);
        agent_program(3, (char *[]){ (char *)"agent", (char *)"--root", (char *)fuzz_dir(), NULL });
        return 0;
}
