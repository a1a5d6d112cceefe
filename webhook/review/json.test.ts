// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Decoded, decode, decodeInSteps } from "./json.ts";
import { BODY_LIMIT } from "./request-body.ts";

const BEGINNING =
  '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","kind":{}';

describe("decode", () => {
  it("decodes any JSON as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        fc.pre(!text.includes("__proto__"));
        assert.deepEqual(decode(Buffer.from(text)), { kind: "json", value: JSON.parse(text) });
      }),
    );
  });

  it("does not count brackets in texts, nor ends a text at an escaped quote", () => {
    for (const value of ["[".repeat(5000), `\\"${"{".repeat(5000)}`, "\\", '"'.repeat(3000)]) {
      const text = JSON.stringify({ [value]: [value] });
      assert.deepEqual(decode(Buffer.from(text)), { kind: "json", value: JSON.parse(text) });
    }
  });

  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  for (const { name, text, why } of [
    { name: "nothing", text: "", why: "it is not JSON" },
    { name: "garbage", text: "\u0000\u0001{{{", why: "it is not JSON" },
    { name: "half a document", text: BEGINNING, why: "it is not JSON" },
    { name: "two documents", text: "{}{}", why: "it is not JSON" },
    { name: "a text without end", text: '{"a":"b\\', why: "it is not JSON" },
    { name: "1001 lists in each other", text: nested(1001), why: "it is nested deeper than 1000" },
    { name: "8 MiB of opening brackets", text: "[".repeat(BODY_LIMIT), why: "it is nested deeper than 1000" },
    {
      name: "8 MiB of objects in each other",
      text: '{"a":'.repeat(1_600_000),
      why: "it is nested deeper than 1000",
    },
    { name: "a key __proto__", text: '{"a":[{"__proto__":{"b":1}}]}', why: "it has a key __proto__" },
    {
      name: "a key __proto__ in escapes",
      text: '{"\\u005f_proto_\\u005F":1}',
      why: "it has a key __proto__",
    },
    {
      name: "keys __proto__ to the last depth",
      text: `${'{"__proto__":'.repeat(1000)}1${"}".repeat(1000)}`,
      why: "it has a key __proto__",
    },
  ]) {
    it(`refuses ${name}`, () => {
      assert.deepEqual(decode(Buffer.from(text)), { kind: "unreadable", why });
    });
  }

  it("takes 1000 lists in each other, and __proto__ as a value", () => {
    assert.equal(decode(Buffer.from(nested(1000))).kind, "json");
    assert.deepEqual(decode(Buffer.from('["__proto__"]')), { kind: "json", value: ["__proto__"] });
  });

  it("takes __proto__ in values of any length, also where it looks like a key", () => {
    const long = `"__proto__":${"__proto__".repeat(200_000)}\\"__proto__\\":{}`;
    const text = JSON.stringify({ a: [long, "__proto__"], b: '{"__proto__":1}', c: "\\u005f_proto__" });
    assert.deepEqual(decode(Buffer.from(text)), { kind: "json", value: JSON.parse(text) });
    const key = "it has a key __proto__";
    assert.deepEqual(decode(Buffer.from(`{"a":"${"_".repeat(1_000_000)}","__proto__" : 1}`)), {
      kind: "unreadable",
      why: key,
    });
  });

  describe("what Berth never reads", () => {
    for (const { name, text, value } of [
      {
        name: "lists and objects are not decoded",
        text: '{"a":1,"containers":[{"name":"x"}],"volumes":{"b":[2]},"c":3}',
        value: { a: 1, containers: null, volumes: null, c: 3 },
      },
      {
        name: "at any depth, with space around it",
        text: '{"spec" : {"managedFields"\n:\t[ {"a":"]"} ] , "z":[1]}}',
        value: { spec: { managedFields: null, z: [1] } },
      },
      {
        name: "whatever they hold, a key __proto__ and a thousand depths too",
        text: `{"initContainers":[{"__proto__":1},${"[".repeat(5000)}${"]".repeat(5000)}],"a":2}`,
        value: { initContainers: null, a: 2 },
      },
      {
        name: "several, one behind the other and one within the other",
        text: '{"ephemeralContainers":[{"volumes":[1,2,3]}],"containers":[[[]]],"z":"containers"}',
        value: { ephemeralContainers: null, containers: null, z: "containers" },
      },
      {
        name: "but other values of the key are, and what is too short to be left out",
        text: '{"containers":"[1,2]","volumes":7,"b":{"containers":[]},"managedFields":{}}',
        value: { containers: "[1,2]", volumes: 7, b: { containers: [] }, managedFields: {} },
      },
      {
        name: "and other keys, and the word as a value",
        text: '{"containersX":[1,2,3],"xvolumes":{"a":[1]},"a":["containers",[1,2,3]],"Containers":[1,2]}',
        value: {
          containersX: [1, 2, 3],
          xvolumes: { a: [1] },
          a: ["containers", [1, 2, 3]],
          Containers: [1, 2],
        },
      },
    ]) {
      it(name, () => {
        assert.deepEqual(decode(Buffer.from(text)), { kind: "json", value });
      });
    }

    it("which does not end is no JSON", () => {
      for (const text of ['{"containers":[1,2,3,4', '{"containers":[{"a":"]}]}', '{"volumes":{"a":[}}'])
        assert.deepEqual(decode(Buffer.from(text)), { kind: "unreadable", why: "it is not JSON" });
    });
  });

  describe("more values than the size allows", () => {
    const why = "it is made of more values than its size allows";
    const list = (value: string, n: number) => `[${`${value},`.repeat(n)}0]`;
    for (const [value, n] of [
      ["{}", 200_000],
      ["[]", 200_000],
      ['{"a":{}}', 50_000],
      ["1", 500_000],
      ['""', 500_000],
      ['"__proto__"', 100_000],
    ] as const) {
      it(`are refused: ${n} of ${value}`, () => {
        assert.deepEqual(decode(Buffer.from(list(value, n))), { kind: "unreadable", why });
      });
    }

    // what JSON.parse reads in one piece, with 8 MiB about it: without a bound of their number each is taken
    for (const [what, value, n] of [
      ["texts", `"${"x".repeat(40)}"`, 150_000],
      ["lists", `["${"x".repeat(100)}"]`, 60_000],
      ["numbers", "0.1234567890", 600_000],
      ["keys", `{"${"x".repeat(140)}":0}`, 40_000],
    ] as const) {
      it(`are refused however large the body is: ${n} ${what}`, () => {
        const reported = "it is made of more values than two objects of Kubernetes may have";
        assert.deepEqual(decode(Buffer.from(list(value, n))), { kind: "unreadable", why: reported });
        const half = decode(Buffer.from(list(value, n / 2)));
        assert.equal(half.kind, "json", "half as many are taken");
      });
    }

    it("are taken in a small body, and where they are left out", () => {
      assert.equal(decode(Buffer.from(list("{}", 2_000))).kind, "json");
      assert.deepEqual(decode(Buffer.from(`{"containers":${list("{}", 200_000)}}`)), {
        kind: "json",
        value: { containers: null },
      });
    });

    it("are few enough in an object as large as an API server keeps, of lines of text", () => {
      const data = Object.fromEntries(
        Array.from({ length: 1_500 }, (_, i) => [`key-${i}`, "x".repeat(1_000)]),
      );
      const text = JSON.stringify({ kind: "ConfigMap", data });
      assert.deepEqual(decode(Buffer.from(text)), { kind: "json", value: JSON.parse(text) });
    });
  });

  it("takes two lists of 20,000 addresses, as the change of a pool has them", () => {
    const excluded = Array.from(
      { length: 20_000 },
      (_, i) => `2001:db8:${(i >> 8).toString(16)}::${i & 255}`,
    );
    const object = { spec: { ranges: [{ cidr: "2001:db8::/32", excluded }] } };
    const text = JSON.stringify({ request: { object, oldObject: object } });
    assert.equal(decode(Buffer.from(text)).kind, "json");
  });

  it("comes to the same in steps, however short they are", () => {
    const keys = ["a", "containers", "volumes", "managedFields", "__proto__", '\\"'];
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.constantFrom(0, "", "text", '"\\', "\\\\", "[{", "€"),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.array(fc.tuple(fc.constantFrom(...keys), tie("value")), { maxLength: 4 }).map(Object.fromEntries),
      ),
    })).value;
    const text = fc.oneof(
      fc
        .tuple(value, fc.constantFrom(undefined, 1))
        .map(([from, indent]) => JSON.stringify(from, null, indent)),
      fc.array(fc.constantFrom(...'[]{}"\\:,1 a', '"volumes":')).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 9 }), (body, stepBytes) => {
        assert.deepEqual(inSteps(Buffer.from(body), stepBytes).decoded, decode(Buffer.from(body)));
      }),
      { numRuns: 500 },
    );
  });

  for (const { name, body } of [
    { name: "one text", body: JSON.stringify("\u0000".repeat(1_000_000)) },
    { name: "texts", body: JSON.stringify(Array.from({ length: 20_000 }, () => "x".repeat(60))) },
    {
      name: "what is left out",
      body: JSON.stringify({ containers: ["x".repeat(600_000), [["x".repeat(600_000)]]] }),
    },
    { name: "space", body: `[${" ".repeat(1_000_000)}]` },
  ]) {
    it(`takes a step for each so many bytes: ${name}`, () => {
      const { steps, decoded } = inSteps(Buffer.from(body), 50_000);
      assert.equal(decoded.kind, "json");
      assert.ok(steps >= Math.floor(body.length / 50_000) / 2, `${steps} steps for ${body.length} bytes`);
    });
  }

  it("never throws, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const decoded = decode(Buffer.from(bytes));
        assert.ok(decoded.kind === "json" || decoded.why !== "");
      }),
    );
  });
});

function inSteps(bytes: Buffer, stepBytes: number): { readonly decoded: Decoded; readonly steps: number } {
  const working = decodeInSteps(bytes, stepBytes);
  for (let steps = 1; ; steps++) {
    const { done, value } = working.next();
    if (done === true) return { decoded: value, steps };
  }
}
