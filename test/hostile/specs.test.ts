// SPDX-License-Identifier: Apache-2.0
// Pools and claims as nobody writes them: a refusal names the field, and what passes can be used.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { isRefusal } from "../../allocator/base/errors.ts";
import { readClaimRequest } from "../../allocator/manifest/claim-spec.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { capacity, parsePool, rangeOf } from "../../allocator/pool/pool.ts";
import { decodeRecord, encodeRecord } from "../../allocator/store/codec.ts";
import { claimObject } from "../support/objects.ts";
import { evilText, evilValue, mutantOf, runs, SEED } from "./values.ts";

const RANGES = [
  { cidr: "10.20.0.0/24", from: "10.20.0.50", to: "10.20.0.199", gateway: "10.20.0.254" },
  { cidr: "fd00:20::/64", exclude: ["fd00:20::10-fd00:20::1f"] },
];
const POOLS = [
  { ranges: RANGES, reserved: ["10.20.0.50-10.20.0.59"], cooldown: "30s", priority: 1, disabled: false },
  { ranges: [{ cidr: "0.0.0.0/0" }], limits: { perNamespace: 1 }, authorization: "ServiceAccount" },
  { ranges: [{ cidr: "::/0" }], blockSize: { ipv6: 122 }, routes: [{ dst: "::/0", gw: "fd00::1" }] },
];
const CLAIMS = [
  { request: { addresses: ["10.20.0.80", "fd00:20::80"] }, retention: { whenDeleted: "Retain", ttl: "5m" } },
  { request: { pools: ["db"], families: ["IPv4"] }, identity: { kind: "Pod", apiVersion: "v1", name: "a" } },
];

/** Texts where an address, a network or a range belongs, half right. */
const halfRight = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.tuple(fc.ipV4(), fc.integer({ min: -1, max: 40 })).map(([address, length]) => `${address}/${length}`),
  fc.tuple(fc.ipV6(), fc.integer({ min: -1, max: 140 })).map(([address, length]) => `${address}/${length}`),
  fc.tuple(fc.ipV4(), fc.ipV4()).map(([a, b]) => `${a}-${b}`),
  evilText,
);
const range = fc.record(
  {
    cidr: halfRight,
    from: halfRight,
    to: halfRight,
    gateway: halfRight,
    exclude: fc.array(halfRight, { maxLength: 3 }),
  },
  { requiredKeys: ["cidr"] },
);
const made = fc.record(
  {
    ranges: fc.array(range, { maxLength: 4 }),
    reserved: fc.array(halfRight, { maxLength: 2 }),
    cooldown: evilText,
  },
  { requiredKeys: ["ranges"] },
);

describe("hostile specs", () => {
  let cases = 0;
  let passed = 0;

  before(() => console.log(`seed ${SEED}`));
  after(() => console.log(`${cases} specs, ${passed} of them good`));

  it("of pools are refused by a field's name, or make a pool that can be stored and walked", () => {
    const spec = fc.oneof(
      { weight: 2, arbitrary: mutantOf(...POOLS) },
      { weight: 2, arbitrary: made },
      evilValue,
    );
    const name = fc.oneof(fc.constant("db"), evilText);
    fc.assert(
      fc.property(name, spec, (pool, given) => {
        cases++;
        const record = { name: pool, spec: JSON.parse(JSON.stringify(given) ?? "null") };
        const parsed = parsePool(record);
        if (isRefusal(parsed)) return assertWords(parsed.message);
        passed++;
        assert.deepEqual(decodeRecord("pool", pool, encodeRecord("pool", record)), { record });
        for (const family of parsed.families) assert.ok(capacity(parsed, family) >= 0n);
        for (const { gateway } of parsed.ranges) {
          if (gateway !== undefined)
            assert.ok(rangeOf(parsed, gateway) !== undefined || parsed.gateways.has(gateway));
        }
      }),
      runs(10_000),
    );
  });

  it("of claims are refused in words, or make a claim that can be stored", () => {
    const spec = fc.oneof({ weight: 3, arbitrary: mutantOf(...CLAIMS) }, evilValue);
    fc.assert(
      fc.property(spec, (given) => {
        cases++;
        const object = claimObject("later", given as Record<string, unknown>);
        const read = readObject(JSON.parse(JSON.stringify(object)));
        assert.ok(!isRefusal(read));
        const claim = readClaimRequest(read);
        if (isRefusal(claim)) return assertWords(claim.message);
        passed++;
        assert.deepEqual(decodeRecord("claim", "shop/later", encodeRecord("claim", claim)), {
          record: claim,
        });
      }),
      runs(8_000),
    );
  });
});

function assertWords(words: string): void {
  assert.ok(words.length > 0 && words.length < 1_000, `${words.length} characters: ${words.slice(0, 200)}`);
}
