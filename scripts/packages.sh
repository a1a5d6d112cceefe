#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and the real-plugin tests need, or with `fuzz` those of the fuzzer, with
# `cluster` what the nodes of a cluster run, with `containers` the runtimes of hosts without Kubernetes, with `conformance`
# what Kubernetes' own tests need beside a cluster, with `release` the compiler for the other architecture, and says in one line what cannot be had.
set -u

missing=()
need() { command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || missing+=("$2"); }

# The network that podman brings is not put among those of this machine.
apt=(apt-get -y -qq --no-install-recommends -o "Dpkg::Options::=--path-exclude=/etc/cni/net.d/87-podman*")

install() {
  [ ${#missing[@]} -eq 0 ] && return
  if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
    echo "not installed: ${missing[*]} (needs root and apt-get); what depends on them says so where it is left out"
    exit 0
  fi
  echo "setting up: ${missing[*]}"
  apt-get update -qq >"$log" 2>&1
  if ! "${apt[@]}" install "${missing[@]}" >>"$log" 2>&1; then
    for package in "${missing[@]}"; do
      "${apt[@]}" install "$package" >>"$log" 2>&1 || echo "could not install $package"
    done
  fi
  missing=()
}

export DEBIAN_FRONTEND=noninteractive
# one after another: whoever finds apt's lock taken gives up
build=$(dirname "$0")/../build
mkdir -p "$build"
if command -v flock >/dev/null 2>&1; then exec 9>"$build/.packages.lock" && flock 9; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ "${1:-}" = fuzz ]; then
  need clang clang
  install
  # The runtime comes in a package of the compiler's own version.
  if command -v clang >/dev/null 2>&1; then
    version=$(clang -dumpversion)
    need "$(clang -print-resource-dir)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" "libclang-rt-${version%%.*}-dev"
    install
  fi
elif [ "${1:-}" = release ]; then
  need openssl openssl
  case $(uname -m) in
    x86_64)
      need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
      need qemu-aarch64 qemu-user # what was made for arm64 is tried
      ;;
    *) need x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu ;;
  esac
  install
elif [ "${1:-}" = cluster ]; then
  need containerd containerd
  need runc runc
  need /bin/busybox busybox-static
  need nsenter util-linux
  need ip iproute2
  need /usr/lib/cni/macvlan containernetworking-plugins
  install
elif [ "${1:-}" = conformance ]; then
  need curl curl
  need iptables iptables
  install
elif [ "${1:-}" = containers ]; then
  need containerd containerd
  need runc runc
  need /bin/busybox busybox-static
  need nsenter util-linux
  need podman podman
  install
else
  need musl-gcc musl-tools
  need make make
  need ip iproute2
  need ping iputils-ping
  need runc runc
  need /usr/lib/cni/bridge containernetworking-plugins
  need /usr/sbin/nft nftables # the firewall of docs/hardening.md is tried
  install
fi
exit 0
