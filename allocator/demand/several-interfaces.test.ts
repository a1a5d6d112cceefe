// SPDX-License-Identifier: Apache-2.0
// Claims with addresses of several interfaces: what a review, a pod and a workload may change of them (ADR 0007, ADR 0027).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { bindingTo, DB_POOL, granted, poolRecord, refusalOf } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { reserve } from "../lifecycle/reserve.ts";
import { readRequest } from "../manifest/annotations.ts";
import type { Request } from "../model/address-request.ts";
import type { Claim } from "../model/claim.ts";
import { formatHolding, parseAddresses } from "../model/interfaces.ts";
import { settleAnswer } from "./admitted-pod.ts";
import { dryRun } from "./allocation-dry-run.ts";
import { networksAsked } from "./pod-allocation.ts";

const POOLS = [DB_POOL, poolRecord("lan", "10.30.0.0/24")];
const ips = (value: string): Request => granted(readRequest({ "berth.dev/ips": value }));

async function claimOf(world: World, name: string): Promise<Claim> {
  return (await world.realStore.get("claim", `shop/${name}`))?.record ?? assert.fail("no claim");
}

async function holder(world: World, address: string): Promise<string> {
  const found = await world.realStore.get("reservation", address);
  return found === undefined || found.record.releasedAt !== undefined ? "nobody" : found.record.claim.name;
}

describe("a claim for several interfaces", () => {
  it("has all of its addresses or none", async () => {
    await using world = await openWorld({ pools: POOLS });
    granted(await reserve(world.context, podAllocation(world, "other", ips("10.30.0.60")), "pod"));
    const asked = podAllocation(world, "multi", ips("10.20.0.70,10.30.0.60@net1"));
    const message = refusalOf(await reserve(world.context, asked, "nothing"));
    assert.match(message, /^ADDRESS_TAKEN/);
    assert.equal(await holder(world, "10.20.0.70"), "nobody");
    assert.equal(await world.realStore.get("claim", "shop/multi"), undefined);
    const got = granted(
      await reserve(
        world.context,
        podAllocation(world, "multi", ips("10.20.0.70,10.30.0.61@net1")),
        "nothing",
      ),
    );
    assert.deepEqual(got.assigned, ["10.20.0.70@eth0", "10.30.0.61@net1"]);
    await world.settle();
    await assertClean(world);
  });

  it("gives the same addresses to other interfaces only with a pod that is there", async () => {
    await using world = await openWorld({ pools: POOLS });
    granted(
      await reserve(world.context, podAllocation(world, "multi", ips("10.20.0.70,10.30.0.70@net1")), "pod"),
    );
    await world.settle();
    const swapped = podAllocation(world, "multi", ips("10.30.0.70,10.20.0.70@net1"));
    const { assigned, addresses } = granted(await reserve(world.context, swapped, "nothing"));
    assert.deepEqual(assigned, ["10.20.0.70@net1", "10.30.0.70@eth0"]);
    assert.deepEqual(
      formatHolding(await claimOf(world, "multi")),
      ["10.20.0.70@eth0", "10.30.0.70@net1"],
      "a review changes nothing",
    );
    const answer = { claim: "multi", token: "", addresses, words: assigned };
    granted((await settleAnswer(world.context, swapped, answer)) ?? assert.fail("another's"));
    assert.deepEqual(formatHolding(await claimOf(world, "multi")), assigned);
    await world.settle();
    await assertClean(world);
  });

  it("does not change under a pod that is up, nor with its workload", async () => {
    await using world = await openWorld({ pools: POOLS });
    const first = ordinalAllocation(world, "mysql-0", ips("10.20.0.70,10.30.0.70@net1"));
    granted(await reserve(world.context, first, "workload"));
    await world.settle();
    const swapped = ordinalAllocation(world, "mysql-0", ips("10.30.0.70,10.20.0.70@net1"));
    assert.match(
      refusalOf(await reserve(world.context, swapped, "workload")),
      /holds 10\.20\.0\.70@eth0, 10\.30\.0\.70@net1, and the request is now for 10\.30\.0\.70@eth0, 10\.20\.0\.70@net1; it changes when its pod is created/,
    );
    const seen = (await world.realStore.get("claim", "shop/mysql-0")) ?? assert.fail();
    const bound = { ...seen.record, binding: bindingTo("mysql-0", "node-a") };
    assert.equal((await world.realStore.replace("claim", seen, bound)).kind, "replaced");
    await world.settle();
    for (const by of ["pod", "nothing"] as const)
      assert.match(refusalOf(await reserve(world.context, swapped, by)), /^CLAIM_CHANGED/, by);
    assert.match(refusalOf(await dryRun(world.context, swapped)), /^CLAIM_CHANGED/);
    assert.deepEqual(await claimOf(world, "mysql-0"), bound);
  });

  it("is told the same addresses again, however often its next pod is refused elsewhere", async () => {
    await using world = await openWorld({ pools: POOLS });
    granted(await reserve(world.context, podAllocation(world, "multi", ips("10.20.0.70")), "pod"));
    await world.settle();
    const next = podAllocation(world, "multi", ips("10.20.0.71,10.20.0.72@net1"));
    for (let n = 0; n < 3; n++) {
      const { assigned } = granted(await reserve(world.context, next, "nothing"));
      assert.deepEqual(assigned, ["10.20.0.71@eth0", "10.20.0.72@net1"]);
      await world.settle();
    }
  });

  it("keeps the first interface's addresses for a pod that names none", async () => {
    await using world = await openWorld({ pools: POOLS });
    granted(
      await reserve(world.context, podAllocation(world, "multi", ips("10.20.0.72,10.20.0.70@net1")), "pod"),
    );
    await world.settle();
    const sticky = podAllocation(world, "multi", { sticky: true });
    const { assigned, addresses } = granted(await reserve(world.context, sticky, "nothing"));
    assert.deepEqual(
      addresses.filter((one) => !one.includes(":")),
      ["10.20.0.72"],
    );
    granted(
      (await settleAnswer(world.context, sticky, {
        claim: "multi",
        token: "",
        addresses,
        words: assigned,
      })) ?? assert.fail(),
    );
    assert.equal(await holder(world, "10.20.0.70"), "nobody");
    await world.settle();
    await assertClean(world);
  });
});

