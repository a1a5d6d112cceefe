#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares every version of package-lock.json with known advisories, and fails if one is affected. Without a network:
#   OSV_DB       a folder with the OSV database, npm/all.zip in it as https://osv-vulnerabilities.storage.googleapis.com
#                serves it (the folder osv-scanner itself keeps: osv-scanner/npm/all.zip under its cache is the same)
#   OSV_SCANNER  the program; else osv-scanner of PATH, else it is built from its Go module
# Without OSV_DB the registry is asked (`npm audit`). Where neither answers nothing was audited, and it fails saying so.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v2.3.3

if [ -z "${OSV_DB:-}" ]; then
  code=0
  told=$(npm audit --package-lock-only --json 2>/dev/null) || code=$?
  if ! node -e 'process.exit(JSON.parse(process.argv[1]).auditReportVersion ? 0 : 1)' "$told" 2>/dev/null; then
    echo "nothing was audited: the registry answers no \`npm audit\`; give OSV_DB a folder with npm/all.zip" >&2
    exit 2
  fi
  [ "$code" -eq 0 ] || npm audit --package-lock-only || true
  [ "$code" -ne 0 ] || echo "no version of package-lock.json has a known advisory, says the registry"
  exit "$code"
fi

database=$(realpath "$OSV_DB")
[ -s "$database/npm/all.zip" ] || {
  echo "nothing was audited: $database/npm/all.zip is not there" >&2
  exit 2
}
scanner=${OSV_SCANNER:-$(command -v osv-scanner || true)}
if [ -z "$scanner" ]; then
  scanner=$PWD/build/osv-scanner-$version
  [ -x "$scanner" ] || {
    echo "building osv-scanner $version" >&2
    GOBIN=$PWD/build go install "github.com/google/osv-scanner/v2/cmd/osv-scanner@$version"
    mv build/osv-scanner "$scanner"
  }
fi
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
mkdir "$cache/osv-scanner"
ln -s "$database/npm" "$cache/osv-scanner/npm"
OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY=$cache "$scanner" scan source --offline-vulnerabilities --lockfile package-lock.json
