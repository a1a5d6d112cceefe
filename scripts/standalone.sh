#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# standalone.sh NODE OUT: makes OUT, berthctl as one executable: that Node.js, without its symbols, with cli/main.ts and all
# that it imports as one script inside (docs/adr/0019). It runs where there is neither a checkout nor Node.js. The same bytes
# for the same sources.
#   STRIP   the program for NODE's architecture, strip
set -euo pipefail
node=$(realpath "$1") out=$(realpath -m "$2")
cd "$(dirname "$0")/.."
tools=$PWD/node_modules/.bin
export PATH=$tools:$PATH
work=$(mktemp -d "$(dirname "$out")/.standalone.XXXXXX")
trap 'rm -rf "$work"' EXIT

esbuild cli/main.ts --bundle --platform=node --target=node24 --format=cjs --minify-whitespace --legal-comments=none \
  --log-level=error --outfile="$work/berthctl.cjs"
# Without compiled code inside: it would start in 50 ms of processor time instead of 100, but no two builds would be the same.
cat >"$work/sea.json" <<JSON
{"main": "berthctl.cjs", "output": "berthctl.blob", "disableExperimentalSEAWarning": true, "useCodeCache": false,
"execArgv": ["--max-semi-space-size=4"], "execArgvExtension": "none"}
JSON
(cd "$work" && "$tools/node" --experimental-sea-config sea.json >/dev/null 2>&1)
"${STRIP:-strip}" -o "$work/berthctl" "$node"
# It warns of a section that has no name; whether the script is inside is seen by running it.
postject "$work/berthctl" NODE_SEA_BLOB "$work/berthctl.blob" \
  --sentinel-fuse NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2 >"$work/postject.log" 2>&1 || { cat "$work/postject.log" >&2; exit 1; }
chmod 755 "$work/berthctl"
mv -f "$work/berthctl" "$out"
