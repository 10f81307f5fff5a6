#!/usr/bin/env bash
# Real machines on this computer: systemd-nspawn on an overlay of the root that base.sh makes.
#   machine.sh start NAME ADDRESS      boots it; ADDRESS in a /24 whose .1 is the bridge; prints how long it took
#   machine.sh bridge NAME ADDRESS/BITS…   a bridge of this computer for the set, removed with its last machine; or more addresses for it
#   machine.sh network GATEWAY         the machines' network before the first of them
#   machine.sh exec NAME COMMAND…      runs a program in it
#   machine.sh root NAME               the path of its root, as seen from here
#   machine.sh net COMMAND…            runs a program of this computer in the machines' network
#   machine.sh list                    NAME ADDRESS PID, one a line
#   machine.sh reset NAME              as if the power had failed: it ends at once, and boots again
#   machine.sh off NAME, on NAME       it ends at once, and its disk stays; it boots again
#   machine.sh stop NAME… | --all      ends it and removes everything of it
# Machines of one set ($SLIPWAY_SET, default "slipway") share a bridge in a network namespace of their own: nothing of it is
# seen by the computer's network, and two sets may use the same addresses; with $SLIPWAY_BRIDGE they stand on that bridge of
# this computer instead. Overlays are mounted in a mount namespace of the
# machine's own, so they end with its last process. What is left after a crash is found again by name: `stop --all` first.
# A machine can be another computer than the usual one:
#   SLIPWAY_BASE       which of the roots of base.sh it has
#   SLIPWAY_FILES      a directory that is copied into its root before it boots
#   SLIPWAY_NETWORK    "BITS GATEWAY MAC RANGE": of its address, of its interface, and what it reaches without a gateway
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
SET=${SLIPWAY_SET:-slipway}
MACHINES=${SLIPWAY_MACHINES:-/var/tmp/slipway-machines}
STATE=$MACHINES/$SET
NETNS=slipway-$SET
BRIDGE=${SLIPWAY_BRIDGE:-}
MARK=slipway.$SET # the machine's cgroups are called MARK.NAME
BOOT_SECONDS=600
STOP_SECONDS=20

die() { echo "machine: $*" >&2; exit 1; }

# --- cgroups -------------------------------------------------------------------------------------------------------
# Each machine gets a child of our own cgroup, in every hierarchy there is; nspawn, started in it, makes it the root of the
# machine's cgroup namespace. Two machines in one cgroup would share /kubepods and delete each other's pods.

# The machine's cgroup directories: one a hierarchy, wherever they were made.
cgroups() { find /sys/fs/cgroup -type d -name "$MARK.$1" -prune 2>/dev/null || true; }

# Prints the directory of our own cgroup in each hierarchy.
own_cgroups() {
  local id controllers path dir
  while IFS=: read -r id controllers path; do
    case $id:$controllers in
    0:) dir=$(findmnt -rnt cgroup2 -o TARGET | head -n 1) ;;
    *:name=*) dir=/sys/fs/cgroup/${controllers#name=} ;;
    *) dir=/sys/fs/cgroup/$controllers ;;
    esac
    [ -n "$dir" ] && [ -d "$dir$path" ] && echo "$dir${path%/}"
  done </proc/self/cgroup
}

# cgroup_make NAME: on a v2 host the controllers must be handed down too, which only works where no process is in the way.
cgroup_make() {
  local dir f
  own_cgroups | while read -r dir; do
    mkdir -p "$dir/$MARK.$1" 2>/dev/null || continue
    for f in cpuset.cpus cpuset.mems; do
      [ -f "$dir/cgroup.clone_children" ] && [ -f "$dir/$f" ] && cat "$dir/$f" >"$dir/$MARK.$1/$f"
    done
    [ ! -f "$dir/cpuset.cpus" ] || [ ! -f "$dir/cgroup.clone_children" ] || echo 1 >"$dir/$MARK.$1/cgroup.clone_children"
    [ ! -f "$dir/cgroup.subtree_control" ] || { sed 's/^/+/; s/ / +/g' "$dir/cgroup.controllers" >"$dir/cgroup.subtree_control"; } 2>/dev/null || true
  done
}
cgroup_enter() { local dir; for dir in $(cgroups "$1"); do echo "$BASHPID" >"$dir/cgroup.procs" 2>/dev/null || true; done; }
cgroup_pids() { local dir; for dir in $(cgroups "$1"); do find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null; done | sort -un; }
cgroup_remove() {
  local dir i
  for ((i = 0; i < 20; i++)); do
    for dir in $(cgroups "$1"); do find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
    [ -z "$(cgroups "$1")" ] && return 0
    sleep 0.5
  done
  echo "machine: $1: some cgroups could not be removed: $(cgroups "$1" | tr '\n' ' ')" >&2
}

