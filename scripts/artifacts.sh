#!/usr/bin/env bash
# Builds the upstream programs that the tests run and judge with, from their Go modules.
#   scripts/artifacts.sh [COMPONENT...]      kubernetes etcd containerd runc crictl cni flannel coredns ignition (default: all)
# They land in $SLIPWAY_CACHE/artifacts/NAME-VERSION/ (outside the checkout), once per version, atomically: a
# directory that exists is whole. Module checksums are verified by the go command itself.
set -euo pipefail

K8S=${KUBERNETES_VERSION:-1.36.3}
ETCD=3.6.16 CONTAINERD=2.4.2 RUNC=1.5.2 CRICTL=1.36.0 CNI=1.9.1 FLANNEL=0.26.7 FLANNEL_CNI=0.9.1 COREDNS=1.14.6 IGNITION=2.24.0
CACHE=${SLIPWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slipway}
mkdir -p "$CACHE/artifacts"
export GOFLAGS="${GOFLAGS:-} -buildvcs=false -trimpath" CGO_ENABLED=0 GOTOOLCHAIN=local
command -v go >/dev/null || { echo "artifacts: the go command is not installed" >&2; exit 1; }

say() { echo "artifacts: $*" >&2; }

# module NAME VERSION: begins a scratch module in $work whose result will be $out; false if $out is there already
module() {
  out=$CACHE/artifacts/$1-$2
  [ -d "$out" ] && return 1
  work=$(mktemp -d "$CACHE/artifacts/.work.XXXXXX")
  mkdir "$work/out"
  printf 'module build\n\ngo %s\n' "$(go env GOVERSION | sed 's/^go\([0-9]*\.[0-9]*\).*/\1/')" >"$work/go.mod"
  say "building $1 $2"
}
# Imports keep `go mod tidy` from dropping what go.mod requires; the file is never compiled.
need() { ( cd "$work" && { echo '//go:build tools'; echo 'package build'; printf 'import _ "%s"\n' "$@"; } >tools.go && go mod tidy -e -go="$(sed -n 's/^go //p' go.mod)" >"$work/log" 2>&1 ) || { cat "$work/log" >&2; return 1; }; }
build() { ( cd "$work" && go build -o out/ "$@" ) ; }
finish() { chmod -R u+w "$work"; mv -T "$work/out" "$out" 2>/dev/null || [ -d "$out" ]; rm -rf "$work"; }

