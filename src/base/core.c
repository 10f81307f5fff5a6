#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/core.h"

static struct rlimit before;
static bool changed;

void core_never(void)
{
        prctl(PR_SET_DUMPABLE,
                0); /* a core_pattern that is a pipe asks for no limit; exec sets it back */
        if (getrlimit(RLIMIT_CORE, &before) == 0) {
                struct rlimit none = {
                        .rlim_cur = 0, .rlim_max = before.rlim_max
                }; /* the hard limit stays: children get theirs back */
                changed = setrlimit(RLIMIT_CORE, &none) == 0;
        }
}

void core_as_before(void)
{
        if (changed)
                setrlimit(RLIMIT_CORE, &before);
}
