// SPDX-License-Identifier: Apache-2.0
// What a body may cost whoever decodes it: 50 ms of the event loop for each MiB, and 4 times its size in memory.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { collect } from "../../test/hostile/growth.ts";
import { decode } from "./json.ts";

const MIB = 1024 * 1024;
/** Long enough to be measured, and for what grows with the square of the size to show. */
const SIZE = 2 * MIB;
/** JSON.parse takes some 5 ms for a MiB of pods, and a test can be on a machine of any speed. */
const MOST_TIME = 10;
const MOST_MEMORY = 4;
/** Beside what values take: pieces of the heap that are half empty. */
const SLACK = 0.25;

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-0", namespace: "shop", labels: { app: "web" }, annotations: { a: "10.20.0.70" } },
  spec: { nodeName: "node-a", hostNetwork: false, tolerations: [{ key: "a", operator: "Exists" }] },
};

/** The piece again and again, `SIZE` bytes long with what is around it. */
function repeated(piece: string, open = "[", close = "1]"): string {
  const times = Math.floor((SIZE - open.length - close.length) / Buffer.byteLength(piece));
  return `${open}${piece.repeat(times)}${close}`;
}

function keyed(key: (i: number) => string, value: string): string {
  const parts: string[] = [];
  for (let size = 0; size < SIZE; size += parts.at(-1)?.length ?? 1) {
    parts.push(`${JSON.stringify(key(parts.length))}:${value},`);
  }
  return `{${parts.join("")}"last":0}`;
}

const text = (length: number) => `"${"x".repeat(length)}",`;
const BODIES: Readonly<Record<string, string>> = {
  "a list of pods": repeated(`${JSON.stringify(POD)},`),
  "__proto__ in a value, as long as it gets": repeated("__proto__", '["', '"]'),
  "values __proto__": repeated('"__proto__",'),
  "objects with a value __proto__": repeated('{"a":"__proto__"},'),
  "keys that look like __proto__ until their end": keyed(
    (i) => `__proto_${i}`,
    '"'.concat("v".repeat(150), '"'),
  ),
  "keys of escapes": keyed((i) => `\u0001\u0002__proto__${i}`, '"'.concat("v".repeat(150), '"')),
  "one text": repeated("x", '["', '"]'),
  "one text with a character of two bytes": repeated("x", '["€', '"]'),
  "one text of characters of three bytes": repeated("€", '["', '"]'),
  "one text of escapes": repeated("\\u0000", '["', '"]'),
  "one text of backslashes": repeated("\\\\", '["', '"]'),
  "texts of 20": repeated(text(20)),
  "texts of 100": repeated(text(100)),
  "empty objects": repeated("{},"),
  "empty lists": repeated("[],"),
  "numbers of one digit": repeated("1,"),
  "long numbers": repeated("0.12345678901234567,"),
  "numbers that are hard to read": repeated("1e308,"),
  "keys of their own": keyed((i) => `${"k".repeat(150)}${i}`, "0"),
  "keys that are numbers": keyed((i) => String(4_000_000_000 - 97 * i), `"${"v".repeat(200)}"`),
  "lists in lists": repeated(`${"[".repeat(900)}${"]".repeat(900)},`),
  "brackets that open": repeated("[", "", ""),
  space: repeated(" "),
  "space after keys": repeated(`"a"${" ".repeat(1_000)},`),
  "space between keys and values": repeated(`{"a"${" ".repeat(1_000)}:${" ".repeat(1_000)}1},`),
  "what is left out": repeated('{"name":"x"},', '{"containers":[', "1]}"),
  "what is left out, again and again": repeated('{"containers":[1,2,3,4],"volumes":{}},'),
  "what is left out and does not end": repeated('{"containers":[{"volumes":{', "", ""),
};

/** Of the processor, whatever else the machine does: the least of three times. */
function costOf(work: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3; i++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, user + system);
  }
  return least;
}

function parsed(body: string): void {
  try {
    JSON.parse(Buffer.from(body).toString());
  } catch {
    // takes its time all the same
  }
}

/** As a body has it: in memory of its own. */
function bytesOf(body: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(body));
  bytes.write(body);
  return bytes;
}

function inUse(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe("decoding a body", () => {
  const ordinary = costOf(() => parsed(BODIES["a list of pods"] ?? ""));

  for (const [name, body] of Object.entries(BODIES)) {
    it(`costs no more than its size allows: ${name}`, () => {
      const cost = costOf(() => void decode(bytesOf(body)));
      const times = cost / ordinary;
      assert.ok(times < MOST_TIME, `${times.toFixed(1)} times what JSON.parse takes for pods of that size`);
    });

    it(`takes no more memory than its size allows: ${name}`, () => {
      const size = Buffer.byteLength(body);
      const before = inUse();
      const held = [decode(bytesOf(body))];
      const values = inUse() - before;
      // while values are made the text that they are made from is there, too
      const whole = values + body.length * (body.includes("€") ? 2 : 1);
      assert.equal(held.length, 1);
      assert.ok(whole < (MOST_MEMORY + SLACK) * size, `${(whole / size).toFixed(1)} times its size`);
    });
  }
});
