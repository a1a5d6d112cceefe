// SPDX-License-Identifier: Apache-2.0
// Lists tests and runs none, hooks neither: loaded before the files (--import), and their reporter.
//   node --import ./test/runner/names.ts --test --test-isolation=none --test-reporter=./test/runner/names.ts FILE...
import { createRequire, syncBuiltinESMExports } from "node:module";
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { fileURLToPath } from "node:url";

type Define = (name: string, options: object, work: () => void) => unknown;

const SEPARATOR = " | ";
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const test: Record<string, Define> = createRequire(import.meta.url)("node:test");
for (const name of ["it", "test"]) test[name] = listed(test[name]);
for (const hook of ["before", "after", "beforeEach", "afterEach"]) test[hook] = () => {};
syncBuiltinESMExports();

/** Defines a test that does nothing, and has its file in its name. */
function listed(define: Define | undefined): Define {
  return (name) => define?.(`${callingFile()}${SEPARATOR}${name}`, {}, () => {});
}

/** The outermost file of tests on the stack: a contract's tests are those of whoever calls it. */
function callingFile(): string {
  Error.stackTraceLimit = 50;
  const files = [...(new Error().stack ?? "").matchAll(/file:\/\/([^:)\s]+test\.ts):/g)];
  return relative(ROOT, files.at(-1)?.[1] ?? ROOT);
}

// biome-ignore lint/style/noDefaultExport: node:test takes a reporter's default export
export default async function* names(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path: string[] = [];
  for await (const { type, data } of events) {
    if (type === "test:start") {
      path.length = data.nesting;
      path[data.nesting] = data.name;
    }
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.details.type === "suite") continue;
    const [file = "", ...name] = data.name.split(SEPARATOR);
    const wrong = type === "test:fail" ? " CANNOT BE LISTED" : "";
    yield `${file}${SEPARATOR}${[...path.slice(0, data.nesting), name.join(SEPARATOR)].join(" › ")}${wrong}\n`;
  }
}
