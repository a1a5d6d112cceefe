// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bindingTo, claimRecord, workloadFactsOf } from "../../test/support/fixtures.ts";
import { isRefusal } from "../base/errors.ts";
import { readObject, workloadState } from "../manifest/kubernetes-object.ts";
import type { Claim, Identity } from "../model/claim.ts";
import { workloadOf } from "../model/claim-workload.ts";
import { groupOf, isFollowed, isSameGroup } from "../model/workload-kinds.ts";
import { isKeptForOwner, neededBy } from "./claim-owner.ts";

describe("groups", () => {
  it("are what comes before the version; the core group has none", () => {
    assert.deepEqual(["apps/v1", "argoproj.io/v1alpha1", "v1", ""].map(groupOf), [
      "apps",
      "argoproj.io",
      "",
      "",
    ]);
  });

  it("are the same in every version, and any when a record does not say", () => {
    assert.equal(isSameGroup("apps/v1", "apps/v1beta2"), true);
    assert.equal(isSameGroup("apps/v1", "apps.kruise.io/v1beta1"), false);
    assert.equal(isSameGroup("", "apps/v1"), true);
  });

  it("say which workloads are read", () => {
    assert.equal(isFollowed("apps/v1", "StatefulSet"), true);
    assert.equal(isFollowed("apps.kruise.io/v1beta1", "StatefulSet"), true);
    assert.equal(isFollowed("apps.pingcap.com/v1", "StatefulSet"), false);
    assert.equal(isFollowed("apps/v1", "ReplicaSet"), false);
    assert.equal(isFollowed("argoproj.io/v1alpha1", "Rollout"), false);
  });
});

describe("an entry of a list whose pods are on the host's network by now", () => {
  it("is needed no more", () => {
    const list = workloadFactsOf({ kind: "Deployment", name: "web", slots: 2 });
    assert.equal(neededBy(list, { slot: 0 }), "needed");
    assert.equal(neededBy({ ...list, hostNetwork: true }, { slot: 0 }), "deleted");
  });
});

describe("workloadOf", () => {
  const of = (name: string, identity: Partial<Identity>): Claim =>
    claimRecord({
      name,
      identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ...identity },
    });
  const rows: readonly (readonly [string, Claim, string])[] = [
    ["an ordinal", of("mysql-0", { ordinal: 0 }), "StatefulSet mysql"],
    ["an ordinal under another name", of("db", { ordinal: 0 }), "none"],
    ["a set of another group", of("mysql-0", { ordinal: 0, apiVersion: "apps.pingcap.com/v1" }), "none"],
    ["a set of an unsaid group", of("mysql-0", { ordinal: 0, apiVersion: "" }), "StatefulSet mysql"],
    ["a slot", of("mysql-slot-1", { kind: "Deployment", slot: 1 }), "Deployment mysql"],
    ["a pod without a slot", of("c-1", { kind: "Deployment" }), "none"],
    ["a slot of a bare ReplicaSet", of("mysql-slot-1", { kind: "ReplicaSet", slot: 1 }), "none"],
    ["a Job's index", of("mysql-3", { kind: "Job", apiVersion: "batch/v1", ordinal: 3 }), "Job mysql"],
    ["a bare pod", of("mysql-0", { kind: "Pod", apiVersion: "v1" }), "none"],
  ];
  for (const [title, claim, expected] of rows) {
    it(`${title}: ${expected}`, () => {
      const ref = workloadOf(claim);
      assert.equal(ref === undefined ? "none" : `${ref.kind} ${ref.name}`, expected);
    });
  }
});

describe("neededBy", () => {
  it("tells an ordinal that may come back from one of a set that is gone", () => {
    const set = workloadFactsOf({ uid: "u-2", replicas: 2 });
    assert.equal(neededBy(set, { ordinal: 1, uid: "u-2" }), "needed");
    assert.equal(neededBy(set, { ordinal: 2, uid: "u-2" }), "scaled");
    assert.equal(neededBy(set, { ordinal: 1, uid: "u-1" }), "needed");
    assert.equal(neededBy(set, { ordinal: 2, uid: "u-1" }), "deleted");
    assert.equal(neededBy(set, { ordinal: 2 }), "scaled");
  });

  it("wants the indexes of a Job that are neither completed nor failed, until it is over", () => {
    const job = (status: object) => {
      const object = readObject({
        ...{ apiVersion: "batch/v1", kind: "Job", metadata: { name: "train", namespace: "shop" } },
        spec: { completions: 8 },
        status,
      });
      assert.ok(!isRefusal(object));
      return Array.from(
        { length: 9 },
        (_, ordinal) => neededBy(workloadState(object), { ordinal }) === "needed",
      );
    };
    const done = job({ completedIndexes: "0,2-4", failedIndexes: "7" });
    assert.deepEqual(done, [false, true, false, false, false, true, true, false, false]);
    assert.deepEqual(job({}).indexOf(false), 8);
    for (const type of ["Complete", "Failed"]) {
      assert.ok(!job({ conditions: [{ type, status: "True" }] }).includes(true), type);
      assert.ok(job({ conditions: [{ type, status: "False" }] }).includes(true), type);
    }
  });
});

describe("isKeptForOwner, where nobody knows of the workload", () => {
  const RETAIN = { whenDeleted: "Retain", whenScaled: "Release", ttlMs: 0 } as const;
  const RELEASE = { whenDeleted: "Release", whenScaled: "Release", ttlMs: 0 } as const;
  const set = (uid: string): Identity => ({
    ...{ kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", uid, ordinal: 0 },
  });
  const pod: Identity = { kind: "Pod", apiVersion: "v1", name: "mysql-0" };
  const inventory = { workload: () => Promise.resolve("unknown" as const) };
  const binding = bindingTo("mysql-0", "a");
  const rows: readonly (readonly [string, Identity, Partial<Claim>, boolean])[] = [
    ["by a pod by itself, if a pod has used it", pod, { binding, retention: RELEASE }, true],
    [
      "by a pod of another UID of the name, if it was used and is to be retained",
      set("u-2"),
      { binding, retention: RETAIN },
      true,
    ],
    ["and not if it is not to be retained", set("u-2"), { binding, retention: RELEASE }, false],
    ["nor if no pod has used it", set("u-2"), { retention: RETAIN }, false],
    [
      "nor by a pod of a workload of another name",
      { ...set("u-2"), name: "pg" },
      { binding, retention: RETAIN },
      false,
    ],
  ];
  for (const [title, requester, over, expected] of rows)
    it(title, async () => {
      const claim = claimRecord({ name: "mysql-0", identity: set("u-1"), ...over });
      assert.equal(await isKeptForOwner(claim, requester, inventory), expected);
    });
});
