/* After a run nothing of its keys is left in memory: not in buffers that grew, not in arenas, not
 * in JSON. */
#include "base/base.h"

#include <fcntl.h>
#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>
#include <malloc.h>

#include "deliver/link/link.h"
#include "node_fixture.h"

#define MASK   0x5a
#define MARKED 40 /* bytes that are looked for */

#ifdef __SANITIZE_ADDRESS__ /* its own memory takes minutes to look through: there the run alone \
                               is judged */
#define LOOKS false
#else
#define LOOKS true
#endif

static unsigned char marks[4][MARKED]; /* masked: this program's own copies are no find */
static size_t mark_count;

const void *agent_bytes(size_t *n)
{
        *n = 0;
        return "";
}

static void mark(const char *text)
{
        for (size_t i = 0; i < MARKED; i++)
                marks[mark_count][i] = (unsigned char)text[i] ^ MASK;
        mark_count++;
}

static size_t found_in(const unsigned char *data, size_t n)
{
        size_t found = 0;
        for (size_t i = 0; i + MARKED <= n; i++)
                for (size_t m = 0; m < mark_count; m++) {
                        size_t k = 0;
                        while (k < MARKED && (data[i + k] ^ MASK) == marks[m][k])
                                k++;
                        found += k == MARKED;
                }
        return found;
}

/* Through /proc, which no sanitizer looks at; the window is the only copy, and not searched itself.
 */
static size_t found_anywhere(void)
{
        static unsigned char window[1 << 16];
        size_t found = 0;
        char line[512];
        FILE *maps CLEANUP(fclose_p) = fopen("/proc/self/maps", "re");
        int mem CLEANUP(close_p) = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
        while (fgets(line, sizeof(line), maps)) {
                uintptr_t from, to, own = (uintptr_t)window;
                char mode[5];
                if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) != 3 ||
                        mode[0] != 'r' || mode[1] != 'w' || to - from > (uintptr_t)1 << 32)
                        continue;
                for (uintptr_t at = from; at < to; at += sizeof(window) - MARKED) {
                        ssize_t n = pread(mem, window,
                                to - at < sizeof(window) ? to - at : sizeof(window), (off_t)at);
                        if (n > 0 && (at + (size_t)n <= own || at >= own + sizeof(window)))
                                found += found_in(window, (size_t)n);
                }
                wipe(window, sizeof(window));
        }
        return found;
}

static const char *second_line(const char *pem) { return strchr(pem, '\n') + 1; }

static __attribute__((noinline)) void a_run(const char *state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct fixture f;
        struct identity id = { .lock = -1 };
        struct node_identity leaves = { 0 };
        struct nodespec s CLEANUP(nodespec_release) = { 0 };
        struct str json CLEANUP(str_release) = { 0 }, frame CLEANUP(str_release) = { 0 };
        char digest[65];
        fixture_init(&f, ha_yaml);
        if (identity_open(state, f.cluster, 1800000000, &id, &err) < 0 ||
                identity_node(&id, f.cluster, &f.cluster->nodes[0], &leaves, &err) < 0)
                fail_msg("%s", err.message);
        if (!mark_count) {
                mark(id.encryption_key);
                mark(second_line(id.ca[CA_CLUSTER].key));
                mark(second_line(id.sa_key) + 70);
                mark(second_line(leaves.leaf[LEAF_APISERVER].key));
        }
        assert_true(!LOOKS || found_anywhere() > 3);
        struct spec_input in = fixture_input(&f, f.cluster->nodes[0].name);
        in.identity = &id;
        in.leaves = &leaves;
        if (node_render(&in, &s, &err) < 0)
                fail_msg("%s", err.message);
        link_digest(&s, NULL, 0, digest);
        nodespec_json(&s, &json);
        for (size_t i = 0; i < s.count; i++) { /* as they travel: a buffer that grows and grows */
                size_t b = wire_begin(&frame, WIRE_ENTRY);
                if (s.entries[i].content)
                        wire_bytes(&frame, TAG_CONTENT, s.entries[i].content, s.entries[i].len);
                wire_end(&frame, b);
        }
        identity_sync(&id, &err);
        node_identity_release(&leaves);
        identity_release(&id);
        fixture_release(&f);
}

/* What a function leaves on the stack is overwritten by the next one that goes as deep. */
static __attribute__((noinline)) void stack_over(void)
{
        char deep[256 << 10];
        wipe(deep, sizeof(deep));
}

static void nothing_is_left(void **unused)
{
        char state[] = "/tmp/slipway-wiped-XXXXXX";
        struct error err CLEANUP(error_release) = { 0 };
        assert_non_null(mkdtemp(state));
        json_set_alloc_funcs(malloc, free_wiped); /* as main does */
        mallopt(M_TRIM_THRESHOLD, 1 << 30); /* what is given back stays where it can be looked at */
        mallopt(M_MMAP_THRESHOLD, 1 << 30);
        a_run(state); /* makes the keys */
        stack_over();
        assert_int_equal(LOOKS ? found_anywhere() : 0, 0);
        a_run(state); /* reads them */
        stack_over();
        assert_int_equal(LOOKS ? found_anywhere() : 0, 0);
        dir_remove(state, &err);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_is_left) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
