/* Machines on this computer: systemd-nspawn on an overlay of one base root. After their boot they
 * are ordinary ssh hosts.
 *
 *   CACHE/base-RELEASE-HASH     the base root, made once by mmdebstrap; never written to again
 *   STATE/NAME/machines/id      the cluster's id on this computer: its bridge is slw-ID
 *   STATE/NAME/machines/NODE/   one machine:
 *     machine.json              what the keeper needs; written last: without it, the machine is
 *                               incomplete
 *     lock                      held by the keeper while the machine runs; has the keeper's process
 *                               id and start time
 *     cgroups                   paths of the machine's cgroups, written before they are created
 *     upper, work, root         the overlay, mounted in the keeper's own mount namespace
 *     containerd, kubelet, etcd bind mounts at /var/lib/..., because an overlay cannot be the upper
 *                               directory of another
 *     host_key, console         its ssh host key, and its console log
 *
 * The keeper is this program started again (provider_keeper): it enters the machine's cgroups,
 * mounts the overlay, and starts nspawn, again after each reboot of the machine. It has its own
 * session, so it outlives the run that started it, and it is the first process of a PID namespace:
 * killing it kills the machine.
 *
 * For tests: a machine's id is the first 8 hex digits of SHA-256 of "ID/NODE". The host's end of
 * its network link is called vb-MACHINEID: `ip link set vb-MACHINEID down` disconnects the machine,
 * `up` connects it again. Both ids are in machine.json. */
#ifndef SLIPWAY_PROVIDER_LOCAL_H
#define SLIPWAY_PROVIDER_LOCAL_H

#include "base/file.h"
#include "base/sha256.h"
#include "provider/provider.h"

#define ID_LEN      8
#define KEEPER_VERB "machine-keeper"

extern const struct provider_ops local_ops;

struct local {
        char *state, *machines; /* absolute */
        char id[ID_LEN + 1];
        char bridge[16];
};

/* Finds the paths and the cluster's id; creates nothing. */
int local_open(const struct provider_run *run, struct local *out, struct error *err);
void local_release(struct local *l);
/* Checks for root and the needed programs. `base_wanted`: also those that create the base root. */
int local_able(bool base_wanted, struct error *err);

/* Sets how ssh reaches a machine. */
void local_target(const struct provider_run *run, const struct local *l, struct machine *m);
/* Sets up the bridge and the computer's settings. They are gone after a reboot, so starting a
 * machine does this too. */
int local_ready(const struct provider_run *run, const struct local *l, struct error *err);

/* Functions of provider_ops. */
void local_create(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
void local_destroy(struct provider_run *run, struct machine *m,
        void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
int local_stop(struct provider_run *run, const struct machine *m, bool hard, struct error *err);
int local_start(struct provider_run *run, const struct machine *m, struct error *err);

/* rm -r on one file system, for what may have mounts or very many files. */
int disk_remove(const char *path, struct error *err);

/* ---- one machine ---- */

/* machine.json. Strings are malloc'd. */
struct local_machine {
        char *dir, *name, *base, *bridge, *address, *gateway, *uuid;
        char *address2, *gateway2; /* of the other family, with prefix length; NULL: it has one */
        char id[ID_LEN + 1];
        unsigned bits; /* prefix length of the network */
        int64_t memory;
        long cpus;
        long weight; /* its CPU weight; other machines have 1 */
};

char *machine_dir(const struct local *l, const char *name);
/* The node's address that slipway does not connect to, as text; "": it has one address. */
const char *node_address2(const struct node *n, char out[IP_TEXT]);
void machine_id(const struct local *l, const char *name, char out[ID_LEN + 1]);
void machine_link(const char *id, char out[16]); /* the host's end of its network link */
/* 1: read; 0: there is none. */
int machine_read(const char *dir, struct local_machine *out, struct error *err);
int machine_write(const struct local_machine *m, struct error *err);
void machine_release(struct local_machine *m);
/* Creates all that a machine lacks, machine.json last; then the cluster's known_hosts. */
int machine_make(const struct local *l, const struct provider_run *run, const struct node *n,
        const char *base, struct error *err);

/* ---- ssh keys ---- */

char *ssh_key_path(const struct local *l);
char *known_hosts_path(const struct local *l);
int ssh_key_make(const struct local *l, struct error *err);
int host_key_make(const char *dir, struct error *err);
int known_hosts_write(const struct local *l, struct error *err);
/* The known_hosts line of a machine, "" without a key. */
void host_key_line(const char *dir, const char *address, struct str *out);

/* ---- power ---- */

/* The keeper's process id while the machine runs, else 0. */
pid_t keeper_pid(const char *dir);
#define BOOT_SECONDS 180 /* without an answer of its sshd after this, the boot has failed */
int64_t keeper_age(const char *dir); /* seconds since it was started */
/* Kills all processes of a machine. Returns how many are still there: call again until 0. */
size_t machine_kill(const char *dir);
/* After the last process: removes cgroups, network link, stale mounts, and what nspawn left.
 * -EAGAIN: call again. */
int machine_sweep(const char *dir, const char *id);
/* machine_kill and machine_sweep until done, within a time limit. */
int machine_off(const char *dir, const char *id, struct error *err);
/* Starts the keeper and waits until sshd answers; fn once, from the loop. */
void machine_boot(struct event_base *base, const struct local_machine *m,
        void (*fn)(struct error *err, void *arg), void *arg);
void pause_ms(unsigned ms);

/* ---- cgroups ---- */

/* This computer has version 1 controllers (alone, or beside an empty version 2). */
bool cgroup_v1(void);
/* Creates the machine's cgroups and moves the caller there; `inner` (malloc'd or NULL) is
 * one for nspawn. */
int cgroup_enter(const struct local_machine *m, char **inner, struct error *err);
/* Before each restart of the machine: removes what it left in them. */
int cgroup_again(const struct local_machine *m, const char *inner, struct error *err);
/* Process ids in the machine's cgroups; zombies are not counted. */
pid_t *cgroup_pids(const char *dir, size_t *count);
/* True when nothing is left. */
bool cgroup_remove(const char *dir);

/* ---- the base root ---- */

/* Path of the base root for a release, malloc'd. */
int base_path(const char *release, char **out, struct error *err);
/* Creates it if it does not exist; fn once, from the loop or at once. */
void base_make(struct event_base *base, const char *release,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg);

/* apt's sources of this computer, as one-line sources of `release`. `codename` is the computer's
 * own release, whose mirrors have the other release too. */
void sources_read(const char *root, const char *codename, const char *release, struct str *out);

/* ---- this computer ---- */

/* Creates the bridge with the first address of each network; refuses a range that is routed
 * elsewhere. */
int bridge_make(const struct local *l, const struct cidrs *networks, struct error *err);
int bridge_remove(const struct local *l, struct error *err);
bool link_there(const char *name);
/* Kernel settings without a namespace: saved before the first machine of all clusters, restored
 * after the last. */
int computer_join(const struct local *l, struct error *err);
int computer_leave(const struct local *l, struct error *err);

#endif
