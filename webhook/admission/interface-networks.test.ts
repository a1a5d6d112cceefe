// SPDX-License-Identifier: Apache-2.0
// Which pool serves which interface, by the network that makes it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { applied, claimObject, deniedAs, namespaceObject, pod, review } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validatePods } from "./validate-pod.ts";

const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const POOLS = [
  poolRecord("db", "10.20.0.0/24", { namespaceSelector: {} }),
  poolRecord("lan", "10.40.0.0/24", { networks: ["shop/lan"] }),
];

async function asked(world: World, annotations: Labels): Promise<string> {
  const { embedded: _, ...admission } = world.admission;
  const request = review(pod("a", { annotations }), "CREATE");
  const denied = deniedAs(await mutatePods(admission)(request, new AbortController().signal));
  if (denied !== "") return denied;
  await world.settle();
  const [claim] = await world.all("claim");
  return formatHolding(claim?.record ?? assert.fail()).join();
}

describe("an interface of a network", () => {
  it("does not get an address that is named from a pool for another network", async () => {
    for (const annotations of [
      { [NETWORKS]: "store", "berth.dev/ips": "10.40.0.60@net1" },
      { [NETWORKS]: '[{"name":"store","ips":["10.40.0.60"]}]' },
    ] as const) {
      await using world = await openWorld({ pools: POOLS });
      assert.match(
        await asked(world, annotations),
        /^POOL_FORBIDDEN: pool "lan" is for networks shop\/lan, and shop\/store is none of them/,
      );
    }
    await using world = await openWorld({ pools: POOLS });
    assert.equal(
      await asked(world, { [NETWORKS]: "lan", "berth.dev/ips": "10.40.0.60@net1" }),
      "10.40.0.60@net1",
    );
  });

  it("gets one of the pool that names it before one of a pool for any", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.match(
      await asked(world, { [NETWORKS]: "lan", "berth.dev/sticky": "net1" }),
      /^10\.40\.0\.\d+@net1$/,
    );
  });

  it("leaves the first one what the namespace asks for it", async () => {
    await using world = await openWorld({ pools: POOLS });
    const space = namespaceObject("shop", { "berth.dev/pools": "db" }, { "berth.dev/admission": "enabled" });
    await send(world, "/validate/namespaces", space);
    assert.match(
      await asked(world, { [NETWORKS]: "lan", "berth.dev/ips": "10.40.0.60@net1" }),
      /^10\.20\.0\.\d+@eth0,10\.40\.0\.60@net1$|^10\.40\.0\.60@net1,10\.20\.0\.\d+@eth0$/,
    );
  });

  it("has the MAC address that the pod pins on the first one, of which its namespace asks the address", async () => {
    const macs = poolRecord("macs", [], {
      ranges: [{ cidr: "fe80::/64", from: "fe80::ff:fe00:0", to: "fe80::ff:fe00:ff" }],
      reserved: ["fe80::ff:fe00:0-fe80::ff:fe00:ff"],
    });
    for (const ips of [{ "berth.dev/ips": "10.40.0.60@net1", [NETWORKS]: "lan" }, {}] as const) {
      await using world = await openWorld({ pools: [...POOLS, macs] });
      const space = namespaceObject(
        "shop",
        { "berth.dev/pools": "db" },
        { "berth.dev/admission": "enabled" },
      );
      await send(world, "/validate/namespaces", space);
      const object = pod("a", { annotations: { ...ips, "berth.dev/mac": "02:00:00:00:00:51" } });
      const { embedded: _, ...admission } = world.admission;
      const first = await mutatePods(admission)(review(object, "CREATE"), new AbortController().signal);
      assert.equal(deniedAs(first), "");
      await world.settle();
      const second = await validatePods(admission)(
        review(applied(object, first), "CREATE"),
        new AbortController().signal,
      );
      assert.equal(deniedAs(second), "", JSON.stringify(ips));
    }
  });

  it("is the first one, too, where the pod names what makes that", async () => {
    await using world = await openWorld({ pools: POOLS });
    const asks = { "v1.multus-cni.io/default-network": "shop/store", "berth.dev/ips": "10.40.0.61" };
    assert.match(await asked(world, asks), /^POOL_FORBIDDEN: pool "lan" is for networks shop\/lan/);
  });

  it("is what a claim that a person made has, whatever the namespace asks for the first one", async () => {
    await using world = await openWorld({ pools: POOLS });
    const space = namespaceObject("shop", { "berth.dev/pools": "db" }, { "berth.dev/admission": "enabled" });
    await send(world, "/validate/namespaces", space);
    const request = { addresses: ["10.40.0.62"], interfaces: { net1: ["10.40.0.62"] } };
    assert.equal(deniedAs(await send(world, "/validate/claims", claimObject("a", { request }))), "");
    const asks = { [NETWORKS]: "lan", "berth.dev/ips": "10.40.0.62@net1" };
    assert.equal(await asked(world, asks), "10.40.0.62@net1");
  });

  it("has one MAC address", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.match(
      await asked(world, {
        "berth.dev/ips": "10.20.0.60,10.40.0.60@net1",
        "berth.dev/mac": "02:00:00:00:00:51,02:00:00:00:00:52",
      }),
      /annotation berth\.dev\/mac: entry 1 has several MAC addresses for eth0, which has one/,
    );
  });
});
