#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/core.h"

static struct rlimit before;
static bool changed;

void core_never(void)
{
        /* a core_pattern that is a pipe ignores the limit; exec resets this */
        prctl(PR_SET_DUMPABLE, 0);
        if (getrlimit(RLIMIT_CORE, &before) == 0) {
                /* the hard limit stays, so that children get theirs back */
                struct rlimit none = { .rlim_cur = 0, .rlim_max = before.rlim_max };
                changed = setrlimit(RLIMIT_CORE, &none) == 0;
        }
}

void core_as_before(void)
{
        if (changed)
                setrlimit(RLIMIT_CORE, &before);
}
