// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import {
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  refusalOf,
  reservationRecord,
} from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { dryRun } from "../demand/allocation-dry-run.ts";
import type { Claim } from "../model/claim.ts";
import { claimConflict } from "./claim-conflicts.ts";
import { reserve } from "./reserve.ts";

const BARE = { kind: "Pod", apiVersion: "v1", name: "web-slot-0" };

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
      await world.realStore.create("claim", claimRecord({ name: "train-0", identity }));
      await world.realStore.create(
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

  const slot0 = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
  const reported: readonly (readonly [string, Partial<Claim>, Claim["identity"], string])[] = [
    [
      "a pod, to a slot",
      { name: "web-slot-0", identity: BARE, binding: bindingTo("web-slot-0", "node-a") },
      slot0,
      "the name of slot 0 is taken by claim shop/web-slot-0 of Pod web-slot-0, which holds 10.20.0.70: give pod web-slot-0 another name, or delete it; if it is gone, the claim is released when its pods are gone: try again in a moment",
    ],
    [
      "a pod that nobody saw, to a slot",
      { name: "web-slot-0", identity: BARE },
      slot0,
      "the name of slot 0 is taken by claim shop/web-slot-0 of Pod web-slot-0, which holds 10.20.0.70: no pod was seen that has this claim; if Pod web-slot-0 is not there, the name is free 2 minutes after the last pod was admitted for it; if it is, give pod web-slot-0 another name, or delete it",
    ],
    [
      "a pod that is gone and keeps it, to a slot",
      { name: "web-slot-0", identity: BARE, retained: { since: 0, because: "deleted" } },
      slot0,
      "the name of slot 0 is taken by claim shop/web-slot-0 of Pod web-slot-0, which holds 10.20.0.70: if Pod web-slot-0 is not to come back, give the claim back: berthctl release shop/web-slot-0",
    ],
    [
      "a machine that nobody saw, to an ordinal",
      {
        name: "db-0",
        identity: { kind: "VirtualMachineInstance", apiVersion: "kubevirt.io/v1", name: "db-0" },
        binding: { token: "t1", podName: "", podUID: "", node: "", since: 0 },
      },
      { kind: "StatefulSet", apiVersion: "apps/v1", name: "db", ordinal: 0 },
      "the name of ordinal 0 is taken by claim shop/db-0 of VirtualMachineInstance db-0, which holds 10.20.0.70: no pod was seen that has this claim; if VirtualMachineInstance db-0 is not there, the name is free 2 minutes after the last pod was admitted for it; if it is, rename or delete VirtualMachineInstance db-0",
    ],
    [
      "a person, to a slot",
      {
        name: "web-slot-0",
        handMade: true,
        addresses: [],
        identity: BARE,
      },
      slot0,
      "the name of slot 0 is taken by claim shop/web-slot-0 of Pod web-slot-0: delete that claim, or create it under another name",
    ],
    [
      "a Job that may be gone, to a StatefulSet's ordinal",
      {
        name: "ji-0",
        identity: { kind: "Job", apiVersion: "batch/v1", name: "ji", ordinal: 0 },
        binding: bindingTo("ji-0-x7k2p", "node-a"),
      },
      { kind: "StatefulSet", apiVersion: "apps/v1", name: "ji", ordinal: 0 },
      "the name of ordinal 0 is taken by claim shop/ji-0 of Job ji, ordinal 0, which holds 10.20.0.70: rename or delete Job ji; if it is gone, the claim is released when its pods are gone: try again in a moment",
    ],
    [
      "a Deployment that is gone and keeps it, to an ordinal",
      { name: "web-slot-0", identity: slot0, retained: { since: 0, because: "deleted" } },
      { kind: "StatefulSet", apiVersion: "apps/v1", name: "web-slot", ordinal: 0 },
      "the name of ordinal 0 is taken by claim shop/web-slot-0 of Deployment web, slot 0, which holds 10.20.0.70: if Deployment web is not to come back, give the claim back: berthctl release shop/web-slot-0",
    ],
  ];
  for (const [title, over, requester, words] of reported) {
    it(`that is of ${title}: says who can make way`, () => {
      const refusal = claimConflict(claimRecord(over), requester);
      assert.ok(refusal);
      assert.equal(refusalOf(refusal), `CLAIM_BUSY: ${words}`);
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
