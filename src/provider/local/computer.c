/* Kernel settings without a namespace belong to the whole computer, and a kubelet in a machine
 * changes some. They are saved before the first machine of all clusters and restored after the
 * last; below /run, because they do not survive a reboot either. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "provider/local/local.h"

#define RUN_DIR "/run/slipway"

/* `least`: several machines need more than the default of one computer. */
static const struct {
        const char *path;
        long long least;
} settings[] = {
        { "/proc/sys/vm/overcommit_memory", 0 },
        { "/proc/sys/vm/panic_on_oom", 0 },
        { "/proc/sys/vm/max_map_count", 0 },
        { "/proc/sys/vm/swappiness", 0 },
        { "/proc/sys/kernel/panic", 0 },
        { "/proc/sys/kernel/panic_on_oops", 0 },
        { "/proc/sys/kernel/keys/root_maxkeys", 0 },
        { "/proc/sys/kernel/keys/root_maxbytes", 0 },
        { "/proc/sys/kernel/pid_max", 0 },
        { "/proc/sys/fs/file-max", 0 },
        { "/proc/sys/fs/inotify/max_user_instances", 8192 },
        { "/proc/sys/fs/inotify/max_user_watches", 524288 },
};

static bool setting_get(const char *path, char *out, size_t size)
{
        int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
        if (n <= 0)
                return false;
        out[n] = 0;
        out[strcspn(out, "\n")] = 0;
        return true;
}

/* A setting that cannot be changed (in a container) is left as it is. */
static void setting_put(const char *path, const char *value)
{
        char now[256];
        if (setting_get(path, now, sizeof(now)) && streq(now, value))
                return;
        int fd CLEANUP(close_p) = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
                (void)!write(fd, value, strlen(value));
}

/* The directory is its own lock; its previous holder may have removed it. */
static int lock_dir(int *out, struct error *err)
{
        for (;;) {
                struct stat ours, there;
                if (mkdir(RUN_DIR, 0755) < 0 && errno != EEXIST)
                        return error_set(err, errno, EXIT_INTERNAL, "cannot create %s: %s", RUN_DIR,
                                strerror(errno));
                int fd CLEANUP(close_p) = open(RUN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd < 0 && errno == ENOENT)
                        continue;
                if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &ours) < 0)
                        return error_set(err, errno, EXIT_INTERNAL, "cannot lock %s: %s", RUN_DIR,
                                strerror(errno));
                if (stat(RUN_DIR, &there) < 0 || ours.st_ino != there.st_ino)
                        continue;
                *out = fd;
                fd = -1;
                return 0;
        }
}

static int settings_keep(struct error *err)
{
        struct str text CLEANUP(str_release) = { 0 };
        char value[256];
        if (access(RUN_DIR "/settings", F_OK) == 0)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
                if (setting_get(settings[i].path, value, sizeof(value)))
                        str_addf(&text, "%s %s\n", settings[i].path, value);
        return file_write(RUN_DIR "/settings", str_text(&text), text.len, 0644, 0, NULL, err);
}

static void settings_restore(void)
{
        FILE *f CLEANUP(fclose_p) = fopen(RUN_DIR "/settings", "re");
        char path[128], value[256];
        while (f && fscanf(f, "%127s %255[^\n]", path, value) == 2)
                for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
                        if (streq(settings[i].path, path))
                                setting_put(path, value);
}

int computer_join(const struct local *l, struct error *err)
{
        int lock CLEANUP(close_p) = -1, r = lock_dir(&lock, err);
        char *path CLEANUP(free_p) = xasprintf(RUN_DIR "/cluster-%s", l->id), value[256];
        if (r == 0)
                r = settings_keep(err);
        if (r == 0)
                r = file_write(path, l->state, strlen(l->state), 0644, 0, NULL, err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(settings); i++)
                if (settings[i].least && setting_get(settings[i].path, value, sizeof(value)) &&
                        strtoll(value, NULL, 10) < settings[i].least) {
                        snprintf(value, sizeof(value), "%lld", settings[i].least);
                        setting_put(settings[i].path, value);
                }
        return r;
}

/* A cluster whose state directory no longer exists cannot leave: it does not count. */
static bool computer_has_others(const struct local *l)
{
        bool found = false;
        DIR *d = opendir(RUN_DIR);
        for (struct dirent *e; d && (e = readdir(d));) {
                char *path CLEANUP(free_p) = path_join(RUN_DIR, e->d_name), state[4096];
                if (!has_prefix(e->d_name, "cluster-") ||
                        streq(e->d_name + strlen("cluster-"), l->id))
                        continue;
                if (setting_get(path, state, sizeof(state)) && access(state, F_OK) == 0)
                        found = true;
                else
                        unlink(path);
        }
        if (d)
                closedir(d);
        return found;
}

int computer_leave(const struct local *l, struct error *err)
{
        static const char *const nspawns[] = { "/run/systemd/nspawn/propagate",
                "/run/systemd/nspawn/unix-export", "/run/systemd/nspawn/locks",
                "/run/systemd/nspawn", "/run/systemd" };
        char *path CLEANUP(free_p) = xasprintf(RUN_DIR "/cluster-%s", l->id);
        if (access(RUN_DIR, F_OK) < 0)
                return 0;
        int lock CLEANUP(close_p) = -1, r = lock_dir(&lock, err);
        if (r < 0)
                return r;
        if (!computer_has_others(l)) {
                settings_restore();
                unlink(RUN_DIR "/settings");
                /* only empty ones: others may use nspawn too */
                for (size_t i = 0; i < ARRAY_SIZE(nspawns); i++)
                        rmdir(nspawns[i]);
        }
        unlink(path);
        rmdir(RUN_DIR); /* fails while another cluster is in it */
        return 0;
}
