// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import type { ClaimRequest } from "../../../allocator/model/claim.ts";
import type { PoolRecord } from "../../../allocator/pool/pool.ts";
import { addr, claimRecord, DB_POOL, parsed, poolRecord } from "../../../test/support/fixtures.ts";
import { openWorld } from "../../../test/support/world.ts";
import { assignedClaim, claimsOf, pin } from "../testing/claims-bench.ts";
import { ask, NodeWorld } from "../testing/node-world.ts";
import { poolFor } from "./pool-for-address.ts";

/** Two replicas let it pass as the other one was made: it comes first, and says another gateway. */
const OVER: PoolRecord = {
  name: "aa",
  spec: { ranges: [{ cidr: "10.20.0.0/23", gateway: "10.20.1.1" }], priority: 9 },
};

describe("an address of a claim that two pools contain", () => {
  it("is reached as the pool says that it is reserved of", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    await world.realStore.create("pool", OVER);
    await world.settle();
    const { addresses } = await assignedClaim(claimsOf(world), ask("a"));
    assert.deepEqual(addresses, [{ address: "10.20.0.70", prefixLength: 24, gateway: "10.20.0.100" }]);
  });

  it("is for the networks of that pool, whatever the other one is for", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    await world.realStore.create("pool", { ...OVER, spec: { ...OVER.spec, networks: ["elsewhere"] } });
    await world.settle();
    const { addresses } = await assignedClaim(claimsOf(world), ask("a"));
    assert.deepEqual(
      addresses.map(({ address }) => address),
      ["10.20.0.70"],
    );
  });

  it("is not given by an agent that cannot know the pool", async (t) => {
    const node = await NodeWorld.open();
    t.after(() => node.close());
    await node.assign("a", "10.20.0.70");
    await node.world.realStore.create("pool", OVER);
    await node.world.settle();
    assert.equal(
      await node.said(ask("a")),
      "POOL_OVERLAPS: pools aa and db both contain 10.20.0.70 of claim shop/a, and differ in how it is reached (gateway, prefix length, routes or dns); leave the address out of the pool that it is not reserved of (kubectl get ipreservations)",
    );
  });

  it("is not of the one that is for none of the pod's networks, where nothing else says the pool", async (t) => {
    const node = await NodeWorld.open();
    t.after(() => node.close());
    await node.assign("a", "10.20.0.70");
    const put = async (networks: readonly string[]) => {
      const before = await node.world.realStore.get("pool", "aa");
      const over = { ...OVER, spec: { ...OVER.spec, networks } };
      if (before === undefined) await node.world.realStore.create("pool", over);
      else await node.world.realStore.replace("pool", before, over);
      await node.world.settle();
    };
    await put(["elsewhere"]);
    const got = await node.add(ask("a"));
    assert.ok(got.kind === "claimed");
    assert.deepEqual(got.addresses, [{ address: "10.20.0.70", prefixLength: 24, gateway: "10.20.0.100" }]);
    const annotations = { "k8s.v1.cni.cncf.io/networks": "vlan10" };
    const refused = (networks: string) =>
      `POOL_FORBIDDEN: pool "aa" is for networks ${networks}, and net is none of them (its networks)`;
    // "elsewhere" may be what the configuration of vlan10 is called
    assert.equal(await node.said(ask("a", { annotations })), refused("elsewhere"));
    await put(["shop/vlan20"]);
    assert.equal(await node.said(ask("a", { annotations })), "10.20.0.70 of shop/a");
    await put(["shop/vlan10"]);
    assert.equal(await node.said(ask("a", { annotations })), "unclaimed");
    assert.equal(await node.said(ask("a")), "10.20.0.70 of shop/a");
    await put(["net"]);
    assert.match(await node.said(ask("a")), /^POOL_OVERLAPS: /);
  });

  const poolOf = (request: ClaimRequest, ...pools: readonly PoolRecord[]) => {
    const claim = claimRecord({ request });
    const found = poolFor({ pools: () => pools.map(parsed) }, claim, {
      address: addr("10.20.0.70"),
      names: ["net"],
    });
    return isRefusal(found) ? found.code : found?.name;
  };

  it("is of the one that its claim asks for, where reservations are not known", () => {
    assert.equal(poolOf({ pools: ["db"] }, OVER, DB_POOL), "db");
    assert.equal(poolOf({ interfacePools: { net1: ["db"] } }, OVER, DB_POOL), "db");
    assert.equal(poolOf({ pools: ["aa", "db"] }, OVER, DB_POOL), "POOL_OVERLAPS");
  });

  it("is of either where they say the same", () => {
    const same = { name: "zz", spec: { ranges: [{ cidr: "10.20.0.0/24", gateway: "10.20.0.100" }] } };
    assert.equal(poolOf({}, DB_POOL, same), "db");
    const more = { ...same, spec: { ...same.spec, routes: [{ dst: "10.0.0.0/8" }] } };
    assert.equal(poolOf({}, DB_POOL, more), "POOL_OVERLAPS");
  });

  it("may be of another than it was reserved of, if that one does not contain it any more", () => {
    assert.equal(poolOf({ pools: ["db"] }, OVER), "aa");
    assert.equal(poolOf({}, poolRecord("far", "10.9.0.0/24")), undefined);
  });
});
