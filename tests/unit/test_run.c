/* The runner and the journal: order, failure, deadlines, and what a killed run leaves to read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <event2/event.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "run/run.h"

struct fixture {
        struct event_base *base;
        struct arena arena;
        struct run run;
        struct str order;
};

static struct fixture f;

static int setup(void **state)
{
        f = (struct fixture){ .base = event_base_new() };
        run_init(&f.run, f.base, &f.arena, "up", "demo");
        return 0;
}

static int teardown(void **state)
{
        run_release(&f.run);
        str_release(&f.order);
        arena_release(&f.arena);
        event_base_free(f.base);
        return 0;
}

static void note(struct step *s) { str_addf(&f.order, "%s%s", f.order.len ? " " : "", s->name); }

static void now(struct step *s)
{
        note(s);
        step_done(s, NULL);
}

static void finish_later(evutil_socket_t fd, short what, void *arg) { now(arg); }

static void later(struct step *s)
{
        event_base_once(
                f.base, -1, EV_TIMEOUT, finish_later, s, &(struct timeval){ .tv_usec = 20000 });
}

static void fails(struct step *s)
{
        struct error err CLEANUP(error_release) = { 0 };
        note(s);
        error_set(&err, EIO, EXIT_STEP, "node w1: the disk is full"); /* as a link says it */
        error_hint(&err, "make room");
        step_done(s, &err);
}

static void keeps(struct step *s) { step_unchanged(s); }

static void test_order(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct step *c = run_step(&f.run, "c", NULL, now, NULL),
                    *slow = run_step(&f.run, "slow", "w1", later, NULL),
                    *a = run_step(&f.run, "a", NULL, now, NULL);
        step_after(c, slow);
        step_after(c, a);
        assert_int_equal(run_execute(&f.run, &err), 0);
        assert_string_equal(str_text(&f.order), "a slow c"); /* a did not wait for slow */
        assert_int_equal(c->state, STEP_DONE);
        assert_true(c->began >= slow->ended);
}

static void test_failure_skips_what_waits(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct step *bad = run_step(&f.run, "apply", "w1", fails, NULL),
                    *after = run_step(&f.run, "Ready", "w1", now, NULL),
                    *other = run_step(&f.run, "apply", "w2", later, NULL);
        step_after(after, bad);
        assert_int_equal(run_execute(&f.run, &err), -EIO);
        assert_string_equal(err.message, "w1: apply: the disk is full");
        assert_string_equal(err.hint, "make room");
        assert_int_equal(err.status, EXIT_STEP);
        assert_int_equal(after->state, STEP_SKIPPED);
        assert_int_equal(other->state, STEP_DONE); /* what does not depend on it is finished */
}

static void test_circle(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct step *a = run_step(&f.run, "a", NULL, now, NULL),
                    *b = run_step(&f.run, "b", NULL, now, NULL);
        step_after(a, b);
        step_after(b, a);
        assert_int_equal(run_execute(&f.run, &err), -EDEADLK);
}

static void waits(struct step *s)
{
        step_doing(s, -1, "waiting for /readyz");
        step_deadline(s, 1, "look at its log");
}

static void test_deadline(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        struct step *s = run_step(&f.run, "API", NULL, waits, NULL);
        assert_int_equal(run_execute(&f.run, &err), -ETIMEDOUT);
        assert_string_equal(err.message, "API: not done after 1 s: waiting for /readyz");
        assert_string_equal(err.hint, "look at its log");
        step_done(s, NULL); /* what it waited for comes after all: too late, and harmless */
        assert_int_equal(s->state, STEP_FAILED);
}

static void test_journal(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        char dir[] = "/tmp/slipway-test-XXXXXX";
        struct journal *j;
        const char *last;
        assert_non_null(mkdtemp(dir));
        assert_int_equal(journal_open(dir, &f.run, &j, &last, &err), 0);
        assert_null(last);
        run_step(&f.run, "kept", NULL, keeps, NULL);
        run_step(&f.run, "apply", "w1", waits, NULL);
        assert_true(run_execute(&f.run, &err) < 0);
        journal_close(j, "failed");
        error_release(&err);

        /* a run that ended, though badly, needs no remark; one that was killed in a step does */
        struct run again;
        run_init(&again, f.base, &f.arena, "up", "demo");
        assert_int_equal(journal_open(dir, &again, &j, &last, &err), 0);
        assert_null(last);
        char *path CLEANUP(free_p) = path_join(dir, "journal.jsonl");
        FILE *file = fopen(path, "a");
        fputs("{\"ms\": 5, \"step\": \"apply\", \"node\": \"w1\", \"state\": \"begin\"}\n{\"ms\": 6, \"step\": \"API\", \"state\": \"begin\"}\n{\"ms\": 7, "
              "\"step\": \"API\", \"state\": \"done\"}\n{\"half",
                file);
        fclose(file);
        struct run third;
        struct journal *j3;
        run_init(&third, f.base, &f.arena, "up", "demo");
        assert_int_equal(journal_open(dir, &third, &j3, &last, &err), 0);
        assert_non_null(last);
        assert_non_null(strstr(last, "'up', begun "));
        assert_non_null(strstr(last, "stopped in: apply w1"));
        assert_null(strstr(last, "API"));
        journal_close(j3, "done");
        journal_close(j, "done");
        dir_remove(dir, &err);
}

