// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodeReply, encodeCall } from "../testing/client-frames.ts";
import {
  type Call,
  CallDecoder,
  type Decoded,
  decodeCall,
  ENV_LIMIT,
  encodeReply,
  REPLY_LIMIT,
  STDIN_LIMIT,
} from "./frame.ts";

const text = fc.string({ unit: "grapheme" }).map((value) => value.replaceAll("\0", ""));
const name = fc.stringMatching(/^CNI_[A-Z]{1,12}$/);
const calls = fc.record(
  {
    startNs: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    env: fc.array(fc.tuple(name, text)).map((pairs) => new Map(pairs)),
    stdin: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  },
  { noNullPrototype: true },
);

/** A request with these fields in its header and so many bytes behind it. */
function request(
  header: { magic?: string; version?: number; env: number; stdin: number },
  rest = "",
): Buffer {
  const bytes = Buffer.alloc(21);
  bytes.write(header.magic ?? "BRTH", 0, "latin1");
  bytes.writeUInt8(header.version ?? 1, 4);
  bytes.writeUInt32BE(header.env, 13);
  bytes.writeUInt32BE(header.stdin, 17);
  return Buffer.concat([bytes, Buffer.from(rest, "latin1")]);
}

function inPieces(bytes: Buffer, cuts: readonly number[]): Decoded<Call>[] {
  const decoder = new CallDecoder();
  const places = [...new Set([0, ...cuts.map((cut) => cut % bytes.length), bytes.length])].sort(
    (a, b) => a - b,
  );
  return places.slice(1).map((end, i) => decoder.push(bytes.subarray(places[i], end)));
}

