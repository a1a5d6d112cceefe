// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, parsed, poolRecord } from "../../test/support/fixtures.ts";
import type { Pool } from "../pool/pool.ts";
import { ofOtherPools } from "./named-addresses.ts";

const [blk, fix] = ["blk", "fix"].map((name) => parsed(poolRecord(name, "10.90.0.0/24"))) as [Pool, Pool];
const far = parsed(poolRecord("far", "10.91.0.0/24"));
const view = {
  poolOf: () => blk,
  pool: (name: string) => [blk, fix, far].find((one) => one.name === name),
};
const why = (...pools: string[]) => ofOtherPools(view, { pools }, [addr("10.90.0.9")])?.code;

describe("an address and the pools that are named", () => {
  it("go together where two pools have it and either is named", () => {
    assert.deepEqual([why("blk"), why("fix"), why("fix/IPv4"), why("far", "fix")], Array(4).fill(undefined));
  });

  it("do not where the pool that is named has not got it", () => {
    assert.deepEqual([why("far"), why("fix/IPv6"), why("none")], Array(3).fill("ADDRESS_OUTSIDE"));
  });
});
