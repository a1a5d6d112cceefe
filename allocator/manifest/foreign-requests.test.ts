// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ANNOTATION_FORMATS } from "./annotations.ts";
import { FOREIGN_KEYS, foreignRequests, judgeForeign, NETWORKS } from "./foreign-requests.ts";

describe("what a pod asks of other systems", () => {
  it("is told by name, in a line that the API server passes on whole, with what to write", () => {
    for (const { key, system, instead } of FOREIGN_KEYS) {
      const [line = "", ...more] = foreignRequests({ [key]: "x" });
      assert.equal(
        line,
        `annotation ${key} is ${system}'s, and berth does not read it; write ${instead} for an address of berth's`,
      );
      assert.deepEqual(more, []);
      assert.ok(line.length <= 256, key);
      assert.ok(!ANNOTATION_FORMATS.some((dialect) => dialect.key === key), key);
    }
  });

  it("is told of kube-ovn's further interfaces, whatever they are called", () => {
    for (const key of ["macvlan.default.kubernetes.io/ip_address", "a.b.kubernetes.io/ip_pool.net1"]) {
      assert.deepEqual(foreignRequests({ [key]: "10.0.0.1" }), [
        `annotation ${key} is kube-ovn's, for a further interface, and berth does not read it`,
      ]);
    }
    assert.deepEqual(foreignRequests({ "node.kubernetes.io/ip_addressing": "x", app: "a" }), []);
  });

  it("is told of Multus' networks only if they have addresses", () => {
    const told = (value: string) => foreignRequests({ [NETWORKS]: value });
    assert.match(told('[{"name":"a","ips":["10.0.0.1/24"]}]').join(), /first interface$/);
    for (const value of [
      "a, b/c@net1",
      '[{"name":"a"}]',
      '[{"name":"ips"}]',
      "[",
      '[{"name":"a","ips":[]}]',
    ]) {
      assert.deepEqual(told(value), [], value);
    }
  });

  it("is a warning, a refusal or nothing, as the administrator says", () => {
    const asking = foreignRequests({ "ovn.kubernetes.io/ip_address": "10.16.0.15" });
    const words =
      "annotation ovn.kubernetes.io/ip_address is kube-ovn's, and berth does not read it; write berth.dev/ips for an address of berth's";
    assert.deepEqual(judgeForeign(asking, "warn"), [words]);
    assert.deepEqual(judgeForeign(asking, "ignore"), []);
    assert.deepEqual(judgeForeign([], "refuse"), []);
    const refused = judgeForeign(asking, "refuse");
    assert.equal("message" in refused && refused.message, `${words}, or remove it`);
  });
});