describe("request frame", () => {
  it("gives back the call that was put in", () => {
    fc.assert(
      fc.property(calls, (call) => {
        assert.deepEqual(decodeCall(encodeCall(call)), { kind: "complete", frame: call });
      }),
    );
  });

  it("is the same call in whatever pieces it comes", () => {
    fc.assert(
      fc.property(calls, fc.array(fc.nat(), { maxLength: 30 }), (call, cuts) => {
        const answers = inPieces(encodeCall(call), cuts);
        assert.deepEqual(answers.pop(), { kind: "complete", frame: call });
        for (const answer of answers) assert.deepEqual(answer, { kind: "incomplete" });
      }),
    );
  });

  it("has the bytes that the client writes", () => {
    const call = { startNs: 258n, env: new Map([["CNI_IFNAME", "e"]]), stdin: Buffer.from("{}") };
    const expected = "425254480100000000000001020000000d00000002434e495f49464e414d453d65007b7d";
    assert.equal(encodeCall(call).toString("hex"), expected);
  });

  it("keeps the first of a repeated variable, as getenv does, and an = in its value", () => {
    const decoded = decodeCall(request({ env: 16, stdin: 0 }, "CNI_A=x=y\0CNI_A=\0".slice(0, 16)));
    assert.equal(decoded.kind, "malformed"); // cut off: no closing zero
    const whole = decodeCall(request({ env: 17, stdin: 0 }, "CNI_A=x=y\0CNI_A=\0"));
    assert.ok(whole.kind === "complete");
    assert.deepEqual([...whole.frame.env], [["CNI_A", "x=y"]]);
  });

  it("replaces what is no UTF-8 in a variable", () => {
    const decoded = decodeCall(request({ env: 8, stdin: 0 }, "CNI_A=\xff\0"));
    assert.ok(decoded.kind === "complete");
    assert.equal(decoded.frame.env.get("CNI_A"), "\ufffd");
  });

  const wrong: [string, Buffer, string][] = [
    ["foreign bytes", Buffer.from("BRTX / HTTP/1.1\r\n"), "it does not begin with BRTH"],
    [
      "another version",
      request({ version: 2, env: 0, stdin: 0 }),
      "its protocol version is 2, this agent speaks 1",
    ],
    [
      "too much environment",
      request({ env: ENV_LIMIT + 1, stdin: 0 }),
      "an environment of 262145 bytes is longer than 262144",
    ],
    [
      "too much stdin",
      request({ env: 0, stdin: STDIN_LIMIT + 1 }),
      "a configuration of 4194305 bytes is longer than 4194304",
    ],
    ["bytes behind it", request({ env: 0, stdin: 1 }, "ab"), "bytes follow the request"],
    [
      "a variable without =",
      request({ env: 6, stdin: 0 }, "CNI_A\0"),
      "the environment is not a list of NAME=VALUE",
    ],
    [
      "a variable without a name",
      request({ env: 3, stdin: 0 }, "=a\0"),
      "the environment is not a list of NAME=VALUE",
    ],
    [
      "an unclosed variable",
      request({ env: 7, stdin: 0 }, "CNI_A=b"),
      "the environment is not a list of NAME=VALUE",
    ],
  ];
  for (const [what, bytes, reason] of wrong) {
    it(`is malformed with ${what}, in one piece and in two`, () => {
      assert.deepEqual(decodeCall(bytes), { kind: "malformed", reason });
      const decoder = new CallDecoder();
      assert.equal(decoder.push(bytes.subarray(0, 3)).kind, "incomplete");
      assert.deepEqual(decoder.push(bytes.subarray(3)), { kind: "malformed", reason });
    });
  }

  it("is judged by its first four bytes", () => {
    const expected = { kind: "malformed", reason: "it does not begin with BRTH" };
    assert.deepEqual(new CallDecoder().push(Buffer.from("GET ")), expected);
  });

  it("never throws, whatever comes", () => {
    const start = fc.constantFrom("", "BRTH", "BRTH\x01");
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 60 }), (head, tail) => {
        const bytes = Buffer.concat([Buffer.from(head, "latin1"), tail]);
        decodeCall(bytes);
        decodeReply(bytes);
        new CallDecoder().push(bytes);
      }),
    );
  });

  it("holds no more memory than the request has bytes", () => {
    const decoder = new CallDecoder();
    decoder.push(request({ env: 0, stdin: 1000 }));
    for (let i = 0; i < 999; i++) decoder.push(Buffer.of(i));
    assert.equal(decoder.held, 1021);
    assert.equal(decoder.push(Buffer.of(0)).kind, "complete");
  });
});

describe("response frame", () => {
  it("gives back the reply that was put in, and nothing before its last byte", () => {
    const replies = fc.record(
      { exitStatus: fc.nat(255), stdout: text, stderr: text },
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(replies, (reply) => {
        const bytes = encodeReply(reply);
        assert.deepEqual(decodeReply(bytes), { kind: "complete", frame: reply });
        assert.deepEqual(decodeReply(bytes.subarray(0, -1)), { kind: "incomplete" });
        assert.equal(decodeReply(Buffer.concat([bytes, Buffer.of(0)])).kind, "malformed");
      }),
    );
  });

  it("has the bytes that the client reads", () => {
    const bytes = encodeReply({ exitStatus: 1, stdout: "é", stderr: "x" });
    assert.equal(bytes.toString("hex"), "4252544801010000000200000001c3a978");
  });

  it("is refused when the client would not take it", () => {
    const half = "x".repeat(REPLY_LIMIT / 2);
    assert.equal(encodeReply({ exitStatus: 0, stdout: half, stderr: half }).length, REPLY_LIMIT + 14);
    assert.throws(() => encodeReply({ exitStatus: 0, stdout: half, stderr: `${half}x` }), {
      code: "INTERNAL",
      message: "a reply of 4194305 bytes is longer than 4194304",
    });
    for (const exitStatus of [-1, 256, 1.5, Number.NaN]) {
      assert.throws(() => encodeReply({ exitStatus, stdout: "", stderr: "" }), { code: "INTERNAL" });
    }
  });
});
