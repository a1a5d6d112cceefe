// SPDX-License-Identifier: Apache-2.0
// The main plugins of Debian's containernetworking-plugins with `ipam.type: berth`, a real stack, real interfaces.
// The judge is what `ip` shows inside the sandbox.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { namespace, pool } from "../support/manifests.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import { type NetworkedStack, networkedSuite, type Pinned } from "../support/networked-stack.ts";
import { addressesIn, DONE, failureOf, type Runtime, sandboxOf } from "../support/runtime.ts";

const MANIFESTS = [
  namespace("shop"),
  pool(
    "db",
    [
      { cidr: "10.20.0.0/24", gateway: "10.20.0.254", exclude: ["10.20.0.253"] },
      { cidr: "fd00:20::/64", gateway: "fd00:20::fffe" },
    ],
    {
      cooldown: "0s",
      routes: [{ dst: "0.0.0.0/0" }, { dst: "192.168.7.0/24", gw: "10.20.0.253" }, { dst: "::/0" }],
    },
  ),
];

/** Last part of an address -> the addresses of each family, as `ip` shows them. */
const FAMILIES = {
  IPv4: (n: number) => [`10.20.0.${n}/24`],
  IPv6: (n: number) => [`fd00:20::${n}/64`],
  "IPv4 and IPv6": (n: number) => [`10.20.0.${n}/24`, `fd00:20::${n}/64`],
} as const;
type FamilyName = keyof typeof FAMILIES;

const PLUGINS = ["bridge", "macvlan", "ptp"] as const;
type PluginName = (typeof PLUGINS)[number];

const POOL_ROUTES = {
  IPv4: ["192.168.7.0/24 via 10.20.0.253", "default via 10.20.0.254"],
  IPv6: ["default via fd00:20::fffe"],
} as const;
/** ptp has no other way to its neighbours than through the gateway. */
const PTP_ROUTES = {
  IPv4: ["10.20.0.0/24 via 10.20.0.254", ...POOL_ROUTES.IPv4],
  IPv6: ["fd00:20::/64 via fd00:20::fffe", ...POOL_ROUTES.IPv6],
} as const;

function routesFor(plugin: PluginName, families: FamilyName): readonly string[] {
  const routes = plugin === "ptp" ? PTP_ROUTES : POOL_ROUTES;
  const names = (["IPv4", "IPv6"] as const).filter((family) => families.includes(family));
  return names.flatMap((family) => routes[family]).sort();
}

interface Case {
  readonly id: string;
  readonly plugin: PluginName;
  readonly families: FamilyName;
}

const CASES: readonly Case[] = [
  { id: "E0001", plugin: "bridge", families: "IPv4" },
  { id: "E0002", plugin: "bridge", families: "IPv6" },
  { id: "E0003", plugin: "bridge", families: "IPv4 and IPv6" },
  { id: "E0004", plugin: "macvlan", families: "IPv4" },
  { id: "E0005", plugin: "macvlan", families: "IPv6" },
  { id: "E0006", plugin: "macvlan", families: "IPv4 and IPv6" },
  { id: "E0007", plugin: "ptp", families: "IPv4" },
  { id: "E0008", plugin: "ptp", families: "IPv6" },
  { id: "E0009", plugin: "ptp", families: "IPv4 and IPv6" },
];
/** The one that waits for the kernel to look for others that have the address. */
const PATIENT = "E0005";

