// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../allocator/errors.ts";
import { VERSIONS } from "../cni/versions.ts";
import { addressesOf, errorOf, NodeBench } from "./testing/node-bench.ts";

const FULL_DISK = new BerthError("STORE_FULL", "the disk is full");

let node: NodeBench;
beforeEach(async () => {
  node = await NodeBench.open();
});
afterEach(() => node.close());

describe("any call", () => {
  it("without a command says what the plugin is, and succeeds", async () => {
    const answer = await node.call("");
    assert.deepEqual([answer.exitStatus, answer.stdout], [0, ""]);
    assert.ok(answer.stderr.includes("CNI protocol versions supported: 0.1.0, 0.2.0,"), answer.stderr);
  });

  it("is judged by its environment, then stdin, then command, then version", async () => {
    assert.equal(
      errorOf(await node.call("ADD", { cid: "-", stdin: "{" })).msg,
      "invalid characters in containerID",
    );
    assert.equal(errorOf(await node.call("add", { stdin: "{" })).code, 6);
    assert.deepEqual(errorOf(await node.call("add", { conf: { cniVersion: "9.9.9" } })), {
      cniVersion: "1.1.0",
      code: 4,
      msg: "unknown CNI_COMMAND: add",
    });
    assert.equal(errorOf(await node.call("ADD", { conf: { cniVersion: "9.9.9", ipam: "x" } })).code, 1);
  });

  it("that fails is answered in the version of the configuration", async () => {
    for (const version of VERSIONS) {
      const answer = await node.call("ADD", { ipam: {}, conf: { cniVersion: version } });
      assert.equal(JSON.parse(answer.stdout).cniVersion, version);
      assert.equal(answer.stderr, "");
    }
  });

  it("for VERSION needs nothing else", async () => {
    const answer = await node.call("VERSION", { cid: "", ifname: "", stdin: "not json" });
    assert.deepEqual(JSON.parse(answer.stdout).supportedVersions, [...VERSIONS]);
  });
});

describe("ADD", () => {
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

  it("without any source says what to configure", async () => {
    const nothing = errorOf(await node.call("ADD", { ipam: {} }));
    assert.deepEqual(
      [nothing.code, nothing.msg],
      [7, "no IP ranges specified: network net needs ipam.pools, ipam.ranges or ipam.addresses"],
    );
    const pools = errorOf(await node.call("ADD", { ipam: { pools: ["db"] } }));
    assert.deepEqual(
      [pools.code, pools.msg],
      [7, "ipam.pools needs K8S_POD_NAMESPACE and K8S_POD_NAME in CNI_ARGS; the runtime does not send both"],
    );
  });

  it("is given up when the client has gone", async () => {
    const args = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=p";
    const gone = errorOf(await node.call("ADD", { args, signal: AbortSignal.abort() }));
    assert.equal(gone.code, 11);
    assert.deepEqual(node.mooring.asked, []);
    assert.deepEqual(node.held, []);
  });
});

