#!/usr/bin/env bash
# The rendered files, seen to work: puts them on two real machines by hand, without an agent, and watches a cluster come up.
#   tests/machines/by-hand.sh [--keep]        ends with "N passed, N failed"; --keep leaves the machines running
# SLIPWAY names the program (default: build/slipway). Logs of a failed run stay in $SLIPWAY_LOGS (default: /var/tmp/slipway-by-hand-logs).
# Every wait is long: a slow computer is not a failure. What a killed run left behind is removed first.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
export SLIPWAY_SET=${SLIPWAY_SET:-by-hand}
SLIPWAY=$(realpath "${SLIPWAY:-$here/../../build/slipway}")
LOGS=${SLIPWAY_LOGS:-/var/tmp/slipway-by-hand-logs}
WAIT=${SLIPWAY_WAIT:-900} # seconds, each
catalogue=$("$SLIPWAY" programs)
KUBERNETES=$(jq -er .kubernetes.newest <<<"$catalogue")
# programs_of NAME: the directory of the newest version in the cache
programs_of() { jq -er --arg name "$1" '[.programs[] | select(.name == $name)][0].dir' <<<"$catalogue"; }
NODES=(cp1 w1)
declare -A ADDRESS=([cp1]=10.199.7.11 [w1]=10.199.7.21)
DNS=10.96.0.10
keep=no
[ "${1:-}" != --keep ] || keep=yes

passed=0 failed=0 begun=$EPOCHREALTIME
machine() { "$here/machine.sh" "$@"; }
on() { machine exec "$@"; }
# From outside the machines, so that it works while one of them is down.
kubectl() {
  HOME=$work machine net "$(programs_of kubernetes)/kubectl" --kubeconfig "$work/nodes/cp1/root/etc/kubernetes/super-admin.conf" \
    --server "https://${ADDRESS[cp1]}:6443" --request-timeout=20s "$@"
}
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'; }
say() { printf '[%6s] %s\n' "$(since "$begun" | tr -d s)" "$*"; }
pass() { passed=$((passed + 1)); say "ok: $*"; }
fail() { failed=$((failed + 1)); say "FAILED: $*"; }
# check WHAT COMMAND…: one try. until_ok WHAT COMMAND…: until it works.
check() { local what=$1 out; shift; if out=$("$@" 2>&1); then pass "$what"; else fail "$what"; printf '%s\n' "$out" | tail -n 20; return 1; fi; }
until_ok() {
  local what=$1 out start=$EPOCHREALTIME end=$((SECONDS + WAIT))
  shift
  until out=$("$@" 2>&1); do
    [ $SECONDS -lt $end ] || { fail "$what (waited $WAIT s)"; printf '%s\n' "$out" | tail -n 20; return 1; }
    sleep 0.3
  done
  pass "$what, after $(since "$start")"
}

# --- what is left when it is over -----------------------------------------------------------------------------------
logs() {
  local n f
  rm -rf "$LOGS"
  mkdir -p "$LOGS"
  chmod 700 "$LOGS"
  for n in "${NODES[@]}"; do
    machine root "$n" >/dev/null 2>&1 || continue
    on "$n" journalctl -o short-precise --no-pager >"$LOGS/$n.journal" 2>&1 || true
    on "$n" systemctl list-units --all --no-pager >"$LOGS/$n.units" 2>&1 || true
    # shellcheck disable=SC2016
    on "$n" sh -c 'for f in /var/log/pods/*/*/*.log; do echo "== $f"; tail -n 60 "$f"; done' >"$LOGS/$n.pods" 2>&1 || true
    on "$n" ip route >"$LOGS/$n.routes" 2>&1 || true
    on "$n" iptables-save >"$LOGS/$n.iptables" 2>&1 || true
    for f in etcd containerd kubelet flanneld kube-proxy haproxy; do
      echo "--- $n: the end of $f"
      grep -E "$f(\[|:)" "$LOGS/$n.journal" | grep -iE 'error|fail|fatal|refused|denied|forbidden|panic|cannot|^.* [EF][0-9]{4}' | tail -n 6 | cut -c1-400
    done
  done
  kubectl get nodes,pods -A -o wide >"$LOGS/kubectl" 2>&1 || true
  kubectl get events -A >>"$LOGS/kubectl" 2>&1 || true
  tail -n 40 "$LOGS/kubectl"
  echo "logs are in $LOGS"
}
finish() {
  local status=$?
  trap - EXIT
  [ $status = 0 ] || [ $failed -gt 0 ] || failed=1
  [ $failed = 0 ] || logs || true
  [ $keep = yes ] || machine stop --all || failed=$((failed + 1))
  [ $keep = yes ] || rm -rf "$work"
  [ $keep = no ] || echo "machines are running: SLIPWAY_SET=$SLIPWAY_SET $here/machine.sh list; rendered files in $work"
  echo "$passed passed, $failed failed"
  [ $failed = 0 ] || exit 1
  exit 0
}