describe("a claim with pools by interface", () => {
  const FOUR = [poolRecord("four", "10.40.0.0/24"), poolRecord("lan", "10.30.0.0/29"), DB_POOL];
  const asks = (annotations: Record<string, string>): Request => granted(readRequest(annotations));
  const byPools = (pools: string, more: Record<string, string> = {}) =>
    asks({ "berth.dev/pools": pools, ...more });

  it("has an address of each, writes down which is where, and keeps them", async () => {
    await using world = await openWorld({ pools: FOUR });
    const asked = () =>
      podAllocation(world, "multi", byPools("four,lan@net1", { "berth.dev/sticky": "true" }));
    const first = granted(await reserve(world.context, asked(), "pod"));
    assert.deepEqual(
      first.assigned.map((one) => one.replace(/\.\d+@/, "@")),
      ["10.30.0@net1", "10.40.0@eth0"],
    );
    const { interfaces, request } = await claimOf(world, "multi");
    assert.deepEqual(Object.keys(interfaces ?? {}).toSorted(), ["eth0", "net1"]);
    assert.deepEqual(request, { interfacePools: { eth0: ["four"], net1: ["lan"] } });
    await world.settle();
    for (const by of ["nothing", "pod"] as const)
      assert.deepEqual(granted(await reserve(world.context, asked(), by)).assigned, first.assigned, by);
    await assertClean(world);
  });

  it("has two addresses of one pool for two interfaces, each its own", async () => {
    await using world = await openWorld({ pools: FOUR });
    const names = ["a", "b"];
    for (const name of names) {
      const { assigned } = granted(
        await reserve(world.context, podAllocation(world, name, byPools("lan@net1,lan@net2")), "pod"),
      );
      assert.equal(new Set(assigned.map((one) => one.split("@")[0])).size, 2);
      assert.deepEqual(assigned.map((one) => one.split("@")[1]).toSorted(), ["net1", "net2"]);
      await world.settle();
    }
    // 10.30.0.0/29 has six: the fourth pod finds none for its second interface, and leaves none behind
    granted(await reserve(world.context, podAllocation(world, "c", byPools("lan@net1")), "pod"));
    await world.settle();
    const last = podAllocation(world, "d", byPools("lan@net1,lan@net2"));
    assert.match(
      refusalOf(await reserve(world.context, last, "pod")),
      /^POOL_EXHAUSTED.*\(interface net2\)|^POOL_EXHAUSTED/,
    );
    assert.equal(await world.realStore.get("claim", "shop/d"), undefined);
    await world.settle();
    granted(await reserve(world.context, podAllocation(world, "e", byPools("lan@net1")), "pod"));
    await world.settle();
    await assertClean(world);
  });

  it("has the address that one interface names, and any of the pool of the other", async () => {
    await using world = await openWorld({ pools: FOUR });
    const asked = asks({ "berth.dev/ips": "10.30.0.3@net1", "berth.dev/pools": "four" });
    const { assigned } = granted(
      await reserve(world.context, podAllocation(world, "multi", asked), "nothing"),
    );
    assert.ok(assigned.includes("10.30.0.3@net1") && assigned.length === 2, assigned.join());
    const other = asks({ "berth.dev/ips": "10.30.0.3@net1", "berth.dev/pools": "four@net1" });
    assert.match(
      refusalOf(await reserve(world.context, podAllocation(world, "other", other), "nothing")),
      /^ADDRESS_OUTSIDE: address 10\.30\.0\.3 belongs to pool "lan", and the request names "four".*\(interface net1\)/,
    );
    await world.settle();
    await assertClean(world);
  });

  it("falls back on each interface by itself", async () => {
    await using world = await openWorld({ pools: FOUR });
    granted(await reserve(world.context, podAllocation(world, "other", ips("10.30.0.3")), "pod"));
    await world.settle();
    const asked = asks({ "berth.dev/ips": "10.40.0.7,10.30.0.3@net1", "berth.dev/fallback": "any" });
    const { assigned } = granted(await reserve(world.context, podAllocation(world, "multi", asked), "pod"));
    const [net1 = "", eth0 = ""] = assigned;
    assert.equal(eth0, "10.40.0.7@eth0");
    assert.match(net1, /^10\.30\.0\.[12456]@net1$/);
    assert.deepEqual(formatHolding(await claimOf(world, "multi")), assigned);
    await world.settle();
    const again = granted(await reserve(world.context, podAllocation(world, "multi", asked), "pod"));
    assert.deepEqual(again.assigned, assigned, "it keeps what it was given for this request");
    await assertClean(world);
  });

  it("changes only with a pod that is there, and is settled with what that was told", async () => {
    await using world = await openWorld({ pools: FOUR });
    granted(await reserve(world.context, podAllocation(world, "multi", byPools("four,lan@net1")), "pod"));
    await world.settle();
    const before = formatHolding(await claimOf(world, "multi"));
    const swapped = podAllocation(world, "multi", byPools("lan,four@net1"));
    const { assigned, addresses } = granted(await reserve(world.context, swapped, "nothing"));
    assert.notDeepEqual(assigned, before);
    assert.deepEqual(formatHolding(await claimOf(world, "multi")), before, "a review changes nothing");
    const { interfaces = {} } = parseAddresses(assigned);
    const settled = { ...swapped, constraints: { ...swapped.constraints, addresses, interfaces } };
    const answer = { claim: "multi", token: "", addresses, interfaces, words: assigned };
    granted((await settleAnswer(world.context, settled, answer)) ?? assert.fail("another's"));
    assert.deepEqual(formatHolding(await claimOf(world, "multi")), assigned);
    await world.settle();
    await assertClean(world);
  });

  it("is sticky on the interfaces that are named, of pools of their networks", async () => {
    const vlan = poolRecord("vlan", "10.50.0.0/24", { networks: ["shop/vlan"] });
    await using world = await openWorld({ pools: [DB_POOL, vlan] });
    const plain = podAllocation(world, "multi", asks({ "berth.dev/sticky": "eth0,net1" }));
    const networks = networksAsked({ "k8s.v1.cni.cncf.io/networks": "vlan" }, "shop");
    const asked = { ...plain, constraints: { ...plain.constraints, networks: granted(networks) } };
    const { assigned } = granted(await reserve(world.context, asked, "pod"));
    assert.match(assigned.join(), /^10\.20\..*@eth0,10\.50\.0\.\d+@net1/);
    const named = podAllocation(world, "other", byPools("db,vlan@net1"));
    const elsewhere = networksAsked({ "k8s.v1.cni.cncf.io/networks": "web" }, "shop");
    assert.match(
      refusalOf(
        await reserve(
          world.context,
          { ...named, constraints: { ...named.constraints, networks: granted(elsewhere) } },
          "pod",
        ),
      ),
      /^POOL_FORBIDDEN: pool "vlan" is for networks shop\/vlan, and shop\/web is none of them/,
    );
    await world.settle();
    await assertClean(world);
  });

  it("may have several addresses of one family on an interface, all or none", async () => {
    await using world = await openWorld({ pools: FOUR });
    const two = ips("10.30.0.3@net1,10.30.0.4@net1");
    const { assigned } = granted(await reserve(world.context, podAllocation(world, "multi", two), "pod"));
    assert.deepEqual(assigned, ["10.30.0.3@net1", "10.30.0.4@net1"]);
    await world.settle();
    const other = podAllocation(world, "other", ips("10.30.0.2@net1,10.30.0.4@net1"));
    assert.match(refusalOf(await reserve(world.context, other, "pod")), /^ADDRESS_TAKEN/);
    assert.equal(await holder(world, "10.30.0.2"), "nobody");
    await world.settle();
    await assertClean(world);
  });
});
