#include <fcntl.h>
#include <limits.h>

#include "base/file.h"
#include "pki/identity.h"
#include "pki/merge_file.h"

#define CONFIG_MAX ((size_t)16 << 20)

/* The file that kubectl would write to; malloc'd. */
static char *own_file(const char *given, struct error *err)
{
        const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
        if (given)
                return xstrdup(given);
        for (; list && *list; list += strcspn(list, ":"), list += *list == ':')
                if (*list != ':')
                        return xstrndup(list, strcspn(list, ":"));
        if (home && *home)
                return xasprintf("%s/.kube/config", home);
        error_set(err, ENOENT, EXIT_USAGE,
                "neither KUBECONFIG nor HOME is set, so there is no file to merge into");
        error_hint(err, "name one with --kubeconfig");
        return NULL;
}

static int make_parent(const char *path, struct error *err)
{
        const char *slash = strrchr(path, '/');
        char *dir CLEANUP(free_p) =
                slash && slash != path ? xstrndup(path, (size_t)(slash - path)) : NULL;
        return dir && access(dir, F_OK) < 0 ? dir_make(dir, 0700, err) : 0;
}

/* kubectl locks the file with FILE.lock while it writes, and so does slipway. */
static int lock_file(const char *path, char **lock, struct error *err)
{
        *lock = xasprintf("%s.lock", path);
        int fd CLEANUP(close_p) = open(*lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0)
                return 0;
        int code = errno;
        error_set(err, code, EXIT_INTERNAL, "cannot make the lock %s: %s", *lock, strerror(code));
        if (code == EEXIST)
                error_hint(
                        err, "kubectl may be writing the file just now; if not, remove the lock");
        free(TAKE(*lock));
        return -code;
}

static int merge_into(
        const char *path, const char *ours, bool use, char **current, struct error *err)
{
        struct str theirs CLEANUP(str_wipe_release) = { 0 }, out CLEANUP(str_wipe_release) = { 0 };
        int r = access(path, F_OK) == 0 ? file_read(path, CONFIG_MAX, &theirs, err) : 0;
        if (r == 0)
                r = kubeconfig_merge(path, str_text(&theirs), ours, use, &out, current, err);
        return r < 0 ? r : file_write(path, out.data, out.len, 0600, FILE_SYNC, NULL, err);
}

int kubeconfig_merge_file(const char *given, const char *ours, bool use, char **path,
        char **current, struct error *err)
{
        char *file CLEANUP(free_p) = own_file(given, err), *lock CLEANUP(free_p) = NULL;
        if (!file)
                return -err->code;
        char *real = realpath(file, NULL); /* a symbolic link stays one */
        *path = real ? real : TAKE(file);
        int r = make_parent(*path, err);
        if (r == 0)
                r = lock_file(*path, &lock, err);
        if (r == 0)
                r = merge_into(*path, ours, use, current, err);
        if (lock)
                unlink(lock);
        return r;
}