# --- what is put on the machines ------------------------------------------------------------------------------------
# What a machine says of itself, for --facts.
facts() {
  local n
  for n in "${NODES[@]}"; do
    # shellcheck disable=SC2016
    on "$n" sh -c '. /etc/os-release
      [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] && cgroup=2 || cgroup=1
      caps=$(sed -n "s/^CapBnd:\s*//p" /proc/1/status)
      caps="$([ $((0x$caps >> 23 & 1)) = 0 ] || echo sys_nice) $([ $((0x$caps >> 24 & 1)) = 0 ] || echo sys_resource)"
      echo "$ID $VERSION_ID $(dpkg --print-architecture) $cgroup host0 $caps"' |
      jq -R --arg name "$n" --arg address "${ADDRESS[$n]}" 'split(" ") | {($name): {address: $address, ip: [$address], os: {id: .[0], version: .[1]}, arch: .[2],
        cgroup: (.[3] | tonumber), interface: .[4], capabilities: (.[5:] | map(select(. != "")))}}'
  done | jq -s '{nodes: add}'
}
cluster() {
  cat <<YAML
apiVersion: slipway.dev/v1alpha1
kind: Cluster
metadata: {name: by-hand}
spec:
  kubernetes: $KUBERNETES
  provider:
    ssh: {user: root}
  network: {pods: 10.244.0.0/16, services: 10.96.0.0/16, fabric: flannel}
  pools:
    - name: control
      roles: [control-plane, etcd]
      hosts: [{name: cp1, address: ${ADDRESS[cp1]}}]
    - name: worker
      hosts: [{name: w1, address: ${ADDRESS[w1]}, labels: {zone: a}}]
YAML
}

# spec NODE KIND JQ: the node's entries of one kind through a jq filter, tab-separated.
spec() { jq -r --arg kind "$2" "def flag(f): (.flags // []) | index(f) != null; .entries[] | select(.kind == \$kind) | $3" "$work/nodes/$1/nodespec.json"; }

