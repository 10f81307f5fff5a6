/* Called as "probe -p DIR -s BYTES -m MODE -a create|delete", the agent is the program with which
 * the addon local-path makes and removes the directory of a volume. The directory that holds all of
 * a node's volumes is mounted at /volumes, and nothing else of the host. What a volume contains was
 * written by pods: links in it are removed, never followed. */
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "base/file.h"

#define VOLUMES  "/volumes/"
#define KEPT_MAX 4096

/* One name directly below /volumes. */
static const char *volume_name(const char *dir)
{
        const char *name = dir && has_prefix(dir, VOLUMES) ? dir + strlen(VOLUMES) : "";
        return *name && !strchr(name, '/') && !streq(name, ".") && !streq(name, "..") ? name : NULL;
}

/* Pods of any user write to it, as with upstream's own helper. */
static int volume_create(const char *dir, struct error *err)
{
        struct stat st;
        if (lstat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
                return error_set(err, ENOTDIR, EXIT_INTERNAL,
                        "cannot make the directory %s: a file or link of that name is in the way",
                        dir);
        return dir_make(dir, 0777, err);
}

/* Whether a volume keeps its data: "keep" writes a text to a file of it, and "kept" says whether
 * the file still has it. */
static int volume_keep(const char *path, const char *text, struct error *err)
{
        return file_write(path, text, strlen(text), 0644, 0, NULL, err);
}

static int volume_kept(const char *path, const char *text, struct error *err)
{
        struct str has CLEANUP(str_release) = { 0 };
        int r = file_read(path, KEPT_MAX, &has, err);
        if (r < 0)
                return r;
        return streq(str_text(&has), text)
                       ? 0
                       : error_set(err, EBADMSG, EXIT_INTERNAL,
                                 "%s does not have what was written to it", path);
}

int volume_keeps(char **argv)
{
        struct error err CLEANUP(error_release) = { 0 };
        bool keep = streq(argv[1], "keep");
        if ((keep ? volume_keep : volume_kept)(argv[2], argv[3], &err) < 0) {
                fprintf(stderr, "probe: %s\n", err.message);
                return EXIT_INTERNAL;
        }
        printf("%s %s\n", keep ? "wrote" : "found", argv[2]);
        return 0;
}

int volume_main(int argc, char **argv)
{
        const char *dir = NULL, *action = "";
        struct error err CLEANUP(error_release) = { 0 };
        for (int i = 1; i + 1 < argc; i += 2) {
                if (streq(argv[i], "-p"))
                        dir = argv[i + 1];
                else if (streq(argv[i], "-a"))
                        action = argv[i + 1];
        }
        bool create = streq(action, "create");
        if (!volume_name(dir) || (!create && !streq(action, "delete"))) {
                fprintf(stderr, "usage: probe -p " VOLUMES "NAME -a create|delete\n");
                return EXIT_USAGE;
        }
        if ((create ? volume_create(dir, &err) : dir_remove(dir, &err)) < 0) {
                fprintf(stderr, "probe: %s\n", err.message);
                return EXIT_INTERNAL;
        }
        return 0;
}
