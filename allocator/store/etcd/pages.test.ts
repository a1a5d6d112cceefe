// SPDX-License-Identifier: Apache-2.0
// What is asked of an etcd whose answers are too long, or too long in coming. A real one is in test/etcd/strange-values.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createRandom } from "../../../system/random.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { noopLogger } from "../../base/ports.ts";
import { type Connection, EtcdClient } from "./client.ts";
import { GRPC, GrpcError, OverlongMessage } from "./grpc-frames.ts";
import { METHODS } from "./messages.ts";
import { pagesOf } from "./pages.ts";
import { MessageWriter, readMessage } from "./protobuf.ts";

const KEYS = Array.from({ length: 100 }, (_, n) => `/berth/v1/claim/shop/${100 + n}`);

/** An etcd with these keys, each of a value of that length; `fault`: what it answers in place of that many values. */
function clientOf(length: number, fault: (values: number) => GrpcError | undefined) {
  const asked: number[] = [];
  const connection: Connection = {
    async unary(path, message) {
      assert.equal(path, METHODS.range);
      let [key, limit] = ["", 0];
      readMessage(message, { 1: (value) => (key = value.text()), 3: (value) => (limit = value.int()) });
      asked.push(limit);
      const rest = KEYS.filter((one) => one >= key);
      const found = rest.slice(0, limit);
      const wrong = fault(found.length);
      if (wrong !== undefined) throw wrong;
      const answer = new MessageWriter().message(1, new MessageWriter().int(3, 7));
      for (const one of found)
        answer.message(2, new MessageWriter().text(1, one).text(5, "x".repeat(length)));
      return answer.flag(3, rest.length > found.length).bytes();
    },
    follow: () => assert.fail("nothing is watched"),
    retire: async () => {},
    close: async () => {},
  };
  const clock = new ManualClock();
  clock.sleep = async () => {};
  const access = { endpoints: ["http://127.0.0.1:1"] };
  const client = new EtcdClient(access, {
    clock,
    random: createRandom(),
    log: noopLogger,
    connect: () => connection,
  });
  return { client, asked };
}

async function listedBy(client: EtcdClient): Promise<readonly string[]> {
  const keys: string[] = [];
  const range = { key: "/berth/v1/claim/", end: "/berth/v1/claim0" };
  for await (const { entries } of pagesOf({ client, log: noopLogger, pageSize: 64 }, range))
    keys.push(...entries.map(({ key }) => key));
  return keys;
}

describe("a list of etcd", () => {
  it("asks for less at once where an answer is too long, and then for what fits", async () => {
    const tooLong = new OverlongMessage(GRPC.resourceExhausted, "an answer of many bytes", true);
    const { client, asked } = clientOf(1_040_000, (values) => (values > 16 ? tooLong : undefined));
    assert.deepEqual(await listedBy(client), KEYS);
    assert.deepEqual(asked.slice(0, 3), [64, 8, 4]);
    assert.deepEqual(new Set(asked.slice(2)), new Set([4]));
  });

  it("asks for less after one that does not come, and for more again where it does", async () => {
    const late = new GrpcError(GRPC.deadlineExceeded, "no answer in 3000 ms", true);
    let isSlow = true;
    const { client, asked } = clientOf(10, (values) => {
      if (isSlow && values > 8) return late;
      isSlow = false;
      return undefined;
    });
    assert.deepEqual(await listedBy(client), KEYS);
    assert.deepEqual(asked, [64, 8, 16, 32, 64]);
  });

  it("says so where even one key does not come", async () => {
    const late = new GrpcError(GRPC.deadlineExceeded, "no answer in 3000 ms", true);
    const { client, asked } = clientOf(10, () => late);
    await assert.rejects(listedBy(client), { code: "TIMED_OUT" });
    assert.deepEqual(asked, [64, 8, 1, 1, 1]);
  });
});
