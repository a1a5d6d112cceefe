// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import { addressesOf, errorOf, NodeBench } from "../testing/node-bench.ts";

const FULL_DISK = new BerthError("STORE_FULL", "the disk is full");

let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
  });
  afterEach(() => node.close());
}

describe("ADD", () => {
  setUp();

  it("gives each interface of each container an address of its own", async () => {
    assert.deepEqual(await node.add({ cid: "a" }), ["10.1.2.2"]);
    assert.deepEqual(await node.add({ cid: "a", ifname: "eth1" }), ["10.1.2.3"]);
    assert.deepEqual(await node.add({ cid: "b" }), ["10.1.2.4"]);
  });

  it("gives the same answer again, in whatever version it is asked", async () => {
    const first = await node.add();
    const again = await node.call("ADD", { conf: { cniVersion: "0.2.0" } });
    assert.equal(JSON.parse(again.stdout).ip4.ip, `${first[0]}/24`);
    assert.deepEqual(node.held, first);
    await node.restart();
    assert.deepEqual(await node.add(), first);
  });

  it("refuses to change what an attachment has", async () => {
    await node.add({ args: "IP=10.1.2.77" });
    assert.deepEqual(await node.add({ args: "IP=10.1.2.77" }), ["10.1.2.77"]);
    assert.deepEqual(errorOf(await node.call("ADD", { args: "IP=10.1.2.78" })), {
      cniVersion: "1.1.0",
      code: 152,
      msg: "eth0 of container c1 has 10.1.2.77 and asks for 10.1.2.78 now; delete it first",
    });
    assert.deepEqual(node.held, ["10.1.2.77"]);
  });

  it("that began before the DEL is refused, and one that began after it is not", async () => {
    const early = node.nextNs();
    await node.del();
    const late = errorOf(await node.call("ADD", { startNs: early }));
    assert.deepEqual([late.code, late.msg], [150, "the sandbox was deleted while this ADD was under way"]);
    await node.restart();
    assert.equal(errorOf(await node.call("ADD", { startNs: early })).code, 150);
    assert.deepEqual(node.held, []);
    assert.equal((await node.add()).length, 1);
  });

  it("holds two networks apart, and two dataDirs of one network", async () => {
    for (const conf of [
      { name: "a" },
      { name: "b" },
      { name: "a", ipam: { subnet: "10.1.2.0/24", dataDir: "/other" } },
    ]) {
      assert.deepEqual(await node.add({ conf }), ["10.1.2.2"]);
    }
    await node.del({ conf: { name: "a" } });
    assert.deepEqual(node.held, ["10.1.2.2", "10.1.2.2"]);
    assert.deepEqual(await node.add({ cid: "c2", conf: { name: "b" } }), ["10.1.2.3"]);
  });

  it("takes all addresses or none", async () => {
    const ipam = { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "10.1.3.0/30" }]] };
    assert.deepEqual(await node.add({ cid: "a", ipam }), ["10.1.2.2", "10.1.3.2"]);
    assert.deepEqual(errorOf(await node.call("ADD", { cid: "b", ipam })), {
      cniVersion: "1.1.0",
      code: 107,
      msg: "failed to allocate for range 1: no IP addresses available in range set: 10.1.3.1-10.1.3.2",
      details: "POOL_EXHAUSTED",
    });
    const twice = { args: { cni: { ips: ["10.1.2.88", "10.1.2.77"] } } };
    assert.equal(
      errorOf(await node.call("ADD", { cid: "c", ipam: { subnet: "10.1.2.0/24" }, conf: twice })).code,
      101,
    );
    assert.deepEqual(node.held, ["10.1.2.2", "10.1.3.2"]);
  });

  it("that cannot be journalled takes nothing, and the address goes to the next", async () => {
    node.diskFault = FULL_DISK;
    const failed = errorOf(await node.call("ADD"));
    assert.deepEqual([failed.code, failed.msg, failed.details], [5, "the disk is full", "STORE_FULL"]);
    assert.deepEqual(node.held, []);
    node.diskFault = undefined;
    assert.deepEqual(await node.add({ args: "IP=10.1.2.2" }), ["10.1.2.2"]);
  });

  it("gives different addresses to many at once, also while they are being written", async () => {
    const answers = await Promise.all(
      Array.from({ length: 110 }, (_, i) => node.call("ADD", { cid: `c${i}` })),
    );
    const given = answers.flatMap(addressesOf);
    assert.equal(new Set(given).size, 110);
    assert.equal(node.held.length, 110);
  });

  it("gives an address to one of those who ask for it at once", async () => {
    const asked = ["a", "b", "c"].map((cid) => node.call("ADD", { cid, args: "IP=10.1.2.77" }));
    const statuses = (await Promise.all(asked)).map(({ exitStatus }) => exitStatus);
    assert.deepEqual(statuses, [0, 1, 1]);
    assert.deepEqual(node.held, ["10.1.2.77"]);
  });

  it("twice at once for one place gives one address", async () => {
    const answers = await Promise.all([node.call("ADD"), node.call("ADD"), node.call("ADD")]);
    assert.deepEqual(answers.flatMap(addressesOf), ["10.1.2.2", "10.1.2.2", "10.1.2.2"]);
    assert.deepEqual(node.held, ["10.1.2.2"]);
  });

  it("goes round the range, also after a restart", async () => {
    const ipam = { subnet: "10.1.2.0/29" };
    const given: string[] = [];
    for (let i = 0; i < 6; i++) {
      given.push(...(await node.add({ cid: `c${i}`, ipam })));
      await node.del({ cid: `c${i}`, ipam });
      if (i === 2) await node.restart();
    }
    assert.deepEqual(
      given.map((text) => text.slice(-1)),
      ["2", "3", "4", "5", "6", "2"],
    );
  });

  it("refuses the host's own namespace before it takes anything, unless told otherwise", async () => {
    await node.close();
    node = await NodeBench.open();
    node.host.present.add("/proc/self/ns/net");
    await node.restart();
    const refused = errorOf(await node.call("ADD", { netns: "/proc/self/ns/net" }));
    assert.deepEqual(
      [refused.code, refused.msg],
      [8, "plugin's netns and netns from CNI_NETNS should not be the same"],
    );
    assert.deepEqual(node.held, []);
    assert.equal((await node.add({ netns: "/proc/self/ns/net", override: "1" })).length, 1);
    await node.del({ netns: "/proc/self/ns/net" });
    assert.deepEqual(node.held, []);
  });

  it("has the name servers of resolvConf, and takes nothing when it cannot be read", async () => {
    const ipam = { subnet: "10.1.2.0/24", resolvConf: "/etc/resolv.conf" };
    const failed = errorOf(await node.call("ADD", { ipam }));
    assert.deepEqual(
      [failed.code, failed.msg],
      [5, "ipam.resolvConf cannot be read: ENOENT: no such file or directory, open '/etc/resolv.conf'"],
    );
    assert.deepEqual(node.held, []);
    node.host.files.set("/etc/resolv.conf", "nameserver 192.0.2.3\n");
    const answer = await node.call("ADD", { ipam });
    assert.deepEqual(JSON.parse(answer.stdout).dns, { nameservers: ["192.0.2.3"] });
  });

  it("gives written addresses to whoever asks, and keeps no one from them", async () => {
    const ipam = { addresses: [{ address: "10.10.0.1/24" }] };
    assert.deepEqual(await node.add({ cid: "a", ipam }), ["10.10.0.1"]);
    assert.deepEqual(await node.add({ cid: "b", ipam }), ["10.10.0.1"]);
    assert.deepEqual(node.held, []);
  });

  it("without any source says what to configure, and what serves pods that ask for nothing", async () => {
    const refused = async (ipam: object) => {
      const { code, msg } = errorOf(await node.call("ADD", { ipam }));
      assert.equal(code, 7);
      return msg;
    };
    const cut = "a pool with blockSize (32 and 128: one address at a time)";
    assert.equal(
      await refused({}),
      `no IP ranges specified: network net needs ipam.pools, ipam.ranges or ipam.addresses; or make ${cut} that selects the pod or says default: true`,
    );
    node.blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24")));
    const none = "the pod asks for no address, and no pool of network net serves such pods:";
    const instead = `name ${cut} in ipam.pools, annotate the pod with berth.dev/pools, or give the network ipam.ranges`;
    assert.equal(
      await refused({ pools: ["db", "web"] }),
      `${none} "db" was made without blockSize: {ipv4: 32}, "web" is not there; ${instead}`,
    );
  });

  it("is given up when the client has gone", async () => {
    const args = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=p";
    const gone = errorOf(await node.call("ADD", { args, signal: AbortSignal.abort() }));
    assert.equal(gone.code, 11);
    assert.deepEqual(node.claimSource.asked, []);
    assert.deepEqual(node.held, []);
  });
});

