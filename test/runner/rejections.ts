// SPDX-License-Identifier: Apache-2.0
// Where files share a process, node's runner does not say which of them left a promise to be rejected when it was loaded.
import { isMainThread } from "node:worker_threads";
import { placesOf, testFileOf } from "./tell.ts";

/** what was thrown, as text -> the file of tests on its stack */
const files = new Map<string, string>();

/** The file of what was thrown with this text; undefined: its stack names none. */
export function fileOfRejection(text: string): string | undefined {
  return files.get(text);
}

const isShared = (process.env["BERTH_SHARED"] ?? "[]") !== "[]";
// a process or thread that a test starts must go on ending of it
if (isShared && isMainThread && process.execArgv.includes("--test-isolation=none"))
  process.on("unhandledRejection", (reason) => {
    const file = reason instanceof Error ? testFileOf(placesOf(reason.stack ?? "")) : "";
    if (file !== "") files.set(String(reason), file);
  });