# --- kernel settings that no namespace holds ------------------------------------------------------------------------
# A kubelet sets some of them, rendered files set others: they are this computer's, so they are put back after the last machine.
SYSCTLS=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes
  fs.inotify.max_user_instances fs.inotify.max_user_watches fs.file-max vm.max_map_count vm.swappiness)
sysctls_save() {
  local kept=$MACHINES/.sysctls
  [ -e "$kept" ] || { sysctl "${SYSCTLS[@]}" 2>/dev/null >"$kept.$$" || true; mv "$kept.$$" "$kept"; } # machines may start side by side
}
sysctls_restore() {
  local kept=$MACHINES/.sysctls
  [ -z "$(ls "$MACHINES")" ] && [ -e "$kept" ] || return 0
  sysctl -q -p "$kept" >/dev/null 2>&1 || true
  rm -f "$kept"
}

# --- the network ---------------------------------------------------------------------------------------------------
network() {
  local gateway=$1
  if [ -z "$BRIDGE" ] && [ ! -e "/run/netns/$NETNS" ]; then
    ip netns add "$NETNS"
    ip -n "$NETNS" link set lo up
    ip -n "$NETNS" link add br0 type bridge
    ip -n "$NETNS" addr add "$gateway/24" dev br0
    ip -n "$NETNS" link set br0 up
  fi
}
bridge() {
  local name=$1 address
  shift
  mkdir -p "$STATE"
  echo "$name" >"$STATE/.bridge"
  [ -e "/sys/class/net/$name" ] || ip link add "$name" address "02:5c:$(printf %s "$name" | sha256sum | sed 's/\(..\)/\1:/g' | cut -c1-11)" type bridge
  for address; do ip address replace "$address" dev "$name"; done
  ip link set "$name" up
}
net() { [ -e "/run/netns/$NETNS" ] || die "no machine runs in set $SET"; exec nsenter --net="/run/netns/$NETNS" "$@"; }

# --- one machine ---------------------------------------------------------------------------------------------------
# A machine's first process is the child of its nspawn, which is the child of the shell that boots it.
leader() {
  local pid
  pid=$(cat "$STATE/$1/pid" 2>/dev/null) || return 1
  pid=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) && pid=${pid%% *} || return 1
  pid=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) && pid=${pid%% *} || return 1
  [ -n "$pid" ] && grep -qE '^NSpid:.*\s1$' "/proc/$pid/status" 2>/dev/null && echo "$pid"
}

