// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DecodeQueue } from "./decode-queue.ts";

const MIB = 1024 * 1024;

function bytesOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

describe("a queue of bodies", () => {
  it("decodes each as it is, and goes on after one that is no JSON", async () => {
    const queue = new DecodeQueue();
    const long = "x".repeat(MIB);
    assert.deepEqual(
      await Promise.all(
        [bytesOf([long]), Buffer.from(long), bytesOf({ long })].map((body) => queue.decode(body)),
      ),
      [
        { kind: "json", value: [long] },
        { kind: "unreadable", why: "it is not JSON" },
        { kind: "json", value: { long } },
      ],
    );
  });

  it("begins none before the one before it has ended, however short it is", async () => {
    const queue = new DecodeQueue();
    const order: string[] = [];
    const sizes = { first: 4 * MIB, second: MIB, third: MIB / 4 };
    await Promise.all(
      Object.entries(sizes).map(async ([name, size]) => {
        await queue.decode(bytesOf("x".repeat(size)));
        order.push(name);
      }),
    );
    assert.deepEqual(order, ["first", "second", "third"]);
  });

  it("lets a small one pass, and the event loop go round, while large ones are under way", async () => {
    const queue = new DecodeQueue();
    const order: string[] = [];
    const large = ["first", "second"].map(async (name) => {
      await queue.decode(bytesOf("x".repeat(8 * MIB)));
      order.push(name);
    });
    let turns = 0;
    const count = () => {
      turns++;
      if (order.length < 2) setImmediate(count);
    };
    setImmediate(count);
    await queue.decode(bytesOf("small"));
    order.push("small");
    await Promise.all(large);
    assert.deepEqual(order, ["small", "first", "second"]);
    assert.ok(turns > 50, `the loop went round ${turns} times`);
  });
});