kubernetes() {
  module kubernetes "$K8S" || return 0
  local mod flags minor=${K8S#1.} cmds=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubeadm kubectl)
  minor=0.$minor
  ( cd "$work"
    go mod edit -require "k8s.io/kubernetes@v$K8S"
    mod=$(go mod download -json "k8s.io/kubernetes@v$K8S" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
    # Kubernetes' own go.mod names its staging modules v0.0.0 and replaces them by directories: replace them by releases
    sed -n 's/^\t\(k8s\.io\/[a-z-]*\) v0\.0\.0$/\1/p' "$mod" | while read -r m; do go mod edit -replace "$m=$m@v$minor"; done )
  need "${cmds[@]/#/k8s.io/kubernetes/cmd/}"
  flags="-s -w -X k8s.io/component-base/version.gitVersion=v$K8S -X k8s.io/client-go/pkg/version.gitVersion=v$K8S"
  flags="$flags -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(echo "$K8S" | cut -d. -f2)"
  build -ldflags "$flags" "${cmds[@]/#/k8s.io/kubernetes/cmd/}"
  finish
}
etcd() {
  module etcd $ETCD || return 0
  for m in server etcdctl etcdutl; do ( cd "$work" && go mod edit -require go.etcd.io/etcd/$m/v3@v$ETCD ); done
  need go.etcd.io/etcd/server/v3 go.etcd.io/etcd/etcdctl/v3 go.etcd.io/etcd/etcdutl/v3
  ( cd "$work" && go build -ldflags '-s -w' -o out/etcd go.etcd.io/etcd/server/v3 && go build -ldflags '-s -w' -o out/etcdctl go.etcd.io/etcd/etcdctl/v3 && go build -ldflags '-s -w' -o out/etcdutl go.etcd.io/etcd/etcdutl/v3 )
  finish
}
containerd() {
  module containerd $CONTAINERD || return 0
  ( cd "$work" && go mod edit -require github.com/containerd/containerd/v2@v$CONTAINERD )
  need github.com/containerd/containerd/v2/cmd/{containerd,ctr,containerd-shim-runc-v2}
  build -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=v$CONTAINERD" github.com/containerd/containerd/v2/cmd/{containerd,ctr,containerd-shim-runc-v2}
  finish
}
runc() {
  module runc $RUNC || return 0
  ( cd "$work" && go mod edit -require github.com/opencontainers/runc@v$RUNC )
  need github.com/opencontainers/runc
  ( cd "$work" && CGO_ENABLED=1 go build -tags seccomp,netgo,osusergo -ldflags "-s -w -X main.version=$RUNC -extldflags \"-static\"" -o out/ github.com/opencontainers/runc )
  finish
}
crictl() {
  module crictl $CRICTL || return 0
  ( cd "$work" && go mod edit -require sigs.k8s.io/cri-tools@v$CRICTL )
  need sigs.k8s.io/cri-tools/cmd/crictl
  build -ldflags "-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=v$CRICTL" sigs.k8s.io/cri-tools/cmd/crictl
  finish
}
cni() {
  module cni $CNI || return 0
  local p=github.com/containernetworking/plugins/plugins all
  all="$p/main/bridge $p/main/loopback $p/main/ptp $p/main/macvlan $p/ipam/host-local $p/ipam/dhcp $p/meta/portmap $p/meta/bandwidth $p/meta/firewall $p/meta/tuning"
  ( cd "$work" && go mod edit -require github.com/containernetworking/plugins@v$CNI )
  # shellcheck disable=SC2086
  { need $all; build -ldflags '-s -w' $all; }
  finish
}
flannel_cni() {
  module flannel-cni $FLANNEL_CNI || return 0
  ( cd "$work" && go mod edit -require github.com/containernetworking/plugins@v$FLANNEL_CNI )
  need github.com/containernetworking/plugins/plugins/meta/flannel
  build -ldflags '-s -w' github.com/containernetworking/plugins/plugins/meta/flannel
  finish
}
flannel() {
  flannel_cni
  module flannel $FLANNEL || return 0
  ( cd "$work" && go mod edit -require github.com/flannel-io/flannel@v$FLANNEL )
  need github.com/flannel-io/flannel
  ( cd "$work" && CGO_ENABLED=1 go build -tags netgo,osusergo -ldflags '-s -w -extldflags "-static"' -o out/flanneld github.com/flannel-io/flannel )
  finish
}
coredns() {
  module coredns $COREDNS || return 0
  ( cd "$work" && go mod edit -require github.com/coredns/coredns@v$COREDNS )
  need github.com/coredns/coredns
  build -ldflags '-s -w' github.com/coredns/coredns
  finish
}
# Ignition's validator knows newer specifications than Debian's ignition-validate.
ignition() {
  module ignition $IGNITION || return 0
  ( cd "$work" && go mod edit -require github.com/coreos/ignition/v2@v$IGNITION )
  need github.com/coreos/ignition/v2/validate
  ( cd "$work" && go build -ldflags '-s -w' -o out/ignition-validate github.com/coreos/ignition/v2/validate )
  finish
}

# One builder at a time; a second run waits, then finds everything there.
exec 9>"$CACHE/artifacts/.lock"
flock 9
find "$CACHE/artifacts" -maxdepth 1 -name '.work.*' -exec chmod -R u+w {} + -exec rm -rf {} +
[ $# -gt 0 ] || set -- ignition etcd containerd runc crictl cni flannel coredns kubernetes
for c; do "$c"; done
