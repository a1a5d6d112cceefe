// SPDX-License-Identifier: Apache-2.0
// A reporter of node:test that writes what the runner needs at the end, a line of JSON each.
import { resolve } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { pathToFileURL } from "node:url";
import { readable } from "./messages.ts";
import { placeOfUncaught } from "./rejections.ts";
import { type Counts, type FileTime, NOTHING } from "./results.ts";
import { isOfFile, keyOf, SHARED, TestTree } from "./test-tree.ts";

export interface FailureRecord {
  readonly kind: "failure";
  /** Absent: the name that failed is that of a file. */
  readonly file?: string;
  readonly path: readonly string[];
  /** How many names of the path select it: a test is there only while the one that it is in is run. */
  readonly selects: number;
  readonly message: string;
  /** It was not run, or not to its end, because of something else that failed. */
  readonly isCancelled: boolean;
}

export type RunRecord =
  | FailureRecord
  | ({ readonly kind: "file" } & FileTime)
  /** A test is under way, or no more (under-way.ts). That such lines come is how the runner knows that the tests go on. */
  | { readonly kind: "begun"; readonly file: string; readonly path: readonly string[] }
  | { readonly kind: "ended"; readonly file: string; readonly path: readonly string[] }
  /** A file in a process of its own that passed without a test, as far as it told. */
  | { readonly kind: "empty"; readonly file: string }
  /** A test called process.exit (exits.ts), or would leave out others (only.ts). */
  | { readonly kind: "exit"; readonly file: string; readonly message: string }
  /** Of a file in a process of its own, and of what that started and saw the end of. */
  | { readonly kind: "cpu"; readonly file: string; readonly seconds: number }
  /** It was under way when the run was ended. */
  | { readonly kind: "unfinished"; readonly file: string }
  /** A test was left out by itself; without words if it gave none. */
  | { readonly kind: "skipped"; readonly why: string }
  | ({ readonly kind: "end" } & Counts);

type Data<Type extends TestEvent["type"]> = Extract<TestEvent, { type: Type }>["data"];
type Passed = Data<"test:pass">;
type Failed = Data<"test:fail">;
type Completed = Data<"test:complete">;

/** Of a kubectl table below a message, too, or of what led to a broken invariant. */
const LINES = 200;
/** Of what a file's process wrote before it failed as a whole. */
const WRITTEN_LINES = 20;
/** What node's runner says of a file whose process ended with an error. */
const NO_REASON = "test failed";
const LATE = /^(?:Error|Warning): .*generated asynchronous activity after the test ended/;
const LATE_OF = /^Error: Test "(.*)" at (.*?):\d+:\d+ generated/;
const LATE_ERROR = / the error "([\s\S]*)" which triggered an /;

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
      failed.push(wholeFile(file, messageOf(error)));
    }
  }
  return failed;
}

const messageOf = (error: unknown) =>
  error instanceof Error ? error.message || `${error.name} without a message` : String(error);

const wholeFile = (file: string, message: string): FailureRecord => {
  return { kind: "failure", file, path: [file], selects: 0, message, isCancelled: false };
};

const isSkipped = (skip: Completed["skip"]) => skip !== undefined && skip !== false;

function skippedOf({ skip, details }: Completed): readonly RunRecord[] {
  if (!isSkipped(skip)) return [];
  const why = typeof skip === "string" && skip !== "" ? skip : "no reason given";
  // what is in it was not even defined: nobody knows how many tests that are
  return [
    { kind: "skipped", why: details.type === "suite" ? `${why} (a suite, with all that is in it)` : why },
  ];
}

class Recorder {
  readonly #tree = new TestTree();
  /** Of files in one process: node's runner times them only together. */
  readonly #seconds = new Map<string, number>();
  /** file -> what its process wrote last, or what was said of it */
  readonly #written = new Map<string, string[]>();
  /** What failed is told when it has ended: what is said of it in its order may come too late for a run that is ended. */
  readonly #told = new Set<string>();
  /** file -> how long it took, and why it failed as a whole, until that is said in its order */
  readonly #ended = new Map<string, readonly RunRecord[]>();
  /** A run that is ended early has no summary of its own. */
  #counts: Counts = NOTHING;
  /** Passes of files, which node's runner counts as tests. */
  #empty = 0;
  isThrough = false;

