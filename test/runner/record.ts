// SPDX-License-Identifier: Apache-2.0
// A reporter of node:test that writes what the runner needs at the end, a line of JSON each.
import type { TestEvent } from "node:test/reporters";
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
  /** It was under way when the run was ended. */
  | { readonly kind: "unfinished"; readonly file: string }
  | ({ readonly kind: "end" } & Counts);

type Data<Type extends TestEvent["type"]> = Extract<TestEvent, { type: Type }>["data"];

/** Of a kubectl table below a message, too, or of what led to a broken invariant. */
const LINES = 200;

// biome-ignore lint/style/noDefaultExport: node:test takes a reporter's default export
export default async function* records(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const recorder = new Recorder();
  for await (const event of events) {
    for (const record of recorder.recordsOf(event)) yield `${JSON.stringify(record)}\n`;
  }
  for (const record of recorder.times()) yield `${JSON.stringify(record)}\n`;
}

class Recorder {
  /** The names of what is under way, outermost first. */
  readonly #path: string[] = [];
  /** Of files in one process: node's runner times them only together. */
  readonly #seconds = new Map<string, number>();
  #isTimed = false;
  /** A run that is ended early has no summary of its own. */
  #counts: Counts = NOTHING;

  recordsOf({ type, data }: TestEvent): readonly RunRecord[] {
    if (type === "test:start") {
      this.#path.length = data.nesting;
      this.#path[data.nesting] = data.name;
    }
    if (type === "test:pass" || type === "test:fail") this.#time(data);
    if (type === "test:pass" || type === "test:fail") this.#count(data, type === "test:pass");
    if (type === "test:fail") return this.#failure(data);
    if (type === "test:summary") return this.#summary(data);
    if (type === "test:interrupted") return this.#interrupted(data);
    return [];
  }

  times(): readonly RunRecord[] {
    if (this.#isTimed) return [];
    return [...this.#seconds].map(([file, seconds]) => ({ kind: "file", file, seconds }));
  }

  #time({ nesting, file, details }: Data<"test:pass"> | Data<"test:fail">): void {
    if (nesting !== 0 || file === undefined) return;
    this.#seconds.set(file, (this.#seconds.get(file) ?? 0) + details.duration_ms / 1000);
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

  #failure({ name, nesting, file, details: { error } }: Data<"test:fail">): readonly RunRecord[] {
    const failureType = "failureType" in error ? error.failureType : undefined;
    // a suite fails with its tests
    if (failureType === "subtestsFailed") return [];
    const cause = error.cause ?? error;
    const whole = cause instanceof Error ? cause.message : String(cause);
    const message = whole.split("\n").slice(0, LINES).join("\n");
    const path = [...this.#path.slice(0, nesting), name];
    return [
      {
        kind: "failure",
        ...(file !== undefined && { file }),
        path,
        message,
        isCancelled: failureType === "cancelledByParent",
      },
    ];
  }

  #summary({ file, counts, duration_ms }: Data<"test:summary">): readonly RunRecord[] {
    if (file !== undefined) {
      this.#isTimed = true;
      return [{ kind: "file", file, seconds: duration_ms / 1000 }];
    }
    const { tests, suites, passed, cancelled, skipped, todo } = counts;
    const failed = tests - passed - cancelled - skipped - todo;
    return [{ kind: "end", tests, suites, passed, failed, cancelled, skipped, todo }];
  }
}
