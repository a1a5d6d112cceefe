// SPDX-License-Identifier: Apache-2.0
// JSON of any size, of each kind that could cost whoever decodes it much for its size: deep, of many values, of long ones, of escapes.

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-0", namespace: "shop", labels: { app: "web" }, annotations: { a: "10.20.0.70" } },
  spec: { nodeName: "node-a", hostNetwork: false, tolerations: [{ key: "a", operator: "Exists" }] },
};

/** A body of about so many bytes. */
export type SizedBody = (size: number) => string;

/** The piece again and again, with what is around it. */
function repeated(piece: string, open = "[", close = "1]"): SizedBody {
  return (size) => {
    const times = Math.floor((size - open.length - close.length) / Buffer.byteLength(piece));
    return `${open}${piece.repeat(times)}${close}`;
  };
}

function keyed(key: (i: number) => string, value: string): SizedBody {
  const piece = (i: number) => `${JSON.stringify(key(i))}:${value},`;
  return (size) => `{${pieces(piece, size)}"last":0}`;
}

function listed(value: (i: number) => string): SizedBody {
  return (size) => `[${pieces((i) => `${JSON.stringify(value(i))},`, size)}0]`;
}

function pieces(piece: (i: number) => string, size: number): string {
  const parts: string[] = [];
  for (let left = size; left > 0; left -= parts.at(-1)?.length ?? 1) parts.push(piece(parts.length));
  return parts.join("");
}

const text = (length: number) => `"${"x".repeat(length)}",`;
export const SIZED_BODIES: Readonly<Record<string, SizedBody>> = {
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
  "texts of their own": listed((i) => String(i).padStart(24, "k")),
  "empty objects": repeated("{},"),
  "empty lists": repeated("[],"),
  "numbers of one digit": repeated("1,"),
  "long numbers": repeated("0.12345678901234567,"),
  "numbers that are hard to read": repeated("1e308,"),
  "keys of their own": keyed((i) => `${"k".repeat(150)}${i}`, "0"),
  "short keys of their own": keyed((i) => `k${i}`, '""'),
  "short keys of their own, with texts": keyed((i) => `k${i}`, `"${"v".repeat(100)}"`),
  "keys that are numbers": keyed((i) => String(4_000_000_000 - 97 * i), `"${"v".repeat(200)}"`),
  "lists in lists": repeated(`${"[".repeat(900)}${"]".repeat(900)},`),
  "objects in objects": repeated(`${'{"a":'.repeat(900)}1${"}".repeat(900)},`),
  "objects in objects, with long keys": repeated(
    `${`{"${"a".repeat(200)}":`.repeat(900)}1${"}".repeat(900)},`,
  ),
  "one number": repeated("1", "[", "]"),
  "numbers of a hundred digits": repeated(`${"1234567890".repeat(10)},`),
  "brackets that open": repeated("[", "", ""),
  space: repeated(" "),
  "space after keys": repeated(`"a"${" ".repeat(1_000)},`),
  "space between keys and values": repeated(`{"a"${" ".repeat(1_000)}:${" ".repeat(1_000)}1},`),
  "what is left out": repeated('{"name":"x"},', '{"containers":[', "1]}"),
  "what is left out, again and again": repeated('{"containers":[1,2,3,4],"volumes":{}},'),
  "what is left out and does not end": repeated('{"containers":[{"volumes":{', "", ""),
};
