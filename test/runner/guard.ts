// SPDX-License-Identifier: Apache-2.0
// guard.ts ID FOLDER RECORDS   is started beside a run, and reads what the run says on its input: the number of a session
// that it started, or "over". If the input ends without that word, the run was killed: what it started is killed too, and
// FOLDER and all files whose path begins with RECORDS are removed.
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { killAll, mountsLeft, processesOf } from "./leftovers.ts";

const [, , id = "", folder = "", records = ""] = process.argv;
const sessions = new Set<number>();
// an interrupt is meant for the run, which then says what to do
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

let isOver = false;
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "over") isOver = true;
  else sessions.add(Number(line));
}
if (!isOver) await endAll();

async function endAll(): Promise<void> {
  const mark = { id, folder, sessions };
  // what is killed may have started another one a moment before
  for (let left = processesOf(mark); left.length > 0; left = processesOf(mark)) {
    killAll(left);
    await pause(50);
  }
  if (mountsLeft(mark).length === 0) rmSync(folder, { recursive: true, force: true });
  for (const name of namesIn(dirname(records)))
    if (name.startsWith(basename(records))) rmSync(join(dirname(records), name), { force: true });
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
