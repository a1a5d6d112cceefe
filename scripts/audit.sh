#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares every version of package-lock.json with known advisories, and fails if one is affected. Without a network:
#   OSV_DB       a folder with the OSV database, npm/all.zip in it as https://osv-vulnerabilities.storage.googleapis.com
#                serves it (what osv-scanner keeps as osv-scanner/npm/all.zip under its cache is the same)
# Without OSV_DB the registry is asked (`npm audit`). Where neither answers nothing was audited, and it fails saying so.
set -euo pipefail
cd "$(dirname "$0")/.."

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
node scripts/advisories.mjs package-lock.json "$database/npm/all.zip"
