/* Children without pidfd_open: older kernels do not have it, and the filters of containers refuse
 * it. */
#include "base/base.h"

#include <setjmp.h>
#include <cmocka.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/proc.h"

static void forbid_pidfd(int code)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { ARRAY_SIZE(filter), filter };
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                _exit(2);
}

/* In a program of its own, as the filter stays. */
static int status_of_child(int code)
{
        pid_t pid = fork();
        if (pid == 0) {
                static const char *const argv[] = { "sh", "-c", "echo said; exit 7", NULL };
                struct str out = { 0 };
                struct error err = { 0 };
                int status = -1;
                if (code)
                        forbid_pidfd(code);
                alarm(60);
                if (proc_run(argv, NULL, 0, 4096, &out, NULL, &status, &err) < 0 ||
                        !streq(str_text(&out), "said\n"))
                        _exit(1);
                str_release(&out);
                _exit(status);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_without_pidfd(void **state)
{
        static const int codes[] = { 0, ENOSYS, EPERM };
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                assert_int_equal(status_of_child(codes[i]), 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_without_pidfd) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
