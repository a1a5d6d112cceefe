// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { InFlight } from "./in-flight.ts";

describe("ADDs under way", () => {
  it("are ended by a later DEL of their place and by nothing else", async () => {
    const inFlight = new InFlight();
    const { promise: over, resolve: finish } = Promise.withResolvers<void>();
    const signals = new Map<string, AbortSignal>(); // name -> its signal
    const begin = (name: string, id: string, startNs: bigint) =>
      inFlight.run(id, startNs, async (signal) => {
        signals.set(name, signal);
        await over;
      });
    const running = [begin("older", "a", 1n), begin("newer", "a", 9n), begin("other", "b", 1n)];
    inFlight.abortBefore("a", 5n);
    const aborted = [...signals].filter(([, signal]) => signal.aborted).map(([name]) => name);
    assert.deepEqual(aborted, ["older"]);
    finish();
    await Promise.all(running);
    inFlight.abortBefore("a", 100n);
    assert.equal(signals.get("newer")?.aborted, false, "what has ended is not there any more");
  });

  it("pass on what the work gives or throws", async () => {
    const inFlight = new InFlight();
    assert.equal(await inFlight.run("a", 1n, async () => 5), 5);
    await assert.rejects(
      inFlight.run("a", 1n, () => Promise.reject(new Error("x"))),
      /^Error: x$/,
    );
  });
});
