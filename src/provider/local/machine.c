/* One machine: machine.json for its keeper, and a few files on top of the base root. */
#include <jansson.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "provider/local/local.h"

char *machine_dir(const struct local *l, const char *name) { return path_join(l->machines, name); }

void machine_id(const struct local *l, const char *name, char out[ID_LEN + 1])
{
        char *text CLEANUP(free_p) = xasprintf("%s/%s", l->id, name), hex[SHA256_HEX];
        sha256_hex(text, strlen(text), hex);
        snprintf(out, ID_LEN + 1, "%.*s", ID_LEN, hex);
}

/* nspawn chooses this name. */
void machine_link(const char *id, char out[16]) { snprintf(out, 16, "vb-%s", id); }

void machine_release(struct local_machine *m)
{
        char *all[] = { m->dir, m->name, m->base, m->bridge, m->address, m->gateway, m->uuid,
                m->address2, m->gateway2 };
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                free(all[i]);
        *m = (struct local_machine){ 0 };
}

int machine_read(const char *dir, struct local_machine *out, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(dir, "machine.json");
        const char *name, *base, *bridge, *address, *gateway, *uuid, *id, *address2 = NULL,
                                                                          *gateway2 = NULL;
        json_int_t bits, memory, cpus, weight = 1;
        struct str text CLEANUP(str_release) = { 0 };
        if (file_read(path, 64 << 10, &text, err) < 0) {
                if (err->code != ENOENT && err->code != ENOTDIR)
                        return -err->code;
                error_release(err);
                *err = (struct error){ 0 };
                return 0;
        }
        json_t *j = json_loads(str_text(&text), 0, NULL);
        if (json_unpack(j, "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s?I, s?s, s?s}",
                    "name", &name, "id", &id, "base", &base, "bridge", &bridge, "address", &address,
                    "gateway", &gateway, "uuid", &uuid, "bits", &bits, "memory", &memory, "cpus",
                    &cpus, "weight", &weight, "address2", &address2, "gateway2", &gateway2) < 0) {
                json_decref(j);
                error_set(err, EINVAL, EXIT_STATE, "%s is damaged", path);
                return error_hint(err, "remove the machine and create it again");
        }
        *out = (struct local_machine){ .dir = xstrdup(dir),
                .name = xstrdup(name),
                .base = xstrdup(base),
                .bridge = xstrdup(bridge),
                .address = xstrdup(address),
                .gateway = xstrdup(gateway),
                .uuid = xstrdup(uuid),
                .address2 = address2 ? xstrdup(address2) : NULL,
                .gateway2 = gateway2 ? xstrdup(gateway2) : NULL,
                .bits = (unsigned)bits,
                .memory = memory,
                .cpus = (long)cpus,
                .weight = (long)weight };
        snprintf(out->id, sizeof(out->id), "%s", id);
        json_decref(j);
        return 1;
}

int machine_write(const struct local_machine *m, struct error *err)
{
        char *path CLEANUP(free_p) = path_join(m->dir, "machine.json"), interface[16];
        machine_link(m->id, interface);
        json_t *j = json_pack(
                "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s*, s:s*}", "name",
                m->name, "id", m->id, "interface", interface, "base", m->base, "bridge", m->bridge,
                "address", m->address, "gateway", m->gateway, "uuid", m->uuid, "bits",
                (json_int_t)m->bits, "memory", (json_int_t)m->memory, "cpus", (json_int_t)m->cpus,
                "weight", (json_int_t)m->weight, "address2", m->address2, "gateway2", m->gateway2);
        char *text = json_dumps(j, JSON_INDENT(2));
        int r = file_write(path, text, strlen(text), 0644, 0, NULL, err);
        free(text);
        json_decref(j);
        return r;
}

/* ---- files of a machine ---- */

/* nspawn mounts read-only what a kubelet writes to. The product UUID identifies a node, but would
 * be the computer's for all machines. */
static const char setup_script[] =
        "#!/bin/sh\n"
        "# Makes this machine like any other host. Arguments: address with prefix length, gateway; for each family.\n"
        "for m in /sys/fs/cgroup /sys/fs/cgroup/*; do mountpoint -q \"$m\" && mount -o remount,bind,rw \"$m\"; done 2>/dev/null\n"
        "mount -o remount,bind,rw /proc/sys\n"
        "mount --make-rshared /\n"
        "uuid=/sys/class/dmi/id/product_uuid\n"
        "[ ! -e $uuid ] || mount --bind /etc/slipway-machine/product_uuid $uuid\n"
        "ip link set host0 up\n"
        "while [ $# -ge 2 ]; do\n"
        "\tcase $1 in *:*) ip address replace \"$1\" dev host0 nodad ;; *) ip address replace \"$1\" dev host0 ;; esac\n"
        "\tip route replace default via \"$2\" dev host0\n"
        "\tshift 2\n"
        "done\n";

