// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseResolvConf } from "./add-request.ts";

describe("resolv.conf", () => {
  it("has nameservers, search, options and the last domain", () => {
    const text = [
      "# comment",
      "; another",
      "",
      "nameserver 192.0.2.0",
      "  nameserver\t2001:db8::1   # not a comment to resolv.conf",
      "search example.com example.net",
      "search example.org",
      "options four  five",
      "options ndots:5",
      "domain one.test",
      "domain two.test",
      "sortlist 10.0.0.0",
    ].join("\n");
    assert.deepEqual(parseResolvConf(text), {
      nameservers: ["192.0.2.0", "2001:db8::1"],
      domain: "two.test",
      search: ["example.com", "example.net", "example.org"],
      options: ["four", "five", "ndots:5"],
    });
  });

  it("is nothing when empty, and words without a value are skipped", () => {
    assert.deepEqual(parseResolvConf(""), {});
    assert.deepEqual(parseResolvConf("nameserver\ndomain\nsearch\r\n"), {});
  });
});
