// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { addr } from "../../test/support/fixtures.ts";
import { fromNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { type Block, holesOf, holesText, isHole, withHole } from "./block.ts";

const BLOCK: Block = {
  cidr: "10.0.0.0/26",
  pool: "db",
  node: "node-a",
  nodeUID: "u",
  holes: ["10.0.0.0/31"],
};

describe("holes of a block", () => {
  it("are what its owner does not give", () => {
    assert.deepEqual([isHole(BLOCK, addr("10.0.0.1")), isHole(BLOCK, addr("10.0.0.2"))], [true, false]);
    const more = withHole(withHole(BLOCK, addr("10.0.0.3")), addr("10.0.0.2"));
    assert.deepEqual(more.holes, ["10.0.0.0/30"]);
    assert.deepEqual(withHole({ ...BLOCK, holes: [] }, addr("fd00::1")).holes, ["fd00::1/128"]);
  });

  it("come back from the text of a record as they were, in few words", () => {
    const property = fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 63 })), (numbers) => {
      const set = new IntervalSet();
      for (const n of numbers) set.add(0x0a00_0000n + BigInt(n));
      const holes = holesText(set, "IPv4");
      assert.deepEqual([...holesOf({ holes })], [...set]);
      assert.ok(holes.length <= numbers.length);
      for (let n = 0; n < 64; n++) {
        const address = fromNumber(0x0a00_0000n + BigInt(n), "IPv4");
        assert.equal(isHole({ holes }, address), numbers.includes(n), address);
      }
    });
    fc.assert(property);
  });

  it("of a whole block are one network", () => {
    assert.deepEqual(holesText([{ first: 0x0a00_0000n, last: 0x0a00_003fn }], "IPv4"), ["10.0.0.0/26"]);
    assert.deepEqual(holesText([{ first: 1n, last: 6n }], "IPv4"), [
      "0.0.0.1/32",
      "0.0.0.2/31",
      "0.0.0.4/31",
      "0.0.0.6/32",
    ]);
    assert.deepEqual(holesText([{ first: 0n, last: (1n << 128n) - 1n }], "IPv6"), ["::/0"]);
  });
});