static const char setup_unit[] =
        "[Unit]\n"
        "Description=What a machine on a bridge needs before anything else\n"
        "DefaultDependencies=no\n"
        "Before=sysinit.target network-pre.target\n"
        "After=local-fs.target\n"
        "Wants=network-pre.target\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        "RemainAfterExit=yes\n"
        "ExecStart=/usr/local/sbin/slipway-machine %s/%u %s %s %s\n";

static const char sshd_config[] = "HostKey /etc/ssh/ssh_host_ed25519_key\nMaxStartups 100\n";

static int machine_put_file(const struct local_machine *m, const char *path, mode_t mode,
        const char *text, struct error *err)
{
        char *full CLEANUP(free_p) = xasprintf("%s/upper/%s", m->dir, path);
        return file_write(full, text, strlen(text), mode, 0, NULL, err);
}

static int machine_copy_file(const struct local_machine *m, const char *from, const char *path,
        mode_t mode, struct error *err)
{
        struct str text CLEANUP(str_wipe_release) = { 0 };
        int r = file_read(from, 64 << 10, &text, err);
        return r < 0 ? r : machine_put_file(m, path, mode, str_text(&text), err);
}

static int machine_make_dirs(const char *dir, struct error *err)
{
        static const struct {
                const char *path;
                mode_t mode;
        } dirs[] = { { "upper", 0755 }, { "work", 0755 }, { "root", 0755 }, { "containerd", 0711 },
                { "kubelet", 0750 }, { "etcd", 0700 }, { "upper/root", 0700 },
                { "upper/root/.ssh", 0700 }, { "upper/etc/ssh/sshd_config.d", 0755 },
                { "upper/etc/slipway-machine", 0755 },
                { "upper/etc/systemd/system/sysinit.target.wants", 0755 },
                { "upper/usr/local/sbin", 0755 } };
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                char *path CLEANUP(free_p) = path_join(dir, dirs[i].path);
                if (dir_make(path, dirs[i].mode, err) < 0)
                        return -err->code;
        }
        return 0;
}

/* slipway's own key and os.authorizedKeys: written at each start of the machine, so that removed
 * keys are removed. */
static int machine_keys(const struct local *l, const struct cluster *c,
        const struct local_machine *m, struct error *err)
{
        char *login CLEANUP(free_p) = ssh_key_path(l),
                    *pub CLEANUP(free_p) = xasprintf("%s.pub", login);
        struct str text CLEANUP(str_release) = { 0 };
        int r = file_read(pub, 64 << 10, &text, err);
        for (size_t i = 0; i < c->os.authorized_keys.n; i++)
                str_addf(&text, "%s\n", c->os.authorized_keys.v[i]);
        return r < 0 ? r
                     : machine_put_file(m, "root/.ssh/authorized_keys", 0600, str_text(&text), err);
}

/* The resolver is this computer: names resolve if one listens there; else queries are
 * refused at once. */
static int machine_put_files(const struct local_machine *m, struct error *err)
{
        char *second CLEANUP(free_p) =
                m->address2 ? xasprintf("%.*s %s\n", (int)strcspn(m->address2, "/"), m->address2,
                                      m->name)
                            : xstrdup("");
        char *hosts CLEANUP(free_p) = xasprintf(
                "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s %s\n%s",
                m->address, m->name, second);
        char *name CLEANUP(free_p) = xasprintf("%s\n", m->name),
                   *uuid CLEANUP(free_p) = xasprintf("%s\n", m->uuid);
        char *unit CLEANUP(free_p) = xasprintf(setup_unit, m->address, m->bits, m->gateway,
                m->address2 ? m->address2 : "", m->gateway2 ? m->gateway2 : ""),
                   *resolv CLEANUP(free_p) = xasprintf("nameserver %s\n", m->gateway);
        char *key CLEANUP(free_p) = path_join(m->dir, "host_key"),
                  *pub CLEANUP(free_p) = path_join(m->dir, "host_key.pub");
        char *wants CLEANUP(free_p) = path_join(
                m->dir, "upper/etc/systemd/system/sysinit.target.wants/slipway-machine.service");
        const struct {
                const char *path, *text;
                mode_t mode;
        } files[] = { { "etc/hostname", name, 0644 }, { "etc/hosts", hosts, 0644 },
                { "etc/resolv.conf", resolv, 0644 },
                { "etc/slipway-machine/product_uuid", uuid, 0444 },
                { "usr/local/sbin/slipway-machine", setup_script, 0755 },
                { "etc/systemd/system/slipway-machine.service", unit, 0644 },
                { "etc/ssh/sshd_config.d/slipway-machine.conf", sshd_config, 0644 } };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (machine_put_file(m, files[i].path, files[i].mode, files[i].text, err) < 0)
                        return -err->code;
        if (machine_copy_file(m, key, "etc/ssh/ssh_host_ed25519_key", 0600, err) < 0 ||
                machine_copy_file(m, pub, "etc/ssh/ssh_host_ed25519_key.pub", 0644, err) < 0)
                return -err->code;
        if (symlink("../slipway-machine.service", wants) < 0 && errno != EEXIST)
                return error_set(err, errno, EXIT_INTERNAL, "cannot create the link %s: %s", wants,
                        strerror(errno));
        return 0;
}

