#!/usr/bin/env bash
# Makes a root once, and prints where it is.
#   tests/machines/base.sh [machine|cloud|vm]
# machine (the default): of the test machines. Debian bookworm, because it is the newest whose systemd still boots on a cgroup v1 host.
# cloud: the same with cloud-init, like an image of a cloud.
# vm: of a virtual machine, Debian trixie with a kernel of its own (User Mode Linux), and what makes its seed disk.
# The mirror is the one this computer's own apt uses. The root lies in the cache under a name made from what is in it, and appears there whole.
set -euo pipefail

nodes=(systemd systemd-sysv systemd-timesyncd dbus udev openssh-server iproute2 iputils-ping iptables nftables ipset conntrack ebtables ethtool socat curl
  haproxy keepalived runc kmod e2fsprogs procps util-linux ca-certificates)
case ${1:-machine} in
machine) SUITE=bookworm PACKAGES=("${nodes[@]}") ;;
cloud) SUITE=bookworm PACKAGES=("${nodes[@]}" cloud-init sudo) ;;
vm) SUITE=trixie PACKAGES=("${nodes[@]}" user-mode-linux dosfstools mtools cloud-init sudo python3 xfsprogs netplan.io ipvsadm wireguard-tools) ;;
*) echo "usage: base.sh [machine|cloud|vm]" >&2; exit 2 ;;
esac
CACHE=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
VERSION=1 # of what is done to the root besides its packages

die() { echo "base: $*" >&2; exit 1; }

# One line "OPTIONS URI SUITE COMPONENTS…" for each binary source apt knows, in both of its formats.
sources() {
  local list=() deb822=() f
  for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do [ -f "$f" ] && list+=("$f"); done
  for f in /etc/apt/sources.list.d/*.sources; do [ -f "$f" ] && deb822+=("$f"); done
  [ ${#list[@]} -eq 0 ] || awk '
    $1 == "deb" {
      opts = ""; i = 2
      if ($2 ~ /^\[/) { while ($i !~ /\]$/) i++; i++; if (match($0, /signed-by=[^] ]*/)) opts = substr($0, RSTART, RLENGTH) }
      line = (opts == "" ? "-" : opts)
      for (; i <= NF; i++) line = line " " $i
      print line
    }' "${list[@]}"
  [ ${#deb822[@]} -eq 0 ] || awk '
    function flush(  nu, ns, u, s, i, j) {
      if (types ~ /(^| )deb( |$)/ && enabled != "no") {
        nu = split(uris, u, " "); ns = split(suites, s, " ")
        for (i = 1; i <= nu; i++) for (j = 1; j <= ns; j++) print (key ~ /^\// ? "signed-by=" key : "-"), u[i], s[j], components
      }
      types = uris = suites = components = key = enabled = ""
    }
    FNR == 1 || /^[ \t]*$/ { flush() }
    /^#/ { next }
    { name = tolower($1); value = $0; sub(/^[^:]*:[ \t]*/, "", value) }
    name == "types:" { types = value }
    name == "uris:" { uris = value }
    name == "suites:" { suites = value }
    name == "components:" { components = value }
    name == "signed-by:" { key = value }
    name == "enabled:" { enabled = tolower(value) }
    END { flush() }' "${deb822[@]}"
}

# The computer may run another Debian release: the same mirrors serve this one under its own name.
wanted() {
  local codename opts uri suite components
  # shellcheck disable=SC1091
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-$SUITE}")
  sources | while read -r opts uri suite components; do
    case $suite in
    "$codename" | "$codename-updates" | "$codename-security" | "$SUITE" | "$SUITE-updates" | "$SUITE-security") ;;
    *) continue ;;
    esac
    case " $components " in *" main "*) ;; *) continue ;; esac
    [ "$opts" = - ] && opts= || opts="[$opts] "
    echo "deb $opts$uri ${suite/$codename/$SUITE} main"
  done | sort -u
}

key=$(printf '%s\n' "$VERSION" "$SUITE" "${PACKAGES[@]}" | sha256sum | cut -c1-12)
base=$CACHE/base-$key
if [ -d "$base" ]; then echo "$base"; exit 0; fi

[ "$(id -u)" = 0 ] || die "needs root to make a root file system"
command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed (apt-get install mmdebstrap)"
mkdir -p "$CACHE"
exec 9>"$CACHE/.base.lock"
flock 9
if [ -d "$base" ]; then echo "$base"; exit 0; fi
find "$CACHE" -maxdepth 1 -name '.base-*' -exec rm -rf {} +

lines=$(wanted)
grep -q " $SUITE main" <<<"$lines" || die "apt on this computer has no source for Debian $SUITE or a release beside it (looked in /etc/apt/sources.list and sources.list.d)"
opts=()
while read -r o; do opts+=(--aptopt="$o"); done < <(apt-config dump | grep -iE '^(Acquire::https?::(Proxy|Verify|CAInfo)|Acquire::Check-Valid-Until)' || true)

work=$(mktemp -d "$CACHE/.base-XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "base: making $base" >&2
# its mounts are in a namespace of their own: tests beside it look at the computer's
# shellcheck disable=SC2016
unshare --mount mmdebstrap --quiet --mode=root --variant=minbase "${opts[@]}" --include="$(IFS=,; echo "${PACKAGES[*]}")" \
  --dpkgopt=path-exclude='/usr/share/doc/*' --dpkgopt=path-exclude='/usr/share/man/*' --dpkgopt=path-exclude='/usr/share/locale/*' \
  --customize-hook='rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id "$1"/var/lib/dbus/machine-id; : >"$1"/etc/machine-id' \
  --customize-hook='rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/* "$1"/var/lib/apt/lists/*; echo localhost >"$1"/etc/hostname' \
  --customize-hook='ln -sf /dev/null "$1"/etc/systemd/system/systemd-networkd-wait-online.service' \
  "$SUITE" "$work/root" - <<<"$lines" >&2
mv -T "$work/root" "$base"
echo "$base"
