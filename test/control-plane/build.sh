#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes sure that the control plane of the API tests is there, and prints the folder of what was built here.
#   build.sh [NAME...]    default: kube-apiserver etcd kubectl helm
# A binary that TEST_ASSET_<NAME> names, or that lies in KUBEBUILDER_ASSETS, is not built. The rest is built once
# from the modules that go.mod pins, and kept outside the work tree by version. Helm, cert-manager and kube-score, which
# need a Kubernetes of their own, and the stand-in for Multus come from a go.mod of their own, as do Kubernetes' tests and what they need. Lines on standard error, the folder on standard output.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version_of() { awk -v module="$1" '{ sub(/^require /, "") } $1 == module && $2 ~ /^v/ { print $2 }' "$here/${2:-go.mod}"; }
kubernetes=$(version_of k8s.io/kubernetes)
etcd=$(version_of go.etcd.io/etcd/server/v3)
helm=$(version_of helm.sh/helm/v3 helm/go.mod)
issuer=$(version_of github.com/cert-manager/cert-manager cert-manager/go.mod)
score=$(version_of github.com/zegl/kube-score kube-score/go.mod)
libcni=$(version_of github.com/containernetworking/cni meta-plugin/go.mod)
# A service has no HOME: as Node.js, which looks there for what is built, and for go.
HOME=${HOME-$(getent passwd "$(id -u)" | cut -d: -f6)}
export HOME
folder=${XDG_CACHE_HOME:-$HOME/.cache}/berth/control-plane/$kubernetes-etcd-$etcd

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    kube-apiserver | kube-controller-manager | kube-scheduler | kubelet | kubectl)
      echo "k8s.io/kubernetes/cmd/$1" ;;
    kube-proxy) echo k8s.io/kubernetes/cmd/kube-proxy ;;
    agnhost) echo k8s.io/kubernetes/test/images/agnhost ;;
    e2e.test) echo k8s.io/kubernetes/test/e2e ;;
    helm) echo helm.sh/helm/v3/cmd/helm ;;
    cert-manager | meta-plugin) echo . ;;
    kube-score) echo github.com/zegl/kube-score/cmd/kube-score ;;
    *)
      echo "$1 is no part of the control plane" >&2
      exit 64 ;;
  esac
}

# Under which name it lies in the folder. What is no part of the folder's name is part of this one; the name is a link.
file_of() {
  case $1 in
    helm) echo "helm-$helm" ;;
    kube-score) echo "kube-score-$score" ;;
    cert-manager) echo "cert-manager-$issuer-$(cksum <"$here/cert-manager/main.go" | cut -d' ' -f1)" ;;
    meta-plugin) echo "meta-plugin-$libcni-$(cksum <"$here/meta-plugin/main.go" | cut -d' ' -f1)" ;;
    *) echo "$1" ;;
  esac
}

is_there() {
  local variable=TEST_ASSET_${1^^}
  variable=${variable//[-.]/_}
  [[ -n ${!variable:-} ]] || [[ -x ${KUBEBUILDER_ASSETS:-/nonexistent}/$1 ]] ||
    [[ $folder/$1 -ef $folder/$(file_of "$1") ]]
}

# Without these kubectl finds itself too old for the server, the server calls itself v0.0.0, and helm renders for 1.20.
linked() {
  local package=k8s.io/component-base/version major minor
  if [[ $1 == cert-manager || $1 == kube-score || $1 == meta-plugin ]]; then
    printf -- '-s -w'
    return
  fi
  if [[ $1 == helm ]]; then
    IFS=. read -r _ minor _ <<<"$(version_of k8s.io/client-go helm/go.mod)"
    printf -- '-s -w -X %s/internal/version.version=%s' helm.sh/helm/v3 "$helm"
    for package in pkg/lint/rules pkg/chartutil; do
      printf -- ' -X %s/%s.k8sVersionMajor=1 -X %s/%s.k8sVersionMinor=%s' \
        helm.sh/helm/v3 "$package" helm.sh/helm/v3 "$package" "$minor"
    done
    return
  fi
  IFS=. read -r major minor _ <<<"${kubernetes#v}"
  printf -- '-s -w -X %s=%s -X %s=%s -X %s=%s -X %s=clean' \
    "$package.gitVersion" "$kubernetes" "$package.gitMajor" "$major" "$package.gitMinor" "$minor" \
    "$package.gitTreeState"
}

# The folder of the go.mod that pins it.
module_of() {
  case $1 in
    kube-proxy | agnhost | e2e.test) echo "$here/conformance" ;;
    *) if [[ -d $here/$1 ]]; then echo "$here/$1"; else echo "$here"; fi ;;
  esac
}

half='' log='' # a binary that is not whole yet, and what was said while it was built
trap 'rm -f "$half" "$log"' EXIT

build() {
  local name=$1 package=$2 started=$SECONDS module file command=(build)
  file=$(file_of "$name")
  module=$(module_of "$name")
  if [[ $name == *.test ]]; then command=(test -c); fi
  rm -f "$folder/.$name."* # of one that was killed: whoever has the lock is the only one
  half=$(mktemp "$folder/.$name.XXXXXX")
  log=$(mktemp "$folder/.$name.XXXXXX")
  if ! (cd "$module" && CGO_ENABLED=0 GOWORK=off nice -n 19 \
    go "${command[@]}" -mod=readonly -trimpath -ldflags "$(linked "$name")" -o "$half" "$package") >"$log" 2>&1; then
    echo "cannot build $name:" >&2
    tail -n 30 "$log" >&2
    exit 1
  fi
  chmod 755 "$half"
  mv "$half" "$folder/$file"
  if [[ $file != "$name" ]]; then ln -sfn "$file" "$folder/$name"; fi
  rm -f "$log"
  echo "built $name in $((SECONDS - started)) s, $(($(stat -c %s "$folder/$file") / 1000000)) MB" >&2
}

if [[ $# -eq 0 ]]; then set -- kube-apiserver etcd kubectl helm; fi
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
