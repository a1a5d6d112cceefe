// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyAddress } from "../../test/api/records.ts";
import { familyOf } from "../ip/address.ts";
import { addressOfName, reservationName } from "./codec.ts";
import { addr } from "./contract/samples.ts";

describe("codec: object names", () => {
  const rows: readonly [string, string][] = [
    ["10.20.0.51", "10.20.0.51"],
    ["0.0.0.0", "0.0.0.0"],
    ["2001:db8::1", "2001-0db8-0000-0000-0000-0000-0000-0001"],
    ["::", "0000-0000-0000-0000-0000-0000-0000-0000"],
    ["fd00:20::51", "fd00-0020-0000-0000-0000-0000-0000-0051"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff-ffff-ffff-ffff-ffff-ffff-ffff-ffff"],
  ];
  for (const [address, name] of rows) {
    it(`${address} is ${name} and back`, () => {
      assert.equal(reservationName(addr(address)), name);
      assert.equal(addressOfName(name), address);
    });
  }

  it("are DNS subdomains, differ for different addresses, and lead back", () => {
    fc.assert(
      fc.property(anyAddress, (address) => {
        const name = reservationName(address);
        assert.match(name, /^[a-z0-9]+(?:[-.][a-z0-9]+)*$/);
        assert.equal(addressOfName(name), address);
        assert.equal(name.includes("-"), familyOf(address) === "IPv6");
      }),
    );
  });

  it("have one form only", () => {
    const others = [
      "",
      "db",
      "fd00::1",
      "fd00-20--51",
      "FD00-0020-0000-0000-0000-0000-0000-0051",
      "10-20-0-51",
    ];
    const mapped = "0000-0000-0000-0000-0000-ffff-0a14-0033";
    for (const name of [...others, mapped, "010.20.0.51", "10.20.0.51-"])
      assert.equal(addressOfName(name), undefined, name);
  });
});
