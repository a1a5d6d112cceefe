#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs cli/main.ts with the Node.js of this installation, from wherever and by whatever link it is called.
self=$0
# kubectl's plugin works on the cluster, berthctl on whatever is there: main.ts tells them apart by this.
export BERTHCTL_CALLED="${0##*/}"
while [ -h "$self" ]; do
  target=$(readlink "$self")
  case $target in
  /*) self=$target ;;
  *) self=$(dirname "$self")/$target ;;
  esac
done
root=$(cd "$(dirname "$self")/.." && pwd -P) || exit 2
node=$root/node_modules/.bin/node
if [ ! -x "$node" ]; then
  echo "Error: $node is missing; run: make -C '$root' setup" >&2
  exit 2
fi
# Where the folder can be written, Node.js keeps the code there that it has compiled: it starts in half the time.
export NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE-$root/build/compile-cache}"
# On a large host V8 would take 130 MB for what is short-lived, and keep them; 12 MB serve as many reviews.
exec "$node" --max-semi-space-size=4 "$root/cli/main.ts" "$@"
