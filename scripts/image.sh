#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/berth-image.tar, the image of webhook and agent, which `docker load`, `podman load` and
# `ctr -n k8s.io images import` take. By default it needs neither an engine nor a registry: the root file system is the
# Node.js that the lock names by digest, with the libraries of this host that it loads, and Berth; two runs give the same bytes. With
# ENGINE=docker, podman or buildah it is built from the Dockerfile instead, with BUILD_ARGS.
#   IMAGE_OUT    the archive
#   IMAGE_NAME   the image's name, berth:<version>
#   ARCH         amd64 or arm64, if it is not this machine's: the parts come from scripts/cross-parts.sh
#   PLUGIN       the CNI plugin, built for that
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
out=$(realpath -m "${IMAGE_OUT:-build/berth-image.tar}")
name=${IMAGE_NAME:-berth:$version}
case $(uname -m) in
  x86_64) here=amd64 ;;
  aarch64) here=arm64 ;;
  *) here=$(uname -m) ;;
esac
architecture=${ARCH:-$here}
case $architecture in
  amd64) node_arch=x64 ;;
  arm64) node_arch=arm64 ;;
  *)
    echo "no image is made for $architecture" >&2
    exit 1 ;;
esac
if [ "$architecture" = "$here" ]; then
  plugin=${PLUGIN:-build/berth} node=node_modules/node-linux-$node_arch/bin/node parts=
else
  parts=$PWD/build/cross/$architecture node=build/cross/$architecture/node
  plugin=${PLUGIN:?the CNI plugin for $architecture}
fi
export TZ=UTC LC_ALL=C

from_dockerfile() {
  local build_args
  read -ra build_args <<<"--build-arg VERSION=$version ${BUILD_ARGS:-}"
  case $ENGINE in
    buildah)
      buildah build --platform "linux/$architecture" --layers=false --timestamp 0 -t "$name" "${build_args[@]}" .
      buildah push "$name" "docker-archive:$work/image.tar:$name"
      ;;
    podman)
      podman build --platform "linux/$architecture" --layers=false --timestamp 0 -t "$name" "${build_args[@]}" .
      podman save -o "$work/image.tar" "$name"
      ;;
    docker)
      SOURCE_DATE_EPOCH=0 docker build --platform "linux/$architecture" -t "$name" "${build_args[@]}" .
      docker save -o "$work/image.tar" "$name"
      ;;
    *)
      echo "ENGINE is $ENGINE; give it docker, podman or buildah, or leave it away" >&2
      exit 2
      ;;
  esac
}

# pack FOLDER NAME: a layer, the same bytes for the same files. Prints its digest.
pack() {
  chmod -R u=rwX,go=rX "$1"
  [ ! -d "$1/tmp" ] || chmod 1777 "$1/tmp" "$1/var/tmp"
  mkdir -p "$work/image/$2"
  tar -C "$1" -cf "$work/image/$2/layer.tar" --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner .
  sha256sum "$work/image/$2/layer.tar" | cut -d' ' -f1
}

by_hand() {
  local system berth
  SYSROOT=${parts:+$parts/sysroot} bash scripts/image-system.sh "$work/system" "$node"
  ARCH=$node_arch DEBS=${parts:+$parts/debs} bash scripts/image-tree.sh "$work/berth/opt/berth" "$plugin"
  system=$(pack "$work/system" system)
  berth=$(pack "$work/berth" berth)
  cat >"$work/image/config.json" <<JSON
{"architecture":"$architecture","os":"linux","created":"1970-01-01T00:00:00Z","config":{"User":"65532:65532",
"Env":["PATH=/usr/local/bin","NODE_ENV=production","BERTH_CNI_BINARY=/opt/berth/bin/berth"],"WorkingDir":"/opt/berth","Cmd":["node","--max-semi-space-size=4","--heap-growing-percent=20","webhook/main.js"],
"ExposedPorts":{"8443/tcp":{}},"Labels":{"org.opencontainers.image.title":"berth",
"org.opencontainers.image.description":"Fixed IP addresses for Kubernetes pods: webhook and node agent",
"org.opencontainers.image.licenses":"Apache-2.0","org.opencontainers.image.version":"$version"}},
"rootfs":{"type":"layers","diff_ids":["sha256:$system","sha256:$berth"]}}
JSON
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["system/layer.tar","berth/layer.tar"]}]\n' "$name" \
    >"$work/image/manifest.json"
  tar -C "$work/image" -cf "$work/image.tar" --format=gnu --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    manifest.json config.json system/layer.tar berth/layer.tar
}

mkdir -p "$(dirname "$out")"
work=$(mktemp -d "$(dirname "$out")/.image.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [ -n "${ENGINE:-}" ]; then from_dockerfile; else by_hand; fi
mv -f "$work/image.tar" "$out"
echo "$name: $out, $(($(stat -c %s "$out") / 1000000)) MB"
