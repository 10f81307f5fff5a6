/* Files from a node: nothing beyond what it announced reaches the disk. The link is a fake that
 * says what a node might. */
#include "base/base.h"

#include <setjmp.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/file.h"
#include "cluster/etcd/transfer.h"
#include "cluster/etcd/etcd.h"

static const char *sent;
static size_t pieces;
static struct error got;
static size_t told;

void member_run_program(struct member *m, const struct link_program *p)
{
        struct link *l = m->run.link;
        for (size_t i = 0; i < pieces; i++)
                p->sink(l, sent, strlen(sent), p->arg);
        p->fn(l, 0, "", "", p->arg);
}

bool member_reachable(const struct member *m) { return m->run.link != NULL; }

void member_run(struct member *m, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg)
{
}

void step_doing(struct step *s, int permille, const char *fmt, ...) {}
void op_begin(struct op *o, struct site *site, struct step *s) {}

static void on_done(struct transfer *c, struct error *err)
{
        told++;
        error_release(&got);
        if (err) {
                got = *err;
                *err = (struct error){ 0 };
        }
}

static int64_t size_of(const char *path)
{
        struct stat st;
        return stat(path, &st) < 0 ? -1 : (int64_t)st.st_size;
}

static void bring(const char *path, int64_t announced, size_t n)
{
        struct member m = { .run.link = (struct link *)(uintptr_t)1 };
        struct transfer c = { .member = &m,
                .remote = "/var/lib/x",
                .local = path,
                .size = announced,
                .fn = on_done };
        struct sha256 sum;
        sha256_init(&sum);
        for (int64_t i = 0; i + 4 <= announced && announced < 1000; i += 4)
                sha256_add(&sum, "abcd", 4);
        sha256_end(&sum, c.digest);
        sent = "abcd";
        pieces = n;
        told = 0;
        transfer_fetch(&c);
        assert_int_equal(told, 1);
}

static void bounded(void **state)
{
        char dir[] = "/tmp/slipway-carry-XXXXXX";
        struct error err CLEANUP(error_release) = { 0 };
        assert_non_null(mkdtemp(dir));
        char *path CLEANUP(free_p) = path_join(dir, "file"),
                   *part CLEANUP(free_p) = path_join(dir, "file.part");
        bring(path, 12, 3);
        assert_int_equal(got.code, 0);
        assert_int_equal(size_of(path), 12);
        unlink(path);
        bring(path, 12, 100000); /* it goes on and on */
        assert_int_equal(got.code, EFBIG);
        assert_non_null(strstr(got.message, "/var/lib/x is longer than the node said (12 bytes)"));
        assert_true(size_of(path) < 0 && size_of(part) < 0);
        bring(path, 12, 2);
        assert_int_equal(got.code, EBADMSG);
        bring(path, (int64_t)1 << 50, 1); /* a size that nobody has room for */
        assert_int_equal(got.code, EFBIG);
        bring(path, -5, 1);
        assert_int_equal(got.code, EFBIG);
        assert_true(size_of(path) < 0 && size_of(part) < 0);
        error_release(&got);
        dir_remove(dir, &err);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(bounded) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
