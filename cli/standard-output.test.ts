// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { describe, it } from "node:test";
import { StandardOutput } from "./standard-output.ts";

/** An output that each of these faults befalls, and what the process does about it. */
function befallen(faults: readonly string[], { onlyReads }: { readonly onlyReads: boolean }) {
  const stream = new Writable({ write: (_text, _encoding, done) => done() });
  const done = { told: [] as string[], exits: [] as number[] };
  const output = new StandardOutput(stream, {
    tell: (line) => done.told.push(line),
    exit: (code) => done.exits.push(code),
  });
  if (onlyReads) output.onlyReads();
  for (const code of faults) stream.emit("error", Object.assign(new Error(`write ${code}`), { code }));
  return { ...done, output };
}

describe("output that nobody takes", () => {
  it("ends no command that writes, whose exit code is its own", () => {
    const { told, exits, output } = befallen(["EPIPE", "EPIPE"], { onlyReads: false });
    assert.deepEqual([told, exits], [[], []]);
    assert.deepEqual([output.codeAfter(0), output.codeAfter(1)], [0, 1]);
  });

  it("ends a command that only reads", () => {
    const { told, exits } = befallen(["EPIPE"], { onlyReads: true });
    assert.deepEqual([told, exits], [[], [0]]);
  });
});

describe("output that cannot be written", () => {
  it("is told of once, and is the exit code of a command that writes when it has ended", () => {
    const { told, exits, output } = befallen(["ENOSPC", "ENOSPC"], { onlyReads: false });
    assert.deepEqual(told, [
      "Error: the output cannot be written (write ENOSPC); what was asked for may be done\n",
    ]);
    assert.deepEqual([exits, output.codeAfter(0)], [[], 2]);
  });

  it("ends a command that only reads", () => {
    const { told, exits } = befallen(["ENOSPC"], { onlyReads: true });
    assert.deepEqual(told, ["Error: the output cannot be written (write ENOSPC)\n"]);
    assert.deepEqual(exits, [2]);
  });
});