static void talks(struct step *s)
{
        char text[1000];
        memset(text, 'x', sizeof(text));
        text[sizeof(text) - 1] = 0;
        for (size_t i = 0; i < 30000; i++)
                step_changed(s, "%s", text);
        raise(SIGKILL);
}

/* However much a run says, the journal stays bounded, and what stood at the end of it is still
 * known. */
static void test_journal_rotates(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        char dir[] = "/tmp/slipway-test-XXXXXX";
        struct journal *j;
        const char *last;
        int64_t all = 0;
        size_t files = 0;
        assert_non_null(mkdtemp(dir));
        pid_t pid = fork();
        if (pid == 0) {
                run_step(&f.run, "apply", "w1", talks, NULL);
                if (journal_open(dir, &f.run, &j, &last, &err) == 0)
                        run_execute(&f.run, &err);
                _exit(1);
        }
        waitpid(pid, NULL, 0);
        DIR *d = opendir(dir);
        for (struct dirent *e; (e = readdir(d));) {
                struct stat st;
                if (has_prefix(e->d_name, "journal") && fstatat(dirfd(d), e->d_name, &st, 0) == 0) {
                        assert_true(st.st_size <= (off_t)(4 << 20) + 2000);
                        all += st.st_size;
                        files++;
                }
        }
        closedir(d);
        assert_int_equal(files, 5);
        assert_true(all > (int64_t)16 << 20);
        assert_int_equal(journal_open(dir, &f.run, &j, &last, &err), 0);
        assert_non_null(last);
        assert_non_null(strstr(last, "stopped in: apply w1"));
        journal_close(j, "done");
        dir_remove(dir, &err);
}

/* One that an earlier version let grow without bound is put aside, not kept for ever. */
static void test_journal_too_large(void **state)
{
        struct error err CLEANUP(error_release) = { 0 };
        char dir[] = "/tmp/slipway-test-XXXXXX";
        struct journal *j;
        const char *last;
        struct stat st;
        assert_non_null(mkdtemp(dir));
        char *path CLEANUP(free_p) = path_join(dir, "journal.jsonl"),
                   *aside CLEANUP(free_p) = path_join(dir, "journal.1.jsonl");
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_int_equal(ftruncate(fd, (off_t)40 << 20), 0);
        close(fd);
        assert_int_equal(journal_open(dir, &f.run, &j, &last, &err), 0);
        journal_close(j, "done");
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size < 4096);
        assert_int_equal(stat(aside, &st), 0);
        dir_remove(dir, &err);
}

/* In a program of its own: two steps, journalled, killed at a boundary. Returns how it ended. */
static int killed_at(const char *boundary, const char *dir)
{
        pid_t pid = fork();
        if (pid == 0) {
                struct error err = { 0 };
                struct journal *j;
                const char *last;
                setenv("SLIPWAY_TEST_KILL", boundary, 1);
                run_step(&f.run, "one", NULL, now, NULL);
                run_step(&f.run, "two", "w1", later, NULL);
                if (journal_open(dir, &f.run, &j, &last, &err) < 0 || run_execute(&f.run, &err) < 0)
                        _exit(1);
                _exit(0);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        return status;
}

static void test_killed_at_each_boundary(void **state)
{
        static const char *const lines[] = { "begin", "begin", "done", "begin", "begin", "done" };
        struct error err CLEANUP(error_release) = { 0 };
        for (size_t i = 0; i <= ARRAY_SIZE(lines); i++) {
                char dir[] = "/tmp/slipway-test-XXXXXX", number[8];
                struct str text CLEANUP(str_release) = { 0 };
                assert_non_null(mkdtemp(dir));
                char *path CLEANUP(free_p) = path_join(dir, "journal.jsonl");
                snprintf(number, sizeof(number), "%zu", i + 1);
                int status = killed_at(number, dir);
                assert_int_equal(file_read(path, 1 << 16, &text, &err), 0);
                dir_remove(dir, &err);
                if (i == ARRAY_SIZE(lines)) {
                        assert_int_equal(status, 0); /* it has no more */
                        break;
                }
                assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
                const char *last = str_text(&text);
                for (const char *p; (p = strstr(last + 1, "\"state\":"));)
                        last = p;
                assert_true(has_prefix(last, "\"state\":") && strstr(last, lines[i]));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_order, setup, teardown),
                cmocka_unit_test_setup_teardown(test_failure_skips_what_waits, setup, teardown),
                cmocka_unit_test_setup_teardown(test_circle, setup, teardown),
                cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
                cmocka_unit_test_setup_teardown(test_journal, setup, teardown),
                cmocka_unit_test_setup_teardown(test_journal_rotates, setup, teardown),
                cmocka_unit_test_setup_teardown(test_journal_too_large, setup, teardown),
                cmocka_unit_test_setup_teardown(test_killed_at_each_boundary, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
