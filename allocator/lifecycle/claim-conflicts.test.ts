// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import { claimRecord, DB_POOL, granted, refusalOf, reservationRecord } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { dryRun } from "../demand/dry-run.ts";
import type { Claim } from "../model/claim.ts";
import { reserve } from "./reserve.ts";

describe("a claim of the same name", () => {
  const cases: readonly (readonly [string, Claim["identity"], string])[] = [
    [
      "a slot of a set",
      { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 },
      "Deployment web, slot 0",
    ],
    [
      "an index of a Job",
      { kind: "Job", apiVersion: "batch/v1", name: "train", ordinal: 0 },
      "Job train, ordinal 0",
    ],
    [
      "a machine",
      { kind: "VirtualMachineInstance", apiVersion: "kubevirt.io/v1", name: "train-0" },
      "VirtualMachineInstance train-0",
    ],
  ];
  for (const [title, identity, words] of cases) {
    it(`that is of ${title} is not for a pod that happens to be called so`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      await world.authority.create("claim", claimRecord({ name: "train-0", identity }));
      await world.authority.create(
        "reservation",
        reservationRecord("10.20.0.70", { claim: { namespace: "shop", name: "train-0" } }),
      );
      await world.settle();
      const before = world.dump();
      assert.equal(
        refusalOf(
          await reserve(world.context, podAllocation(world, "train-0", entries("10.20.0.70")), "pod"),
        ),
        `CLAIM_BUSY: claim shop/train-0 belongs to ${words}; give this pod another name`,
      );
      assert.equal(
        refusalOf(await dryRun(world.context, podAllocation(world, "train-0", entries("10.20.0.70")))),
        `CLAIM_BUSY: claim shop/train-0 belongs to ${words}; give this pod another name`,
      );
      assert.equal(world.dump(), before);
    });
  }

  it("that is of an ordinal is for the pod of that name: there is only one", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(await reserve(world.context, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")), "pod"));
    await world.settle();
    const { claim } = granted(
      await reserve(world.context, podAllocation(world, "mysql-0", entries("10.20.0.70")), "pod"),
    );
    assert.equal(claim.record.identity.kind, "Pod");
  });
});