describe("main plugins", await skipWithoutNetwork(), () => {
  let site: NetworkedStack;

  networkedSuite(MANIFESTS, (started) => {
    site = started;
  });

  function onEth0(addresses: readonly string[]): readonly string[] {
    return addresses.map((cidr) => `eth0 ${cidr}`);
  }

  /** DEL as often as one likes: the interface and the attachment go, the claim stays. */
  async function assertDetaches(runtime: Runtime, { kept, sandbox, netns }: Pinned): Promise<void> {
    const claim = `shop/${kept.metadata.name}`;
    const before = await site.stack.claim(claim);
    await runtime.detach(sandbox);
    await runtime.detach(sandbox);
    assert.deepEqual(await site.host.interfacesOf(netns), []);
    assert.equal((await site.stack.attachedContainers()).includes(sandbox.containerID), false);
    const detached = await eventually("the claim is told", async () => {
      const now = await site.stack.claim(claim);
      return now?.status.attachment?.detached === true ? now : undefined;
    });
    assert.deepEqual(detached.addresses, before?.addresses);
  }

  for (const [n, { id, plugin, families }] of CASES.entries()) {
    it(`${id} ${plugin} gives a pod exactly its address: ${families}`, async () => {
      const how = id === PATIENT ? "patient" : "hasty";
      const [own, others] = [FAMILIES[families](10 + n), FAMILIES[families](30 + n)];
      const runtime = site.runtime(plugin);
      const [a, b] = [await site.pinned(own, how), await site.pinned(others, how)];
      const answer = await runtime.add(a.sandbox);
      assert.deepEqual(addressesIn(answer), own, JSON.stringify(answer));
      // before another port changes the MAC of the bridge, which its CHECK compares
      const prevResult = answer.kind === "succeeded" ? answer.result : undefined;
      assert.deepEqual(await runtime.check(a.sandbox, { network: { prevResult } }), DONE);
      assert.deepEqual(await runtime.attach(b.sandbox), others);

      assert.deepEqual(await site.shown(a.netns), onEth0(own));
      assert.deepEqual(await site.shown(b.netns), onEth0(others));
      assert.deepEqual(await site.host.routesOf(a.netns), routesFor(plugin, families));
      for (const cidr of others) {
        const to = cidr.split("/")[0] ?? "";
        assert.ok(await site.host.pings(a.netns, to), `no answer from ${to}`);
      }

      await assertDetaches(runtime, a);
      assert.deepEqual(await site.stack.attachedContainers(), [b.sandbox.containerID]);
      assert.deepEqual(await site.shown(b.netns), onEth0(others));
      await assertDetaches(runtime, b);
    });
  }

  it("E0010 cniVersion 0.3.1, 0.4.0 and 1.0.0 are answered in their own form to every main plugin", async () => {
    const own = FAMILIES["IPv4 and IPv6"](60);
    const { kept } = await site.pinned(own);
    for (const plugin of PLUGINS) {
      for (const cniVersion of ["0.3.1", "0.4.0", "1.0.0"]) {
        const runtime = site.runtime(plugin, { cniVersion });
        const { sandbox, netns } = await site.sandboxFor(kept);
        const answer = await runtime.add(sandbox);
        assert.deepEqual(addressesIn(answer), own, `${plugin} ${cniVersion}: ${JSON.stringify(answer)}`);
        const result = answer.kind === "succeeded" ? answer.result : undefined;
        assert.equal(result?.cniVersion, cniVersion);
        assert.deepEqual(await site.shown(netns), onEth0(own));
        await runtime.detach(sandbox);
        assert.deepEqual(await site.host.interfacesOf(netns), []);
      }
    }
  });

  it("E0011 an ADD that Berth refuses makes the main plugin fail in Berth's words and leaves nothing", async () => {
    // Admission never saw it: somebody went past the webhook.
    const bypassed = { namespace: "shop", name: "bypassed", uid: "11111111-2222-3333-4444-555555555555" };
    const annotations = { "berth.dev/ips": "10.20.0.70" };
    for (const plugin of PLUGINS) {
      const netns = await site.host.sandbox();
      const sandbox = sandboxOf(bypassed, { netns: `/run/netns/${netns}`, annotations });
      const runtime = site.runtime(plugin);
      assert.deepEqual(failureOf(await runtime.add(sandbox)), {
        code: 116,
        msg: "pod shop/bypassed asks for a fixed address and has no claim: its claim was given back, or it did not pass the Berth webhook; delete it and create it again",
      });
      assert.deepEqual(await site.host.addressesOf(netns), [], plugin);
      assert.deepEqual(await site.stack.attachedContainers(), []);
      assert.equal((await site.stack.holders())["10.20.0.70"], undefined);
      // bridge makes its veth before it asks for addresses, and leaves it for the runtime's DEL
      await runtime.detach(sandbox);
      assert.deepEqual(await site.host.interfacesOf(netns), [], plugin);
    }
  });

  it("E0012 a failure of the main plugin after Berth's answer leaves nothing attached", async () => {
    const a = await site.pinned(FAMILIES.IPv4(71));
    // Its own default route is already there when it comes to that of the pool.
    const clashing = site.runtime("bridge", { isDefaultGateway: true });
    assert.match(failureOf(await clashing.add(a.sandbox)).msg, /file exists/);
    assert.deepEqual(await site.stack.attachedContainers(), []);
    // The runtime makes the sandbox anew to try again.
    const retry = await site.sandboxFor(a.kept);
    const runtime = site.runtime("bridge");
    assert.deepEqual(await runtime.attach(retry.sandbox), FAMILIES.IPv4(71));
    await runtime.detach(retry.sandbox);
  });

  it("E0013 a second interface of a pod has no part in the claim of the first", async () => {
    const a = await site.pinned(FAMILIES.IPv4(72));
    const ranges = [[{ subnet: "10.99.0.0/24" }]];
    const [first, second] = [
      site.runtime("bridge"),
      site.runtime("ptp", { ipam: { type: "berth", ranges } }),
    ];
    const net1 = { ...a.sandbox, interface: "net1" };
    assert.deepEqual(await first.attach(a.sandbox), FAMILIES.IPv4(72));
    assert.deepEqual(await second.attach(net1), ["10.99.0.2/24"]);
    assert.deepEqual(await site.shown(a.netns), ["eth0 10.20.0.72/24", "net1 10.99.0.2/24"]);
    await second.detach(net1);
    assert.deepEqual(await site.host.interfacesOf(a.netns), ["eth0"]);
    await first.detach(a.sandbox);
  });
});
