/* The digest of a chart that is a directory: names, sizes and bytes of all its files. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cluster/services/services.h"

#define FILE_MAX  ((size_t)16 << 20)
#define FILES_MAX 4000
#define DEPTH_MAX 16

struct walk {
        struct sha256 sum;
        size_t files;
};

static int walk_skip(const struct dirent *e)
{
        return !streq(e->d_name, ".") && !streq(e->d_name, "..");
}

static int walk_bytes(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int walk_dir(
        struct walk *w, const char *dir, const char *below, unsigned depth, struct error *err);

static int walk_one(
        struct walk *w, const char *dir, const char *below, unsigned depth, struct error *err)
{
        struct stat st;
        struct str text CLEANUP(str_release) = { 0 };
        if (stat(dir, &st) < 0)
                return error_set(err, errno, EXIT_CONFIG, "%s: %s", dir, strerror(errno));
        if (S_ISDIR(st.st_mode))
                return walk_dir(w, dir, below, depth + 1, err);
        if (++w->files > FILES_MAX)
                return error_set(
                        err, EFBIG, EXIT_CONFIG, "the chart has more than %d files", FILES_MAX);
        if (file_read(dir, FILE_MAX, &text, err) < 0)
                return -err->code;
        sha256_add(&w->sum, below, strlen(below) + 1);
        char *size CLEANUP(free_p) = xasprintf("%zu", text.len);
        sha256_add(&w->sum, size, strlen(size) + 1);
        sha256_add(&w->sum, str_text(&text), text.len);
        return 0;
}

static int walk_dir(
        struct walk *w, const char *dir, const char *below, unsigned depth, struct error *err)
{
        struct dirent **names = NULL;
        int n = depth > DEPTH_MAX ? -1 : scandir(dir, &names, walk_skip, walk_bytes), r = 0;
        if (n < 0)
                return error_set(err, depth > DEPTH_MAX ? ELOOP : errno, EXIT_CONFIG,
                        "%s cannot be read: %s", dir,
                        depth > DEPTH_MAX ? "too many directories in each other" : strerror(errno));
        for (int i = 0; i < n; i++) {
                char *path CLEANUP(free_p) = path_join(dir, names[i]->d_name);
                char *name CLEANUP(free_p) =
                        xasprintf("%s%s%s", below, *below ? "/" : "", names[i]->d_name);
                if (r == 0)
                        r = walk_one(w, path, name, depth, err);
                free(names[i]);
        }
        free(names);
        return r;
}

int folder_digest(const char *dir, char digest[SHA256_HEX], struct error *err)
{
        struct walk w = { 0 };
        sha256_init(&w.sum);
        int r = walk_dir(&w, dir, "", 0, err);
        sha256_end(&w.sum, digest);
        return r;
}