static char *new_uuid(void)
{
        uint8_t b[16];
        if (getrandom(b, sizeof(b), 0) != sizeof(b))
                abort();
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        return xasprintf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                b[13], b[14], b[15]);
}

const char *node_address2(const struct node *n, char out[IP_TEXT])
{
        for (size_t i = 0; i < ARRAY_SIZE(n->ip); i++)
                if (n->ip[i].family && n->address && !streq(ip_format(&n->ip[i], out), n->address))
                        return out;
        return "";
}

/* Dual-stack: the address in the second network. */
static void machine_second(
        const struct cidrs *networks, const struct node *n, struct local_machine *m)
{
        struct ip first;
        char text[IP_TEXT];
        if (!*node_address2(n, text) || networks->n < 2 || !cidr_nth(&networks->v[1], 1, &first))
                return;
        m->address2 = xasprintf("%s/%u", text, networks->v[1].bits);
        m->gateway2 = xstrdup(ip_format(&first, text));
}

/* A directory without machine.json was being created or removed when a run was killed: starts over.
 */
static int machine_make_new(const struct local *l, const struct provider_run *run,
        const struct node *n, const char *base, struct local_machine *m, struct error *err)
{
        const struct cidrs *networks = &run->cluster->provider.local.network;
        struct ip first;
        char text[IP_TEXT];
        if (!n->address || !networks->n || !cidr_nth(&networks->v[0], 1, &first))
                return error_set(err, EINVAL, EXIT_CONFIG,
                        "provider.local.network has no free address for it");
        *m = (struct local_machine){ .dir = machine_dir(l, n->name),
                .name = xstrdup(n->name),
                .base = xstrdup(base),
                .bridge = xstrdup(l->bridge),
                .address = xstrdup(n->address),
                .gateway = xstrdup(ip_format(&first, text)),
                .uuid = new_uuid(),
                .bits = networks->v[0].bits };
        machine_second(networks, n, m);
        machine_id(l, n->name, m->id);
        int r = disk_remove(m->dir, err);
        if (r == 0)
                r = dir_make(m->dir, 0755, err);
        if (r == 0)
                r = machine_make_dirs(m->dir, err);
        if (r == 0)
                r = host_key_make(m->dir, err);
        return r == 0 ? machine_put_files(m, err) : r;
}

/* In a new cluster everything waits for the first API server. Machines that share a computer start
 * theirs at the same time, and all are late. Three, not more: with ten, the virtual address moved
 * once more while that machine booted. */
static long machine_weight(const struct cluster *c, const struct node *n)
{
        size_t i = 0;
        return cluster_next(c, ROLE_CONTROL_PLANE, &i) == n ? 3 : 1;
}

int machine_make(const struct local *l, const struct provider_run *run, const struct node *n,
        const char *base, struct error *err)
{
        struct local_machine m CLEANUP(machine_release) = { 0 };
        char *dir CLEANUP(free_p) = machine_dir(l, n->name);
        int r = machine_read(dir, &m, err);
        if (r == 0)
                r = machine_make_new(l, run, n, base, &m, err);
        if (r < 0)
                return r;
        m.memory = n->pool->machine.memory;
        m.cpus = n->pool->machine.cpus;
        m.weight = machine_weight(run->cluster, n);
        r = machine_keys(l, run->cluster, &m, err);
        if (r == 0)
                r = machine_write(&m, err);
        return r == 0 ? known_hosts_write(l, err) : r;
}
