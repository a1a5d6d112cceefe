#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# image-system.sh ROOT NODE: makes in ROOT what Berth's image has of an operating system: that Node.js, the libraries that
# it loads, from the packages of its machine's kind that are installed here, and the names of two users. Nothing of it is run.
#   SYSROOT   where such packages are unpacked, if they are not installed
set -euo pipefail
root=$1 node=$2 from=${SYSROOT:-}
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$(dirname "$0")/../package.json")

mkdir -p "$root"/{dev,etc,home/berth,proc,run,sys,tmp,usr/local/bin,var/lib,var/tmp}
install -m 755 "$node" "$root/usr/local/bin/node"
case $(readelf --file-header "$node") in
  *X86-64*) triple=x86_64-linux-gnu ;;
  *AArch64*) triple=aarch64-linux-gnu ;;
  *)
    echo "$node is for a machine that no image is made for" >&2
    exit 1 ;;
esac

# Libraries lie where the loader of any distribution looks first.
declare -A taken
take() {
  local file=$1 name folder
  for name in $(readelf --dynamic "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [ -z "${taken[$name]:-}" ] || continue
    taken[$name]=yes
    for folder in /lib /usr/lib; do
      [ ! -e "$from$folder/$triple/$name" ] || break
    done
    mkdir -p "$root/lib/$triple"
    cp -L "$from$folder/$triple/$name" "$root/lib/$triple/$name"
    take "$root/lib/$triple/$name"
  done
}
take "$node"
loader=$(readelf --program-headers "$node" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
mkdir -p "$root${loader%/*}"
cp -L "$from/lib/$triple/${loader##*/}" "$root$loader"

# Container runtimes name network namespaces by /var/run.
ln -s ../run "$root/var/run"
printf '%s\n' 'root:x:0:0:root:/:/usr/sbin/nologin' 'berth:x:65532:65532:berth:/home/berth:/usr/sbin/nologin' \
  >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'berth:x:65532:' >"$root/etc/group"
printf '%s\n' 'hosts: files dns' >"$root/etc/nsswitch.conf"
printf '%s\n' 'ID=berth' 'NAME=Berth' "VERSION_ID=$version" >"$root/etc/os-release"
