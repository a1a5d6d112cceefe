// SPDX-License-Identifier: Apache-2.0
// Hosts without Kubernetes as their users have them: `berthctl up --etcd` as processes, the plugin as a runtime calls it, main
// plugins in namespaces, and the configuration of cni-ipam-etcd as it is.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { HostRegistry } from "../../allocator/store/etcd/hosts.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { NetworkHost, skipWithoutNetwork } from "../support/netns.ts";
import { addressesIn, DONE, failureOf, type NetworkConfig, type Sandbox } from "../support/runtime.ts";
import { openHandle } from "./handles.ts";
import { berthctl, HostProcess, listed } from "./host-process.ts";
import { compact, type Members, startMembers } from "./members.ts";
import { OneWayProxy } from "./one-way-proxy.ts";

const SIZE = 21;
const FULL = Array.from({ length: SIZE }, (_, i) => `10.10.20.${50 + i}`);

/** A network of cni-ipam-etcd: unchanged but for paths, which nothing reads, and the interface of macvlan. */
function network(
  url: string,
  main: { readonly type: string } & Record<string, unknown>,
  plugin = "etcd",
): NetworkConfig {
  return {
    cniVersion: "0.4.0",
    name: "lan",
    ...main,
    ipam: {
      name: "myetcd-ipam",
      type: plugin,
      etcdConfig: {
        etcdURL: url,
        etcdCertFile: "/etc/cni/net.d/etcd.pem",
        etcdKeyFile: "/etc/cni/net.d/etcd-key.pem",
        etcdTrustedCAFileFile: "/etc/cni/net.d/etcd-ca.pem",
      },
      subnet: "10.10.20.0/24",
      rangeStart: "10.10.20.50",
      rangeEnd: "10.10.20.70",
      gateway: "10.10.20.254",
      routes: [{ dst: "0.0.0.0/0" }],
    },
  };
}

const bare = (cidrs: readonly string[]) => cidrs.map((cidr) => cidr.split("/")[0] ?? "");

/** An ADD until it has an address, as a runtime that calls again. */
function attached(host: HostProcess, sandbox: Sandbox): Promise<string> {
  return eventually(`an address on ${host.node}`, async () => {
    return bare(addressesIn(await host.runtime.add(sandbox)))[0];
  });
}

async function nothingWrong(urls: readonly string[]): Promise<void> {
  await eventually("records agree", async () => {
    const { rc, stdout } = await berthctl(urls, "check");
    return (rc === 0 && !stdout.includes("pending")) || undefined;
  });
}

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
    let members: Members;
    let proxies: readonly OneWayProxy[];
    let a: HostProcess;
    let b: HostProcess;
    const live = new Map<Sandbox, { readonly host: HostProcess; readonly address: string }>();
    before(async () => {
      members = await startMembers();
      proxies = await Promise.all(members.urls.map((url) => OneWayProxy.start(url)));
      const lan = (urls: readonly string[]) => network(urls[0] ?? "", { type: "bridge" });
      a = await HostProcess.start({ node: "host-a", urls: members.urls, network: lan(members.urls) });
      const cut = proxies.map(({ url }) => url);
      b = await HostProcess.start({ node: "host-b", urls: cut, network: lan(cut) });
    });
    after(async () => {
      for (const host of [a, b]) await host?.remove();
      for (const proxy of proxies ?? []) await proxy.close();
      await members?.close();
    });

    async function add(host: HostProcess): Promise<void> {
      const sandbox = host.container();
      const address = await attached(host, sandbox);
      const other = [...live.values()].find((each) => each.address === address);
      assert.equal(other, undefined, `${address} is given twice`);
      live.set(sandbox, { host, address });
    }

    async function remove(sandbox: Sandbox): Promise<void> {
      const { host } = live.get(sandbox) ?? assert.fail();
      live.delete(sandbox); // whoever gets it from here on gets it rightly
      await host.runtime.detach(sandbox);
    }

    async function onlyLiveOnesAreHeld(): Promise<void> {
      const expected = [...live.values()].map(({ address }) => address).toSorted();
      await eventually("what is held is what containers have", async () => {
        const held = await listed(members.urls, "reservations");
        return JSON.stringify(held.toSorted()) === JSON.stringify(expected) || undefined;
      });
      await nothingWrong(members.urls);
    }

    async function killInTheMiddle(adding: Promise<unknown>): Promise<void> {
      await adding;
      await a.kill9();
      const own = [...live].filter(([, { host }]) => host === a).map(([sandbox]) => sandbox);
      for (const sandbox of own.slice(0, 2)) await remove(sandbox); // spooled
      await a.up();
    }

    async function churn(): Promise<void> {
      const [gone, kept] = [[...live.keys()].slice(0, 4), [...live].slice(4)];
      await Promise.all(gone.map((sandbox) => remove(sandbox)));
      for (const [sandbox, { host, address }] of kept) {
        assert.equal(await attached(host, sandbox), address, "an ADD that is repeated");
      }
    }

    it("give no address twice and lose none while members die one after another, a host is killed, and etcd is compacted", async () => {
      for (const [round, member] of [...members.all, ...members.all].entries()) {
        const adding = Promise.all([a, b, a, b, a, b].map((host) => add(host)));
        await member.daemon.stop("SIGKILL");
        if (round === 2) await killInTheMiddle(adding);
        await adding;
        member.daemon.start();
        await members.ready();
        if (round === 4) await compact(members);
        await churn();
      }
      await onlyLiveOnesAreHeld();
    });

    it("keep DEL and CHECK while they are cut off, refuse what they cannot prove in words, and make up for it", async () => {
      while ([...live.values()].filter(({ host }) => host === b).length < 2) await add(b);
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
      await remove(goes);
      assert.equal(failureOf(await b.runtime.check(goes)).code, 151);
      for (const proxy of proxies) proxy.cut();
      await onlyLiveOnesAreHeld();
    });

    it("let a person fence a host that is gone, and no other; when it returns it waits for its containers to end", async () => {
      const alive = await berthctl(members.urls, "fence", "host-a", "--yes");
      assert.match(alive.stderr, /host host-a is alive: it has written to etcd while it was watched/);
      while ([...live.values()].filter(({ host }) => host === b).length < 2) await add(b);
      await b.kill9();
      const lost = [...live].filter(([, { host }]) => host === b);
      const said = await berthctl(members.urls, "fence", "host-b");
      assert.match(said.stdout, new RegExp(`its containers have ${lost.length} addresses\nwith --yes`));
      const done = await berthctl(members.urls, "fence", "host-b", "--yes");
      assert.equal(done.rc, 0, done.stderr);
      for (const [sandbox] of lost) live.delete(sandbox);
      await onlyLiveOnesAreHeld();
      while (live.size < SIZE) await add(a);
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
      await onlyLiveOnesAreHeld();
    });

    it("give nothing from the moment on in which they are fenced, though they have not heard of it", async () => {
      for (const sandbox of [...live.keys()].slice(0, 4)) await remove(sandbox);
      await add(b);
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
      for (const [sandbox, { host }] of live) if (host === b) await remove(sandbox);
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