describe("an answer that is lost", () => {
  setUp();

  it("is taken back, as a DEL would", async () => {
    await node.add({}, "lost");
    assert.deepEqual(node.held, []);
    assert.deepEqual(await node.add(), ["10.1.2.3"]);
  });

  it("is given anew to the same client, which asks once more when the agent hung up, and to none before it", async () => {
    await node.add({ startNs: 7n }, "lost");
    assert.deepEqual(await node.add({ startNs: 7n }, "lost"), ["10.1.2.3"]);
    const before = await node.call("ADD", { startNs: 6n });
    assert.match(before.stdout, /the sandbox was deleted while this ADD was under way/);
    assert.deepEqual(node.held, []);
  });

  it("is not taken back when the attachment is another one by now", async () => {
    const first = await node.call("ADD");
    await node.del();
    const second = await node.add();
    await first.settle?.("lost");
    assert.deepEqual(node.held, second);
  });

  it("is not taken back when another answer about it got through", async () => {
    const first = await node.call("ADD");
    const again = await node.call("ADD");
    await first.settle?.("lost");
    await again.settle?.("delivered");
    assert.deepEqual(node.held, ["10.1.2.2"]);
  });

  it("is not taken back when the runtime asks again meanwhile, and hears of it", async () => {
    const first = await node.call("ADD");
    const again = node.call("ADD");
    const key = `/var/lib/cni/networks\0net\0c1\0eth0`;
    for (let i = 0; i < 10_000 && !node.parts.locks.isBusy(key); i++) await Promise.resolve();
    assert.ok(node.parts.locks.isBusy(key), "it has its turn");
    const settled = first.settle?.("lost");
    const answer = await again;
    await answer.settle?.("delivered");
    await settled;
    assert.deepEqual(node.held, addressesOf(answer));
  });

  it("is taken back when no answer about it got through, whichever was lost last", async () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const answers = [await node.call("ADD"), await node.call("ADD")];
      for (const i of order) await answers[i]?.settle?.("lost");
      assert.deepEqual(node.held, []);
    }
  });
});
