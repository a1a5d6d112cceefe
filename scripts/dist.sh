#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Leaves Berth as plain JavaScript in a folder, build/dist unless another one is given: what an image runs. Each program is
# one CommonJS script (docs/adr/0032). Node.js runs the sources as they are too, with a compiler in memory that takes 27 MB of
# every process; and what an ECMAScript module imports of `http` and `crypto` loads all that these can load: 8 MB more.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
out=$(realpath -m "${1:-$root/build/dist}")
mkdir -p "$(dirname "$out")"
made=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$made"' EXIT
node --version >/dev/null 2>&1 || PATH=$root/node_modules/.bin:$PATH
cd "$root"
# Names stay as they are, so that a stack trace can be read. The package that reads kubeconfigs is taken from node_modules by
# those who need it: no pod does. With KUBECONFIGS=inside each program has what reads them, and nothing else of that package,
# which takes a process that loads it a second of a slow processor's time: tests start hundreds of such processes.
case ${KUBECONFIGS:-outside} in
  inside) kubeconfigs=--alias:@kubernetes/client-node=$root/node_modules/@kubernetes/client-node/dist/config.js ;;
  outside) kubeconfigs=--external:@kubernetes/client-node ;;
  *) echo "KUBECONFIGS is inside or outside" >&2; exit 64 ;;
esac
node_modules/.bin/esbuild webhook/main.ts webhook/issuer/main.ts ipam-plugin/agent/main.ts cli/main.ts --outdir="$made/berth" --outbase=. \
  --bundle --platform=node --target=node24 --format=cjs --define:import.meta.dirname=__dirname "$kubeconfigs" \
  --minify-whitespace --minify-syntax --line-limit=160 --legal-comments=none --preserve-symlinks --log-level=error
echo '{"type":"commonjs"}' >"$made/berth/package.json"
rm -rf "$out"
mv "$made/berth" "$out"
