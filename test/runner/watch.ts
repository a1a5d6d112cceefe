// SPDX-License-Identifier: Apache-2.0
// Passes tests again when a file changes: those that import it, by whatever way.
import { type FSWatcher, globSync, readdirSync, readFileSync, statSync, watch as watchFolder } from "node:fs";
import { dirname, join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ROOT } from "./files.ts";
import type { Asked } from "./outcome.ts";

const FOLDERS = ["allocator", "cli", "ipam-plugin", "kube", "scripts", "system", "test", "webhook"];
/** An editor writes a file in several steps. */
const SETTLE_MS = 100;
const IMPORT = /(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/** Until `pass` says that it was interrupted. `asked`: read anew each time, as there may be new files. */
export async function watch(
  asked: () => readonly Asked[],
  pass: (some: readonly Asked[]) => Promise<{ readonly isInterrupted: boolean }>,
  root = ROOT,
): Promise<void> {
  const sources = new Sources(root, FOLDERS);
  try {
    let isOver = (await pass(asked())).isInterrupted;
    while (!isOver) {
      const affected = importersOf(await sources.changed(), root);
      const some = asked()
        .map((one) => ({ ...one, files: one.files.filter((file) => affected.has(file)) }))
        .filter(({ files }) => files.length > 0);
      if (some.length > 0) isOver = (await pass(some)).isInterrupted;
    }
  } finally {
    sources.close();
  }
}

/**
 * Every TypeScript file below some folders. The kernel's word is only that something happened in a folder: which files
 * are others than before is seen by looking, as one that is replaced is not the one that was watched.
 */
export class Sources {
  readonly #root: string;
  readonly #folders: readonly string[];
  /** folder -> what watches it */
  readonly #watchers = new Map<string, { readonly watcher: FSWatcher; readonly which: string }>();
  /** file -> what changes with it */
  #marks: ReadonlyMap<string, string>;
  #wake = () => {};
  #isAwake = false;

  constructor(root: string, folders: readonly string[]) {
    this.#root = root;
    this.#folders = folders;
    this.#marks = this.#look();
  }

  /** Waits until files are new, others or gone. */
  async changed(): Promise<ReadonlySet<string>> {
    for (;;) {
      if (!this.#isAwake) await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#isAwake = false;
      await pause(SETTLE_MS);
      const [before, now] = [this.#marks, this.#look()];
      this.#marks = now;
      const either = [...new Set([...before.keys(), ...now.keys()])];
      const changed = either.filter((file) => before.get(file) !== now.get(file));
      if (changed.length > 0) return new Set(changed);
    }
  }

  close(): void {
    for (const { watcher } of this.#watchers.values()) watcher.close();
  }

  /** Watches folders before it reads them: nothing happens between. */
  #look(): ReadonlyMap<string, string> {
    const marks = new Map<string, string>();
    const seen = new Set<string>();
    const folders = [...this.#folders];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      seen.add(folder);
      this.#watch(folder);
      for (const entry of entriesOf(join(this.#root, folder))) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) folders.push(path);
        else if (path.endsWith(".ts")) marks.set(path, markOf(join(this.#root, path)));
      }
    }
    for (const [folder, { watcher }] of this.#watchers) {
      if (seen.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    return marks;
  }

  #watch(folder: string): void {
    const which = identityOf(join(this.#root, folder));
    // another one may have its name
    if (this.#watchers.get(folder)?.which === which) return;
    this.#watchers.get(folder)?.watcher.close();
    this.#watchers.delete(folder);
    const awake = () => {
      this.#isAwake = true;
      this.#wake();
    };
    try {
      const watcher = watchFolder(join(this.#root, folder), awake);
      watcher.on("error", awake);
      this.#watchers.set(folder, { watcher, which });
    } catch {
      // it is gone already
    }
  }
}

function identityOf(folder: string): string {
  const stat = statSync(folder, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "gone" : `${stat.ino} ${stat.birthtimeNs}`;
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function markOf(file: string): string {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "gone" : `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
}

/** The files themselves and all that import them. */
export function importersOf(files: ReadonlySet<string>, root = ROOT): ReadonlySet<string> {
  const importers = new Map<string, string[]>();
  for (const file of globSync(`{${FOLDERS}}/**/*.ts`, { cwd: root })) {
    for (const imported of importsOf(root, file))
      importers.set(imported, [...(importers.get(imported) ?? []), file]);
  }
  const found = new Set(files);
  for (const file of found) for (const importer of importers.get(file) ?? []) found.add(importer);
  return found;
}

function importsOf(root: string, file: string): readonly string[] {
  const folder = dirname(join(root, file));
  const matches = readIfThere(join(root, file)).matchAll(IMPORT);
  return [...matches].map(([, path = ""]) => relative(root, join(folder, path)));
}

/** What is listed may be gone a moment later. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
