// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "../../../test/support/any-character.ts";
import { MessageWriter, readMessage } from "./protobuf.ts";

function fieldsOf(bytes: Uint8Array) {
  const got: Record<string, unknown> = {};
  readMessage(bytes, {
    1: (value) => (got["text"] = value.text()),
    2: (value) => (got["number"] = value.int()),
    3: (value) => (got["inner"] = value.bytes().toString("hex")),
    16: (value) => (got["flag"] = value.flag()),
  });
  return got;
}

describe("messages of protocol buffers", () => {
  it("are read as they were written", () => {
    const values = fc.record({
      text: fc.string({ unit: anyCharacter }),
      number: fc.maxSafeNat(),
      flag: fc.boolean(),
    });
    const property = fc.property(values, ({ text, number, flag }) => {
      const inner = new MessageWriter().text(9, text);
      const bytes = new MessageWriter().flag(16, flag).message(3, inner).int(2, number).text(1, text).bytes();
      assert.deepEqual(fieldsOf(bytes), {
        flag,
        inner: inner.bytes().toString("hex"),
        number,
        text: Buffer.from(text).toString(),
      });
    });
    fc.assert(property, { numRuns: 50 });
  });

  it("are written as the specification has them", () => {
    // the examples of https://protobuf.dev/programming-guides/encoding/
    assert.equal(new MessageWriter().int(1, 150).bytes().toString("hex"), "089601");
    assert.equal(new MessageWriter().text(2, "testing").bytes().toString("hex"), "120774657374696e67");
    const inner = new MessageWriter().int(1, 150);
    assert.equal(new MessageWriter().message(3, inner).bytes().toString("hex"), "1a03089601");
    assert.equal(new MessageWriter().int(6, 0).bytes().toString("hex"), "3000");
  });

  it("have fields passed over that are not known, of every kind", () => {
    const unknown = Buffer.from("20ff01" + "290102030405060708" + "32026869" + "3d01020304", "hex");
    const known = new MessageWriter().text(1, "a").bytes();
    assert.deepEqual(fieldsOf(Buffer.concat([unknown, known])), { text: "a" });
  });

  it("are refused when they end too soon, or have what cannot be held exactly", () => {
    const whole = new MessageWriter().text(1, "some text").int(2, 300).bytes();
    for (const length of [1, 5, 12, whole.length - 1]) {
      assert.throws(() => fieldsOf(whole.subarray(0, length)), /ends within a field/, `${length} bytes`);
    }
    assert.throws(() => fieldsOf(Buffer.from("10ffffffffffffffff7f", "hex")), /too large to be read exactly/);
    assert.throws(() => fieldsOf(Buffer.from(`10${"ff".repeat(10)}01`, "hex")), /more than ten bytes/);
    assert.throws(() => fieldsOf(Buffer.from("0801", "hex")), /is not text/);
    assert.throws(() => fieldsOf(Buffer.from("0b", "hex")), /no wire type 3/);
    assert.throws(() => new MessageWriter().int(1, -1), /cannot be written/);
  });
});
