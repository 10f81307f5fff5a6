/* What will be built from Go modules, with an estimate of the time: it takes minutes, so this
 * is shown first. */
#include <sched.h>

#include "artifact/fetch_impl.h"

void build_notice(struct fetch *f, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        char *text CLEANUP(free_p) = xvasprintf(fmt, ap);
        va_end(ap);
        if (f->request.on_notice)
                f->request.on_notice(text, f->request.arg);
}

static unsigned cores(void)
{
        cpu_set_t set;
        int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
        return n > 0 ? (unsigned)n : 1;
}

/* Whether a want before this one has the same recipe and version. */
static bool announced(const struct fetch *f, size_t n, const struct recipe *r, const char *version)
{
        for (size_t i = 0; i < n; i++) {
                char *other CLEANUP(free_p) = NULL;
                const struct want *w = &f->wants[i];
                if (!w->done && w->order[w->at] == FROM_BUILD && want_recipe(f, w, &other) == r &&
                        streq(other, version))
                        return true;
        }
        return false;
}

void builds_announce(struct fetch *f)
{
        struct str text CLEANUP(str_release) = { 0 };
        unsigned minutes = 0;
        for (size_t i = 0; i < f->request.count; i++) {
                const struct want *w = &f->wants[i];
                char *version CLEANUP(free_p) = NULL;
                if (w->done || w->order[w->at] != FROM_BUILD || want_built(f, w))
                        continue;
                const struct recipe *r = want_recipe(f, w, &version);
                if (announced(f, i, r, version))
                        continue;
                str_addf(&text, "%s%s %s", text.len ? ", " : "", r->name, version);
                minutes += r->minutes ? r->minutes : 1;
        }
        if (text.len)
                build_notice(f,
                        "to be built from Go modules, once, with their downloads (about %u minutes if this computer has nothing else to do): %s",
                        minutes / cores() + 1, str_text(&text));
}
