// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Family } from "../../../allocator/ip/address.ts";
import { shortPools, unservedNodes } from "./cilium-messages.ts";
import type { Lack } from "./operator.ts";

const pool = (name: string) => ({ pool: name, length: 28, total: 1n, reason: "full", owners: [] }) as const;
const lack = (node: string, family: Family, ...pools: Lack["pools"]): Lack => ({ node, family, pools });

describe("what is told of Cilium's nodes that lack addresses", () => {
  it("names each family of a pool, and its nodes", () => {
    const lacks = (["IPv4", "IPv6"] as const).flatMap((family) =>
      ["n2", "n1"].map((node) => lack(node, family, pool("a"))),
    );
    const notes = [...shortPools(lacks).values()];
    assert.deepEqual(
      notes.map(({ pool, note }) => [pool, note.split(";")[0]]),
      [
        ["a", "Cilium's pods lack IPv4 addresses and no CIDR of this pool is free, on n1, n2"],
        ["a", "Cilium's pods lack IPv6 addresses and no CIDR of this pool is free, on n1, n2"],
      ],
    );
  });

  it("does not advise another range where pools share their addresses", () => {
    const overlaps = { ...pool("a"), reason: "overlaps", other: "b" } as const;
    const [{ note } = assert.fail()] = shortPools([lack("n1", "IPv4", overlaps)]).values();
    assert.match(note, /shares its addresses with pool b; take the ranges out of one of the two$/);
  });

  it("names the CiliumNode that has so much that there is nothing for others", () => {
    const full = { ...pool("a"), large: { node: "n9", cidr: "10.0.0.0/8" } };
    const [{ note } = assert.fail()] = shortPools([lack("n1", "IPv4", full)]).values();
    assert.match(note, /on n1, and the CiliumNode of n9 has 10\.0\.0\.0\/8, with which/);
  });

  it("is of the node where there is no pool", () => {
    const lacks = [lack("n1", "IPv4"), lack("n2", "IPv4", pool("a"))];
    assert.deepEqual([...unservedNodes(lacks).keys()], ["n1"]);
  });
});
