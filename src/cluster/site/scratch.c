/* Private directories of a run, which the next run removes if this one is killed. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cluster/site/site.h"

/* Removes directories of killed runs; the process id is part of the name. */
static void clear_old(const char *base, const char *prefix)
{
        DIR *d = opendir(base);
        for (struct dirent *e; d && (e = readdir(d));) {
                long pid = has_prefix(e->d_name, prefix)
                                   ? strtol(e->d_name + strlen(prefix), NULL, 10)
                                   : 0;
                struct stat st;
                struct error ignored CLEANUP(error_release) = { 0 };
                if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
                        continue;
                char *path CLEANUP(free_p) = path_join(base, e->d_name);
                if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
                        dir_remove(path, &ignored);
        }
        if (d)
                closedir(d);
}

int scratch_make(const char *prefix, char **out, struct error *err)
{
        const char *base = getenv("XDG_RUNTIME_DIR");
        base = base && *base == '/' && strlen(base) < 60 && access(base, W_OK) == 0 ? base : "/tmp";
        clear_old(base, prefix);
        *out = xasprintf("%s/%s%ld-XXXXXX", base, prefix, (long)getpid());
        if (mkdtemp(*out))
                return 0;
        error_set(err, errno, EXIT_INTERNAL, "cannot make the directory %s: %s", *out,
                strerror(errno));
        free_p(out);
        return -err->code;
}

void scratch_remove(char **path)
{
        struct error ignored CLEANUP(error_release) = { 0 };
        if (*path)
                dir_remove(*path, &ignored);
        free_p(path);
}