  recordsOf({ type, data }: TestEvent): readonly RunRecord[] {
    switch (type) {
      case "test:enqueue":
        this.#tree.add(data);
        return [];
      case "test:complete":
        return this.#complete(data);
      case "test:pass":
        this.#time(data);
        return this.#pass(data);
      case "test:fail":
        this.#time(data);
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

  #time(data: Passed | Failed): void {
    const file = this.#tree.fileOf(data);
    if (data.nesting !== 0 || file === undefined) return;
    this.#seconds.set(file, (this.#seconds.get(file) ?? 0) + data.details.duration_ms / 1000);
  }

  #pass({ name, nesting, file }: Passed): readonly RunRecord[] {
    if (nesting !== 0 || file === undefined || file !== resolve(name)) return [];
    this.#empty++;
    return [{ kind: "empty", file }];
  }

  #complete(data: Completed): readonly RunRecord[] {
    const { file, details } = data;
    // what is cancelled before its turn is not enqueued
    this.#tree.add({ ...data, type: details.type ?? "test" });
    if (!isOfFile(data)) {
      this.#count(data);
      return details.passed ? skippedOf(data) : this.#failure(data);
    }
    if (file === undefined) return [];
    const failure = details.passed ? [] : this.#failureOf(data);
    this.#ended.set(file, [{ kind: "file", file, seconds: details.duration_ms / 1000 }, ...failure]);
    return [];
  }

  #count({ details, skip, todo }: Completed): void {
    if (details.type === "suite") return;
    const counts = { ...this.#counts, tests: this.#counts.tests + 1 };
    if (isSkipped(skip)) counts.skipped++;
    else if (todo !== undefined && todo !== false) counts.todo++;
    else if (details.passed) counts.passed++;
    else counts.failed++;
    this.#counts = counts;
  }

  #interrupted({ tests }: Data<"test:interrupted">): readonly RunRecord[] {
    // what has ended and is not said in its order counts as running
    const files = new Set(tests.flatMap(({ file }) => file ?? []).filter((file) => !this.#ended.has(file)));
    const unfinished = [...files].map((file): RunRecord => ({ kind: "unfinished", file }));
    return [...[...this.#ended.values()].flat(), ...unfinished, { kind: "end", ...this.#counts }];
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
    const [, error = ""] = LATE_ERROR.exec(message) ?? [];
    const { file: thrower, during } = placeOfUncaught(error) ?? {};
    const said = during === undefined ? message : `${message}\nunder way: ${during.join(" › ")}`;
    // that of another file is not what threw it
    if (thrower !== undefined && thrower !== where) return [wholeFile(thrower, said)];
    const at = where === undefined ? {} : { file: where };
    const path = [name ?? "after the end of a test"];
    return [{ kind: "failure", ...at, path, selects: 1, message: said, isCancelled: false }];
  }

  #failure(data: Failed | Completed): readonly RunRecord[] {
    const key = keyOf(data, data.testId);
    if (this.#told.has(key)) return [];
    const failure = this.#failureOf(data);
    if (failure.length > 0) this.#told.add(key);
    return failure;
  }

  #failureOf(data: Failed | Completed): readonly RunRecord[] {
    const { todo, details } = data;
    const { error } = details;
    if (error === undefined) return [];
    const failureType = "failureType" in error ? error.failureType : undefined;
    // a suite fails with its tests; and what is still to be done may fail
    if (failureType === "subtestsFailed" || (todo !== undefined && todo !== false)) return [];
    const file = this.#tree.fileOf(data);
    const said = messageOf(error.cause ?? error);
    const message = readable(said === NO_REASON ? this.#reasonOf(file, error) : said, LINES);
    const isCancelled = failureType === "cancelledByParent";
    const at = file === undefined ? {} : { file };
    return [{ kind: "failure", ...at, ...this.#tree.pathOf(data), message, isCancelled }];
  }

  /** Of a file whose process ended with an error. */
  #reasonOf(file: string | undefined, error: object): string {
    const signal = "signal" in error && typeof error.signal === "string" ? error.signal : undefined;
    const written = this.#written.get(resolve(file ?? "")) ?? [];
    const lines = [...(signal === undefined ? [] : [`its process was ended by ${signal}`]), ...written];
    return lines.length === 0 ? NO_REASON : lines.join("\n");
  }

  #summary({ file, counts, duration_ms }: Data<"test:summary">): readonly RunRecord[] {
    if (file !== undefined) {
      this.#ended.delete(file);
      return [{ kind: "file", file, seconds: duration_ms / 1000 }];
    }
    this.isThrough = true;
    const { suites, cancelled, skipped, todo } = counts;
    const [tests, passed] = [counts.tests - this.#empty, counts.passed - this.#empty];
    const failed = tests - passed - cancelled - skipped - todo;
    return [{ kind: "end", tests, suites, passed, failed, cancelled, skipped, todo }];
  }
}