# The program or set of programs an artifact is, in the cache.
artifact() {
  local name=$1 version=$2 f
  case $name in
  cni-plugins) f=$(programs_of cni) ;;
  runc) f=$("$here/base.sh")/usr/sbin/runc ;;
  *) for f in "$(dirname "$(programs_of cni)")"/*-"$version"/"$name"; do break; done ;;
  esac
  [ -e "$f" ] && echo "$f"
}
put_artifacts() {
  local n=$1 root name version path mode f
  root=$(machine root "$n")
  while IFS=$'\t' read -r name version path mode; do
    f=$(artifact "$name" "$version") || { say "$n: $name $version is not in the cache: left out"; continue; }
    if [ -d "$f" ]; then
      mkdir -p "$root$path"
      install -m "$mode" "$f"/* "$root$path/"
    else
      mkdir -p "$root$(dirname "$path")"
      install -m "$mode" "$f" "$root$path"
    fi
  done < <(spec "$n" artifact '[.name, .version, .path, (.mode // "0755")] | @tsv')
}
users() {
  local n=$1 u
  for u in $(spec "$n" user .name); do on "$n" useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$u"; done
}
# Links such as /lib stay what they are on the machine. Owners and modes are the NodeSpec's: the rendered tree shows secrets to nobody.
put_files() {
  local n=$1
  tar -C "$work/nodes/$n/root" --owner=0 --group=0 -cf - . | on "$n" tar -C / --keep-directory-symlink --no-overwrite-dir -xpf -
  # shellcheck disable=SC2016
  { spec "$n" file '[(.owner // "root:root"), (.mode // "0644"), .path] | @tsv'; spec "$n" directory '[(.owner // "root:root"), (.mode // "0755"), .path] | @tsv'; } |
    on "$n" sh -c 'while read -r owner mode path; do chown "$owner" "$path" && chmod "$mode" "$path" || exit 1; done'
}
packages() {
  local n=$1 p missing=
  # shellcheck disable=SC2016
  for p in $(spec "$n" package .name); do on "$n" dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"; done
  [ -z "$missing" ] || { echo "not installed on $n:$missing"; return 1; }
}
# A sysctl that this kernel has must take its value; those of a module that is not there are the module's matter.
sysctls() {
  local n=$1 name value
  while IFS=$'\t' read -r name value; do
    on "$n" test -e "/proc/sys/$(tr . / <<<"$name")" || { say "$n: no sysctl $name on this kernel"; continue; }
    on "$n" sysctl -qw "$name=$value" </dev/null || { say "$n: sysctl $name=$value is refused"; }
  done < <(spec "$n" sysctl '[.name, .target] | @tsv')
}
# The images the NodeSpecs name: ours, packed from the programs in the cache.
image_file() { echo "$work/images/$(tr '/:' '__' <<<"$1").tar"; }
images() {
  local name program
  mkdir -p "$work/images"
  for program in pause probe; do musl-gcc -static -Os -s -o "$work/$program" "$here/$program.c"; done
  "$here/image.sh" slipway.test/probe:1 "$(image_file slipway.test/probe:1)" "$work/probe=/probe"
  for name in $(for n in "${NODES[@]}"; do spec "$n" image .name; done | sort -u) "$coredns"; do
    program=${name##*/} program=${program%%:*}
    case $program in
    pause) program=$work/pause=/pause ;;
    coredns) program=$(programs_of coredns)/coredns=/coredns ;;
    *) program=$(programs_of kubernetes)/$program=/usr/local/bin/$program ;;
    esac
    [ -e "${program%%=*}" ] || { say "nothing to make image $name of: left out"; continue; }
    [ -e "$(image_file "$name")" ] || "$here/image.sh" "$name" "$(image_file "$name")" "$program"
  done
}
put_images() {
  local n=$1 name
  for name in $(spec "$n" image .name) slipway.test/probe:1 $( [ "$n" = cp1 ] || echo "$coredns"); do
    [ -e "$(image_file "$name")" ] || continue
    on "$n" sh -c 'cat >/var/tmp/image.tar && ctr -n k8s.io images import /var/tmp/image.tar && rm /var/tmp/image.tar' <"$(image_file "$name")" >"$work/import" 2>&1 || { cat "$work/import"; return 1; }
  done
}
# The units, in the NodeSpec's order. The runtime comes first, because images must be in it before a kubelet looks.
units_prepare() {
  local n=$1 u
  on "$n" systemctl daemon-reload
  for u in $(spec "$n" unit 'select(flag("disable")) | .name'); do on "$n" systemctl --quiet mask --now "$u"; done
  for u in $(spec "$n" unit 'select(flag("enable")) | .name'); do on "$n" systemctl --quiet enable "$u"; done
  on "$n" systemctl start containerd.service
}
units_start() {
  local units
  mapfile -t units < <(spec "$1" unit 'select(flag("start")) | .name')
  on "$1" systemctl start --no-block "${units[@]}"
}

