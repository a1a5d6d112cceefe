// SPDX-License-Identifier: Apache-2.0
// Bytes on the agent's socket and in its spool that no client wrote: no answer, no crash, and clients are served on.
import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { noopLogger } from "../../allocator/base/ports.ts";
import { replaySpool } from "../../ipam-plugin/agent/background/spool.ts";
import { REQUEST_MS } from "../../ipam-plugin/agent/rpc/connection.ts";
import {
  type Call,
  CallDecoder,
  decodeCall,
  encodeReply,
  NOT_ACCEPTED,
  REQUEST_LIMIT,
} from "../../ipam-plugin/agent/rpc/frame.ts";
import { decodeReply, encodeCall } from "../../ipam-plugin/agent/testing/client-frames.ts";
import { ACK, callOf, fine, SocketBench, until } from "../../ipam-plugin/agent/testing/socket-bench.ts";
import { runsOf } from "../support/runs.ts";
import { collect } from "./growth.ts";
import { evilText, runs, SEED } from "./values.ts";

const call: fc.Arbitrary<Call> = fc
  .record({
    startNs: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    env: fc.dictionary(
      fc.constantFrom("CNI_COMMAND", "CNI_CONTAINERID", "CNI_IFNAME", "CNI_ARGS"),
      evilText.map((text) => text.replaceAll("\0", "").toWellFormed()),
    ),
    stdin: fc.uint8Array({ maxLength: 400 }),
  })
  .map(({ startNs, env, stdin }) => ({
    startNs,
    env: new Map(Object.entries(env)),
    stdin: Buffer.from(stdin),
  }));

const junk = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
/** A frame with bytes changed, cut out or put in. */
const mutant = fc
  .tuple(
    call.map(encodeCall),
    fc.array(fc.tuple(fc.nat(), fc.nat({ max: 2 }), junk), { minLength: 1, maxLength: 3 }),
  )
  .map(([frame, edits]) =>
    edits.reduce((bytes, [where, how, more]) => {
      // Mostly in the header, where the lengths are.
      const at = (where % 3 === 0 ? where : where % 24) % (bytes.length + 1);
      const rest = how === 0 ? bytes.subarray(at + more.length) : bytes.subarray(at + (how === 1 ? 1 : 0));
      return Buffer.concat([bytes.subarray(0, at), how === 1 ? more.subarray(0, 1) : more, rest]);
    }, frame),
  );
const bytes = fc.oneof(junk, mutant, mutant);

/** Requests of full size that the agent holds unfinished at most. */
const HELD_AT_ONCE = 8;

/**
 * Buffers take up no more than this, beyond what was there before. What nobody can reach is given back by a thread of
 * its own some time after its collection: how soon says nothing about what is held, so it is waited for.
 */
async function assertHeld(before: number, most: number): Promise<void> {
  let held = 0;
  const settled = until(() => {
    collect();
    held = process.memoryUsage().arrayBuffers - before;
    return held <= most;
  });
  await settled.catch(() => assert.fail(`${held} bytes are held, of ${most}`));
}

