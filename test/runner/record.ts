// SPDX-License-Identifier: Apache-2.0
// A reporter of node:test that writes what the runner needs at the end, a line of JSON each.
import { resolve } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { pathToFileURL } from "node:url";
import { type Counts, type FileTime, NOTHING } from "./results.ts";

export interface FailureRecord {
  readonly kind: "failure";
  /** Absent: the name that failed is that of a file. */
  readonly file?: string;
  readonly path: readonly string[];
  readonly message: string;
  /** It was not run, or not to its end, because of something else that failed. */
  readonly isCancelled: boolean;
}

export type RunRecord =
  | FailureRecord
  | ({ readonly kind: "file" } & FileTime)
  /** A test is under way. That such lines come is how the runner knows that the tests go on. */
  | { readonly kind: "begun"; readonly file: string; readonly path: readonly string[] }
  /** A file in a process of its own that passed without a test, as far as it told. */
  | { readonly kind: "empty"; readonly file: string }
  /** A test called process.exit (exits.ts), or would leave out others (only.ts). */
  | { readonly kind: "exit"; readonly file: string; readonly message: string }
  /** It was under way when the run was ended. */
  | { readonly kind: "unfinished"; readonly file: string }
  | ({ readonly kind: "end" } & Counts);

type Data<Type extends TestEvent["type"]> = Extract<TestEvent, { type: Type }>["data"];

/** Of a kubectl table below a message, too, or of what led to a broken invariant. */
const LINES = 200;
/** Of what a file's process wrote before it failed as a whole. */
const WRITTEN_LINES = 20;
/** What node's runner says of a file whose process ended with an error. */
const NO_REASON = "test failed";
/** The files that share this process; none: each has one of its own. */
const SHARED: readonly string[] = JSON.parse(process.env["BERTH_SHARED"] ?? "[]");
const LATE = /^(?:Error|Warning): .*generated asynchronous activity after the test ended/;
const LATE_OF = /^Error: Test "(.*)" at (.*?):\d+:\d+ generated/;

// biome-ignore lint/style/noDefaultExport: node:test takes a reporter's default export
export default async function* records(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const recorder = new Recorder();
  for await (const event of events) {
    for (const record of recorder.recordsOf(event)) yield `${JSON.stringify(record)}\n`;
  }
  for (const record of recorder.times()) yield `${JSON.stringify(record)}\n`;
  if (!recorder.isThrough) return;
  for (const record of await notLoaded()) yield `${JSON.stringify(record)}\n`;
}

/**
 * Where files share a process ($BERTH_SHARED), node's runner says nothing of one that throws after its first test. Each
 * is loaded by now: to import it again gives what it threw, and runs nothing.
 */
