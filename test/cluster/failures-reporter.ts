// SPDX-License-Identifier: Apache-2.0
// A reporter of node:test that keeps what failed and why, and nothing else: each file of cases is a process with a
// summary of its own, and that of one in the middle is far up when all are through.
import type { TestEvent } from "node:test/reporters";
import { messageOf } from "../../allocator/errors.ts";

/** Of a kubectl table below a message, too. */
const LINES = 15;

// biome-ignore lint/style/noDefaultExport: node:test takes a reporter's default export
export default async function* failures(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== "test:fail") continue;
    const { error } = data.details;
    // a suite fails with its tests
    if ("failureType" in error && error.failureType === "subtestsFailed") continue;
    const lines = messageOf(error.cause ?? error)
      .split("\n")
      .slice(0, LINES);
    yield [data.name, ...lines.map((line) => `  ${line}`), ""].join("\n");
  }
}
