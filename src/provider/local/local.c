/* Provider local, as described in local.h. */
#include <dirent.h>
#include <event2/event.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "provider/local/local.h"

#define HALT_SECONDS 90
#define POLL_MS      20
#define OFF_POLLS    (30 * 1000 / POLL_MS)

/* ---- this cluster on this computer ---- */

/* The path without links, as far as it exists. */
static char *absolute(const char *path)
{
        char *found = realpath(path, NULL), *copy CLEANUP(free_p) = xstrdup(path);
        if (found)
                return found;
        while (has_suffix(copy, "/") && copy[1])
                copy[strlen(copy) - 1] = 0;
        char *slash = strrchr(copy, '/');
        if (!slash && streq(copy, "."))
                return xstrdup(".");
        char *name CLEANUP(free_p) = xstrdup(slash ? slash + 1 : copy);
        if (slash)
                slash[slash == copy] = 0;
        char *dir CLEANUP(free_p) = absolute(slash ? copy : ".");
        return path_join(dir, name);
}

/* Once written, the id stays, wherever the directory is moved. */
int local_open(const struct provider_run *run, struct local *out, struct error *err)
{
        char hex[SHA256_HEX], *text CLEANUP(free_p) = NULL;
        struct str kept CLEANUP(str_release) = { 0 };
        struct error ignored CLEANUP(error_release) = { 0 };
        *out = (struct local){ .state = absolute(run->state) };
        out->machines = path_join(out->state, "machines");
        char *file CLEANUP(free_p) = path_join(out->machines, "id");
        if (file_read(file, 64, &kept, &ignored) == 0 &&
                strspn(str_text(&kept), "0123456789abcdef") == ID_LEN) {
                snprintf(hex, sizeof(hex), "%s", str_text(&kept));
        } else {
                text = xasprintf("%s %s", run->cluster->name, out->state);
                sha256_hex(text, strlen(text), hex);
        }
        snprintf(out->id, sizeof(out->id), "%.*s", ID_LEN, hex);
        snprintf(out->bridge, sizeof(out->bridge), "slw-%s", out->id);
        return 0;
}

void local_release(struct local *l)
{
        free(l->state);
        free(l->machines);
}

static bool program_installed(const char *program)
{
        const char *path = getenv("PATH");
        char *copy CLEANUP(free_p) = xstrdup(path ? path : "/usr/sbin:/usr/bin:/sbin:/bin"),
                   *next = copy;
        for (char *dir; (dir = strsep(&next, ":"));) {
                char *file CLEANUP(free_p) = path_join(dir, program);
                if (access(file, X_OK) == 0)
                        return true;
        }
        return false;
}

/* nspawn derives the machines' MAC addresses from it. */
static int has_machine_id(struct error *err)
{
        struct stat st;
        if (stat("/etc/machine-id", &st) == 0 && st.st_size >= 32)
                return 0;
        error_set(err, ENOENT, EXIT_PREFLIGHT,
                "/etc/machine-id does not exist on this computer or is empty, and machines need it");
        return error_hint(err, "run systemd-machine-id-setup");
}

int local_able(bool base_wanted, struct error *err)
{
        static const struct {
                const char *program, *package;
                bool base;
        } needs[] = { { "systemd-nspawn", "systemd-container", false }, { "ip", "iproute2", false },
                { "ssh-keygen", "openssh-client", false }, { "mmdebstrap", "mmdebstrap", true } };
        struct str programs CLEANUP(str_release) = { 0 }, names CLEANUP(str_release) = { 0 };
        if (geteuid() != 0) {
                error_set(err, EPERM, EXIT_PREFLIGHT, "machines on this computer need root");
                return error_hint(
                        err, "run it again with sudo, or use provider ssh with existing hosts");
        }
        for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
                if ((base_wanted || !needs[i].base) && !program_installed(needs[i].program)) {
                        str_addf(&programs, "%s%s", programs.len ? " and " : "", needs[i].program);
                        str_addf(&names, " %s", needs[i].package);
                }
        if (!programs.len)
                return 0;
        error_set(err, ENOENT, EXIT_PREFLIGHT,
                "machines on this computer need programs that are not installed: %s",
                programs.data);
        return error_hint(err, "on Debian: apt-get install%s", names.data);
}

