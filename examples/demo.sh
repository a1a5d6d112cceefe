#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From annotation to address to ping: the embedded stack, real AdmissionReviews, and the real bridge plugin with
# `ipam.type: berth` in network namespaces of its own. Cleans up after itself, and after one that was killed. Without root, or where there are no
# network namespaces, the same runs through the IPAM plugin alone.
set -euo pipefail
cd "$(dirname "$0")/.."

berthctl=build/berthctl
. examples/leftovers.sh
remove_leftovers
tag=$$
dir=$(mktemp -d "${TMPDIR:-/tmp}/brt$tag-XXXXXX")
stack=
namespaces=()
export BERTH_DATA=$dir/data BERTH_SOCKET=$dir/agent.sock

cleanup() {
  for ns in "${namespaces[@]}"; do ip netns del "$ns" 2>/dev/null || true; done
  ip link del "brt$tag" 2>/dev/null || true
  if [ -n "$stack" ]; then kill "$stack" 2>/dev/null && wait "$stack" 2>/dev/null || true; fi
  rm -rf "$dir"
}
trap cleanup EXIT

bold= plain=
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
run() { printf '$ %s\n' "$*"; "$@"; }
fail() { echo "demo failed: $*" >&2; tail -n 5 "$dir/log" >&2 || true; exit 1; }

# network on: root, Linux, a bridge plugin and network namespaces that work
network=yes
if [ "$(uname -s)" != Linux ] || [ "$(id -u)" -ne 0 ]; then
  network=no; why="it needs root on Linux"
elif [ ! -x /usr/lib/cni/bridge ] && [ ! -x /opt/cni/bin/bridge ]; then
  network=no; why="there is no bridge plugin (Debian: containernetworking-plugins)"
elif ! ip netns add "brt$tag-probe" 2>/dev/null; then
  network=no; why="network namespaces cannot be made here"
else
  ip netns del "brt$tag-probe"
fi
bridge=/usr/lib/cni/bridge; [ -x "$bridge" ] || bridge=/opt/cni/bin/bridge
cnipath="$(dirname "$bridge"):$PWD/build"
netconf() { printf '{"cniVersion":"1.0.0","name":"demo","type":"bridge","bridge":"brt%s","ipam":{"type":"berth"}}' "$tag"; }

# cni VERB POD CONTAINER: what a container runtime does for one sandbox
cni() {
  local plugin=$bridge
  [ $network = yes ] || plugin=build/berth
  netconf | CNI_COMMAND=$1 CNI_CONTAINERID=$3 CNI_NETNS=/run/netns/brt$tag-$2 CNI_IFNAME=eth0 CNI_PATH=$cnipath \
    CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=$2;K8S_POD_INFRA_CONTAINER_ID=$3" "$plugin"
}
address_of() { grep -o '"address": *"[^"]*"' | cut -d'"' -f4 | paste -s -d ' ' -; }

# start POD CONTAINER: makes a namespace and attaches it, prints what the pod was given
start() {
  if [ $network = yes ]; then
    ip netns add "brt$tag-$1"; namespaces+=("brt$tag-$1")
    ip netns exec "brt$tag-$1" ip link set lo up
  fi
  printf '  %-10s container %-10s -> ' "$1" "$2"
  cni ADD "$1" "$2" >"$dir/answer" || fail "$(cat "$dir/answer")"
  address_of <"$dir/answer"
}
stop() {
  cni DEL "$1" "$2" || fail "DEL $1"
  if [ $network = yes ]; then ip netns del "brt$tag-$1"; fi
}

[ $network = yes ] || echo "without real interfaces: $why; the IPAM plugin alone is run"

say "start the stack: webhook, allocator and agent in one process on one SQLite file"
echo "$ berthctl up --data DIR &"
mkfifo "$dir/ready"
$berthctl up --data "$BERTH_DATA" --socket "$BERTH_SOCKET" >"$dir/ready" 2>"$dir/log" &
stack=$!
read -r -t 30 line <"$dir/ready" || fail "the stack did not start"
echo "$line"

say "pools, pods and a StatefulSet, as one would give them to kubectl"
run $berthctl apply -f examples/pools.yaml -f examples/pods.yaml -f examples/statefulset.yaml

say "the runtime starts their sandboxes; the bridge plugin asks Berth for addresses"
start licence c1
start ledger c2
start mysql-0 c3

if [ $network = yes ]; then
  say "ledger pings licence and mysql-0 over their pinned addresses"
  for to in 10.20.0.51 10.20.0.71; do
    ip netns exec "brt$tag-ledger" ping -q -c 2 -i 0.2 -W 2 "$to" | sed -n '4p' | sed "s/^/  $to: /"
  done
fi

say "mysql-0 dies and comes back in another sandbox: it has its address again"
stop mysql-0 c3
start mysql-0 c4
grep -q 10.20.0.71/24 "$dir/answer" || fail "mysql-0 came back as $(address_of <"$dir/answer")"

say "a pod that wants an address that is taken is refused, before it exists"
if run $berthctl apply -f examples/refused/conflict.yaml; then fail "the conflict was not refused"; fi

say "who holds what"
run $berthctl get claims -A
run $berthctl who 10.20.0.71

say "stop the sandboxes and check the records"
for pod in licence:c1 ledger:c2 mysql-0:c4; do stop "${pod%:*}" "${pod#*:}"; done
run $berthctl check
kill "$stack"; wait "$stack" || fail "the stack did not stop cleanly"
stack=
say "done"