async function notLoaded(): Promise<readonly RunRecord[]> {
  const failed: RunRecord[] = [];
  for (const file of SHARED) {
    try {
      await import(pathToFileURL(file).href);
    } catch (error) {
      failed.push({ kind: "failure", file, path: [file], message: messageOf(error), isCancelled: false });
    }
  }
  return failed;
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

class Recorder {
  /** The names of what is under way, outermost first. */
  readonly #path: string[] = [];
  /** Of files in one process: node's runner times them only together. */
  readonly #seconds = new Map<string, number>();
  /** file -> what its process wrote last, or what was said of it */
  readonly #written = new Map<string, string[]>();
  /** A run that is ended early has no summary of its own. */
  #counts: Counts = NOTHING;
  /** Passes of files, which node's runner counts as tests. */
  #empty = 0;
  isThrough = false;

  recordsOf({ type, data }: TestEvent): readonly RunRecord[] {
    switch (type) {
      case "test:dequeue":
        return data.file === undefined ? [] : [{ kind: "begun", file: data.file, path: [data.name] }];
      case "test:start":
        this.#path.length = data.nesting;
        this.#path[data.nesting] = data.name;
        return [];
      case "test:pass":
        this.#time(data);
        return this.#pass(data);
      case "test:fail":
        this.#time(data);
        this.#count(data, false);
        return this.#failure(data);
      case "test:stderr":
        this.#write(data.file, data.message);
        return [];
      case "test:diagnostic":
        return this.#diagnostic(data);
      case "test:summary":
        return this.#summary(data);
      case "test:interrupted":
        return this.#interrupted(data);
      default:
        return [];
    }
  }

  times(): readonly RunRecord[] {
    if (SHARED.length === 0) return [];
    return [...this.#seconds].map(([file, seconds]) => ({ kind: "file", file, seconds }));
  }

  #time({ nesting, file, details }: Data<"test:pass"> | Data<"test:fail">): void {
    if (nesting !== 0 || file === undefined) return;
    this.#seconds.set(file, (this.#seconds.get(file) ?? 0) + details.duration_ms / 1000);
  }

  #pass(data: Data<"test:pass">): readonly RunRecord[] {
    const { name, nesting, file } = data;
    if (nesting === 0 && file !== undefined && file === resolve(name)) {
      this.#empty++;
      return [{ kind: "empty", file }];
    }
    this.#count(data, true);
    return [];
  }

  #count({ details, skip, todo }: Data<"test:pass"> | Data<"test:fail">, isPass: boolean): void {
    if (details.type === "suite") return;
    const counts = { ...this.#counts, tests: this.#counts.tests + 1 };
    if (skip !== undefined && skip !== false) counts.skipped++;
    else if (todo !== undefined && todo !== false) counts.todo++;
    else if (isPass) counts.passed++;
    else counts.failed++;
    this.#counts = counts;
  }

  #interrupted({ tests }: Data<"test:interrupted">): readonly RunRecord[] {
    const files = new Set(tests.flatMap(({ file }) => file ?? []));
    const unfinished = [...files].map((file): RunRecord => ({ kind: "unfinished", file }));
    return [...unfinished, { kind: "end", ...this.#counts }];
  }

  #write(file: string, text: string): void {
    const lines = [
      ...(this.#written.get(resolve(file)) ?? []),
      ...text.split("\n").filter((line) => line.trim() !== ""),
    ];
    this.#written.set(resolve(file), lines.slice(-WRITTEN_LINES));
  }

  /** A test that throws after its end: node's runner ends with a failure, and names none. */
  #diagnostic({ file, message }: Data<"test:diagnostic">): readonly RunRecord[] {
    if (!LATE.test(message)) return [];
    // in a process of its own its file fails as a whole
    if (file !== undefined) {
      this.#written.set(resolve(file), [message]);
      return [];
    }
    const [, name, where] = LATE_OF.exec(message) ?? [];
    const at = where === undefined ? {} : { file: where };
    return [
      { kind: "failure", ...at, path: [name ?? "after the end of a test"], message, isCancelled: false },
    ];
  }

  #failure({ name, nesting, file, todo, details }: Data<"test:fail">): readonly RunRecord[] {
    const { error } = details;
    const failureType = "failureType" in error ? error.failureType : undefined;
    // a suite fails with its tests; and what is still to be done may fail
    if (failureType === "subtestsFailed" || (todo !== undefined && todo !== false)) return [];
    const said = messageOf(error.cause ?? error);
    const whole = said === NO_REASON ? (this.#written.get(resolve(file ?? ""))?.join("\n") ?? said) : said;
    const message = whole.split("\n").slice(0, LINES).join("\n");
    const path = [...this.#path.slice(0, nesting), name];
    const isCancelled = failureType === "cancelledByParent";
    return [{ kind: "failure", ...(file !== undefined && { file }), path, message, isCancelled }];
  }

  #summary({ file, counts, duration_ms }: Data<"test:summary">): readonly RunRecord[] {
    if (file !== undefined) return [{ kind: "file", file, seconds: duration_ms / 1000 }];
    this.isThrough = true;
    const { suites, cancelled, skipped, todo } = counts;
    const [tests, passed] = [counts.tests - this.#empty, counts.passed - this.#empty];
    const failed = tests - passed - cancelled - skipped - todo;
    return [{ kind: "end", tests, suites, passed, failed, cancelled, skipped, todo }];
  }
}
