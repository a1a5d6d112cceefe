// SPDX-License-Identifier: Apache-2.0
// Loaded before the files of tests (--import). A test that calls process.exit would end all tests after it unseen: what
// called it is written to $BERTH_EXITS, at once, and the process ends with a failure.
import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { RunRecord } from "./record.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const exit = process.exit.bind(process);
process.exit = (code) => {
  const { stack = "" } = new Error();
  const [, , caller = "", ...callers] = stack.split("\n");
  // node's own runner ends itself by it when it is interrupted
  if (caller.includes("node:internal/")) return exit(code);
  const place = (line: string) => /([^\s(]*:\d+:\d+)\)?$/.exec(line)?.[1]?.replace("file://", "") ?? "";
  const places = [caller, ...callers].map(place).filter((at) => at.startsWith(ROOT));
  const test = places.findLast((at) => /test\.ts:/.test(at)) ?? "";
  const [first = "an unknown place"] = places;
  report(test.replace(/:\d+:\d+$/, ""), `process.exit(${code ?? ""}) at ${relative(ROOT, first)}`);
  return exit(code === undefined || Number(code) === 0 ? 1 : code);
};

function report(file: string, what: string): void {
  const exits = process.env["BERTH_EXITS"];
  const record: RunRecord = {
    kind: "exit",
    // the first argument of a process that has one file to itself
    file: process.env["NODE_TEST_CONTEXT"] === undefined ? file : (process.argv[1] ?? file),
    message: `a test ended its process, so that what comes after it was not run: ${what}`,
  };
  if (exits !== undefined) appendFileSync(exits, `${JSON.stringify(record)}\n`);
}
