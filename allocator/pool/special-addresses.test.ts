// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../base/errors.ts";
import type { RangeSpec } from "../ip/ip-range.ts";
import { parsePool } from "./pool.ts";
import { givesSpecialAddresses } from "./special-addresses.ts";

function said(...ranges: readonly RangeSpec[]): string | undefined {
  const pool = parsePool({ name: "p", spec: { ranges } });
  assert.ok(!isRefusal(pool), isRefusal(pool) ? pool.message : "");
  return givesSpecialAddresses(pool)?.message;
}

describe("MAC addresses in a pool", () => {
  const range = { cidr: "fe80::/64", from: "fe80::ff:fe00:0", to: "fe80::ff:fe00:ffff" };
  const reported = (reserved: readonly string[], of: RangeSpec = range) => {
    const pool = parsePool({ name: "p", spec: { ranges: [of], reserved } });
    assert.ok(!isRefusal(pool), isRefusal(pool) ? pool.message : "");
    return givesSpecialAddresses(pool)?.message;
  };

  it("are the link-local addresses that they make, of one maker, and reserved", () => {
    assert.equal(reported(["fe80::ff:fe00:0-fe80::ff:fe00:ffff"]), undefined);
    assert.equal(
      reported(["fe80::ff:fe00:0-fe80::ff:fe00:fffe"]),
      "spec.ranges[0] has MAC addresses, which pods have by request alone; write it into spec.reserved, too",
    );
    const several = { ...range, to: "fe80::100:ff:fe00:0" };
    assert.match(
      reported(["fe80::ff:fe00:0-fe80::100:ff:fe00:0"], several) ?? "",
      /\(link-local\); take them out/,
    );
  });
});

describe("addresses that no pod can have", () => {
  for (const [cidr, words] of [
    ["0.0.0.0/32", "0.0.0.0 (unspecified)"],
    ["127.0.0.0/8", "127.0.0.1-127.255.255.254 (loopback)"],
    ["0.0.0.0/0", "127.0.0.0-127.255.255.255 (loopback)"],
    ["169.254.7.0/24", "169.254.7.1-169.254.7.254 (link-local)"],
    ["224.0.0.0/4", "224.0.0.1-239.255.255.254 (multicast)"],
    ["255.255.255.255/32", "255.255.255.255 (limited broadcast)"],
    ["::/128", ":: (unspecified)"],
    ["::/112", "::1 (loopback)"],
    ["fe80::/126", "fe80::1-fe80::3 (link-local)"],
    ["ff02::/126", "ff02::1-ff02::3 (multicast)"],
  ] as const) {
    it(`are refused: ${cidr}`, () => {
      assert.equal(
        said({ cidr }),
        `spec.ranges[0] has addresses that no pod can have: ${words}; take them out`,
      );
    });
  }

  it("are none of a network's own, of documentation, of benchmarks, nor of 240.0.0.0/4", () => {
    for (const cidr of [
      ...["0.0.0.0/24", "100.64.0.0/10", "126.0.0.0/8", "128.0.0.0/8", "192.0.2.0/24", "198.18.0.0/15"],
      ...["223.255.255.0/24", "240.0.0.0/4", "2001:db8::/32", "fc00::/7", "64:ff9b::/96", "fec0::/10"],
    ])
      assert.equal(said({ cidr }), undefined, cidr);
  });

  it("may lie in the network, where the range excludes them or ends before", () => {
    assert.equal(said({ cidr: "126.0.0.0/7", to: "126.255.255.255" }), undefined);
    assert.equal(said({ cidr: "126.0.0.0/7", exclude: ["127.0.0.0/8"] }), undefined);
    assert.match(said({ cidr: "126.0.0.0/7", exclude: ["127.0.0.1"] }) ?? "", /127\.0\.0\.0 \(loopback\)/);
  });
});
