#include "base/paths.h"

/* Refused themselves; paths below them are allowed. */
static const char *const shared[] = { "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib",
        "/lib32", "/lib64", "/libx32", "/lost+found", "/media", "/mnt", "/opt", "/proc", "/root",
        "/run", "/sbin", "/snap", "/srv", "/sys", "/tmp", "/usr", "/usr/bin", "/usr/lib",
        "/usr/local", "/usr/local/bin", "/usr/sbin", "/usr/share", "/etc/systemd",
        "/etc/systemd/system", "/var", "/var/backups", "/var/cache", "/var/lib", "/var/lib/private",
        "/var/local", "/var/lock", "/var/log", "/var/log/journal", "/var/mail", "/var/opt",
        "/var/run", "/var/snap", "/var/spool", "/var/tmp" };

/* Refused with everything below them. */
static const struct {
        const char *path, *why;
} closed[] = {
        { "/bin", "the system's programs are there" },
        { "/boot", "the system starts from it" },
        { "/dev", "it is created again at each boot" },
        { "/etc", "the system's settings are there" },
        { "/lib", "the system's programs are there" },
        { "/lib32", "the system's programs are there" },
        { "/lib64", "the system's programs are there" },
        { "/libx32", "the system's programs are there" },
        { "/proc", "it is created again at each boot" },
        { "/root", "it is a home directory" },
        { "/run", "it is created again at each boot" },
        { "/sbin", "the system's programs are there" },
        { "/sys", "it is created again at each boot" },
        { "/tmp", "what is there is removed from time to time" },
        { "/usr", "the system's programs are there" },
        { "/var/cache/apt", "the package manager keeps its files there" },
        { "/var/lib/apt", "the package manager keeps its files there" },
        { "/var/lib/dpkg", "the package manager keeps its files there" },
        { "/var/lib/rpm", "the package manager keeps its files there" },
        { "/var/lib/systemd", "systemd keeps its files there" },
        { "/var/lock", "it is created again at each boot" },
        { "/var/log/journal", "systemd keeps its files there" },
        { "/var/run", "it is created again at each boot" },
        { "/var/tmp", "what is there is removed from time to time" },
};

/* Exceptions: a file may be added here, */
static const char *const open_for_files[] = { "/etc", "/root", "/usr/local" };

/* unless it is one of these. */
static const struct {
        const char *path, *why;
} kept_files[] = {
        { "/etc/group", "holds the system's users" },
        { "/etc/gshadow", "holds the system's users" },
        { "/etc/passwd", "holds the system's users" },
        { "/etc/shadow", "holds the system's users" },
        { "/etc/fstab", "holds the system's mounts" },
        { "/etc/hosts", "has lines of others too" },
        { "/etc/machine-id", "identifies the machine" },
};

#define USE(u) (1U << (u))

/* Directories of the cluster's programs: another program's directory must not be used, nor one that
 * contains it. A disk may be mounted on any. */
static const struct {
        const char *path;
        unsigned uses;
} owned[] = {
        { "/var/lib/etcd", USE(PATH_ETCD) },
        { "/var/lib/containerd", USE(PATH_RUNTIME) },
        { "/var/lib/containers", USE(PATH_RUNTIME) },
        { "/var/lib/crio", USE(PATH_RUNTIME) },
        { "/etc/calico", 0 },
        { "/etc/cni", 0 },
        { "/etc/containerd", 0 },
        { "/etc/crio", 0 },
        { "/etc/etcd", 0 },
        { "/etc/kube-flannel", 0 },
        { "/etc/kubernetes", 0 },
        { "/etc/slipway", 0 },
        { "/opt/cni", 0 },
        { "/opt/containerd", 0 },
        { "/opt/slipway", 0 },
        { "/var/lib/calico", 0 },
        { "/var/lib/cni", 0 },
        { "/var/lib/kube-proxy", 0 },
        { "/var/lib/kubelet", 0 },
        { "/var/lib/slipway", 0 },
        { "/var/log/containers", 0 },
        { "/var/log/pods", 0 },
};

char *path_clean(const char *path)
{
        char *out = xmalloc(strlen(path) + 2), *o = out;
        for (; *path; path++)
                if (*path != '/' || o == out || o[-1] != '/')
                        *o++ = *path;
        if (o > out + 1 && o[-1] == '/')
                o--;
        *o = 0;
        return out;
}

bool path_within(const char *dir, const char *path)
{
        size_t n = strlen(dir);
        return streq(dir, "/") || (strncmp(dir, path, n) == 0 && (!path[n] || path[n] == '/'));
}

static bool paths_plain(const char *path)
{
        for (const char *p = path; (p = strchr(p, '/')); p++)
                if (p[1] == '.' &&
                        (!p[2] || p[2] == '/' || (p[2] == '.' && (!p[3] || p[3] == '/'))))
                        return false;
        return *path == '/';
}

static bool is_home(const char *path)
{
        return has_prefix(path, "/home/") && !strchr(path + strlen("/home/"), '/');
}

bool path_shared(const char *path)
{
        for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
                if (streq(path, shared[i]))
                        return true;
        return is_home(path);
}

static bool path_open(const char *path, enum path_use use)
{
        for (size_t i = 0; use == PATH_FILE && i < ARRAY_SIZE(open_for_files); i++)
                if (path_within(open_for_files[i], path))
                        return true;
        return false;
}

const char *path_refused(const char *path, enum path_use use, const char **of)
{
        *of = NULL;
        if (!paths_plain(path))
                return "is not a plain path";
        if (is_home(path))
                return "is a home directory";
        if (path_shared(path))
                return "is a directory of the system";
        for (size_t i = 0; use == PATH_FILE && i < ARRAY_SIZE(kept_files); i++)
                if (streq(kept_files[i].path, path))
                        return kept_files[i].why;
        for (size_t i = 0; !path_open(path, use) && i < ARRAY_SIZE(closed); i++)
                if (path_within(closed[i].path, path)) {
                        *of = closed[i].path;
                        return closed[i].why;
                }
        for (size_t i = 0; i < ARRAY_SIZE(owned) && use != PATH_MOUNT; i++)
                if ((path_within(owned[i].path, path) || path_within(path, owned[i].path)) &&
                        !(owned[i].uses & USE(use))) {
                        *of = owned[i].path;
                        return "another program of the cluster keeps its files there";
                }
        return NULL;
}
