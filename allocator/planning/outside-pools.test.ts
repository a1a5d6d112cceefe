// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, DB_POOL, parsed, poolRecord, viewOf } from "../../test/support/fixtures.ts";
import { addressOutside, notInPools } from "./outside-pools.ts";
import { entryRefusal } from "./refusal-messages.ts";

describe("an address in no range of a pool", () => {
  it("is told the ranges of the family, or that there is none", () => {
    assert.equal(
      addressOutside(viewOf({ pools: [poolRecord("web", "10.30.0.0/29")] }), addr("fd00::1")).message,
      "address fd00::1 is in no pool; there is no IPv6 pool, create an IPPool first",
    );
    const six = poolRecord("six", "fd00:10::/48", { nodeCIDRs: { use: "PodCIDR", blockSize: { ipv6: 64 } } });
    assert.equal(
      addressOutside(viewOf({ pools: [six] }), addr("fd00::1")).message,
      "address fd00::1 is in no pool; there is no IPv6 pool for pods, create an IPPool first",
    );
    const many = viewOf({
      pools: Array.from({ length: 9 }, (_, n) => poolRecord(`p${n}`, `10.${n}.0.0/29`)),
    });
    assert.equal(
      addressOutside(many, addr("10.99.0.1")).message,
      'address 10.99.0.1 is in no pool; name one of a pool: "p0" 10.0.0.1-10.0.0.6, "p1" 10.1.0.1-10.1.0.6, "p2" 10.2.0.1-10.2.0.6, "p3" 10.3.0.1-10.3.0.6, "p4" 10.4.0.1-10.4.0.6 and 4 more',
    );
  });

  it("may be the gateway of a pool, which is told as of one within its range", () => {
    const range = { cidr: "10.40.0.0/24", from: "10.40.0.50", to: "10.40.0.99", gateway: "10.40.0.254" };
    const led = { name: "led", spec: { ranges: [range] } };
    const view = viewOf({ pools: [DB_POOL, led] });
    const { code, message, details } = addressOutside(view, addr("10.40.0.254"));
    assert.deepEqual([code, details], ["ADDRESS_EXCLUDED", { address: "10.40.0.254", pool: "led" }]);
    const near = "free nearby: 10.40.0.99, 10.40.0.98, 10.40.0.97";
    assert.equal(message, `address 10.40.0.254 is the gateway of pool "led"; ${near}`);
    assert.equal(
      entryRefusal(view, parsed(DB_POOL), addr("10.20.0.100"))?.message,
      'address 10.20.0.100 is the gateway of pool "db"; free nearby: 10.20.0.99, 10.20.0.101, 10.20.0.98',
    );
    // who may not know of the pool is not told of its gateway
    assert.match(
      addressOutside(view, addr("10.40.0.254"), ({ name }) => name === "db").message,
      /^address 10\.40\.0\.254 is in no pool; name one of a pool: "db" 10\.20\.0\.50-10\.20\.0\.199$/,
    );
  });

  it("is told no ends that nobody gets", () => {
    const ends = { gateway: "10.30.0.1", exclude: ["10.30.0.240-10.30.0.254", "10.30.0.2"] };
    const lone = { cidr: "10.31.0.0/30", gateway: "10.31.0.1", exclude: ["10.31.0.2"] };
    const ranges = [{ cidr: "10.30.0.0/24", ...ends }, lone];
    const view = viewOf({ pools: [{ name: "web", spec: { ranges } }] });
    assert.equal(
      addressOutside(view, addr("10.9.0.1")).message,
      'address 10.9.0.1 is in no pool; name one of a pool: "web" 10.30.0.3-10.30.0.239',
    );
  });

  it("is looked up without advice for a request", () => {
    const view = viewOf({ pools: [DB_POOL] });
    assert.equal(
      notInPools(view, addr("10.9.0.1")).message,
      'address 10.9.0.1 is in no pool; pools have: "db" 10.20.0.50-10.20.0.199',
    );
    assert.equal(
      notInPools(viewOf({}), addr("fe80::600:ff:fe00:51")).message,
      "MAC address 04:00:00:00:00:51 is in no pool; there is no pool of MAC addresses",
    );
    assert.equal(
      notInPools(viewOf({}), addr("10.9.0.1")).message,
      "address 10.9.0.1 is in no pool; there is no IPv4 pool",
    );
  });
});