describe("hostile frames", () => {
  let cases = 0;

  before(() => console.log(`seed ${SEED}`));
  after(() => console.log(`${cases} frames`));

  it("that are calls arrive as they were sent, in whatever pieces", () => {
    fc.assert(
      fc.property(call, fc.array(fc.nat(), { maxLength: 5 }), (sent, cuts) => {
        cases++;
        const frame = encodeCall(sent);
        const decoder = new CallDecoder();
        const ends = [...cuts.map((cut) => cut % frame.length), frame.length].sort((a, b) => a - b);
        let last: ReturnType<CallDecoder["push"]> = { kind: "incomplete" };
        for (const [i, end] of ends.entries()) {
          const piece = frame.subarray(ends[i - 1] ?? 0, end);
          if (piece.length > 0) last = decoder.push(piece);
        }
        assert.deepEqual(last, { kind: "complete", frame: sent });
      }),
      runs(3_000),
    );
  });

  it("are calls, replies, or said to be none; and take no more memory than they have bytes", () => {
    fc.assert(
      fc.property(bytes, (frame) => {
        cases++;
        const whole = decodeCall(frame);
        const decoder = new CallDecoder();
        const pushed = decoder.push(frame);
        assert.equal(pushed.kind, whole.kind);
        assert.ok(decoder.held <= REQUEST_LIMIT);
        if (whole.kind === "malformed") assert.match(whole.reason, /^[ -~]{1,200}$/);
        if (whole.kind === "complete") assert.equal(decodeCall(encodeCall(whole.frame)).kind, "complete");
        const reply = decodeReply(frame);
        if (reply.kind === "complete") encodeReply(reply.frame);
      }),
      runs(10_000),
    );
  });

  describe("on the socket", () => {
    let bench: SocketBench;

    beforeEach(async () => {
      bench = await SocketBench.open();
    });
    afterEach(() => bench.close());

    it("get no answer that is none, and a client is served after each of them", async () => {
      let handled = 0;
      await bench.serve(async () => {
        handled++;
        return fine;
      });
      await fc.assert(
        fc.asyncProperty(bytes, async (frame) => {
          cases++;
          const whole = decodeCall(frame).kind === "complete";
          const before = handled;
          const client = bench.client(frame);
          if (whole) await client.reply();
          else client.socket.end();
          await until(() => whole || client.ended);
          assert.equal(handled - before, whole ? 1 : 0);
          if (!whole) assert.equal(client.bytes.length, 0);
          client.socket.destroy();
        }),
        runs(600),
      );
      const last = bench.client(encodeCall(callOf("c1")));
      assert.deepEqual(await last.reply(), { exitStatus: 0, stdout: "out", stderr: "err" });
    });

    it("that come byte by byte hold nobody up, and are hung up on in their time", async () => {
      const outcomes = await bench.serveSettling();
      const frame = encodeCall({ ...callOf("c1"), stdin: Buffer.alloc(1_000, "x") });
      const slow = Array.from({ length: 50 }, () => bench.client());
      for (let second = 0; second <= REQUEST_MS / 1_000 + 1; second++) {
        for (const [i, client] of slow.entries()) {
          if (!client.ended) client.socket.write(frame.subarray(second * 3, second * 3 + 1 + (i % 3)));
        }
        const quick = bench.client(encodeCall(callOf("c2")));
        assert.equal((await quick.reply()).exitStatus, 0);
        quick.socket.write(ACK);
        await bench.tick();
      }
      await until(() => slow.every(({ ended }) => ended));
      assert.ok(slow.every((client) => client.bytes.length === 0));
      assert.ok(outcomes.length > 0 && outcomes.every((outcome) => outcome === "delivered"));
      cases += slow.length;
    });

    it("that announce more than there is memory for do not get it", async () => {
      await bench.serve(async () => fine);
      const header = encodeCall({ ...callOf("c1"), stdin: Buffer.alloc(4 * 1024 * 1024) }).subarray(
        0,
        100_000, // more than one read takes, so that the agent has to make room for the rest
      );
      collect();
      const before = process.memoryUsage().arrayBuffers;
      const greedy = Array.from({ length: 200 }, () => bench.client(header));
      // All the others are sent away, each in words; the clients that wait on are those that memory is held for.
      await until(() => greedy.filter(({ bytes }) => bytes.length > 0).length >= 200 - HELD_AT_ONCE);
      const refused = await Promise.all(greedy.filter(({ bytes }) => bytes.length > 0).map((c) => c.reply()));
      assert.ok(refused.every(({ exitStatus }) => exitStatus === NOT_ACCEPTED));
      const quick = bench.client(encodeCall(callOf("c2")));
      assert.equal((await quick.reply()).exitStatus, 0);
      await assertHeld(before, (HELD_AT_ONCE + 4) * REQUEST_LIMIT);
      for (const client of greedy) client.socket.destroy();
      await assertHeld(before, REQUEST_LIMIT);
      cases += greedy.length;
    });
  });

  it("in the spool are released, kept or moved aside; and never run twice", async () => {
    const bench = await SocketBench.open();
    const folder = join(bench.folder, "spool");
    await mkdir(folder);
    const files = fc.sample(fc.oneof(bytes, call.map(encodeCall)), { numRuns: runsOf(1_500), seed: SEED });
    const name = (i: number) => `${String(i).padStart(20, "0")}-7.del`;
    await Promise.all(files.map((file, i) => writeFile(join(folder, name(i)), file)));
    const seen: string[] = [];
    const handle = async ({ env }: Call) => {
      seen.push(env.get("CNI_COMMAND") ?? "");
      return { ...fine, stdout: "" };
    };
    const replayed = await replaySpool(folder, handle, noopLogger);
    assert.equal(replayed.released.length + replayed.bad.length + replayed.kept.length, files.length);
    assert.ok(seen.every((command) => command === "DEL"));
    const left = (await readdir(folder)).sort();
    assert.deepEqual(left, [...replayed.kept, ...replayed.bad.map((bad) => `${bad}.bad`)].sort());
    await bench.close();
    cases += files.length;
  });
});
