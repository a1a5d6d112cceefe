// SPDX-License-Identifier: Apache-2.0
// Whoever writes to the store itself passes no schema: what a record costs is bounded by how much there is of each part.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../base/errors.ts";
import { decodeRecord, encodeRecord } from "./codec.ts";
import { fullClaim } from "./contract/samples.ts";

type Fields = Readonly<Record<string, unknown>>;

const claim = fullClaim("mysql-0");

/** As a stranger's text has it. */
function read(changes: Fields) {
  return decodeRecord("claim", "shop/mysql-0", JSON.stringify({ v: 1, record: { ...claim, ...changes } }));
}

function refusal(changes: Fields): string {
  try {
    read(changes);
  } catch (error) {
    assert.ok(error instanceof BerthError && error.code === "STATE_CORRUPT", String(error));
    return error.message;
  }
  return "";
}

/** The first of them is wrong in itself, too: a refusal that does not say so looked at no entry. */
const wrongAnd = (count: number) => [7, ...Array.from({ length: count }, () => "10.20.0.51")];
const named = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [n === 0 ? "no/name" : `net${n}`, value]));

describe("codec: a record with more than the schema allows is told before its entries are read", () => {
  for (const [words, changes] of [
    ["claim.addresses has more than 16 entries", { addresses: wrongAnd(16) }],
    ["claim.request.addresses has more than 16 entries", { request: { addresses: wrongAnd(16) } }],
    ["claim.request.pools has more than 256 entries", { request: { pools: wrongAnd(256) } }],
    ["claim.request.families has more than 16 entries", { request: { families: wrongAnd(16) } }],
    ["claim.request.interfaces has more than 8 interfaces", { request: { interfaces: named(9, []) } }],
    [
      "claim.request.interfaces.net1 has more than 16 entries",
      { request: { interfaces: { net1: wrongAnd(16) } } },
    ],
    ["claim.request.interfacePools has more than 8 interfaces", { request: { interfacePools: named(9, 7) } }],
    [
      "claim.request.interfacePools.net1 has more than 256 entries",
      { request: { interfacePools: { net1: wrongAnd(256) } } },
    ],
    ["claim.interfaces has more than 8 interfaces", { interfaces: named(9, []) }],
    ["claim has more than 64 fields that are not known here", named(65 + Object.keys(claim).length, 1)],
    [
      "claim.identity has more than 64 fields that are not known here",
      { identity: { ...claim.identity, ...named(65, 1) } },
    ],
  ] as const) {
    it(words, () => {
      assert.ok(refusal(changes).includes(`${words};`), refusal(changes));
    });
  }

  it("and one with as much as it allows is read, and written with all that is not known of it", () => {
    const unknown = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`newer${n}`, { n }]));
    const identity = { ...claim.identity, ...unknown };
    const found = read({ ...unknown, identity, request: { pools: Array.from({ length: 256 }, () => "db") } });
    const text = encodeRecord("claim", found.record, {
      ...found,
      unknown: [...(found.unknown ?? []), { path: [], key: "__proto__", value: { zone: "a" } }],
    });
    const written = (JSON.parse(text) as { record: Fields }).record;
    for (const [key, value] of Object.entries(unknown)) {
      assert.deepEqual(written[key], value);
      assert.deepEqual((written["identity"] as Fields)[key], value);
    }
    assert.deepEqual(Object.getOwnPropertyDescriptor(written, "__proto__")?.value, { zone: "a" });
  });
});
