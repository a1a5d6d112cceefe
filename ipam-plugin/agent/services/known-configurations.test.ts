// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { cniError, isCniError } from "../../cni/errors.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";
import { ipamOf } from "../../cni/testing/ipam-parts.ts";
import { NodeBench } from "../testing/node-bench.ts";
import { KnownConfigurations } from "./known-configurations.ts";

describe("configurations that were read", () => {
  let known: KnownConfigurations;
  let reads: number;
  beforeEach(() => {
    known = new KnownConfigurations();
    reads = 0;
  });

  function ask(network: string, text: string | Buffer): IpamConfig {
    const found = known.ipam(network, Buffer.from(text), () => {
      reads++;
      return ipamOf({ subnet: "10.1.2.0/24" });
    });
    return isCniError(found) ? assert.fail(found.msg) : found;
  }

  it("are read once for the same bytes of a network", () => {
    const first = ask("lan", "one");
    assert.equal(ask("lan", "one"), first);
    assert.notEqual(ask("wan", "one"), first);
    assert.equal(reads, 2);
    assert.notEqual(ask("lan", "two"), first);
    assert.notEqual(ask("lan", "one"), first);
    assert.equal(reads, 4);
  });

  it("are kept apart from the buffer that they came in", () => {
    const stdin = Buffer.from("one");
    known.ipam("lan", stdin, () => ipamOf({ subnet: "10.1.2.0/24" }));
    stdin.write("two");
    ask("lan", "two");
    assert.equal(reads, 1);
    ask("lan", "two");
    assert.equal(reads, 1);
  });

  it("are not kept when they are refused, very long, or of very many networks", () => {
    for (let i = 0; i < 2; i++) known.ipam("lan", Buffer.from("bad"), () => refuse());
    assert.equal(reads, 2);
    const long = Buffer.alloc(16 * 1024 + 1, " ");
    for (let i = 0; i < 2; i++) ask("lan", long);
    assert.equal(reads, 4);
    for (let i = 0; i < 65; i++) ask(`lan-${i}`, "one");
    ask("lan-64", "one");
    assert.equal(reads, 69);
    ask("lan-0", "one");
    assert.equal(reads, 70);
  });

  it("serve each ADD of their network, but for an address that one pod asks for", async () => {
    const node = await NodeBench.open();
    try {
      const read: unknown[] = [];
      const { configurations } = node.parts;
      const ipam = configurations.ipam.bind(configurations);
      configurations.ipam = (network, stdin, work) =>
        ipam(network, stdin, () => {
          read.push(network);
          return work();
        });
      node.ipam = { ranges: [[{ subnet: "10.20.0.0/24" }]] };
      assert.deepEqual(await node.add({ cid: "a" }), ["10.20.0.2"]);
      assert.deepEqual(await node.add({ cid: "b" }), ["10.20.0.3"]);
      assert.deepEqual(await node.add({ cid: "c", args: "IP=10.20.0.77" }), ["10.20.0.77"]);
      assert.deepEqual(await node.add({ cid: "d" }), ["10.20.0.78"]);
      assert.equal(read.length, 1);
      node.ipam = { ranges: [[{ subnet: "10.30.0.0/24" }]] };
      assert.deepEqual(await node.add({ cid: "e" }), ["10.30.0.2"]);
    } finally {
      await node.close();
    }
  });

  function refuse() {
    reads++;
    return cniError("INVALID_CONFIG", "bad");
  }
});