describe("an answer that is lost", () => {
  it("is taken back, as a DEL would", async () => {
    await node.add({}, "lost");
    assert.deepEqual(node.held, []);
    assert.deepEqual(await node.add(), ["10.1.2.3"]);
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

describe("DEL", () => {
  it("succeeds for what was never attached, twice, and without a netns", async () => {
    await node.del({ cid: "unknown" });
    await node.del({ cid: "unknown", netns: "" });
  });

  it("leaves other interfaces, containers and networks alone", async () => {
    await node.add({ cid: "a" });
    const kept = [...(await node.add({ cid: "a", ifname: "eth1" })), ...(await node.add({ cid: "b" }))];
    await node.del({ cid: "a" });
    await node.del({ cid: "b", conf: { name: "other" } });
    assert.deepEqual(node.held, kept);
  });

  it("does not need a configuration that makes sense, known arguments or a known version", async () => {
    const odd: readonly object[] = [
      { ipam: {} },
      { ipam: { subnet: 5, ranges: "x", routes: [{}] } },
      { conf: { ipam: "x" } },
      { conf: { ipam: null } },
      { conf: { cniVersion: "9.9.9" } },
      { conf: { cniVersion: 1 } },
      { conf: { prevResult: "x" } },
      { conf: { prevResult: { ips: [{ address: "10.1.2.99/24" }] } } },
      { args: "FOO=BAR" },
      { args: "IP=x" },
      { ipam: { subnet: "10.77.0.0/24" } },
    ];
    for (const asked of odd) {
      await node.add();
      await node.del(asked);
      assert.deepEqual(node.held, [], JSON.stringify(asked));
    }
  });

  it("needs to know the network", async () => {
    assert.equal(errorOf(await node.call("DEL", { stdin: "{" })).code, 6);
    assert.equal(errorOf(await node.call("DEL", { conf: { name: "" } })).code, 7);
  });

  it("that began before the attachment was made does not touch it", async () => {
    const early = node.nextNs();
    const given = await node.add();
    await node.del({ startNs: early });
    assert.deepEqual(node.held, given);
  });

  it("that began before an ADD was repeated does not touch what that one was answered", async () => {
    const given = await node.add();
    const early = node.nextNs();
    node.host.present.add("/run/netns/next");
    assert.deepEqual(await node.add({ netns: "/run/netns/next" }), given);
    await node.restart();
    await node.del({ startNs: early });
    assert.deepEqual(node.held, given);
    const [{ netns, netnsSeen } = assert.fail()] = node.parts.attachments.attached();
    assert.deepEqual([netns, netnsSeen], ["/run/netns/next", true]);
    await node.del();
    assert.deepEqual(node.held, []);
  });

  it("ends an ADD that waits, and what the ADD would have given", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.mooring.finding = promise;
    const adding = node.call("ADD", { args: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=p" });
    while (node.mooring.asked.length === 0) await new Promise(setImmediate);
    await node.del();
    assert.equal(errorOf(await adding).code, 11);
    resolve();
    await new Promise(setImmediate);
    assert.deepEqual(node.held, []);
  });

  it("that cannot be journalled is left to the client's spool", async () => {
    const given = await node.add();
    node.diskFault = FULL_DISK;
    const answer = await node.call("DEL");
    assert.equal(answer.exitStatus, 75);
    assert.ok(!/not found|no such file/i.test(answer.stdout), "runtimes take these words for success");
    assert.deepEqual(node.held, given);
    node.diskFault = undefined;
    await node.del();
    assert.deepEqual(node.held, []);
  });
});

describe("CHECK", () => {
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

describe("GC", () => {
  const gc = (value: unknown, asked: object = {}) =>
    node.call("GC", {
      cid: "",
      ifname: "",
      netns: "",
      conf: { "cni.dev/valid-attachments": value },
      ...asked,
    });
  const fine = { exitStatus: 0, stdout: "", stderr: "" };

  it("frees what is not listed, in this network only", async () => {
    await node.add({ cid: "a" });
    await node.add({ cid: "b" });
    await node.add({ cid: "a", ifname: "eth1" });
    await node.add({ cid: "a", conf: { name: "other", ipam: { subnet: "10.9.9.0/24" } } });
    assert.deepEqual(
      await gc([
        { containerID: "a", ifname: "eth0" },
        { containerID: "unknown", ifname: "eth0" },
      ]),
      fine,
    );
    assert.deepEqual(node.held, ["10.1.2.2", "10.9.9.2"]);
    assert.deepEqual(await gc([]), fine);
    assert.deepEqual(await gc(null), fine);
    assert.deepEqual(node.held, ["10.9.9.2"]);
    await node.restart();
    assert.deepEqual(node.held, ["10.9.9.2"]);
  });

  it("frees nothing when the list is absent or malformed", async () => {
    const given = await node.add();
    const absent = await node.call("GC");
    assert.deepEqual([absent.exitStatus, absent.stdout], [0, ""]);
    assert.ok(absent.stderr.includes("frees nothing"));
    for (const value of ["x", [{}], [{ containerID: 5 }], [{ containerID: "c9" }]]) {
      assert.ok([6, 7].includes(errorOf(await gc(value)).code), JSON.stringify(value));
    }
    assert.deepEqual(node.held, given);
  });

  it("keeps a sandbox that can be seen, or whose folder cannot", async () => {
    node.host.present.add("/run/netns/a").add("/run/netns/b").add("/run/netns/c");
    for (const cid of ["a", "b", "c", "never-seen"]) await node.add({ cid });
    node.host.present.delete("/run/netns/b");
    node.host.unknown.add("/run/netns/c");
    assert.deepEqual(await gc([]), fine);
    assert.deepEqual(node.held, ["10.1.2.2", "10.1.2.4"]);
  });

  it("keeps what was attached after the list was made", async () => {
    const startNs = node.nextNs();
    const given = await node.add();
    assert.deepEqual(await gc([], { startNs }), fine);
    assert.deepEqual(node.held, given);
  });

  it("reports what it could not free", async () => {
    await node.add({ cid: "a" });
    await node.add({ cid: "b" });
    node.diskFault = FULL_DISK;
    const error = errorOf(await gc([]));
    assert.deepEqual(
      [error.code, error.msg],
      [5, "2 of 2 stale attachments were not freed: the disk is full"],
    );
    assert.equal(node.held.length, 2);
  });
});

describe("STATUS", () => {
  const status = () => node.call("STATUS", { cid: "", ifname: "", netns: "" });

  it("is well, also when a range is exhausted", async () => {
    const ipam = { subnet: "10.1.2.0/30" };
    await node.add({ cid: "a", ipam });
    assert.equal((await node.call("ADD", { cid: "b", ipam })).exitStatus, 1);
    assert.deepEqual(await status(), { exitStatus: 0, stdout: "", stderr: "" });
  });

  it("says 51 while the journal cannot be written, and finds out by itself that it can again", async () => {
    node.diskFault = FULL_DISK;
    await node.call("ADD");
    assert.deepEqual(errorOf(await status()), {
      cniVersion: "1.1.0",
      code: 51,
      msg: "the journal cannot be written: the disk is full",
    });
    node.diskFault = undefined;
    assert.equal((await status()).exitStatus, 0);
  });
});
