// SPDX-License-Identifier: Apache-2.0
// node advisories.mjs LOCK ALL.ZIP: compares every version of a package-lock.json with the OSV database of npm, as
// https://osv-vulnerabilities.storage.googleapis.com/npm/all.zip serves it. Exits with 1 when one is affected, and with 2 when nothing
// was compared. It needs nothing but Node.js, of whatever version a host has.
import { readFileSync } from "node:fs";
import { inflateRawSync } from "node:zlib";

const [lockFile = "package-lock.json", database = ""] = process.argv.slice(2);

/** Name -> versions of everything that the lock has. */
function locked() {
  const versions = new Map();
  for (const [path, { name, version, link }] of Object.entries(JSON.parse(readFileSync(lockFile, "utf8")).packages)) {
    if (path === "" || version === undefined || link === true) continue;
    const called = name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    versions.set(called, (versions.get(called) ?? new Set()).add(version));
  }
  return versions;
}

/** The files of an archive, which may have more than 65,535. */
function* filesOf(zip) {
  const end = zip.lastIndexOf(Buffer.from("PK\x05\x06", "latin1"));
  if (end < 0) throw new Error("it is no zip archive");
  let count = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  if (count === 0xffff || at === 0xffffffff) {
    const large = Number(zip.readBigUInt64LE(end - 20 + 8));
    count = Number(zip.readBigUInt64LE(large + 32));
    at = Number(zip.readBigUInt64LE(large + 48));
  }
  for (let n = 0; n < count; n++) {
    if (zip.readUInt32LE(at) !== 0x02014b50) throw new Error("its directory is damaged");
    const [method, size] = [zip.readUInt16LE(at + 10), zip.readUInt32LE(at + 20)];
    const local = zip.readUInt32LE(at + 42);
    const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const bytes = zip.subarray(from, from + size);
    if (method !== 0 && method !== 8) throw new Error(`it is packed by method ${method}`);
    yield method === 0 ? bytes : inflateRawSync(bytes);
    at += 46 + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
}

/** As Semantic Versioning orders them; what is built of a version counts as the version. */
function compare(a, b) {
  const [left, right] = [a, b].map((version) => {
    const [, core = "", before] = /^v?([^-+]*)(?:-([^+]*))?/.exec(version) ?? [];
    return { core: core.split(".").map(Number), before: before?.split(".") };
  });
  for (let i = 0; i < 3; i++) {
    const difference = (left.core[i] ?? 0) - (right.core[i] ?? 0);
    if (difference !== 0) return difference;
  }
  if (left.before === undefined || right.before === undefined)
    return Number(left.before === undefined) - Number(right.before === undefined);
  return comparePreReleases(left.before, right.before);
}

function comparePreReleases(left, right) {
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const [a, b] = [left[i], right[i]];
    if (a === undefined || b === undefined) return a === undefined ? -1 : 1;
    if (a === b) continue;
    const [isNumber, areNumbers] = [/^\d+$/.test(a), /^\d+$/.test(a) && /^\d+$/.test(b)];
    if (areNumbers) return Number(a) - Number(b);
    if (isNumber !== /^\d+$/.test(b)) return isNumber ? -1 : 1;
    return a < b ? -1 : 1;
  }
  return 0;
}

/** https://ossf.github.io/osv-schema/#evaluation */
function isAffected(version, { versions = [], ranges = [] }) {
  if (versions.includes(version)) return true;
  return ranges.some(({ type, events = [] }) => {
    if (type === "GIT") return false;
    let affected = false;
    const at = (event) => event.introduced ?? event.fixed ?? event.last_affected ?? event.limit;
    for (const event of [...events].sort((a, b) => (at(a) === "0" ? -1 : at(b) === "0" ? 1 : compare(at(a), at(b))))) {
      if (event.introduced !== undefined && (event.introduced === "0" || compare(version, event.introduced) >= 0))
        affected = true;
      if (event.fixed !== undefined && compare(version, event.fixed) >= 0) affected = false;
      if (event.last_affected !== undefined && compare(version, event.last_affected) > 0) affected = false;
    }
    return affected;
  });
}

function audit() {
  const versions = locked();
  const found = [];
  let records = 0;
  for (const file of filesOf(readFileSync(database))) {
    const { id, summary = "", withdrawn, affected = [] } = JSON.parse(file.toString());
    records++;
    if (withdrawn !== undefined) continue;
    for (const each of affected) {
      if (each.package?.ecosystem !== "npm") continue;
      for (const version of versions.get(each.package.name) ?? [])
        if (isAffected(version, each)) found.push(`${each.package.name} ${version}: ${id} ${summary}`.trim());
    }
  }
  if (records === 0) throw new Error("it has no record");
  return { found: [...new Set(found)].sort(), records, count: [...versions.values()].reduce((sum, { size }) => sum + size, 0) };
}

try {
  const { found, records, count } = audit();
  for (const line of found) console.log(line);
  if (found.length === 0) console.log(`none of ${count} versions of ${lockFile} is affected by one of ${records} records`);
  process.exitCode = found.length === 0 ? 0 : 1;
} catch (error) {
  console.error(`nothing was audited: ${database}: ${error.message}`);
  process.exitCode = 2;
}