# --- what is looked at ----------------------------------------------------------------------------------------------
node_ready() { [ "$(kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
active() { on "$1" systemctl is-active "$2"; }
fabric_up() { active "$1" flanneld.service && on "$1" test -s /run/flannel/subnet.env; }
fetch() { kubectl exec "$1" -- /probe get "$2" "$3"; }
answers() { [ "$(fetch "$1" "$2" 8080)" = "$3" ]; }
host_answers() { on "$1" curl -sf --max-time 5 "http://$2/" | grep -q '^web-'; }
boot_id() { kubectl get node "$1" -o 'jsonpath={.status.nodeInfo.bootID}'; }
rebooted() { local id; id=$(boot_id "$1") && [ -n "$id" ] && [ "$id" != "$2" ]; }
rolled_out() { kubectl rollout status "$@" --timeout=5s; }

# --- the run --------------------------------------------------------------------------------------------------------
for tool in jq musl-gcc systemd-nspawn mmdebstrap; do command -v $tool >/dev/null || { echo "by-hand: $tool is not installed" >&2; exit 1; }; done
[ "$(id -u)" = 0 ] || { echo "by-hand: needs root, for machines" >&2; exit 1; }
[ -x "$SLIPWAY" ] || { echo "by-hand: $SLIPWAY is not built" >&2; exit 1; }
exec 9>"/var/tmp/slipway-$SLIPWAY_SET.lock"
flock -n 9 || { echo "by-hand: another run is at work; waiting for it" >&2; flock 9; }
find /var/tmp -maxdepth 1 -user root -type d -name "slipway-$SLIPWAY_SET.??????" -exec rm -rf {} + # of a killed run
work=$(mktemp -d "/var/tmp/slipway-$SLIPWAY_SET.XXXXXX")
coredns=slipway.test/coredns:1
trap finish EXIT
trap 'exit 1' INT TERM HUP

{ machine stop --all
  for n in "${NODES[@]}"; do machine start "$n" "${ADDRESS[$n]}"; done; } 9>&-
facts >"$work/facts.json"
cluster >"$work/cluster.yaml"
check "the cluster's files are rendered" "$SLIPWAY" render --format files --secrets --state "$work/state" --facts "$work/facts.json" -d "$work/nodes" -f "$work/cluster.yaml"
images
say "images are packed"
for n in "${NODES[@]}"; do
  users "$n"
  put_files "$n"
  put_artifacts "$n"
  check "$n: its packages are there" packages "$n" || true
  sysctls "$n"
  check "$n: units are known and the runtime runs" units_prepare "$n"
  check "$n: images are in the runtime" put_images "$n"
done

begin=$EPOCHREALTIME
for n in "${NODES[@]}"; do units_start "$n"; done
say "all units are told to start"
until_ok "the API is ready" kubectl get --raw /readyz
kubectl apply -f - <"$here/manifests/rbac.yaml" >/dev/null
for n in "${NODES[@]}"; do until_ok "$n is Ready" node_ready "$n"; done
say "both nodes Ready $(since "$begin") after the units were started"
for n in "${NODES[@]}"; do
  until_ok "$n: the fabric runs" fabric_up "$n"
  until_ok "$n: kube-proxy runs" active "$n" kube-proxy.service
done
say "the fabric runs on both $(since "$begin") after the units were started"

kubectl apply -f - <"$here/manifests/web.yaml" >/dev/null
sed "s|@IMAGE@|$coredns|; s|@ADDRESS@|$DNS|" "$here/manifests/dns.yaml.in" | kubectl apply -f - >/dev/null
until_ok "a deployment rolls out" rolled_out deployment/web
pod() { kubectl get pods -l app=web --field-selector "spec.nodeName=$1" -o "jsonpath={.items[0]$2}"; }
a=$(pod cp1 .metadata.name) a_ip=$(pod cp1 .status.podIP) b=$(pod w1 .metadata.name) b_ip=$(pod w1 .status.podIP)
service=$(kubectl get service web -o 'jsonpath={.spec.clusterIP}')
until_ok "cp1's pod reaches w1's pod by its address" answers "$a" "$b_ip" "$b"
until_ok "w1's pod reaches cp1's pod by its address" answers "$b" "$a_ip" "$a"
for n in "${NODES[@]}"; do until_ok "$n reaches the service by its address" host_answers "$n" "$service"; done
for p in "$a" "$b"; do until_ok "$p reaches the service by its address" fetch "$p" "$service" 80; done
for p in "$a" "$b"; do check "logs of $p" grep -q "serving as $p" <(kubectl logs "$p") || true; done
for p in "$a" "$b"; do check "exec in $p" test "$(kubectl exec "$p" -- /probe name)" = "$p" || true; done
until_ok "DNS rolls out" rolled_out -n kube-system deployment/coredns
for p in "$a" "$b"; do until_ok "$p reaches the service by its name" fetch "$p" web.default 80; done

# Everything comes back by itself after a power failure: of the worker, then of the control plane.
for n in w1 cp1; do
  before=$(boot_id "$n")
  machine reset "$n" 9>&-
  until_ok "$n has booted again" rebooted "$n" "$before"
  until_ok "$n is Ready again" node_ready "$n"
  until_ok "$n: the fabric runs again" fabric_up "$n"
done
for p in "$a" "$b"; do until_ok "$p answers again" fetch "$p" web.default 80; done