int disk_remove(const char *path, struct error *err)
{
        const char *const argv[] = { "rm", "-rf", "--one-file-system", "--", path, NULL };
        struct str out CLEANUP(str_release) = { 0 };
        return access(path, F_OK) < 0 && errno == ENOENT ? 0 : proc_must(argv, &out, err);
}

/* This traffic never leaves the computer, so it cannot be recorded for decryption in the
 * future: the post-quantum key exchange, ssh's default and most of the cost of a connection, is
 * not needed. AES-GCM, for which processors have instructions, takes two thirds of the time of
 * the default cipher. */
static const char *const quick_words[] = { "KexAlgorithms=^curve25519-sha256",
        "Ciphers=^aes128-gcm@openssh.com" };
static const struct strings quick = { .n = ARRAY_SIZE(quick_words),
        .v = (const char **)(uintptr_t)quick_words };

void local_target(const struct provider_run *run, const struct local *l, struct machine *m)
{
        char *key CLEANUP(free_p) = ssh_key_path(l), *hosts CLEANUP(free_p) = known_hosts_path(l);
        m->target = (struct link_target){ .name = m->node->name,
                .host = m->node->address,
                .user = "root",
                .key = arena_strdup(run->arena, key),
                .port = 22,
                .known_hosts = arena_strdup(run->arena, hosts),
                .options = &quick };
}

static void local_find_one(
        struct provider_run *run, const struct local *l, const struct node *n, struct machine *out)
{
        char *dir CLEANUP(free_p) = machine_dir(l, n->name),
                  *file CLEANUP(free_p) = path_join(dir, "machine.json");
        *out = (struct machine){ .node = n };
        out->state = access(file, F_OK) < 0 ? MACHINE_ABSENT
                     : keeper_pid(dir)      ? MACHINE_RUNNING
                                            : MACHINE_STOPPED;
        out->booting = out->state == MACHINE_RUNNING && keeper_age(dir) < BOOT_SECONDS;
        local_target(run, l, out);
}

static int local_find(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err)
{
        struct local l CLEANUP(local_release) = { 0 };
        int r = local_open(run, &l, err);
        if (r == 0)
                local_find_one(run, &l, n, out);
        return r;
}

static int local_list(struct provider_run *run, struct machine *out, struct error *err)
{
        const struct cluster *c = run->cluster;
        struct local l CLEANUP(local_release) = { 0 };
        int r = local_open(run, &l, err);
        for (size_t i = 0; r == 0 && i < c->node_count; i++)
                local_find_one(run, &l, &c->nodes[i], &out[i]);
        return r;
}

static int local_others(struct provider_run *run, struct strings *out, struct error *err)
{
        struct local l CLEANUP(local_release) = { 0 };
        int r = local_open(run, &l, err);
        DIR *d = r == 0 ? opendir(l.machines) : NULL;
        for (struct dirent *e; d && (e = readdir(d));) {
                char *dir CLEANUP(free_p) = path_join(l.machines, e->d_name);
                struct stat st;
                if (*e->d_name != '.' && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
                        !cluster_node(run->cluster, e->d_name))
                        strings_add(run->arena, out, arena_strdup(run->arena, e->d_name));
        }
        if (d)
                closedir(d);
        return r;
}

/* ---- prepare ---- */

