// SPDX-License-Identifier: Apache-2.0
// MAC addresses that pods pin: reserved as addresses are, and the interfaces' own when the main plugins have made them (ADR 0031).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { namespace, pod, podOf, pool, statefulSet } from "../support/manifests.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import { type NetworkedStack, networkedSuite } from "../support/networked-stack.ts";
import { failureOf } from "../support/runtime.ts";

/** 02:00:00:00:00:00 to 02:00:00:00:ff:ff */
const MACS = { cidr: "fe80::/64", from: "fe80::ff:fe00:0", to: "fe80::ff:fe00:ffff" };
const MANIFESTS = [
  namespace("shop"),
  pool("db", ["10.20.0.0/24", "10.30.0.0/24"], { cooldown: "0s" }),
  pool("macs", [MACS], { cooldown: "0s", reserved: ["fe80::ff:fe00:0-fe80::ff:fe00:ffff"] }),
];
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const mac = (n: number) => `02:00:00:00:00:${n}`;
const said = (text: string) => ({
  network: { capabilities: { mac: true }, runtimeConfig: { mac: text } },
});

describe("MAC addresses of pods", await skipWithoutNetwork(), () => {
  let site: NetworkedStack;

  networkedSuite(MANIFESTS, (started) => {
    site = started;
  });

  /** Of the interface, as the kernel has it. */
  async function linkOf(netns: string, name: string): Promise<string> {
    const { stdout } = await site.host.exec(["cat", `/sys/class/net/${name}/address`], netns);
    return stdout.trim();
  }

  it("E0651 are those of the interfaces that bridge and macvlan make, and told to Multus for the further ones", async () => {
    const kept = await site.api.create(
      pod("shop", "pinned", {
        "berth.dev/ips": "10.20.0.51,10.30.0.51@net1",
        "berth.dev/mac": `${mac(51)},${mac(52)}@net1`,
        [NETWORKS]: "lan",
      }),
    );
    const { annotations = {} } = kept.metadata;
    assert.deepEqual(JSON.parse(annotations[NETWORKS] ?? ""), [{ name: "lan", mac: mac(52) }]);
    const { sandbox, netns } = await site.sandboxFor(kept);
    const bridge = site.runtime("bridge");
    const macvlan = site.runtime("macvlan");
    await bridge.attach(sandbox, said(mac(51)));
    await macvlan.attach({ ...sandbox, interface: "net1" }, { args: `MAC=${mac(52)}` });
    assert.deepEqual(await site.shown(netns), ["eth0 10.20.0.51/24", "net1 10.30.0.51/24"]);
    assert.deepEqual([await linkOf(netns, "eth0"), await linkOf(netns, "net1")], [mac(51), mac(52)]);
    await bridge.detach(sandbox, said(mac(51)));
    await macvlan.detach({ ...sandbox, interface: "net1" });
  });

  it("E0652 are one pod's at a time, and nothing is left of one that is refused", async () => {
    const asking = (name: string, ip: string, text: string) =>
      pod("shop", name, { "berth.dev/ips": ip, "berth.dev/mac": text });
    await site.api.create(asking("first", "10.20.0.61", mac(61)));
    assert.match(
      (await site.api.refusal(asking("second", "10.20.0.62", mac(61)))).message,
      /fe80::ff:fe00:61 \(MAC address 02:00:00:00:00:61\) in pool "macs" is held by shop\/first/,
    );
    assert.match(
      (await site.api.refusal(asking("third", "10.20.0.62", "04:00:00:00:00:01"))).message,
      /MAC address 04:00:00:00:00:01/,
    );
    const apart = pod("shop", "apart", {
      "berth.dev/ips": "10.20.0.64,10.30.0.64@net1",
      "berth.dev/mac": `${mac(64)}@net1`,
      [NETWORKS]: JSON.stringify([{ name: "lan", mac: mac(99) }]),
    });
    assert.match(
      (await site.api.refusal(apart)).message,
      /say another MAC address of net1 than berth\.dev\/mac/,
    );
    assert.equal(await site.stack.claim("shop/apart"), undefined);
    const fourth = asking("fourth", "10.20.0.62", mac(62));
    // a MAC address is of no family
    const { metadata } = fourth;
    const annotations = { ...metadata.annotations, "berth.dev/families": "IPv4" };
    const kept = await site.api.create({ ...fourth, metadata: { ...metadata, annotations } });
    // who has it is told by either of its forms
    assert.match((await site.stack.berthctl("who", mac(62))).stdout, /shop\/fourth/);
    const bridge = site.runtime("bridge");
    for (const [how, words] of [
      [{}, /claim shop\/fourth has MAC address 02:00:00:00:00:62 for eth0, and nobody tells the main plugin/],
      [said(mac(63)), /for eth0, and the runtime says 02:00:00:00:00:63/],
    ] as const) {
      // a main plugin may leave its half of what failed
      const { sandbox } = await site.sandboxFor(kept);
      assert.match(failureOf(await bridge.add(sandbox, how)).msg, words);
    }
    const plain = await site.api.create(pod("shop", "plain", { "berth.dev/ips": "10.20.0.63" }));
    const other = await site.sandboxFor(plain);
    assert.match(
      failureOf(await bridge.add(other.sandbox, said(mac(61)))).msg,
      /MAC address 02:00:00:00:00:61 is of pool "macs", and this pod did not ask for it/,
    );
    const free = await site.sandboxFor(plain);
    await bridge.attach(free.sandbox, said("06:00:00:00:00:61"));
    await bridge.detach(free.sandbox, said("06:00:00:00:00:61"));
  });

  it("E0653 are kept by the ordinals of a StatefulSet", async () => {
    const set = statefulSet(
      "shop",
      "db",
      { replicas: 2 },
      {
        "berth.dev/ips": "10.20.0.71-10.20.0.72",
        "berth.dev/mac": `${mac(71)}-${mac(72)}`,
      },
    );
    const stored = await site.api.create(set);
    for (let again = 0; again < 2; again++) {
      const kept = await site.api.create(podOf(stored, 1));
      const { sandbox, netns } = await site.sandboxFor(kept);
      await site.runtime("bridge").attach(sandbox, said(mac(72)));
      assert.equal(await linkOf(netns, "eth0"), mac(72));
      await site.runtime("bridge").detach(sandbox, said(mac(72)));
      await site.api.delete(kept);
    }
  });
});
