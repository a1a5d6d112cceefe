// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseAddress } from "../../allocator/ip/address.ts";
import { formatSet, subnetOf } from "./range-set.ts";
import { type Extras, ipamOf, wordsOf } from "./testing/ipam-parts.ts";

describe("range sets", () => {
  const setsOf = (ipam: object, extras: Extras = {}) => ipamOf(ipam, extras).rangeSets.map(formatSet);
  const gatewayOf = (range: object) => ipamOf(range).rangeSets[0]?.[0].gateway;

  it("have the defaults of host-local", () => {
    assert.deepEqual(setsOf({ subnet: "192.0.2.0/24" }), ["192.0.2.1-192.0.2.254"]);
    assert.deepEqual(setsOf({ subnet: "192.0.2.0/25" }), ["192.0.2.1-192.0.2.126"]);
    assert.deepEqual(setsOf({ subnet: "192.0.2.12/30" }), ["192.0.2.13-192.0.2.14"]);
    assert.deepEqual(setsOf({ subnet: "2001:DB8:1::/64" }), [
      "2001:db8:1::1-2001:db8:1:0:ffff:ffff:ffff:ffff",
    ]);
    assert.deepEqual(setsOf({ subnet: "fd00::/126" }), ["fd00::1-fd00::3"]);
    assert.equal(gatewayOf({ subnet: "192.0.2.0/24" }), "192.0.2.1");
    assert.equal(gatewayOf({ subnet: "fd00::/64", gateway: "" }), "fd00::1");
    assert.equal(gatewayOf({ subnet: "10.0.0.0/24", gateway: "192.168.9.9" }), "192.168.9.9");
  });

  it("come from the runtime, then from the single range, then from the list", () => {
    const ipam = {
      subnet: "10.1.2.0/24",
      rangeStart: "10.1.2.9",
      rangeEnd: "10.1.2.20",
      ranges: [[{ subnet: "11.1.2.0/24" }, { subnet: "12.1.2.0/24" }]],
    };
    const rest = { runtimeConfig: { irrelevant: "a", ipRanges: [[{ subnet: "13.1.3.0/24" }]] } };
    assert.deepEqual(setsOf(ipam, { rest }), [
      "13.1.3.1-13.1.3.254",
      "10.1.2.9-10.1.2.20",
      "11.1.2.1-11.1.2.254,12.1.2.1-12.1.2.254",
    ]);
  });

  it("are none without a subnet, even if bounds are there", () => {
    for (const ipam of [{}, { rangeStart: "10.0.0.1" }, { subnet: null, ranges: null }])
      assert.deepEqual(setsOf(ipam), []);
  });

  it("are refused in the words of host-local", () => {
    const table: readonly (readonly [object, string])[] = [
      [{ subnet: "" }, "invalid CIDR address: "],
      [{ subnet: "10.1.2.0" }, "invalid CIDR address: 10.1.2.0"],
      [{ subnet: "10.01.2.0/24" }, "invalid CIDR address: 10.01.2.0/24"],
      [{ subnet: "10.1.2.0/33" }, "invalid CIDR address: 10.1.2.0/33"],
      [{ subnet: "::ffff:10.1.2.0/120" }, "IPNet IP and Mask version mismatch"],
      [{ subnet: "192.0.2.0/31" }, "Network 192.0.2.0/31 too small to allocate from"],
      [{ subnet: "fd00::/127" }, "Network fd00::/127 too small to allocate from"],
      [
        { subnet: "192.0.2.12/24" },
        "Network has host bits set. For a subnet mask of length 24 the network address is 192.0.2.0",
      ],
      [
        { subnet: "192.0.2.0/24", rangeStart: "192.0.3.0" },
        "RangeStart 192.0.3.0 not in network 192.0.2.0/24",
      ],
      [{ subnet: "192.0.2.0/24", rangeEnd: "fd00::1" }, "RangeEnd fd00::1 not in network 192.0.2.0/24"],
      [
        { subnet: "192.0.2.0/24", rangeStart: "192.0.2.50", rangeEnd: "192.0.2.40" },
        "RangeEnd 192.0.2.40 not in network 192.0.2.0/24",
      ],
      [{ subnet: "192.0.2.0/24", rangeStart: "nope" }, "invalid IP address: nope"],
      [{ subnet: "192.0.2.0/24", gateway: "1.2.3" }, "invalid IP address: 1.2.3"],
      [
        { subnet: "192.0.2.0/24", gateway: "fd00::1" },
        "gateway fd00::1 is IPv6, network 192.0.2.0/24 is IPv4",
      ],
    ];
    for (const [range, words] of table) assert.equal(wordsOf(range), `invalid range set 0: ${words}`);
  });

  it("must not be empty, mixed or overlapping", () => {
    const [a, b, v6] = [{ subnet: "10.1.0.0/22" }, { subnet: "10.1.2.0/24" }, { subnet: "2001:db8:5::/64" }];
    assert.equal(wordsOf({ ranges: [[]] }), "invalid range set 0: empty range set");
    assert.equal(wordsOf({ ranges: [[a], null] }), "invalid range set 1: empty range set");
    assert.equal(wordsOf({ ranges: [[a, v6]] }), "invalid range set 0: mixed address families");
    assert.equal(
      wordsOf({ ranges: [[a, b]] }),
      "invalid range set 0: subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap",
    );
    assert.equal(wordsOf({ ranges: [[v6], [a], [b]] }), "range set 1 overlaps with 2");
    assert.equal(
      setsOf({ ranges: [[{ ...b, rangeEnd: "10.1.2.127" }], [{ ...b, rangeStart: "10.1.2.128" }]] }).length,
      2,
    );
    assert.equal(setsOf({ ranges: [[{ subnet: "0.0.0.0/24" }], [{ subnet: "::/24" }]] }).length, 2);
  });

  it("have no room for two of a family up to 0.2.0", () => {
    const ranges = [[{ subnet: "10.1.2.0/24" }], [{ subnet: "11.1.2.0/24" }]];
    for (const version of ["0.1.0", "0.2.0"] as const) {
      assert.equal(
        wordsOf({ ranges }, { version }),
        `CNI version ${version} does not support more than 1 address per family`,
      );
    }
    assert.equal(setsOf({ ranges }, { version: "0.3.0" }).length, 2);
    assert.equal(
      setsOf({ ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "fd00::/64" }]] }, { version: "0.2.0" })
        .length,
      2,
    );
  });

  it("know the subnet of an address within their bounds", () => {
    const [set] = ipamOf({
      ranges: [[{ subnet: "10.0.0.0/24", rangeEnd: "10.0.0.9" }, { subnet: "10.0.1.0/24" }]],
    }).rangeSets;
    assert.ok(set !== undefined);
    const textOf = (text: string) => {
      const address = parseAddress(text);
      return address && subnetOf(set, address)?.cidr.text;
    };
    assert.equal(textOf("10.0.0.9"), "10.0.0.0/24");
    assert.equal(textOf("10.0.1.9"), "10.0.1.0/24");
    assert.equal(textOf("10.0.0.10"), undefined);
    assert.equal(textOf("::a00:5"), undefined); // the same number in the other family
  });
});
