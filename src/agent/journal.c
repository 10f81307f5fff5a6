/* /var/lib/slipway/journal: what was done when, a line each. Only a run that changes something
 * writes it. */
#include <fcntl.h>
#include <time.h>

#include "agent/agent.h"
#include "base/file.h"
#include "base/utf8.h"

#define JOURNAL_MAX ((size_t)512 << 10)

void journal(struct agent *a, const char *fmt, ...)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct tm tm;
        time_t now = time(NULL);
        char when[32];
        va_list ap;
        if (!a->ours)
                return;
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
        str_addf(&s, "%s %d ", when, (int)getpid());
        struct str text CLEANUP(str_release) = { 0 };
        va_start(ap, fmt);
        str_vaddf(&text, fmt, ap);
        va_end(ap);
        text_harmless(&s, str_text(&text), 4096);
        str_addc(&s, '\n');
        char *path CLEANUP(free_p) = path_join(a->state, "journal");
        int fd CLEANUP(close_p) =
                open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        /* a full disk is reported by whatever needs the space */
        if (fd >= 0)
                (void)!write(fd, s.data, s.len);
}

/* Drops the older half of a long journal. */
void journal_bound(struct agent *a)
{
        struct str s CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        struct stat st;
        char *path CLEANUP(free_p) = path_join(a->state, "journal");
        if (stat(path, &st) < 0 || (size_t)st.st_size < JOURNAL_MAX ||
                file_read(path, (size_t)64 << 20, &s, &err) < 0)
                return;
        const char *half = memchr(s.data + s.len / 2, '\n', s.len - s.len / 2);
        if (half)
                file_write(
                        path, half + 1, s.len - (size_t)(half + 1 - s.data), 0600, 0, NULL, &err);
}
