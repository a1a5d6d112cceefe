// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isCniError } from "./errors.ts";
import { Fields } from "./json-fields.ts";
import { readPrevious } from "./prev-result.ts";

const read = (prevResult: unknown) => readPrevious(new Fields({ prevResult }));

describe("prevResult", () => {
  it("is none when absent or null", () => {
    assert.equal(readPrevious(new Fields({})), undefined);
    assert.equal(read(null), undefined);
  });

  it("has the addresses of the whole chain, in the form of any version", () => {
    assert.deepEqual(
      read({ ips: [{ version: "4", address: "10.0.0.1/24", gateway: "10.0.0.254", interface: 0 }] }),
      [{ address: "10.0.0.1", gateway: "10.0.0.254" }],
    );
    assert.deepEqual(read({ ip4: { ip: "10.0.0.1/24" }, ip6: { ip: "FD00::1/64", gateway: "" } }), [
      { address: "10.0.0.1" },
      { address: "fd00::1" },
    ]);
    assert.deepEqual(read({}), []);
  });

  it("is refused when it cannot be read", () => {
    for (const value of [
      "x",
      { ips: "x" },
      { ips: [{}] },
      { ips: [{ address: "x/24" }] },
      { ips: [{ address: 5 }] },
    ]) {
      const error = read(value);
      assert.ok(isCniError(error), JSON.stringify(value));
      assert.equal(error.code, 6);
    }
  });
});
