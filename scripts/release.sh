#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Leaves in build/release what a release is: for each architecture the image's archive, the CNI plugin, berthctl as one file and
# the bill of materials; the chart, the examples, the changelog; their digests, and the provenance that says from which commit they
# were made, for whoever publishes to sign. docs/releasing.md says how. The same bytes for the same commit on the same system.
#   RELEASE_ARCHITECTURES   amd64 and arm64
#   RELEASE_OUT             the folder
#   RELEASE_BUILDER         who builds, a URI; empty: nobody is named
#   RELEASE_SOURCE          the repository, as git+https://...; empty: the commit alone is named
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
out=$(realpath -m "${RELEASE_OUT:-build/release}")
commit=$(git rev-parse HEAD)
made=$(git show --no-patch --format=%cI HEAD)
if [ -n "$(git status --porcelain)" ] && [ -z "${RELEASE_UNCLEAN:-}" ]; then
  echo "there are changes that are not committed: what is released must be what the commit is" >&2
  exit 1
fi
rm -rf "$out"
mkdir -p "$out"

case $(uname -m) in
  x86_64) here=amd64 ;;
  aarch64) here=arm64 ;;
  *) here=$(uname -m) ;;
esac

# pack NAME FOLDER PARENT: the same bytes for the same files
pack() {
  tar -cf - --exclude=demo.sh --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$3" "$2" |
    gzip -n -9 >"$out/$1"
}

for arch in ${RELEASE_ARCHITECTURES:-amd64 arm64}; do
  case $arch in
    amd64) node_arch=x64 cpu=x86_64 ;;
    arm64) node_arch=arm64 cpu=aarch64 ;;
    *) echo "nothing is released for $arch" >&2; exit 2 ;;
  esac
  plugin=$out/berth-cni-$version-linux-$arch parts= debs=
  if [ "$arch" = "$here" ]; then
    install -m 755 "${PLUGIN:-build/berth}" "$plugin"
    node=node_modules/node-linux-$node_arch/bin/node strip=strip
  else
    parts=build/cross/$arch
    bash scripts/packages.sh release
    bash scripts/cross-parts.sh "$arch" "$parts"
    make --no-print-directory -s -C ipam-plugin/client OUT="$plugin" CC="$PWD/$parts/cc"
    node=$parts/node strip=$cpu-linux-gnu-strip debs=$PWD/$parts/debs
  fi
  STRIP=$strip bash scripts/standalone.sh "$node" "$out/berthctl-$version-linux-$arch"
  ARCH=$arch PLUGIN=$plugin IMAGE_OUT=$out/berth-image-$version-linux-$arch.tar bash scripts/image.sh
  ARCH=$node_arch DEBS=$debs node scripts/sbom.mjs >"$out/berth-$version-linux-$arch.cdx.json"
done
pack "berth-chart-$version.tgz" berth charts
pack "berth-examples-$version.tgz" examples .
install -m 644 CHANGELOG.md LICENSE "$out"
(cd "$out" && sha256sum -- berth* CHANGELOG.md LICENSE >SHA256SUMS)

# https://slsa.dev/provenance/v1 in https://in-toto.io/Statement/v1; `cosign attest-blob` and `cosign attest` sign it.
node - "$out" "$version" "$commit" "$made" >"$out/provenance.json" <<'JS'
const { createHash } = require("node:crypto");
const { readFileSync } = require("node:fs");
const [out, version, commit, finishedOn] = process.argv.slice(2);
const lines = readFileSync(`${out}/SHA256SUMS`, "utf8").trim().split("\n");
const subject = lines.map((line) => line.split(/ [ *]/)).map(([sha256, name]) => ({ name, digest: { sha256 } }));
const sha256 = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
const inputs = Object.entries(packages).filter(([path, { dev, integrity }]) => path !== "" && !dev && integrity);
const material = ([path, { version: number, integrity }]) => ({
  uri: `pkg:npm/${path.slice(path.lastIndexOf("node_modules/") + 13).replace("@", "%40")}@${number}`,
  digest: { sha512: Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex") },
});
const { RELEASE_SOURCE: repository = "" } = process.env;
const source = repository === "" ? { name: "berth" } : { uri: `${repository}@${commit}` };
const statement = {
  _type: "https://in-toto.io/Statement/v1",
  subject,
  predicateType: "https://slsa.dev/provenance/v1",
  predicate: {
    buildDefinition: {
      buildType: "https://berth.dev/build/release.sh/v1",
      externalParameters: { version, commit },
      internalParameters: { packageLock: { sha256: sha256("package-lock.json") } },
      resolvedDependencies: [{ ...source, digest: { gitCommit: commit } }, ...inputs.map(material)],
    },
    runDetails: { builder: { id: process.env.RELEASE_BUILDER ?? "" }, metadata: { invocationId: commit, finishedOn } },
  },
};
process.stdout.write(`${JSON.stringify(statement, null, 1)}\n`);
JS
(cd "$out" && sha256sum -- provenance.json >>SHA256SUMS)
echo "$out:"
ls -l "$out" | awk 'NR > 1 { print $9, $5 }'