struct prepare_job {
        struct provider_run *run;
        void (*say)(const char *what, int permille, void *arg);
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

int local_ready(const struct provider_run *run, const struct local *l, struct error *err)
{
        int r = has_machine_id(err);
        if (r == 0)
                r = computer_join(l, err);
        return r == 0 ? bridge_make(l, &run->cluster->provider.local.network, err) : r;
}

static int local_make_once(const struct provider_run *run, struct error *err)
{
        struct local l CLEANUP(local_release) = { 0 };
        int r = local_open(run, &l, err);
        char *id CLEANUP(free_p) = r == 0 ? path_join(l.machines, "id") : NULL;
        if (r == 0)
                r = dir_make(l.state, 0700, err);
        if (r == 0)
                r = dir_make(l.machines, 0755, err);
        if (r == 0)
                r = file_write(id, l.id, ID_LEN, 0644, 0, NULL, err);
        if (r == 0)
                r = ssh_key_make(&l, err);
        return r == 0 ? local_ready(run, &l, err) : r;
}

static void local_on_said(const char *what, int permille, void *arg)
{
        struct prepare_job *j = arg;
        if (j->say)
                j->say(what, permille, j->arg);
}

static void local_on_base(struct error *err, void *arg)
{
        struct prepare_job j = *(struct prepare_job *)arg;
        free(arg);
        j.fn(err, j.arg);
}

/* Fast checks come before the long work. */
static void local_prepare_now(int fd, short what, void *arg)
{
        struct prepare_job *j = arg;
        struct error err CLEANUP(error_release) = { 0 };
        if (local_able(false, &err) < 0 || local_make_once(j->run, &err) < 0)
                local_on_base(&err, j);
        else
                base_make(j->run->base, j->run->cluster->provider.local.release, local_on_said,
                        local_on_base, j);
}

static void local_prepare(struct provider_run *run,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct prepare_job *j = xmalloc(sizeof(*j));
        *j = (struct prepare_job){ run, say, fn, arg };
        event_base_once(run->base, -1, EV_TIMEOUT, local_prepare_now, j, &(struct timeval){ 0 });
}

/* ---- cleanup ---- */

/* Machines that are no longer in cluster.yaml are removed too. */
static int local_remove_rest(const struct local *l, struct error *err)
{
        DIR *d = opendir(l->machines);
        int r = 0;
        for (struct dirent *e; r == 0 && d && (e = readdir(d));) {
                char *dir CLEANUP(free_p) = path_join(l->machines, e->d_name), id[ID_LEN + 1];
                struct stat st;
                if (*e->d_name == '.' || lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                machine_id(l, e->d_name, id);
                r = machine_off(dir, id, err);
                if (r == 0)
                        r = disk_remove(dir, err);
                if (r < 0)
                        error_wrap(err, "machine %s", e->d_name);
        }
        if (d)
                closedir(d);
        return r;
}

static int local_cleanup(struct provider_run *run, struct error *err)
{
        struct local l CLEANUP(local_release) = { 0 };
        int r = local_open(run, &l, err);
        if (r < 0 || access(l.machines, F_OK) < 0)
                return r;
        char *ssh CLEANUP(free_p) = path_join(l.state, "ssh"),
                  *hosts CLEANUP(free_p) = known_hosts_path(&l);
        r = local_able(false, err);
        if (r == 0)
                r = local_remove_rest(&l, err);
        if (r == 0)
                r = bridge_remove(&l, err);
        if (r == 0)
                r = computer_leave(&l, err);
        if (r == 0)
                r = dir_remove(ssh, err);
        if (r == 0)
                r = dir_remove(hosts, err);
        /* the id is removed last: until then everything can be found again */
        return r == 0 ? dir_remove(l.machines, err) : r;
}

const struct provider_ops local_ops = {
        .name = "local",
        .makes_machines = true,
        .list = local_list,
        .find = local_find,
        .others = local_others,
        .prepare = local_prepare,
        .create = local_create,
        .destroy = local_destroy,
        .cleanup = local_cleanup,
        .stop = local_stop,
        .start = local_start,
};
