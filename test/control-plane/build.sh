#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes sure that the control plane of the API tests is there, and prints the folder of what was built here.
#   build.sh [NAME...]    default: kube-apiserver etcd kubectl
# A binary that TEST_ASSET_<NAME> names, or that lies in KUBEBUILDER_ASSETS, is not built. The rest is built once
# from the modules that go.mod pins, and kept outside the work tree by version. Lines on standard error, the
# folder on standard output.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version_of() { awk -v module="$1" '$1 == module && $2 ~ /^v/ { print $2 }' "$here/go.mod"; }
kubernetes=$(version_of k8s.io/kubernetes)
etcd=$(version_of go.etcd.io/etcd/server/v3)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/berth/control-plane/$kubernetes-etcd-$etcd

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    kube-apiserver | kube-controller-manager | kube-scheduler | kubelet | kubectl)
      echo "k8s.io/kubernetes/cmd/$1" ;;
    *)
      echo "$1 is no part of the control plane" >&2
      exit 64 ;;
  esac
}

is_there() {
  local variable=TEST_ASSET_${1^^}
  variable=${variable//-/_}
  [[ -n ${!variable:-} ]] || [[ -x ${KUBEBUILDER_ASSETS:-/nonexistent}/$1 ]] || [[ -x $folder/$1 ]]
}

# Without these kubectl finds itself too old for the server, and the server calls itself v0.0.0.
linked() {
  local package=k8s.io/component-base/version major minor
  IFS=. read -r major minor _ <<<"${kubernetes#v}"
  printf -- '-s -w -X %s=%s -X %s=%s -X %s=%s -X %s=clean' \
    "$package.gitVersion" "$kubernetes" "$package.gitMajor" "$major" "$package.gitMinor" "$minor" \
    "$package.gitTreeState"
}

half='' log='' # a binary that is not whole yet, and what was said while it was built
trap 'rm -f "$half" "$log"' EXIT

build() {
  local name=$1 package=$2 started=$SECONDS
  half=$(mktemp "$folder/.$name.XXXXXX")
  log=$(mktemp)
  if ! (cd "$here" && CGO_ENABLED=0 GOWORK=off nice -n 19 \
    go build -mod=readonly -trimpath -ldflags "$(linked)" -o "$half" "$package") >"$log" 2>&1; then
    echo "cannot build $name:" >&2
    tail -n 30 "$log" >&2
    exit 1
  fi
  chmod 755 "$half"
  mv "$half" "$folder/$name"
  rm -f "$log"
  echo "built $name in $((SECONDS - started)) s, $(($(stat -c %s "$folder/$name") / 1000000)) MB" >&2
}

if [[ $# -eq 0 ]]; then set -- kube-apiserver etcd kubectl; fi
for name in "$@"; do
  package=$(package_of "$name")
  if is_there "$name"; then continue; fi
  if ! command -v go >/dev/null; then
    echo "no $name and no go to build it: install Go 1.26, or set KUBEBUILDER_ASSETS to a folder that has it" >&2
    exit 1
  fi
  mkdir -p "$folder"
  exec {lock}>"$folder/.lock" # a second build waits for the first instead of doing its work again
  flock "$lock"
  is_there "$name" || build "$name" "$package"
  exec {lock}>&-
done
echo "$folder"
