// SPDX-License-Identifier: Apache-2.0
// Who is ended for whom at the bounds of connections, over sockets of both families.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { NetworkHost, skipWithoutNetwork } from "../support/netns.ts";
import type { Cut } from "./networks.ts";

const SCENES = fileURLToPath(new URL("./networks.ts", import.meta.url));
const ADDRESSES = [
  ...[1, 2, 3, 4, 5].map((n) => `fd00:1::${n}/64`),
  ...[1, 2, 3].map((n) => `fd00:2::${n}/64`),
  "fd00:3::1/64",
];

/** Scene -> whose connection is ended, of those that come in turn as `networks.ts` has them. */
const EXPECTED: Cut = {
  // a /64 has the places of one, and whoever comes takes that of the address that has most, and has it longest
  "a network's addresses, one connection each": ["fd00:1::1#1", "fd00:1::2#1"],
  "a network's address with the most": ["fd00:1::2#1"],
  "another network": [],
  "a network that comes when all places are taken": ["fd00:1::1#1"],
  // it displaces its own as others do
  "an address of IPv4": ["127.0.0.2#1"],
  "both families": ["127.0.0.2#1"],
  // of strangers two at a time, of which one that proved itself later has the place
  "strangers of the network of an API server": ["fd00:1::2#1", "fd00:1::3#1", "fd00:1::4#1", "fd00:2::1#1"],
  "strangers at the address of an API server": ["fd00:1::1#2", "fd00:1::1#3"],
};

describe("at the bounds of connections", await skipWithoutNetwork(), () => {
  let host: NetworkHost;

  before(async () => {
    host = await NetworkHost.make();
    for (const address of ADDRESSES) await host.ip("addr", "add", address, "dev", "lo", "nodad");
  });
  after(() => host?.remove());

  it("an address of IPv4 counts as one, and a /64 of IPv6, and neither is put out for the other's sake", async () => {
    const { rc, stdout, stderr } = await host.exec([process.execPath, SCENES]);
    assert.equal(rc, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), EXPECTED);
  });
});
