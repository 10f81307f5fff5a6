#include <dirent.h>
#include <time.h>

#include "base/file.h"
#include "ui/reports.h"

#define REPORTS_MAX 10000 /* read of one directory */

/* 0007-20261117T064012Z-etcd_restore-done.html; false when it is no report's name */
static bool reports_parse(
        struct arena *a, const char *dir, const char *name, struct report_file *out)
{
        char when[20], verb[64], result[64];
        unsigned y, mo, d, h, mi, s;
        int n = 0;
        if (sscanf(name, "%lu-%4u%2u%2uT%2u%2u%2uZ-%63[a-z0-9_]-%63[a-z0-9_].html%n", &out->number,
                    &y, &mo, &d, &h, &mi, &s, verb, result, &n) != 9 ||
                !n || name[n])
                return false;
        snprintf(when, sizeof(when), "%04u-%02u-%02u %02u:%02u:%02u", y % 10000, mo % 100, d % 100,
                h % 100, mi % 100, s % 100);
        for (char *p = verb; *p; p++)
                *p = *p == '_' ? ' ' : *p;
        out->when = arena_strdup(a, when);
        out->verb = arena_strdup(a, verb);
        out->result = arena_strdup(a, result);
        out->path = arena_printf(a, "%s/%s", dir, name);
        return true;
}

static int reports_order(const void *a, const void *b)
{
        const struct report_file *x = a, *y = b;
        return x->number < y->number ? -1 : x->number > y->number;
}

struct report_file *reports_list(const char *dir, struct arena *a, size_t *count)
{
        char *reports CLEANUP(free_p) = path_join(dir, "reports");
        struct report_file *all = NULL, *out;
        size_t n = 0;
        DIR *d = opendir(reports);
        for (const struct dirent *e; d && n < REPORTS_MAX && (e = readdir(d));) {
                struct report_file one = { 0 };
                if (!reports_parse(a, reports, e->d_name, &one))
                        continue;
                all = xrealloc(all, (n + 1) * sizeof(*all));
                all[n++] = one;
        }
        if (d)
                closedir(d);
        if (n)
                qsort(all, n, sizeof(*all), reports_order);
        out = arena_array(a, struct report_file, n + 1);
        if (n)
                memcpy(out, all, n * sizeof(*all));
        free(all);
        *count = n;
        return out;
}

/* A word of a file's name: "etcd restore" → etcd_restore. */
static const char *reports_word(struct arena *a, const char *text)
{
        char *word = arena_strdup(a, text);
        for (char *p = word; *p; p++)
                if (!(*p >= 'a' && *p <= 'z') && !(*p >= '0' && *p <= '9'))
                        *p = '_';
        return word;
}

const char *reports_next(const char *dir, struct arena *a, int64_t began_ms, const char *verb,
        const char *result, struct error *err)
{
        char *reports CLEANUP(free_p) = path_join(dir, "reports"), when[24];
        time_t t = (time_t)(began_ms / 1000);
        struct tm tm;
        size_t n;
        const struct report_file *all = reports_list(dir, a, &n);
        if (dir_make(reports, 0700, err) < 0)
                return NULL;
        strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&t, &tm));
        return arena_printf(a, "%s/%04lu-%s-%s-%s.html", reports, n ? all[n - 1].number + 1 : 1,
                when, reports_word(a, verb), reports_word(a, result));
}

int reports_written(const char *dir, const char *path, struct error *err)
{
        struct arena a CLEANUP(arena_release) = { 0 };
        char *link CLEANUP(free_p) = path_join(dir, "report.html"),
                   *temporary CLEANUP(free_p) = path_join(dir, ".report.html");
        const char *target = arena_printf(&a, "reports/%s", strrchr(path, '/') + 1);
        size_t n;
        unlink(temporary);
        if (symlink(target, temporary) < 0 || rename(temporary, link) < 0)
                return error_set(
                        err, errno, EXIT_INTERNAL, "cannot link %s: %s", link, strerror(errno));
        const struct report_file *all = reports_list(dir, &a, &n);
        for (size_t i = 1; i + REPORTS_KEPT < n; i++) /* the first tells how the cluster was made */
                unlink(all[i].path);
        return 0;
}
