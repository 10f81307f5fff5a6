/* Started as "pause", the agent is the program of the pause image: it holds a pod's
 * namespaces, sleeps, and reaps the pod's orphans. So an offline bundle needs no other program
 * for that image. */
#include <signal.h>
#include <sys/wait.h>

#include "agent/agent.h"

int pause_main(void)
{
        sigset_t set;
        sigfillset(&set);
        sigprocmask(SIG_BLOCK, &set, NULL);
        for (;;) {
                int sig = 0;
                sigwait(&set, &sig);
                if (sig == SIGTERM || sig == SIGINT)
                        return 0;
                while (waitpid(-1, NULL, WNOHANG) > 0) {
                }
        }
}