# What a machine is besides the common root: its name, its address, and a unit that gives it what an nspawn machine lacks.
personal() {
  local root=$1 name=$2 ip=$3
  mkdir -p "$root"/etc/systemd/system/sysinit.target.wants "$root"/root/.ssh "$root"/etc/ssh/sshd_config.d "$root"/usr/local/sbin
  local bits=24 gateway=${ip%.*}.1 mac='' range=''
  [ -z "${SLIPWAY_NETWORK:-}" ] || read -r bits gateway mac range <<<"$SLIPWAY_NETWORK"
  echo "$name" >"$root/etc/hostname"
  cat /proc/sys/kernel/random/uuid >"$root/etc/product_uuid"
  printf '127.0.0.1 localhost\n%s %s\n' "$ip" "$name" >"$root/etc/hosts"
  : >"$root/etc/resolv.conf"
  chmod 700 "$root/root/.ssh"
  [ -z "${SLIPWAY_MACHINE_KEY:-}" ] || install -m 600 "$SLIPWAY_MACHINE_KEY" "$root/root/.ssh/authorized_keys"
  cat >"$root/usr/local/sbin/machine-setup" <<SETUP
#!/bin/sh
# nspawn mounts these read-only; a kubelet writes to them. On cgroup v2 the loop finds nothing to do.
for m in /sys/fs/cgroup/*; do mountpoint -q "\$m" && mount -o remount,bind,rw "\$m"; done
mount -o remount,bind,rw /sys/fs/cgroup 2>/dev/null
mount -o remount,bind,rw /proc/sys
mount --make-rshared /
ip link set lo up
[ ! -e /sys/class/dmi/id/product_uuid ] || mount --bind /etc/product_uuid /sys/class/dmi/id/product_uuid
${mac:+ip link set host0 address $mac}
ip addr replace $ip/$bits dev host0
ip link set host0 up
${range:+ip route replace $range dev host0}
ip route replace default via $gateway dev host0
[ -e /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
exit 0
SETUP
  chmod 755 "$root/usr/local/sbin/machine-setup"
  cat >"$root/etc/systemd/system/machine-setup.service" <<'UNIT'
[Unit]
Description=What a test machine needs before anything else
DefaultDependencies=no
Before=sysinit.target network-pre.target
After=local-fs.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/machine-setup
UNIT
  ln -sf ../machine-setup.service "$root/etc/systemd/system/sysinit.target.wants/machine-setup.service"
  [ -z "${SLIPWAY_FILES:-}" ] || cp -R "$SLIPWAY_FILES/." "$root/"
}

# Boots the machine, and again when it reboots (133 is how nspawn says so) or is reset. The overlay is mounted in this shell's own namespace.
# A computer that boots has no cgroups yet, so what the last boot left is removed: a kubelet would look for its pods in them.
boot() {
  local name=$1 base=$2 dir=$STATE/$1 own
  mapfile -t own < <(cgroups "$name")
  cgroup_enter "$name"
  # shellcheck disable=SC2016
  exec setsid nsenter --net="$([ -n "$BRIDGE" ] && echo /proc/self/ns/net || echo "/run/netns/$NETNS")" unshare --mount bash -c '
    dir=$1 base=$2 name=$3 bridge=$4
    shift 4
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" "$dir/root" || exit 1
    status=133
    while [ $status = 133 ]; do
      systemd-nspawn -D "$dir/root" -M "$name" --register=no --keep-unit --capability=all --network-bridge="$bridge" --resolv-conf=off --timezone=off \
        --bind="$dir/containerd:/var/lib/containerd" --bind="$dir/kubelet:/var/lib/kubelet" --bind="$dir/etcd:/var/lib/etcd" --bind=/dev/kmsg \
        --system-call-filter="@keyring bpf @mount" -b
      status=$?
      find "$@" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null
      ! rm "$dir/again" 2>/dev/null || status=133
    done' boot "$dir" "$base" "$name" "${BRIDGE:-br0}" "${own[@]}"
}

start() {
  local name=$1 ip=$2 dir=$STATE/$1 base
  [ "$(id -u)" = 0 ] || die "needs root"
  command -v systemd-nspawn >/dev/null || die "systemd-nspawn is not installed (apt-get install systemd-container)"
  [[ $ip =~ ^([0-9]+\.){3}[0-9]+$ ]] || die "$ip is not an IPv4 address"
  [ ! -d "$dir" ] || die "$name exists already: stop it first"
  base=$("$here/base.sh" "${SLIPWAY_BASE:-machine}")
  mkdir -p "$dir"/{upper,work,root,containerd,kubelet,etcd}
  echo "$base" >"$dir/base"
  echo "$ip" >"$dir/address"
  personal "$dir/upper" "$name" "$ip"
  sysctls_save
  network "${ip%.*}.1"
  on "$name"
}

on() {
  local name=$1 dir=$STATE/$1 base begun=$EPOCHREALTIME state ip
  base=$(cat "$dir/base") ip=$(cat "$dir/address")
  cgroup_make "$name"
  ( boot "$name" "$base" ) </dev/null >"$dir/console" 2>&1 &
  echo $! >"$dir/pid"
  while :; do
    kill -0 "$(cat "$dir/pid")" 2>/dev/null || { cat "$dir/console" >&2; stop_one "$name"; die "$name did not boot"; }
    state=$(run "$name" systemctl is-system-running 2>/dev/null || true)
    case $state in running | degraded) break ;; esac
    [ $((${EPOCHREALTIME%.*} - ${begun%.*})) -lt $BOOT_SECONDS ] || { tail -n 30 "$dir/console" >&2; die "$name did not finish booting in $BOOT_SECONDS s"; }
    sleep 0.2
  done
  awk -v n="$name" -v a="$ip" -v b="$begun" -v e="$EPOCHREALTIME" 'BEGIN { printf "%s %s booted in %.1f s\n", n, a, e - b }'
}

# A subshell that joins the machine: its cgroups first, because a namespace alone does not move a process. The shell in between
# waits in place of nsenter, which would stop for good when a machine that shuts down stops its processes.
run() {
  local name=$1 pid
  shift
  pid=$(leader "$name") || { echo "machine: $name does not run" >&2; return 1; }
  ( cgroup_enter "$name"; exec nsenter --no-fork -t "$pid" -m -u -i -n -p -C -r -w env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" sh -c '"$@"; exit $?' sh "$@" )
}

wait_gone() { local i; for ((i = 0; i < $2 * 5; i++)); do [ -z "$(cgroup_pids "$1")" ] && return 0; sleep 0.2; done; return 1; }

# It gets no time to halt: its first process is killed and takes the rest along. Whatever else is in the machine's own cgroups
# (a program run by `exec`, the nspawn itself) is killed by its number.
off() {
  local name=$1 pid
  if pid=$(leader "$name"); then kill -KILL "$pid" 2>/dev/null || true; fi
  for pid in $(cgroup_pids "$name"); do [ "$pid" = $$ ] || kill -KILL "$pid" 2>/dev/null || true; done
  wait_gone "$name" $STOP_SECONDS || echo "machine: $name: some processes would not end" >&2
  cgroup_remove "$name"
}
stop_one() { off "$1"; rm -rf "${STATE:?}/$1"; }

stop_all() {
  local names name
  # others' cgroups may go while it looks
  names=$({ ls "$STATE" 2>/dev/null || true; { find /sys/fs/cgroup -type d -name "$MARK.*" -printf '%f\n' 2>/dev/null || true; } | sed "s/^$MARK\\.//"; } | sort -u)
  for name in $names; do stop_one "$name" & done
  wait
  cleanup_net
}
cleanup_net() {
  [ -z "$(ls "$STATE" 2>/dev/null)" ] || return 0
  [ ! -e "$STATE/.bridge" ] || { ip link delete "$(cat "$STATE/.bridge")" 2>/dev/null || true; rm "$STATE/.bridge"; }
  rmdir "$STATE" 2>/dev/null || true
  [ ! -d "$MACHINES" ] || sysctls_restore
  [ ! -e "/run/netns/$NETNS" ] || ip netns delete "$NETNS"
}

reset() {
  local pid
  pid=$(leader "$1") || die "$1 does not run"
  : >"$STATE/$1/again"
  kill -KILL "$pid"
}

list() { local d; for d in "$STATE"/*/; do [ -d "$d" ] && d=$(basename "$d") && echo "$d $(cat "$STATE/$d/address") $(leader "$d" || echo -)"; done; return 0; }

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
start) [ $# = 2 ] || die "usage: start NAME ADDRESS"; start "$@" ;;
stop) [ $# -ge 1 ] || die "usage: stop NAME… | --all"; if [ "$1" = --all ]; then stop_all; else for n; do stop_one "$n"; done; cleanup_net; fi ;;
exec) [ $# -ge 2 ] || die "usage: exec NAME COMMAND…"; run "$@" ;;
network) [ $# = 1 ] || die "usage: network GATEWAY"; network "$1" ;;
bridge) [ $# -ge 1 ] || die "usage: bridge NAME ADDRESS/BITS…"; bridge "$@" ;;
reset) [ $# = 1 ] || die "usage: reset NAME"; reset "$1" ;;
off) [ $# = 1 ] || die "usage: off NAME"; off "$1" ;;
on) [ $# = 1 ] || die "usage: on NAME"; on "$1" ;;
root) [ $# = 1 ] || die "usage: root NAME"; pid=$(leader "$1") || die "$1 does not run"; echo "/proc/$pid/root" ;;
net) net "$@" ;;
list) list ;;
*) die "usage: start NAME ADDRESS | exec NAME COMMAND… | root NAME | net COMMAND… | list | bridge NAME ADDRESS/BITS… | network GATEWAY | reset NAME | off NAME | on NAME | stop NAME… | stop --all" ;;
esac
