// SPDX-License-Identifier: Apache-2.0
// What goes wrong around a host by an operator's or a machine's fault: its name is another's, its etcd or certificates are not
// what it was told, its clock leaps, and calls come in an order that makes no sense.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { type EtcdHost, startEtcdHost } from "../../cli/embedded/etcd-host.ts";
import { createRandom } from "../../system/random.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { ForwardClock } from "../api/forward-clock.ts";
import { eventually } from "../support/eventually.ts";
import { addressesIn, failureOf, type NetworkConfig, Runtime, sandboxOf } from "../support/runtime.ts";
import { taken } from "./handles.ts";
import { berthctl, HostProcess } from "./host-process.ts";
import { type Members, startMembers } from "./members.ts";
import { OneWayProxy } from "./one-way-proxy.ts";
import { TlsEtcd } from "./tls-etcd.ts";

const YEAR_MS = 365 * 24 * 3_600_000;

const held = ({ urls }: Members) => taken({ endpoints: urls });

function lan(etcdURL: string | undefined): NetworkConfig {
  const range = { subnet: "10.10.20.0/24", rangeStart: "10.10.20.50", rangeEnd: "10.10.20.70" };
  return {
    cniVersion: "1.0.0",
    name: "lan",
    type: "bridge",
    ipam: { type: "berth", etcdConfig: { etcdURL }, ...range },
  };
}

if (havePartsOrSkip(["etcd"])) {
  describe("a host of whom something is wrong", () => {
    let members: Members;
    const hosts: HostProcess[] = [];
    before(async () => {
      members = await startMembers({ count: 1 });
    });
    after(async () => {
      for (const host of hosts) await host.remove();
      await members?.close();
    });

    async function start(
      node: string,
      urls = members.urls,
      flags: readonly string[] = [],
    ): Promise<HostProcess> {
      const host = await HostProcess.start({ node, urls, network: lan(urls[0]), flags });
      hosts.push(host);
      return host;
    }

    it("with another's name gives nothing and frees nothing, and serves at once when that one is fenced", async () => {
      const first = await start("host-a");
      const box = first.container();
      const [address] = addressesIn(await first.runtime.add(box));
      const second = await start("host-a");
      const words =
        /^another host is called host-a in etcd \(journal \w+\); start this one with another --node/;
      assert.match(failureOf(await second.runtime.add(second.container())).msg, words);
      await second.runtime.detach({ ...second.container(), containerID: box.containerID });
      assert.equal(`${(await held(members))[0]}/24`, address);
      await first.kill9();
      const { rc, stderr } = await berthctl(members.urls, "fence", "host-a", "--yes");
      assert.equal(rc, 0, stderr);
      assert.equal(addressesIn(await second.runtime.add(second.container())).length, 1);
      await first.up();
      assert.match(failureOf(await first.runtime.add(first.container())).msg, words);
      await second.kill9();
    });

    it("without its etcd at the start serves DEL, refuses ADD and STATUS in words, and makes up for it", async () => {
      const proxy = await OneWayProxy.start(members.urls[0] ?? "");
      proxy.loses = "requests";
      const host = await start("host-c", [proxy.url]);
      await host.runtime.detach(host.container());
      const { msg } = failureOf(await host.runtime.add(host.container()));
      assert.match(
        msg,
        /^no address of pool "lan" can be proven free: etcd at http:\S+ .*start the container again$/,
      );
      proxy.cut();
      await eventually("it serves", async () => addressesIn(await host.runtime.add(host.container()))[0]);
      await host.kill9();
      await proxy.close();
    });

    it("with an authority that is not etcd's gives nothing, and says that it is about certificates", async () => {
      const [right, wrong] = [await TlsEtcd.start(), await TlsEtcd.start()];
      try {
        const host = await start("host-d", right.urls, wrong.flags);
        const { msg } = failureOf(await host.runtime.add(host.container()));
        assert.match(msg, /^no address of pool "lan" can be proven free: .*certificate/);
        await host.kill9();
      } finally {
        await right.close();
        await wrong.close();
      }
    });

    it("that calls ADD twice at once, DEL before ADD, and DEL while ADD runs, holds what its containers have", async () => {
      const host = await start("host-e");
      const before = (await held(members)).length;
      const twice = host.container();
      const both = await Promise.all([host.runtime.add(twice), host.runtime.add(twice)]);
      assert.equal(new Set(both.flatMap((answer) => addressesIn(answer))).size, 1);
      const early = host.container();
      await host.runtime.detach(early);
      assert.equal(addressesIn(await host.runtime.add(early)).length, 1);
      await Promise.all(
        Array.from({ length: 6 }, async () => {
          const torn = host.container();
          const adding = host.runtime.add(torn);
          await host.runtime.detach(torn);
          await adding;
          await host.runtime.detach(torn);
        }),
      );
      await eventually("two more are held", async () => {
        return (await held(members)).length === before + 2 || undefined;
      });
      for (const box of [twice, early]) await host.runtime.detach(box);
      await host.kill9();
    });
  });

  describe("a host whose clock leaps", () => {
    const folder = mkdtempSync(join(tmpdir(), "leaps-"));
    const clock = new ForwardClock();
    let members: Members;
    let host: EtcdHost;
    before(async () => {
      members = await startMembers({ count: 1 });
      const deps = { clock, random: createRandom(), log: noopLogger };
      const dataDir = join(folder, "data");
      host = await startEtcdHost({ ...deps, access: { endpoints: members.urls }, dataDir, node: "host-a" });
    });
    after(async () => {
      await host?.close();
      await members?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it("keeps what containers have, and gives back what they had", async () => {
      const runtime = new Runtime({ network: lan(members.urls[0]), socket: host.socketPath });
      const other = await HostProcess.start({
        node: "host-b",
        urls: members.urls,
        network: lan(members.urls[0]),
      });
      const boxes = [sandboxOf(undefined), sandboxOf(undefined)];
      const [stays = assert.fail(), goes = assert.fail()] = boxes;
      try {
        const given = [...(await runtime.attach(stays)), ...(await other.runtime.attach(other.container()))];
        for (const leap of [10 * YEAR_MS, -20 * YEAR_MS]) {
          clock.forward(leap);
          given.push(...(await runtime.attach(goes)));
          await runtime.detach(goes);
          given.pop();
          await eventually("only what runs is held", async () => {
            const taken = (await held(members)).map((address) => `${address}/24`);
            return JSON.stringify(taken) === JSON.stringify(given.toSorted()) || undefined;
          });
        }
        assert.equal(new Set(given).size, 2);
        assert.deepEqual(await runtime.attach(stays), given.slice(0, 1));
      } finally {
        await other.remove();
      }
    });
  });
}
