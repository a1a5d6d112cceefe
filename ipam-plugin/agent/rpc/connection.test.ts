// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { encodeCall } from "../testing/client-frames.ts";
import { ACK, callOf, fine, SocketBench, slowHandler, until } from "../testing/socket-bench.ts";
import type { Handler, Outcome } from "./connection.ts";
import type { Call } from "./frame.ts";

describe("a connection to the agent's socket", () => {
  let bench: SocketBench;
  beforeEach(async () => {
    bench = await SocketBench.open();
  });
  afterEach(() => bench.close());

  it("hands the call to the handler and its answer to the client", async () => {
    const calls: Call[] = [];
    await bench.serve(async (call) => {
      calls.push(call);
      return fine;
    });
    const sent = { startNs: 2n ** 63n, env: new Map([["CNI_ARGS", "A=b;ü"]]), stdin: Buffer.of(0, 255, 10) };
    assert.deepEqual(await bench.client(encodeCall(sent)).reply(), fine);
    assert.deepEqual(calls, [sent]);
  });

  it("takes a request in pieces", async () => {
    await bench.serve(async (call) => ({ ...fine, stdout: String(call.stdin.length) }));
    const bytes = encodeCall({ ...callOf("a"), stdin: Buffer.alloc(300_000) });
    const slowly = bench.client();
    for (const cut of [0, 3, 25, 200_000]) {
      slowly.socket.write(
        bytes.subarray(
          cut,
          [3, 25, 200_000, bytes.length].find((end) => end > cut),
        ),
      );
      await setImmediate();
    }
    assert.equal((await slowly.reply()).stdout, "300000");
  });

  it("tells who answered that the client acknowledged, once", async () => {
    const outcomes = await bench.serveSettling();
    const one = bench.client(encodeCall(callOf("a")));
    await one.reply();
    assert.deepEqual(outcomes, []);
    one.socket.end(ACK);
    await until(() => one.ended);
    await bench.server?.close();
    assert.deepEqual(outcomes, ["delivered"]);
  });

  it("tells who answered that the client left without acknowledging, once", async () => {
    const outcomes = await bench.serveSettling();
    const one = bench.client(encodeCall(callOf("a")));
    await one.reply();
    one.socket.destroy();
    await until(() => outcomes.length > 0);
    await bench.server?.close();
    assert.deepEqual(outcomes, ["lost"]);
  });

  it("takes anything but the one byte for no acknowledgement", async () => {
    const outcomes = await bench.serveSettling();
    for (const bytes of [Buffer.of(7), Buffer.of(6, 6)]) {
      const one = bench.client(encodeCall(callOf("a")));
      await one.reply();
      one.socket.write(bytes);
      await until(() => one.ended);
    }
    assert.deepEqual(outcomes, ["lost", "lost"]);
  });

  it("aborts the handler's signal when the client leaves, and calls the answer lost", async () => {
    const { handle, begun, outcomes, release } = slowHandler();
    await bench.serve(handle);
    const one = bench.client(encodeCall(callOf("a")));
    await until(() => begun.length === 1);
    assert.equal(begun[0]?.aborted, false);
    one.socket.destroy();
    await until(() => begun[0]?.aborted === true);
    release();
    await until(() => outcomes.length > 0);
    assert.deepEqual(outcomes, ["lost"]);
  });

  it("leaves the signal alone of a handler that has answered", async () => {
    const { handle, begun, outcomes, release } = slowHandler();
    await bench.serve(handle);
    const one = bench.client(encodeCall(callOf("a")));
    await until(() => begun.length === 1);
    release();
    await one.reply();
    one.socket.end(ACK);
    await until(() => one.ended);
    await bench.server?.close();
    assert.deepEqual([outcomes, begun[0]?.aborted], [["delivered"], false]);
  });

  it("answers for a handler that throws, now or later, and for an answer that is too long", async () => {
    const outcomes: Outcome[] = [];
    const handlers: Record<string, Handler> = {
      now: () => {
        throw new Error("at once");
      },
      later: () => Promise.reject(new Error("later")),
      long: async () => ({
        ...fine,
        stdout: "x".repeat(5_000_000),
        settle: (outcome) => void outcomes.push(outcome),
      }),
    };
    await bench.serve((call, signal) => {
      const handler = handlers[call.env.get("CNI_CONTAINERID") ?? ""];
      assert.ok(handler !== undefined);
      return handler(call, signal);
    });
    for (const id of ["now", "later", "long"]) {
      const one = bench.client(encodeCall(callOf(id)));
      const { exitStatus, stdout } = await one.reply();
      assert.equal(exitStatus, 1);
      assert.deepEqual(JSON.parse(stdout), {
        cniVersion: "1.1.0",
        code: 999,
        msg: "internal error; see the agent's log",
      });
      one.socket.destroy();
    }
    await until(() => outcomes.length > 0);
    assert.deepEqual(outcomes, ["lost"]);
    assert.deepEqual(bench.lines, ["handler failed", "handler failed", "answer cannot be sent"]);
  });

  it("survives a settlement that throws", async () => {
    await bench.serve(async () => ({ ...fine, settle: () => Promise.reject(new Error("disk")) }));
    for (let i = 0; i < 2; i++) {
      const one = bench.client(encodeCall(callOf("a")));
      await one.reply();
      one.socket.write(ACK);
      await until(() => one.ended);
    }
    assert.equal(bench.lines[0], "outcome of an answer was not taken in");
  });

  it("drops a client that does not send its request in time, and no other", async () => {
    const { handle, begun, release } = slowHandler();
    await bench.serve(handle);
    const mute = bench.client(encodeCall(callOf("a")).subarray(0, 30));
    const served = bench.client(encodeCall(callOf("a")));
    await until(() => begun.length === 1);
    for (let second = 0; second < 5; second++) await bench.tick();
    assert.equal(mute.ended, false);
    await bench.tick();
    await until(() => mute.ended);
    for (let second = 0; second < 100; second++) await bench.tick();
    assert.equal(served.ended, false);
    assert.deepEqual(bench.lines, ["request did not come in time"]);
    release();
  });

  it("gives an answer up that nobody acknowledges", async () => {
    const outcomes = await bench.serveSettling();
    const one = bench.client(encodeCall(callOf("a")));
    await one.reply();
    for (let second = 0; second < 35; second++) await bench.tick();
    assert.deepEqual(outcomes, []);
    await bench.tick();
    await until(() => outcomes.length > 0);
    assert.deepEqual(outcomes, ["lost"]);
    assert.deepEqual(bench.lines, ["answer was not acknowledged in time"]);
  });

  it("hears an acknowledgement that came while the agent stood still", async () => {
    const outcomes = await bench.serveSettling();
    const one = bench.client(encodeCall(callOf("a")));
    await one.reply();
    await until(() => bench.clock.sleeping > 0);
    one.socket.write(ACK); // lies in the agent's socket unread when the clock is found to be far ahead
    bench.clock.advance(60_000);
    await until(() => outcomes.length > 0);
    assert.deepEqual(outcomes, ["delivered"]);
  });
});
