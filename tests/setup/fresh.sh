#!/usr/bin/env bash
# Runs commands in a root that has what a fresh Debian has, make and git, and nothing else.
#   tests/setup/fresh.sh DIRECTORY COMMAND…     (as root)
# Each COMMAND is a line of shell, in a copy of this checkout at /root/slipway. Where packages and
# modules come from is read from this computer's own settings. What is slow to build or to download
# (programs, machines' base roots, packages, Go's modules) is shared with this computer through
# overlays: nothing here is changed by it. DIRECTORY is made, used by all that call with it (packages
# are downloaded once), and the caller's to remove.
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
dir=$1
shift
CACHE=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
# shellcheck disable=SC1091
SUITE=$(. /etc/os-release && echo "$VERSION_CODENAME")

# The settings of apt, pip and Go, and the certificates that they trust.
settings() {
  local root=$1 f v
  mkdir -p "$root/etc/apt" "$root/root/.config"
  rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
  for f in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/keyrings /etc/apt/trusted.gpg.d /etc/apt/apt.conf.d /etc/pip.conf /etc/ssl/certs /usr/share/ca-certificates \
    /usr/local/share/ca-certificates /usr/share/keyrings /etc/resolv.conf /etc/hosts; do
    [ ! -e $f ] || { mkdir -p "$root$(dirname $f)"; rm -rf "${root:?}$f"; cp -aL $f "$root$f" 2>/dev/null || true; }
  done
  rm -f "$root"/etc/apt/apt.conf.d/docker-*
  for v in "${keep[@]}"; do
    f=${v#*=}
    [[ $f != /* || ! -f $f ]] || { mkdir -p "$root$(dirname "$f")"; cp -L "$f" "$root$f"; }
  done
  for f in pip go; do [ ! -d "$HOME/.config/$f" ] || cp -a "$HOME/.config/$f" "$root/root/.config/"; done
}

# Names of variables that say where things come from, with their values.
keep=()
while IFS= read -r -d '' v; do
  case $v in
  PIP_* | GOPROXY=* | GONOSUMDB=* | GONOPROXY=* | GOPRIVATE=* | GOSUMDB=* | GOFLAGS=* | SSL_CERT_* | *_CA_BUNDLE=* | *_proxy=* | *_PROXY=*) keep+=("$v") ;;
  esac
done < <(env -0)

base() {
  [ ! -d "$dir/base" ] || return 0
  rm -rf --one-file-system "$dir/new" # of a run that was killed
  mkdir -p "$dir/new"
  echo "fresh: making a root of Debian $SUITE" >&2
  { cat /etc/apt/sources.list 2>/dev/null; cat /etc/apt/sources.list.d/*.list 2>/dev/null; } | grep '^deb ' >"$dir/list" || true
  local from=("$dir/list")
  [ -s "$dir/list" ] || from=(/etc/apt/sources.list.d/*.sources)
  mmdebstrap --quiet --mode=root --variant=important --include=make,git,ca-certificates "$SUITE" "$dir/new" "${from[@]}" >&2
  tr -d - </proc/sys/kernel/random/uuid >"$dir/new/etc/machine-id" # as the first boot does it
  mv "$dir/new" "$dir/base"
}

# overlay LOWER AT: what is written there goes to this root's own directory
overlay() {
  local at=$1 lower=$2 name
  name=$(echo "$at" | tr / _)
  mkdir -p "$own/up$name" "$own/work$name" "$root$at" "$lower"
  mount -t overlay overlay -o "lowerdir=$lower,upperdir=$own/up$name,workdir=$own/work$name" "$root$at"
}

# In a mount namespace of its own. What machines write to lies on a real directory: the upper side of
# an overlay cannot lie on an overlay.
inside() {
  root=$own/root
  mount --make-rprivate /
  mkdir -p "$own"/{up,work,root,home,tmp} "$dir/archives"
  mount -t overlay overlay -o "lowerdir=$dir/base,upperdir=$own/up,workdir=$own/work" "$root"
  settings "$root"
  mkdir -p "$root/root/slipway" "$root/var/tmp" "$root/var/cache/apt/archives"
  mount --bind "$own/home" "$root/root/slipway"
  mount --bind "$own/tmp" "$root/var/tmp"
  mount --bind "$dir/archives" "$root/var/cache/apt/archives"
  overlay /root/.cache/slipway "$CACHE"
  # The rest was made for another computer, or other runs change it meanwhile.
  find "$root/root/.cache/slipway" -mindepth 1 -maxdepth 1 ! -name artifacts ! -name 'base-*' -exec rm -rf {} +
  [ ! -d "$HOME/go" ] || overlay /root/go "$HOME/go"
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  (cd "$here" && git ls-files -z --cached --others --exclude-standard | tar --null -T - --ignore-failed-read -c 2>/dev/null) | tar -x -C "$root/root/slipway"
  git init -q "$root/root/slipway" # a checkout: tests ask git which files are the project's
  # Not chroot: who enters a container of such a machine would land in the computer's own root.
  cd "$root"
  mkdir -p .computer
  pivot_root . .computer
  cd /
  umount -l /.computer
  rmdir /.computer
  local c
  trap 'enter "make demo-down"; exit 143' TERM INT
  for c; do
    echo "+ $c" >&2
    enter "$c" || return
  done
}
enter() {
  env -i "${keep[@]}" HOME=/root LC_ALL=C.UTF-8 TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    sh -c "cd /root/slipway && $1" </dev/null
}

[ "$(id -u)" = 0 ] || { echo "fresh: needs root" >&2; exit 1; }
if [ "${FRESH_INSIDE:-}" = "" ]; then
  mkdir -p "$dir"
  base
  own=$(mktemp -d "$dir/root.XXXXXX")
  touch "$own/.not-ours" # its machines are taken down from within (tests/keeper.py)
  trap : TERM INT
  export FRESH_INSIDE=$own
  status=0
  unshare --mount --pid --fork --kill-child "$0" "$dir" "$@" || status=$?
  rm -rf --one-file-system "$own"
  exit $status
fi
own=$FRESH_INSIDE
inside "$@"
