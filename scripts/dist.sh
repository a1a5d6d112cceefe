#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Leaves Berth as plain JavaScript in a folder, build/dist unless another one is given: what an image runs. Node.js runs
# the sources as they are too, with a compiler in memory that takes 27 MB of every process.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
out=${1:-$root/build/dist}
mkdir -p "$(dirname "$out")"
made=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$made"' EXIT
node --version >/dev/null 2>&1 || PATH=$root/node_modules/.bin:$PATH
"$root/node_modules/.bin/tsc" -p "$root/scripts/tsconfig.dist.json" --outDir "$made/berth"
rm -rf "$out"
mv "$made/berth" "$out"
