/* Machines on this computer: systemd-nspawn on an overlay of one base root. After they boot they are ordinary SSH hosts.
 *
 *   CACHE/base-RELEASE-HASH     the base root, made once by mmdebstrap; never written to again
 *   STATE/NAME/machines/id      the cluster's mark on this computer: its bridge is slw-ID
 *   STATE/NAME/machines/NODE/   one machine:
 *     machine.json              all the keeper must know; written last, so a machine without it was not finished
 *     lock                      held by the keeper as long as the machine runs, with its process id and start time in it
 *     cgroups                   the machine's cgroups, written before they are made
 *     upper, work, root         the overlay; it is mounted in a mount namespace of the keeper's own and ends with the last process
 *     containerd, kubelet, etcd bound over /var/lib/…, because an overlay cannot hold another's upper directory
 *     host_key, console
 *
 * The keeper is this program started once more (provider_keeper): it puts itself into the machine's cgroups, mounts the overlay, and starts nspawn, again
 * each time the machine reboots. It has its own session, so it survives the run that made it, and it is the first of a namespace of processes: killing it kills
 * the machine.
 *
 * For tests: a machine's id is the first 8 hex digits of SHA-256 of "ID/NODE"; its side of the network cable on this computer is called vb-MACHINEID, so
 * `ip link set vb-MACHINEID down` takes the machine off the network and `up` puts it back. Both ids are in machine.json. */
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

/* Finds the paths and the cluster's id; makes nothing. */
int local_open(const struct provider_run *run, struct local *out, struct error *err);
void local_release(struct local *l);
/* Root, and the programs that are called. `base_wanted`: also what makes the base root. */
int local_able(bool base_wanted, struct error *err);

/* Says how ssh reaches a machine. */
void local_target(const struct provider_run *run, const struct local *l, struct machine *m);
/* The bridge and the computer's settings: gone after a reboot, so starting a machine looks after them too. */
int local_ready(const struct provider_run *run, const struct local *l, struct error *err);

/* Those of provider_ops. */
void local_create(struct provider_run *run, struct machine *m, void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
void local_destroy(struct provider_run *run, struct machine *m, void (*fn)(struct machine *m, struct error *err, void *arg), void *arg);
int local_stop(struct provider_run *run, const struct machine *m, bool hard, struct error *err);
int local_start(struct provider_run *run, const struct machine *m, struct error *err);

/* rm -r that stays on one file system: what may hold mounts or very many files. */
int disk_remove(const char *path, struct error *err);

/* ---- one machine ---- */

/* machine.json. Strings are malloc'd. */
struct local_machine {
        char *dir, *name, *base, *bridge, *address, *gateway, *uuid;
        char id[ID_LEN + 1];
        unsigned bits; /* of the network */
        int64_t memory;
        long cpus;
        long weight; /* its share of a busy computer, against others' 1 */
};

char *machine_dir(const struct local *l, const char *name);
void machine_id(const struct local *l, const char *name, char out[ID_LEN + 1]);
void machine_link(const char *id, char out[16]); /* the host's side of its network cable */
/* 1 when it was read, 0 when there is none. */
int machine_read(const char *dir, struct local_machine *out, struct error *err);
int machine_write(const struct local_machine *m, struct error *err);
void machine_release(struct local_machine *m);
/* Everything of a machine that is not there yet, machine.json last; then the cluster's known_hosts. */
int machine_make(const struct local *l, const struct provider_run *run, const struct node *n, const char *base, struct error *err);

/* ---- ssh keys ---- */

char *ssh_key_path(const struct local *l);
char *known_hosts_path(const struct local *l);
int ssh_key_make(const struct local *l, struct error *err);
int host_key_make(const char *dir, struct error *err);
int known_hosts_write(const struct local *l, struct error *err);
/* The known_hosts line of a machine, "" when it has no key yet. */
void host_key_line(const char *dir, const char *address, struct str *out);

/* ---- power ---- */

/* The keeper's process id while the machine runs, else 0. */
pid_t keeper_pid(const char *dir);
#define BOOT_SECONDS 180             /* after this its sshd will not answer any more */
int64_t keeper_age(const char *dir); /* seconds since it was started */
/* Kills what is left of a machine. Returns how many processes are still there: call again until 0. */
size_t machine_kill(const char *dir);
/* After the last process: cgroups, its cable, stale mounts, what nspawn left. Returns -EAGAIN while the kernel is not done: call again. */
int machine_sweep(const char *dir, const char *id);
/* machine_kill and machine_sweep to the end, within a time. */
int machine_off(const char *dir, const char *id, struct error *err);
/* Starts the keeper and waits until sshd answers; fn once, from the loop. */
void machine_boot(struct event_base *base, const struct local_machine *m, void (*fn)(struct error *err, void *arg), void *arg);
void pause_ms(unsigned ms);

/* ---- cgroups ---- */

/* This computer has the version 1 controllers (alone, or beside an empty version 2). */
bool cgroup_v1(void);
/* Makes the machine's cgroups and moves the caller there; `inner` (malloc'd or NULL) is one more for what it starts. */
int cgroup_enter(const struct local_machine *m, char **inner, struct error *err);
/* Before each further start of the machine: what the last one left in them goes. */
int cgroup_again(const struct local_machine *m, const char *inner, struct error *err);
/* Process ids in the machine's cgroups; zombies are not counted. */
pid_t *cgroup_pids(const char *dir, size_t *count);
/* True when nothing is left. */
bool cgroup_remove(const char *dir);

/* ---- the base root ---- */

/* malloc'd path of the base root for a release. */
int base_path(const char *release, char **out, struct error *err);
/* Makes it if it is not there; fn once, from the loop or at once. */
void base_make(struct event_base *base, const char *release, void (*say)(const char *what, int permille, void *arg), void (*fn)(struct error *err, void *arg),
        void *arg);

/* What apt on a computer knows, as one-line sources of `release`. `codename` is the computer's own release: its mirrors serve the other under its name. */
void sources_read(const char *root, const char *codename, const char *release, struct str *out);

/* ---- this computer ---- */

/* The bridge with the network's first address; refuses a range that is routed elsewhere. */
int bridge_make(const struct local *l, const struct cidr *network, struct error *err);
int bridge_remove(const struct local *l, struct error *err);
bool link_there(const char *name);
/* Kernel settings that no namespace holds: kept before the first machine of all clusters, put back after the last. */
int computer_join(const struct local *l, struct error *err);
int computer_leave(const struct local *l, struct error *err);

#endif
