// SPDX-License-Identifier: Apache-2.0
// sbom.mjs: prints what an image of this checkout is made of, as CycloneDX: the packages of packages.cdx.json, Node.js, the
// libraries of this host and of the CNI plugin. The same bytes for the same parts. Plain JavaScript, for any Node.js that builds.
// ARCH: x64 or arm64, if it is not this machine's; DEBS: then the folder of Debian's packages that scripts/cross-parts.sh took.
// sbom.mjs --write: has `npm sbom` tell packages.cdx.json anew from the lock; a test holds the two together.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const arch = process.env.ARCH || process.arch;
const read = (name) => JSON.parse(readFileSync(join(ROOT, name), "utf8"));
const { name, version, description } = read("package.json");
const run = (command, ...args) => {
  const options = { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "ignore"] };
  return execFileSync(command, args, options);
};

const debs = process.env.DEBS;
const fileOf = (wanted) => join(debs, readdirSync(debs).find((file) => file.startsWith(`${wanted}_`)));

/** As Debian has it installed here, or as it was taken; nothing where it has not. */
function debianPackage(wanted, what) {
  try {
    const format = "${source:Package} ${Version} ${Architecture}";
    const told = debs
      ? run("dpkg-deb", "--show", `--showformat=${format}`, fileOf(wanted))
      : run("dpkg-query", "--show", `--showformat=${format}`, wanted);
    const [source, number, machine] = told.split(" ");
    const purl = `pkg:deb/debian/${wanted}@${encodeURIComponent(number)}?arch=${machine}`;
    return [{ type: "library", "bom-ref": purl, name: wanted, version: number, purl, description: `${what} (source ${source})` }];
  } catch {
    return [];
  }
}

/** Without what differs from run to run. */
function packagesOfLock() {
  // not --omit=dev, which leaves out what development needs as well
  const told = run("npm", "sbom", "--sbom-format=cyclonedx", "--package-lock-only");
  const { serialNumber: _serial, ...sbom } = JSON.parse(told);
  const { timestamp: _timestamp, tools: _tools, ...metadata } = sbom.metadata;
  const locked = Object.entries(read("package-lock.json").packages);
  const nameOf = (path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const running = new Set(locked.filter(([, { dev }]) => !dev).map(([path, one]) => `${nameOf(path)}@${one.version}`));
  const components = sbom.components.filter((one) => running.has(`${one.name}@${one.version}`));
  const refs = new Set([sbom.metadata.component["bom-ref"], ...components.map((one) => one["bom-ref"])]);
  const dependencies = sbom.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }));
  return { ...sbom, components, dependencies, metadata: { ...metadata, component: { ...metadata.component, type: "application", name, version, description } } };
}

const PACKAGES = "scripts/packages.cdx.json";
if (process.argv[2] === "--write") {
  writeFileSync(join(ROOT, PACKAGES), `${JSON.stringify(packagesOfLock())}\n`);
  process.exit();
}

const made = read(PACKAGES);
const isInImage = (component) =>
  !/^(@types\/.*|undici-types)$/.test(component.name) &&
  (!component.name.startsWith("node-linux-") || component.name === `node-linux-${arch}`);
const system = [
  ...debianPackage("libc6", "loaded by Node.js"),
  ...debianPackage("libstdc++6", "loaded by Node.js"),
  ...debianPackage("libgcc-s1", "loaded by Node.js"),
  ...debianPackage("musl-dev", "linked into the CNI plugin"),
];
const packages = made.components.filter(isInImage).map((component) =>
  component.name.startsWith("node-linux-")
    ? { ...component, type: "platform", scope: "required", cpe: `cpe:2.3:a:nodejs:node.js:${component.version}:*:*:*:*:*:*:*` }
    : component,
);
const components = [...packages, ...system];
const root = made.metadata.component["bom-ref"];
const known = new Set([root, ...components.map((component) => component["bom-ref"])]);
const dependencies = made.dependencies
  .filter(({ ref }) => known.has(ref))
  .map(({ ref, dependsOn = [] }) => {
    const own = ref === root ? system.map((component) => component["bom-ref"]) : [];
    return { ref, dependsOn: [...dependsOn.filter((one) => known.has(one)), ...own] };
  });
const document = { ...made, components, dependencies };
const hex = createHash("sha256").update(JSON.stringify(document)).digest("hex");
const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
process.stdout.write(`${JSON.stringify({ ...document, serialNumber: `urn:uuid:${uuid}` })}\n`);
