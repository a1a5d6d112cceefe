// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { BODY_LIMIT, readBody, uidFromPrefix } from "./request-body.ts";

const UID = "705ab4f5-6393-11e8-b7cc-42010a800002";
const BEGINNING = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"${UID}","kind":{}`;

function chunks(...texts: (string | Buffer)[]): Readable {
  return Readable.from(texts.map((text) => Buffer.from(text)));
}

const place = { grow: () => undefined };

function read(stream: Readable, limit: number = BODY_LIMIT) {
  return readBody(stream, { limit, place, signal: new AbortController().signal });
}

describe("readBody", () => {
  it("joins chunks, even where they cut a character in two", async () => {
    const ship = Buffer.from("\u{1f6a2}");
    const body = await read(chunks("a", ship.subarray(0, 2), ship.subarray(2), "b"));
    assert.ok(body.kind === "whole");
    assert.equal(body.bytes.toString(), "a\u{1f6a2}b");
  });

  it("reads an empty body", async () => {
    assert.deepEqual(await read(chunks()), { kind: "whole", bytes: Buffer.alloc(0) });
  });

  it("takes exactly the limit, and no byte more", async () => {
    assert.equal((await read(chunks("12", "345"), 5)).kind, "whole");
    assert.deepEqual(await read(chunks("12", "345", "6"), 5), {
      kind: "too large",
      prefix: Buffer.from("123456"),
    });
  });

  it("has room for two objects of the API server's largest request", () => {
    assert.ok(BODY_LIMIT >= 2 * 3 * 1024 * 1024 && BODY_LIMIT >= 8_000_000 && BODY_LIMIT < 9_000_000);
  });

  it("reads a large body to its end but keeps only how it begins", async () => {
    let left = 64;
    const stream = new Readable({
      read() {
        this.push(left-- > 0 ? Buffer.alloc(1024, "x") : null);
      },
    });
    const body = await read(stream, 4096);
    assert.ok(body.kind === "too large");
    assert.equal(body.prefix.length, 1024);
    assert.equal(stream.readableEnded, true);
  });

  it("cuts off a body without end", async () => {
    const endless = new Readable({
      read() {
        this.push(Buffer.alloc(2 ** 20));
      },
    });
    assert.deepEqual(await read(endless), { kind: "lost" });
    assert.equal(endless.destroyed, true);
  });

  it("keeps how a large body begins when the beginning comes in pieces", async () => {
    const body = await read(chunks(...Array.from(BEGINNING)), 10);
    assert.ok(body.kind === "too large");
    assert.equal(uidFromPrefix(body.prefix), UID);
  });

  it("is read no further when it comes in very many small pieces", async () => {
    const pieces = (count: number, size: number) => chunks(...Array<string>(count).fill("x".repeat(size)));
    assert.equal((await read(pieces(256, 1))).kind, "whole");
    assert.equal((await read(pieces(3_000, 256))).kind, "whole");
    for (const stream of [pieces(257, 255), pieces(100_000, 1)]) {
      const body = await read(stream);
      assert.ok(body.kind === "in pieces");
      assert.equal(body.prefix[0], 120);
    }
  });

  it("gives up when the signal aborts, and listens no more", async () => {
    const stream = new Readable({ read() {} });
    stream.push(BEGINNING);
    const late = new AbortController();
    const reading = readBody(stream, { limit: BODY_LIMIT, place, signal: late.signal });
    await new Promise((tick) => setImmediate(tick));
    late.abort("slow");
    assert.deepEqual(await reading, { kind: "slow", prefix: Buffer.from(BEGINNING) });
    assert.equal(stream.listenerCount("data"), 0);
    assert.deepEqual(await readBody(chunks("a"), { limit: 10, place, signal: AbortSignal.abort("slow") }), {
      kind: "slow",
      prefix: Buffer.alloc(0),
    });
  });

  it("is lost, not rejected, when the client goes away", async () => {
    const stream = new Readable({ read() {} });
    stream.push("begin");
    const reading = read(stream);
    stream.destroy(new Error("aborted"));
    assert.deepEqual(await reading, { kind: "lost" });
  });
});

describe("uidFromPrefix", () => {
  for (const { name, text, uid } of [
    { name: "finds it where the API server writes it", text: BEGINNING, uid: UID },
    { name: "finds it among spaces", text: '{ "request" : {\n "uid" : "u-1" , "x', uid: "u-1" },
    {
      name: "does not take the uid of another object",
      text: '{"object":{"metadata":{"uid":"pod"}}}',
      uid: "",
    },
    { name: "does not take a uid that is not whole", text: '{"request":{"uid":"705a', uid: "" },
    { name: "does not take an escaped one", text: '{"request":{"uid":"a\\"b"}}', uid: "" },
    { name: "does not take one that is too long", text: `{"request":{"uid":"${"u".repeat(129)}"}}`, uid: "" },
    { name: "does not look far", text: `${" ".repeat(1024)}${BEGINNING}`, uid: "" },
    { name: "finds nothing in garbage", text: "\u0000\u0001garbage", uid: "" },
  ]) {
    it(name, () => assert.equal(uidFromPrefix(Buffer.from(text)), uid));
  }
});
