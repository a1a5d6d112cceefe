// SPDX-License-Identifier: Apache-2.0
// Where files share a process, node's runner does not say which of them left a promise to be rejected, and as it follows no
// promises (promises.ts) it takes what a test began after its first await for another test's.
import { isMainThread } from "node:worker_threads";
import { placesOf, testFileOf } from "./tell.ts";
import { lastUnderWay } from "./under-way.ts";

interface Caught {
  /** The file of tests on its stack; absent where that has none, as when a connection is refused. */
  readonly file?: string;
  /** The test that was under way then; absent while files are loaded. */
  readonly during?: readonly string[] | undefined;
}

/** what was thrown, as text -> where that was */
const caught = new Map<string, Caught>();

/** Where what was thrown with this text came up, as far as it is known. */
export function placeOfUncaught(text: string): Caught | undefined {
  return caught.get(text);
}

function remember(reason: unknown): void {
  const file = reason instanceof Error ? testFileOf(placesOf(reason.stack ?? "")) : "";
  const during = lastUnderWay();
  if (file !== "") caught.set(String(reason), { file, during });
  else if (reason instanceof Error || typeof reason === "string") caught.set(String(reason), { during });
}

const isShared = (process.env["BERTH_SHARED"] ?? "[]") !== "[]";
// a process or thread that a test starts must go on ending of it
if (isShared && isMainThread && process.execArgv.includes("--test-isolation=none")) {
  process.on("unhandledRejection", remember);
  process.on("uncaughtExceptionMonitor", remember);
}
