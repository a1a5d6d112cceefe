#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# image-tree.sh FOLDER PLUGIN: puts together what an image holds as /opt/berth: Berth as plain JavaScript, the packages
# that production needs without what only people read, and the CNI plugin. From a checkout with its node_modules.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$1 plugin=$2
export PATH=$PWD/node_modules/.bin:$PATH

bash scripts/dist.sh "$tree"
mkdir -p "$tree/bin"
install -m 755 "$plugin" "$tree/bin/berth"
cp LICENSE "$tree"
node scripts/sbom.mjs >"$tree/sbom.cdx.json"

# The lock says which packages are there for development alone. Types are; two packages only say otherwise. Node.js
# itself goes elsewhere.
packages='
  const { packages } = JSON.parse(require("node:fs").readFileSync("package-lock.json", "utf8"));
  const needed = ([path, { dev }]) => path !== "" && !dev && !/(^|\/)(@types\/[^/]+|undici-types|node-linux-[^/]+)$/.test(path);
  for (const [path] of Object.entries(packages).filter(needed)) console.log(path);
'
node -e "$packages" | while IFS= read -r path; do
  mkdir -p "$tree/$path"
  # Packages that it brings in a node_modules of its own are in the list themselves.
  tar -C "$path" -cf - --exclude=./node_modules --exclude=./test --exclude=./tests --exclude=./specs --exclude=./docs \
    --exclude=./example --exclude=./examples --exclude=./benchmarks --exclude=./prebuilds --exclude=./browser \
    --exclude='./test*.js' --exclude='*.test.js' --exclude='*.d.ts' --exclude='*.d.mts' --exclude='*.d.cts' --exclude='*.ts' --exclude='*.map' \
    --exclude='*.md' --exclude='*.flow' --exclude='*.c' --exclude='*.h' --exclude='.[a-z]*' . | tar -C "$tree/$path" -xf -
done
find "$tree" -type d -empty -delete
