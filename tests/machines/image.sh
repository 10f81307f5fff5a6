#!/usr/bin/env bash
# Packs programs into an image: a docker archive that `ctr images import` takes, made with tar alone.
#   image.sh NAME OUT.tar FILE=PATH…       each FILE lands at PATH in the image; the first PATH is what it runs
# The same input gives the same bytes. Static programs only: there is nothing else in the image.
set -euo pipefail

[ $# -ge 3 ] || { echo "usage: image.sh NAME OUT.tar FILE=PATH…" >&2; exit 2; }
name=$1 out=$2
shift 2
work=$(mktemp -d "${TMPDIR:-/tmp}/image.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root" "$work/image"
chmod 755 "$work/root"
mkdir -m 1777 "$work/root/tmp"
for pair; do
  install -D -m 755 "${pair%%=*}" "$work/root${pair#*=}"
done
pack() { tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf "$2" .; }
pack "$work/root" "$work/image/layer.tar"
layer=$(sha256sum "$work/image/layer.tar" | cut -d' ' -f1)
case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
jq -cn --arg run "${1#*=}" --arg layer "sha256:$layer" --arg arch "$arch" \
  '{architecture: $arch, os: "linux", created: "1970-01-01T00:00:00Z", config: {Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], Entrypoint: [$run]},
    rootfs: {type: "layers", diff_ids: [$layer]}, history: [{created: "1970-01-01T00:00:00Z"}]}' >"$work/image/config.json"
jq -cn --arg name "$name" '[{Config: "config.json", RepoTags: [$name], Layers: ["layer.tar"]}]' >"$work/image/manifest.json"
pack "$work/image" "$out"
