// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { errorOf, NodeBench } from "../testing/node-bench.ts";

let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
  });
  afterEach(() => node.close());
}

describe("CHECK", () => {
  setUp();

  const check = (asked: object = {}) => node.call("CHECK", asked);
  const fine = { exitStatus: 0, stdout: "", stderr: "" };

  it("is content right after ADD, and after a restart", async () => {
    await node.add();
    assert.deepEqual(await check(), fine);
    await node.restart();
    assert.deepEqual(await check(), fine);
  });

  it("tolerates what other plugins added, and not that an address of ours is missing", async () => {
    await node.add();
    const ips = [
      { address: "10.1.2.2/24", gateway: "10.1.2.9", interface: 2 },
      { address: "192.168.0.9/16" },
    ];
    const prevResult = {
      cniVersion: "1.0.0",
      interfaces: [{ name: "eth0" }],
      ips,
      routes: [{ dst: "1.0.0.0/8" }],
    };
    assert.deepEqual(await check({ conf: { prevResult } }), fine);
    const error = errorOf(await check({ conf: { prevResult: { ips: ips.slice(1) } } }));
    assert.deepEqual([error.code, error.msg], [152, "10.1.2.2 of eth0 is missing in prevResult"]);
    assert.equal(errorOf(await check({ conf: { prevResult: { ips: "x" } } })).code, 6);
  });

  it("misses what was never attached or is gone, and what is another interface's", async () => {
    const words = "Failed to find address added by container c1 for eth1 in network net";
    await node.add();
    assert.deepEqual(errorOf(await check({ ifname: "eth1" })), {
      cniVersion: "1.1.0",
      code: 151,
      msg: words,
    });
    await node.del();
    assert.equal(errorOf(await check()).code, 151);
  });

  it("looks at the version first", async () => {
    assert.equal(errorOf(await check({ conf: { cniVersion: "0.3.1", ipam: "x" } })).code, 1);
    assert.equal(errorOf(await check({ conf: { ipam: "x" } })).code, 6);
  });

  it("compares written addresses and their gateways with prevResult, which must be there", async () => {
    const ipam = { addresses: [{ address: "10.10.0.1/24", gateway: "10.10.0.254" }] };
    const withGateway = (gateway: string) => ({
      ipam,
      conf: { prevResult: { ips: [{ address: "10.10.0.1/24", gateway }] } },
    });
    for (const attached of [false, true]) {
      if (attached) await node.add({ ipam });
      assert.equal(errorOf(await check({ ipam })).msg, "Required prevResult missing");
      assert.deepEqual(await check(withGateway("10.10.0.254")), fine);
      assert.equal(
        errorOf(await check(withGateway("10.10.0.1"))).msg,
        "Failed to match addr 10.10.0.1 on interface eth0",
      );
    }
  });
});
