// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { peerOf } from "./peer.ts";

describe("a peer", () => {
  it("is an address of IPv4, or a /64 of IPv6", () => {
    for (const [remoteAddress, peer] of [
      ["10.0.0.1", "10.0.0.1"],
      ["::ffff:10.0.0.1", "10.0.0.1"],
      ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
      ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
      ["2001:db8:1::9", "2001:db8:1:0::/64"],
      ["2001:db8::3:4:5:6:7", "2001:db8:0:3::/64"],
      ["2001:db8::", "2001:db8:0:0::/64"],
      ["fe80::1%eth0", "fe80:0:0:0::/64"],
      ["::1", "0:0:0:0::/64"],
      [undefined, "local"],
    ] as const)
      assert.equal(peerOf({ remoteAddress }), peer);
  });
});
