// SPDX-License-Identifier: Apache-2.0
// Main plugins beside those that the README names, where the kernel has what they make.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { namespace, pool } from "../support/manifests.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import { type NetworkedStack, networkedSuite } from "../support/networked-stack.ts";

const MANIFESTS = [namespace("shop"), pool("db", ["10.20.0.0/24", "fd00:20::/64"], { cooldown: "0s" })];

describe("further main plugins", await skipWithoutNetwork(), () => {
  let site: NetworkedStack;

  networkedSuite(MANIFESTS, (started) => {
    site = started;
  });

  for (const [id, plugin] of [
    ["E0660", "ipvlan"],
    ["E0661", "vlan"],
  ] as const) {
    it(`${id} ${plugin} gives a pod exactly its address, and another that it reaches`, async (context) => {
      const why = await site.host.whyNoLink(plugin, site.uplink);
      if (why !== undefined) return context.skip(why);
      const runtime = site.runtime(plugin);
      const [own, others] = [
        ["10.20.0.11/24", "fd00:20::11/64"],
        ["10.20.0.12/24", "fd00:20::12/64"],
      ];
      const [a, b] = [await site.pinned(own), await site.pinned(others)];
      assert.deepEqual(await runtime.attach(a.sandbox), own);
      assert.deepEqual(
        await site.shown(a.netns),
        own.map((cidr) => `eth0 ${cidr}`),
      );
      // two pods of one VLAN of one uplink are two interfaces of one id, which the kernel does not make
      if (plugin === "ipvlan") {
        assert.deepEqual(await runtime.attach(b.sandbox), others);
        for (const cidr of others) assert.ok(await site.host.pings(a.netns, cidr.split("/")[0] ?? ""), cidr);
        await runtime.detach(b.sandbox);
      }
      await runtime.detach(a.sandbox);
      return undefined;
    });
  }

  it("E0662 host-device gives the interface that it moves exactly the pod's address, and gives it back", async () => {
    const device = await site.host.uplink();
    const runtime = site.runtime("host-device", { device });
    const own = ["10.20.0.21/24", "fd00:20::21/64"];
    const { sandbox, netns } = await site.pinned(own);
    assert.deepEqual(await runtime.attach(sandbox), own);
    assert.deepEqual(
      await site.shown(netns),
      own.map((cidr) => `eth0 ${cidr}`),
    );
    await runtime.detach(sandbox);
    assert.deepEqual(await site.host.interfacesOf(netns), []);
    assert.ok((await site.host.ip("-br", "link")).includes(device));
  });
});
