// SPDX-License-Identifier: Apache-2.0
// Passes tests again when a file changes: those that import it, by whatever way.
import { globSync, readFileSync, watch as watchFolder } from "node:fs";
import { dirname, join, relative } from "node:path";
import { ROOT } from "./files.ts";
import type { Asked } from "./outcome.ts";

const FOLDERS = ["allocator", "cli", "ipam-plugin", "kube", "scripts", "system", "test", "webhook"];
/** An editor writes a file in several steps. */
const SETTLE_MS = 100;
const IMPORT = /(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/** Never ends. */
export async function watch(
  asked: readonly Asked[],
  pass: (some: readonly Asked[]) => Promise<boolean>,
): Promise<never> {
  const changed = new Set<string>();
  let wake = () => {};
  for (const folder of FOLDERS) {
    watchFolder(join(ROOT, folder), { recursive: true }, (_, name) => {
      if (name?.endsWith(".ts") !== true) return;
      changed.add(join(folder, name));
      wake();
    });
  }
  await pass(asked);
  for (;;) {
    if (changed.size === 0) await new Promise<void>((resolve) => (wake = resolve));
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const affected = importersOf(changed);
    changed.clear();
    const some = asked
      .map((one) => ({ ...one, files: one.files.filter((file) => affected.has(file)) }))
      .filter(({ files }) => files.length > 0);
    if (some.length > 0) await pass(some);
  }
}

/** The files themselves and all that import them. */
export function importersOf(files: ReadonlySet<string>): ReadonlySet<string> {
  const importers = new Map<string, string[]>();
  for (const file of globSync(`{${FOLDERS}}/**/*.ts`, { cwd: ROOT })) {
    for (const imported of importsOf(file))
      importers.set(imported, [...(importers.get(imported) ?? []), file]);
  }
  const found = new Set(files);
  for (const file of found) for (const importer of importers.get(file) ?? []) found.add(importer);
  return found;
}

function importsOf(file: string): readonly string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  const folder = dirname(join(ROOT, file));
  return [...text.matchAll(IMPORT)].map(([, path = ""]) => relative(ROOT, join(folder, path)));
}
