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
import { toldOf } from "../model/interfaces.ts";
import { settleAnswer } from "./admitted-pod.ts";
import { dryRun } from "./dry-run.ts";

const POOLS = [DB_POOL, poolRecord("lan", "10.30.0.0/24")];
const ips = (value: string): Request => granted(readRequest({ "berth.dev/ips": value }));

async function claimOf(world: World, name: string): Promise<Claim> {
  return (await world.authority.get("claim", `shop/${name}`))?.record ?? assert.fail("no claim");
}

async function holder(world: World, address: string): Promise<string> {
  const found = await world.authority.get("reservation", address);
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
    assert.equal(await world.authority.get("claim", "shop/multi"), undefined);
    const got = granted(
      await reserve(
        world.context,
        podAllocation(world, "multi", ips("10.20.0.70,10.30.0.61@net1")),
        "nothing",
      ),
    );
    assert.deepEqual(got.told, ["10.20.0.70@eth0", "10.30.0.61@net1"]);
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
    const { told, addresses } = granted(await reserve(world.context, swapped, "nothing"));
    assert.deepEqual(told, ["10.20.0.70@net1", "10.30.0.70@eth0"]);
    assert.deepEqual(
      toldOf(await claimOf(world, "multi")),
      ["10.20.0.70@eth0", "10.30.0.70@net1"],
      "a review changes nothing",
    );
    const answer = { claim: "multi", token: "", addresses, words: told };
    granted((await settleAnswer(world.context, swapped, answer)) ?? assert.fail("another's"));
    assert.deepEqual(toldOf(await claimOf(world, "multi")), told);
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
    const seen = (await world.authority.get("claim", "shop/mysql-0")) ?? assert.fail();
    const bound = { ...seen.record, binding: bindingTo("mysql-0", "node-a") };
    assert.equal((await world.authority.replace("claim", seen, bound)).kind, "replaced");
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
      const { told } = granted(await reserve(world.context, next, "nothing"));
      assert.deepEqual(told, ["10.20.0.71@eth0", "10.20.0.72@net1"]);
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
    const { told, addresses } = granted(await reserve(world.context, sticky, "nothing"));
    assert.deepEqual(
      addresses.filter((one) => !one.includes(":")),
      ["10.20.0.72"],
    );
    granted(
      (await settleAnswer(world.context, sticky, { claim: "multi", token: "", addresses, words: told })) ??
        assert.fail(),
    );
    assert.equal(await holder(world, "10.20.0.70"), "nobody");
    await world.settle();
    await assertClean(world);
  });
});
