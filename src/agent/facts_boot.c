/* Which boot this is, and whether the machine needs a reboot. */
#include <dirent.h>
#include <sys/utsname.h>

#include "agent/agent.h"
#include "agent/json.h"
#include "base/file.h"

#define PACKAGES_SHOWN 3

/* The start time of process 1, in ticks: a container has the boot id of its host, and is booted
 * again with another process 1. */
static unsigned long long init_began(void)
{
        struct str text CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        unsigned long long began = 0;
        if (file_read("/proc/1/stat", 4096, &text, &err) < 0)
                return 0;
        /* field 22; the second, the program's name, may contain anything */
        const char *p = strrchr(str_text(&text), ')');
        for (int field = 2; p && field < 22; field++)
                p = strchr(p + 1, ' ');
        if (p)
                began = strtoull(p + 1, NULL, 10);
        return began;
}

static void boot_write(struct str *o)
{
        struct str id CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        if (file_read("/proc/sys/kernel/random/boot_id", 128, &id, &err) < 0)
                return;
        char *boot CLEANUP(free_p) = xasprintf("%.36s/%llu", str_text(&id), init_began());
        json_text(o, "boot", boot);
}

/* Debian, Ubuntu and openSUSE leave a file when a package wants a reboot, Debian and Ubuntu also
 * the names of these packages. */
static bool wanted_by_package(const struct agent *a, struct str *why)
{
        static const char *const flags[] = { "/run/reboot-required", "/run/reboot-needed" };
        struct str names CLEANUP(str_release) = { 0 };
        struct error err CLEANUP(error_release) = { 0 };
        bool wanted = false;
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                char *path CLEANUP(free_p) = agent_path(a, flags[i]);
                wanted |= access(path, F_OK) == 0;
        }
        if (!wanted)
                return false;
        char *path CLEANUP(free_p) = agent_path(a, "/run/reboot-required.pkgs");
        if (file_read(path, (size_t)64 << 10, &names, &err) < 0)
                str_truncate(&names, 0);
        size_t n = 0;
        char *save = NULL;
        for (char *name = names.len ? strtok_r(names.data, "\n", &save) : NULL; name;
                name = strtok_r(NULL, "\n", &save))
                if (n++ < PACKAGES_SHOWN)
                        str_addf(why, "%s%.100s", n > 1 ? ", " : "", name);
        if (n > PACKAGES_SHOWN)
                str_addf(why, " and %zu more", n - PACKAGES_SHOWN);
        str_add(why, n ? " changed" : "its operating system says so");
        return true;
}

/* The modules of the running kernel were removed, and those of another one are there: no module
 * can be loaded any more. */
static bool kernel_replaced(const struct agent *a, struct str *why)
{
        struct utsname u;
        char *dir CLEANUP(free_p) = agent_path(a, "/lib/modules"), *other CLEANUP(free_p) = NULL;
        DIR *d = opendir(dir);
        bool own = false;
        uname(&u);
        for (struct dirent *e; d && (e = readdir(d));) {
                char *list CLEANUP(free_p) = xasprintf("%s/%s/modules.dep", dir, e->d_name);
                if (e->d_name[0] == '.' || access(list, F_OK) < 0)
                        continue;
                own |= streq(e->d_name, u.release);
                if (!other)
                        other = xstrdup(e->d_name);
        }
        if (d)
                closedir(d);
        if (own || !other)
                return false;
        str_addf(why, "kernel %.64s is installed, and %.64s runs without its modules", other,
                u.release);
        return true;
}

void facts_boot(const struct agent *a, struct str *o)
{
        struct str why CLEANUP(str_release) = { 0 };
        boot_write(o);
        if (wanted_by_package(a, &why) || kernel_replaced(a, &why))
                json_text(o, "reboot", str_text(&why));
}
