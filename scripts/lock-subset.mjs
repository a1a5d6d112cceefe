// SPDX-License-Identifier: Apache-2.0
// lock-subset.mjs FOLDER: writes there a package.json and a package-lock.json of what an image is made from: the packages that
// run, Node.js, and esbuild. With those `npm ci` checks every byte. The whole lock cannot be given to it: the
// registry that it was made with has not every platform's build of the linters. Plain JavaScript, for any Node.js that builds.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const read = (name) => JSON.parse(readFileSync(join(ROOT, name), "utf8"));
const isNeeded = (name) => name === "esbuild";

const { name, version, type, dependencies, optionalDependencies, devDependencies } = read("package.json");
const lock = read("package-lock.json");
const needed = Object.fromEntries(Object.entries(devDependencies).filter(([one]) => isNeeded(one)));
const manifest = { name, version, type, private: true, dependencies, optionalDependencies, devDependencies: needed };

/** Where Node.js finds a package for one that lies in `from`. */
function find(from, wanted) {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    const path = at === "" ? `node_modules/${wanted}` : `${at}/node_modules/${wanted}`;
    if (path in lock.packages) return path;
    if (at === "") return undefined;
  }
}

const kept = new Set();
function keep(from, wanted) {
  const path = find(from, wanted);
  if (path === undefined || kept.has(path)) return;
  kept.add(path);
  const { dependencies, optionalDependencies, peerDependencies } = lock.packages[path];
  for (const one of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) keep(path, one);
}
for (const one of Object.keys({ ...dependencies, ...optionalDependencies, ...needed })) keep("", one);

const own = { name, version, dependencies, optionalDependencies, devDependencies: needed };
const rest = Object.entries(lock.packages).filter(([path]) => kept.has(path));
const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
const write = (file, value) => writeFileSync(join(folder, file), `${JSON.stringify(value, null, 2)}\n`);
write("package.json", manifest);
write("package-lock.json", { ...lock, packages: { "": own, ...Object.fromEntries(rest) } });
