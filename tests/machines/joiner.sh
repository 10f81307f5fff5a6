#!/usr/bin/env bash
# A machine that is no node of slipway's, with what kubeadm wants to find installed by hand, as a person would install packages.
#   joiner.sh images DIR                   packs the images that such a machine pulls, under their upstream names: one .tar each
#   joiner.sh install NAME IMAGE.tar…      containerd, kubelet, kubeadm and CNI plugins onto a machine of machine.sh, and the images into its runtime
# $KUBERNETES is the version (default: the catalogue's newest). The programs come from the cache, where `slipway programs` ($SLIPWAY, default: build/slipway) puts them; iptables and cp in the images from the machines' base root.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
SLIPWAY=$(realpath "${SLIPWAY:-$here/../../build/slipway}")
catalogue=$("$SLIPWAY" programs)
ask() { jq -er "$@" <<<"$catalogue"; }
KUBERNETES=${KUBERNETES:-$(ask .kubernetes.newest)}
# programs_of NAME [VERSION]: their directory
programs_of() { ask --arg name "$1" --arg of "${2:-}" '[.programs[] | select(.name == $name and ($of == "" or .version == $of))][0].dir'; }
image_of() { ask --arg name "$1" '.images[$name]'; }

machine() { "$here/machine.sh" "$@"; }

# --- images ---------------------------------------------------------------------------------------------------------
# FILE=PATH of programs (or plugins) of the base root, and of the libraries they are linked with.
programs() {
  local base=$1 p lib
  shift
  { for p; do echo "$base$p=$p"; done
    chroot "$base" ldd "$@" | grep -v ':$' | grep -o '/[^ ]*' | sort -u | while read -r lib; do echo "$base$(chroot "$base" readlink -f "$lib")=$lib"; done; } | sort -u
}
# One program under many names, and its plugins: a rule whose plugin lacks a library fails the whole table.
iptables() {
  local base=$1 name plugins
  plugins=("$base"/usr/lib/*/xtables/*.so)
  programs "$base" /usr/sbin/xtables-nft-multi "${plugins[@]#"$base"}"
  for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do echo "$base/usr/sbin/xtables-nft-multi=/usr/sbin/$name"; done
}
images() {
  local out=$1 base files
  base=$("$here/base.sh")
  mkdir -p "$out"
  mapfile -t files < <(iptables "$base")
  "$here/image.sh" "registry.k8s.io/kube-proxy:v$KUBERNETES" "$out/kube-proxy.tar" "$(programs_of kubernetes "$KUBERNETES")/kube-proxy=/usr/local/bin/kube-proxy" "${files[@]}"
  mapfile -t -O "${#files[@]}" files < <(programs "$base" /bin/cp)
  "$here/image.sh" "$(image_of flannel)" "$out/flannel.tar" "$(programs_of flannel)/flanneld=/opt/bin/flanneld" "${files[@]}"
  mapfile -t files < <(programs "$base" /bin/cp)
  "$here/image.sh" "$(image_of flannel-cni-plugin)" "$out/flannel-cni-plugin.tar" "$(programs_of flannel-cni)/flannel=/flannel" "${files[@]}"
  musl-gcc -static -Os -s -o "$out/pause" "$here/pause.c"
  "$here/image.sh" "$(image_of pause)" "$out/pause.tar" "$out/pause=/pause"
  rm "$out/pause"
}

# --- the machine ----------------------------------------------------------------------------------------------------
# The unit and its drop-in are those of upstream's packages.
files() {
  local root=$1
  install -m 755 "$(programs_of containerd)"/* "$root/usr/local/bin/"
  install -m 755 "$(programs_of kubernetes "$KUBERNETES")"/{kubelet,kubeadm} "$root/usr/bin/"
  mkdir -p "$root/opt/cni/bin" "$root/etc/containerd" "$root/usr/lib/systemd/system/kubelet.service.d" "$root/etc/kubernetes/manifests"
  install -m 755 "$(programs_of cni)"/* "$root/opt/cni/bin/"
  cat >"$root/etc/containerd/config.toml" <<TOML
version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "$(image_of pause)"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
TOML
  printf '[Unit]\nAfter=network.target\n[Service]\nExecStart=/usr/local/bin/containerd\nDelegate=yes\nKillMode=process\nRestart=always\n[Install]\nWantedBy=multi-user.target\n' \
    >"$root/etc/systemd/system/containerd.service"
  printf '[Unit]\nWants=network-online.target\nAfter=network-online.target\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\nStartLimitInterval=0\nRestartSec=2\n[Install]\nWantedBy=multi-user.target\n' \
    >"$root/usr/lib/systemd/system/kubelet.service"
  cat >"$root/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf" <<'UNIT'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
UNIT
}
put() {
  local name=$1 image
  shift
  files "$(machine root "$name")"
  machine exec "$name" sysctl -qw net.ipv4.ip_forward=1
  machine exec "$name" systemctl daemon-reload
  machine exec "$name" systemctl --quiet enable --now containerd.service
  machine exec "$name" systemctl --quiet enable kubelet.service
  for image; do
    machine exec "$name" ctr -n k8s.io images import - <"$image" >/dev/null
  done
}

verb=${1:-}
[ $# -lt 2 ] || shift
case $verb in
images) images "$1" ;;
install) put "$@" ;;
*) echo "usage: joiner.sh images DIR | install NAME IMAGE.tar…" >&2; exit 2 ;;
esac
