// SPDX-License-Identifier: Apache-2.0
// What a process of tests says by itself, at once: it may not live until its reporter is heard.
import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { RunRecord } from "./record.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** To $BERTH_EXITS, a line of JSON. */
export function tell(record: RunRecord): void {
  const told = process.env["BERTH_EXITS"];
  if (told !== undefined) appendFileSync(told, `${JSON.stringify(record)}\n`);
}

/** Places in this repository on a stack, innermost first: `/…/a.test.ts:1:2`. */
export function placesOf(stack: string): readonly string[] {
  const place = (line: string) => /([^\s(]*:\d+:\d+)\)?$/.exec(line)?.[1]?.replace("file://", "") ?? "";
  return stack
    .split("\n")
    .map(place)
    .filter((at) => at.startsWith(ROOT) && !at.includes("/node_modules/"));
}

/** The outermost file of tests among places; empty: none. */
export function testFileOf(places: readonly string[]): string {
  const test = places.findLast((at) => /test\.ts:/.test(at)) ?? "";
  return test.replace(/:\d+:\d+$/, "");
}

/** The file of tests that this process runs, if it has one to itself; else what the stack says. */
export function ownFileOr(file: string): string {
  return process.env["NODE_TEST_CONTEXT"] === undefined ? file : (process.argv[1] ?? file);
}

export function fromRoot(place: string): string {
  return relative(ROOT, place);
}
