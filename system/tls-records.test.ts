// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { TlsRecords } from "./tls-records.ts";

const MOST = 32;

function record(length: number, type = 23): Buffer {
  const bytes = Buffer.alloc(5 + length, 0xff);
  bytes.writeUInt8(type, 0);
  bytes.writeUInt16BE(length, 3);
  return bytes;
}

const many = (count: number, one: Buffer) => Buffer.concat(Array.from({ length: count }, () => one));

describe("TLS records", () => {
  it("of requests may be as many as there are", () => {
    const records = new TlsRecords();
    for (let n = 0; n < 1_000; n++) assert.ok(records.take(Buffer.concat([record(64), record(400)])));
  });

  it("that are small may be some, and one for each long one", () => {
    const records = new TlsRecords();
    assert.ok(records.take(many(MOST, record(22))));
    for (let n = 0; n < 1_000; n++) assert.ok(records.take(Buffer.concat([record(16_384), record(23)])));
    assert.ok(!records.take(record(22)));
    assert.ok(!records.take(many(100, record(16_384))), "and no more after that");
  });

  it("are saved up by nobody", () => {
    const records = new TlsRecords();
    assert.ok(records.take(many(1_000, record(2_000))));
    assert.ok(records.take(many(MOST, record(0))));
    assert.ok(!records.take(record(0)));
  });

  it("that are no data count as small, whatever their length", () => {
    assert.ok(!new TlsRecords().take(many(MOST + 1, record(2_000, 22))));
    assert.ok(!new TlsRecords().take(many(MOST + 1, record(100, 21))));
  });

  it("are found wherever what comes is cut", () => {
    const bytes = Buffer.concat([many(MOST, record(22)), record(1_500), record(300), many(2, record(63))]);
    for (let size = 1; size < 40; size++) {
      const records = new TlsRecords();
      let at = 0;
      while (at < bytes.length && records.take(bytes.subarray(at, at + size))) at += size;
      // it is the length in the last record's header that says it
      assert.ok(at < bytes.length && at + size > bytes.length - 64, `${size}: ${at} of ${bytes.length}`);
    }
  });
});
