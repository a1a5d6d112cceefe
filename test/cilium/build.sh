#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes sure that test/cilium/agent is there, Cilium's own code of an agent's and an operator's addresses, and prints its path. It is built once from the module
# that go.mod pins (five minutes of a processor), and kept outside the work tree by version. Nothing in CI builds it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(awk '$2 == "github.com/cilium/cilium" { print $3 } $1 == "github.com/cilium/cilium" { print $2 }' "$here/go.mod" | head -n 1)
# A service has no HOME: as Node.js, which looks there for what is built.
HOME=${HOME-$(getent passwd "$(id -u)" | cut -d: -f6)}
export HOME
folder=${XDG_CACHE_HOME:-$HOME/.cache}/berth/cilium
file=$folder/agent-$version-$(cat "$here"/agent/*.go | cksum | cut -d' ' -f1)
if [[ ! -x $file ]]; then
  mkdir -p "$folder"
  half=$(mktemp "$folder/.agent.XXXXXX")
  trap 'rm -f "$half"' EXIT
  (cd "$here" && CGO_ENABLED=0 GOWORK=off nice -n 19 go build -mod=readonly -trimpath -ldflags '-s -w' -o "$half" ./agent) >&2
  chmod 755 "$half"
  rm -f "$folder/agent-$version-"* # of another state of the sources
  mv "$half" "$file"
fi
echo "$file"
