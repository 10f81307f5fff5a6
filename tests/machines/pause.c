/* Holds a pod's namespaces: waits for a signal to end, and reaps what the pod's own processes leave
 * behind. With -v it ends at once, as upstream's does: kubeadm's upgrade runs a Job of it. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int sig) { _exit(sig == SIGINT || sig == SIGTERM ? 0 : 1); }

static void reap(int sig)
{
        (void)sig;
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
}

int main(int argc, char **argv)
{
        static const struct {
                int sig;
                void (*handler)(int);
        } table[] = { { SIGINT, end }, { SIGTERM, end }, { SIGCHLD, reap } };

        if (argc > 1 && strcmp(argv[1], "-v") == 0)
                return 0;
        for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                struct sigaction act = { .sa_handler = table[i].handler, .sa_flags = SA_NOCLDSTOP };

                if (sigaction(table[i].sig, &act, NULL) < 0)
                        return 2;
        }
        for (;;)
                pause();
}
