// SPDX-License-Identifier: Apache-2.0
// Hosts without Kubernetes as their users have them: `berthctl up --etcd` as processes, the plugin as a runtime calls it, main
// plugins in namespaces, and the configuration of cni-ipam-etcd as it is. Members that die: members-die.etcd-test.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { HostRegistry } from "../../allocator/store/etcd/hosts.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { NetworkHost, skipWithoutNetwork } from "../support/netns.ts";
import { addressesIn, DONE, failureOf, type Sandbox } from "../support/runtime.ts";
import { openHandle } from "./handles.ts";
import { berthctl, HostProcess } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";
import { attached, bare, network, nothingWrong, SharingHosts, SIZE } from "./sharing-hosts.ts";

const FULL = Array.from({ length: SIZE }, (_, i) => `10.10.20.${50 + i}`);

const withNetwork = await skipWithoutNetwork();

if (havePartsOrSkip(["etcd"])) {
  describe("two hosts with main plugins, on one wire", { skip: withNetwork.skip }, () => {
    let members: Members;
    let wires: readonly NetworkHost[];
    let hosts: readonly HostProcess[];
    const url = () => members.urls[0] ?? "";
    const macvlan = () => network(url(), { type: "macvlan", master: "wire", mode: "bridge" });
    const ptp = () => network(url(), { type: "ptp" }, "ipam-etcd");
    before(async () => {
      members = await startMembers({ count: 1 });
      const [a, b] = [await NetworkHost.make(), await NetworkHost.make()];
      wires = [a, b];
      await a.ip("link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", b.name);
      for (const wire of wires) await wire.ip("link", "set", "wire", "up");
      const of = { urls: members.urls, network: macvlan() };
      hosts = [
        await HostProcess.start({ ...of, node: "host-a", host: a }),
        await HostProcess.start({ ...of, node: "host-b", host: b }),
      ];
    });
    after(async () => {
      for (const host of hosts ?? []) await host.remove();
      for (const wire of wires ?? []) await wire.remove();
      await members?.close();
    });

    /** A container in a namespace of its own on the i-th host. */
    async function containerOn(i: number): Promise<Container> {
      const [host, wire] = [hosts[i % 2] ?? assert.fail(), wires[i % 2] ?? assert.fail()];
      const netns = await wire.sandbox();
      return { host, wire, netns, sandbox: host.container(netns) };
    }

    /** ptp, and tuning chained behind it as in a conflist: both have the list's name. */
    async function addChained({ host, sandbox }: Container): Promise<string> {
      const first = await host.runtimeOf(ptp()).add(sandbox);
      assert.equal(first.kind, "succeeded", first.kind === "failed" ? first.msg : "");
      const tuning = { cniVersion: "0.4.0", name: "lan", type: "tuning", ipam: {} };
      const prevResult = first.kind === "succeeded" ? first.result : undefined;
      const last = await host.runtimeOf(tuning).add(sandbox, { network: { prevResult } });
      return bare(addressesIn(last))[0] ?? assert.fail("no address");
    }

    it("give 21 containers an address each, refuse the 22nd in words, and the containers reach each other", async () => {
      const near = await containerOn(0);
      const far = await containerOn(1);
      const [one, two] = [await attached(near.host, near.sandbox), await attached(far.host, far.sandbox)];
      for (const [{ wire, netns }, address] of [
        [near, one],
        [far, two],
      ] as const) {
        assert.deepEqual(
          (await wire.addressesOf(netns)).map(({ cidr }) => cidr),
          [`${address}/24`],
        );
        assert.deepEqual(await wire.routesOf(netns), ["default via 10.10.20.254"]);
      }
      await eventually(
        "a ping from host to host",
        async () => (await near.wire.pings(near.netns, two)) || undefined,
      );
      const others = await Promise.all(Array.from({ length: SIZE - 2 }, (_, i) => containerOn(i)));
      const given = await Promise.all(
        others.map((each, i) => (i < 6 ? addChained(each) : attached(each.host, each.sandbox))),
      );
      assert.deepEqual([one, two, ...given].toSorted(), FULL);
      for (const i of [0, 1]) {
        const { host, sandbox } = await containerOn(i);
        const { code, msg } = failureOf(await host.runtime.add(sandbox));
        assert.equal(code, 107, msg);
        assert.match(msg, /"lan"/);
      }
      assert.deepEqual(
        await near.host.runtime.check(near.sandbox, { network: await prevOf(near.sandbox, one) }),
        DONE,
      );
      await nothingWrong(members.urls);
    });
  });

  describe("hosts that share 21 addresses", () => {
    let hosts: SharingHosts;
    before(async () => {
      hosts = await SharingHosts.start();
    });
    after(() => hosts?.close());

    it("keep DEL and CHECK while they are cut off, refuse what they cannot prove in words, and make up for it", async () => {
      const { b, live, proxies } = hosts;
      while ([...live.values()].filter(({ host }) => host === b).length < 2) await hosts.add(b);
      const [stays, goes] = [...live].filter(([, { host }]) => host === b).map(([sandbox]) => sandbox);
      if (stays === undefined || goes === undefined) assert.fail();
      for (const proxy of proxies) proxy.loses = "requests";
      const { msg } = failureOf(await b.runtime.add(b.container()));
      assert.match(
        msg,
        /^no address of pool "lan" can be proven free: etcd at http:.* (cannot be reached|did not answer in time).*; containers that run keep theirs; make etcd reachable/,
      );
      const { address } = live.get(stays) ?? assert.fail();
      assert.equal(await attached(b, stays), address);
      assert.deepEqual(await b.runtime.check(stays, { network: await prevOf(stays, address) }), DONE);
      await hosts.remove(goes);
      assert.equal(failureOf(await b.runtime.check(goes)).code, 151);
      for (const proxy of proxies) proxy.cut();
      await hosts.onlyLiveOnesAreHeld();
    });

    it("let a person fence a host that is gone, and no other; when it returns it waits for its containers to end", async () => {
      const { a, b, live, members } = hosts;
      const alive = await berthctl(members.urls, "fence", "host-a", "--yes");
      assert.match(alive.stderr, /host host-a is alive: it has written to etcd while it was watched/);
      while ([...live.values()].filter(({ host }) => host === b).length < 2) await hosts.add(b);
      await b.kill9();
      const lost = [...live].filter(([, { host }]) => host === b);
      const said = await berthctl(members.urls, "fence", "host-b");
      assert.match(said.stdout, new RegExp(`its containers have ${lost.length} addresses\nwith --yes`));
      const done = await berthctl(members.urls, "fence", "host-b", "--yes");
      assert.equal(done.rc, 0, done.stderr);
      for (const [sandbox] of lost) live.delete(sandbox);
      await hosts.onlyLiveOnesAreHeld();
      while (live.size < SIZE) await hosts.add(a);
      await b.up();
      const late = b.container();
      const { msg } = failureOf(await b.runtime.add(late));
      assert.match(
        msg,
        /^host host-b was fenced at .* by .* \(container \S+ \(eth0\) of network \S+ has \S+ by claim \S+, for one\); stop its containers, and it serves again by itself; that container \S+ has ended this host does not see /,
      );
      for (const [sandbox] of lost) await b.runtime.detach(sandbox);
      await eventually("it serves again", async () => {
        const { code } = failureOf(await b.runtime.add(late));
        return code === 107 || undefined; // there is no address left, and that is all
      });
      await hosts.onlyLiveOnesAreHeld();
    });

    it("give nothing from the moment on in which they are fenced, though they have not heard of it", async () => {
      const { b, live, members, proxies } = hosts;
      for (const sandbox of [...live.keys()].slice(0, 4)) await hosts.remove(sandbox);
      await hosts.onlyLiveOnesAreHeld(); // without a free address there is another reason to be refused
      await hosts.add(b);
      for (const proxy of proxies) proxy.loses = "requests";
      const handle = openHandle({ endpoints: members.urls });
      const registry = new HostRegistry(handle.client);
      const { record, revision } = (await registry.get("host-b")) ?? assert.fail();
      const fenced = { at: Date.now(), by: "test" };
      assert.notEqual(await registry.put("host-b", { ...record, fenced }, revision), "changed");
      await handle.close();
      for (const proxy of proxies) proxy.cut();
      const words = await eventually("etcd is reached again", async () => {
        const answer = await b.runtime.add(b.container());
        const msg = answer.kind === "succeeded" ? "an address" : failureOf(answer).msg;
        return /can be proven free/.test(msg) ? undefined : msg;
      });
      assert.match(words, /^host host-b was fenced at/);
      for (const [sandbox, { host }] of live) if (host === b) await hosts.remove(sandbox);
      await eventually(
        "it serves again",
        async () => (await b.runtime.add(b.container())).kind === "succeeded" || undefined,
      );
    });
  });
}

interface Container {
  readonly host: HostProcess;
  readonly wire: NetworkHost;
  readonly netns: string;
  readonly sandbox: Sandbox;
}

/** What a runtime has kept of an ADD, for CHECK. */
async function prevOf(sandbox: Sandbox, address: string): Promise<Readonly<Record<string, unknown>>> {
  const interfaces = [{ name: sandbox.interface, sandbox: sandbox.netns }];
  return {
    prevResult: {
      cniVersion: "0.4.0",
      interfaces,
      ips: [{ version: "4", address: `${address}/24`, interface: 0 }],
    },
  };
}
