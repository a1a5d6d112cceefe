// SPDX-License-Identifier: Apache-2.0
// Which test is in which, and in which file, by what node's runner says when it enqueues them.
import { resolve } from "node:path";
import { takeFileOf } from "./under-way.ts";

/** The files that share this process; none: each has one of its own. */
export const SHARED: readonly string[] = JSON.parse(process.env["BERTH_SHARED"] ?? "[]");

interface Enqueued {
  readonly name: string;
  readonly type: "suite" | "test";
  readonly parent: string;
  readonly nesting: number;
  readonly file?: string | undefined;
}

/** What all events of a test have. */
interface Event {
  readonly name: string;
  readonly nesting: number;
  readonly testId?: number | undefined;
  /** Where the test is written; a contract's is not in the file that runs it. */
  readonly file?: string | undefined;
}

/** A test's number is its own in its process. */
export function keyOf(event: object, id: number | undefined): string {
  return `${entryOf(event) ?? ""} ${id ?? "none"}`;
}

/** The file of a process of its own, which node's runner adds to what such a process tells. */
function entryOf(event: object): string | undefined {
  return "entryFile" in event && typeof event.entryFile === "string" ? event.entryFile : undefined;
}

/** Whether it is a whole file, which node's runner has as a test. */
export function isOfFile(event: Event): boolean {
  if (SHARED.length === 0) return entryOf(event) === undefined;
  return event.nesting === 0 && event.file === resolve(event.name);
}

export class TestTree {
  readonly #tests = new Map<string, Enqueued>();
  /** key of a test at the top level -> the file that was given to node's runner */
  readonly #files = new Map<string, string | undefined>();

  add(event: Event & { readonly type?: "suite" | "test"; readonly parentId?: number | undefined }): void {
    const { name, nesting, type = "test", file, parentId, testId } = event;
    const key = keyOf(event, testId);
    if (this.#tests.has(key)) return;
    this.#tests.set(key, { name, nesting, type, file, parent: keyOf(event, parentId) });
    // a test at the top level is published when it is run: it is asked for later
    if (nesting === 0 && type === "suite" && SHARED.length > 0) this.#find(key);
  }

  fileOf(event: Event): string | undefined {
    const entry = entryOf(event);
    if (entry !== undefined || SHARED.length === 0) return entry ?? event.file;
    let key = keyOf(event, event.testId);
    for (let test = this.#tests.get(key); test !== undefined && test.nesting > 0; test = this.#tests.get(key))
      key = test.parent;
    return this.#find(key) ?? event.file;
  }

  #find(key: string): string | undefined {
    const top = this.#tests.get(key);
    if (top === undefined || this.#files.has(key)) return this.#files.get(key);
    const published = takeFileOf(top.type, top.name);
    const file = top.file !== undefined && SHARED.includes(top.file) ? top.file : published;
    this.#files.set(key, file);
    return file;
  }

  /** The names of a test and of what it is in, outermost first, and how many of them select it. */
  pathOf(event: Event): { readonly path: readonly string[]; readonly selects: number } {
    const chain: Pick<Enqueued, "name" | "type">[] = [];
    let key = keyOf(event, event.testId);
    for (let test = this.#tests.get(key); test !== undefined; test = this.#tests.get(key)) {
      chain.unshift(test);
      key = test.parent;
    }
    const path = chain.length === 0 ? [event.name] : chain.map(({ name }) => name);
    const outermost = chain.findIndex(({ type }) => type === "test");
    return { path, selects: outermost === -1 ? path.length : outermost + 1 };
  }
}
