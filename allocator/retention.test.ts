// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { attachmentOf, bindingTo, claimRecord, NOW } from "../test/support/fixtures.ts";
import { isAtRest } from "./bind.ts";
import { type Claim, DEFAULT_RETENTION, type Retention } from "./claim.ts";
import type { Inventory, PodFacts, WorkloadFacts } from "./inventory.ts";
import { gatherFacts, judge, type OwnerFacts } from "./retention.ts";

const GONE: OwnerFacts = { owner: "deleted", podExists: false };

function verdict(claim: Claim, facts: Partial<OwnerFacts> = {}, now = NOW, createdAt = NOW): string {
  const found = judge(claim, { ...GONE, ...facts }, createdAt, now);
  if (found.kind === "release") return `release ${found.reason}`;
  return found.kind === "retain" ? `retain ${found.because}` : found.kind;
}

const kept = (over: Partial<Retention>) => claimRecord({ retention: { ...DEFAULT_RETENTION, ...over } });
const slot = (over: Partial<Claim>) =>
  claimRecord({ identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 }, ...over });
const live: Partial<Claim> = { binding: bindingTo("a", "x") };
const ended: Partial<Claim> = {
  ...live,
  status: { phase: "Detached", attachment: attachmentOf("a", { detached: true }) },
};
/** As `ended`, of a pod that was found by its token. */
const passedOn = { ...ended, binding: bindingTo("a", "node-a", { token: "t1" }) };
const promise = bindingTo("", "", { token: "t1", podUID: "" });

/** Somebody deleted it past admission. */
const doomed = (over: Partial<Claim>) => claimRecord({ deleting: true, ...over });
const RETAIN = { retention: { ...DEFAULT_RETENTION, whenDeleted: "Retain" } } as const;

describe("judge", () => {
  const rows: readonly (readonly [string, string, Claim, Partial<OwnerFacts>])[] = [
    ["keep", "needed", claimRecord(), { owner: "needed" }],
    ["keep", "needed, its pod is gone", claimRecord(ended), { owner: "needed" }],
    [
      "unretain",
      "needed again",
      claimRecord({ retained: { since: NOW, because: "scaled" } }),
      { owner: "needed" },
    ],
    ["release deleted", "deleted, Release", claimRecord(), {}],
    ["retain deleted", "deleted, Retain", kept({ whenDeleted: "Retain" }), {}],
    ["release scaled", "scaled, Release", kept({ whenScaled: "Release" }), { owner: "scaled" }],
    ["retain scaled", "scaled, Retain", claimRecord(), { owner: "scaled" }],
    ["keep", "deleted, its pod is there", claimRecord(), { podExists: true }],
    ["keep", "deleted, bound", claimRecord(live), {}],
    ["release deleted", "deleted, bound to a node that is fenced", claimRecord(live), { fenced: true }],
    ["keep", "needed, bound to a node that is fenced", claimRecord(live), { owner: "needed", fenced: true }],
    ["release deleted", "deleted, detached", claimRecord(ended), {}],
    ["release deleted", "deleted, only promised", claimRecord({ binding: promise }), {}],
    ["keep", "made by hand", claimRecord({ handMade: true }), {}],
    ["keep", "releasing already", claimRecord({ releasing: true }), {}],
    ["keep", "not reserved", claimRecord({ nonce: "", addresses: [] }), {}],
    ["keep", "unborn, young", claimRecord(), { owner: "unborn" }],
    ["keep", "unborn, bound", claimRecord(live), { owner: "unborn" }],
    ["keep", "a slot that nobody has", slot({}), { owner: "needed" }],
    ["keep", "a slot whose pod lives", slot(live), { owner: "needed", podExists: true }],
    ["keep", "a slot whose pod is gone and its sandbox is not", slot(live), { owner: "needed" }],
    ["unpromise", "a slot whose pod and sandbox are gone", slot(passedOn), { owner: "needed" }],
    ["unpromise", "a Job's index whose pod and sandbox are gone", claimRecord(passedOn), { owner: "needed" }],
    ["keep", "a slot promised just now", slot({ binding: promise }), { owner: "needed" }],
    ["keep", "no slot: its binding stays", claimRecord(ended), { owner: "needed" }],
    ["keep", "deleted by hand, in use", doomed(live), { owner: "needed", podExists: true }],
    ["keep", "deleted by hand, its pod is gone and its sandbox is not", doomed(live), {}],
    ["release deleted", "deleted by hand, detached, and needed", doomed(ended), { owner: "needed" }],
    ["release deleted", "deleted by hand, on a fenced node", doomed(live), { podExists: true, fenced: true }],
    ["release deleted", "deleted by hand, lent to nobody", doomed({}), { owner: "needed", podExists: true }],
    ["release deleted", "deleted by hand, whatever retention says", doomed({ ...ended, ...RETAIN }), {}],
    ["release deleted", "deleted by hand, and made so too", doomed({ ...ended, handMade: true }), {}],
    ["release deleted", "deleted by hand, without addresses", doomed({ nonce: "", addresses: [] }), {}],
    ["keep", "deleted by hand, releasing already", doomed({ releasing: true }), {}],
  ];
  for (const [outcome, title, claim, facts] of rows) {
    it(`${title}: ${outcome}`, () => assert.equal(verdict(claim, facts), outcome));
  }

  it("lets retained addresses go when the ttl is over, to the millisecond", () => {
    const claim = {
      ...kept({ whenDeleted: "Retain", ttlMs: 1000 }),
      retained: { since: NOW, because: "deleted" as const },
    };
    assert.equal(verdict(claim, {}, NOW + 999), "keep");
    assert.equal(verdict(claim, {}, NOW + 1000), "release expired");
    assert.equal(verdict({ ...claim, ...live }, {}, NOW + 1000), "keep");
    const forever = { ...claim, retention: { ...claim.retention, ttlMs: null } };
    assert.equal(verdict(forever, {}, NOW + 1e12), "keep");
    const atOnce = { ...claim, retention: { ...claim.retention, ttlMs: 0 } };
    assert.equal(verdict(atOnce, {}, NOW), "release expired");
  });

  it("releases what was retained when the choice was changed to Release", () => {
    const retained = { since: NOW, because: "scaled" as const };
    assert.equal(verdict({ ...claimRecord(), retained }, { owner: "deleted" }), "release deleted");
  });

  it("gives a pod 120 s to come, from its last admission", () => {
    assert.equal(verdict(claimRecord(), { owner: "unborn" }, NOW + 119_999), "keep");
    assert.equal(verdict(claimRecord(), { owner: "unborn" }, NOW + 120_000), "release never-came");
    const again = claimRecord({ admittedAt: NOW + 60_000 });
    assert.equal(verdict(again, { owner: "unborn" }, NOW + 179_999), "keep");
    assert.equal(verdict(again, { owner: "unborn" }, NOW + 180_000), "release never-came");
    assert.equal(verdict(claimRecord(), { owner: "unborn", podExists: true }, NOW + 1e9), "keep");
  });

  it("takes a slot's promise back after 120 s without its pod", () => {
    const facts: Partial<OwnerFacts> = { owner: "needed" };
    assert.equal(verdict(slot({ binding: promise }), facts, NOW + 119_999), "keep");
    assert.equal(verdict(slot({ binding: promise }), facts, NOW + 120_000), "unpromise");
    assert.equal(verdict(slot({ binding: promise }), { ...facts, podExists: true }, NOW + 1e9), "keep");
  });

  it("never lets go while a sandbox may be alive, whatever is known of the owner", () => {
    const choice = fc.constantFrom("Release" as const, "Retain" as const);
    const claims = fc.record({
      retention: fc.record({ whenDeleted: choice, whenScaled: choice, ttlMs: fc.constantFrom(null, 0, 1) }),
      binding: fc.constantFrom(bindingTo("a", "x"), bindingTo("a", "x", { podUID: "u9" })),
      detached: fc.boolean(),
      retained: fc.option(fc.constant({ since: 0, because: "scaled" as const }), { nil: undefined }),
      slot: fc.option(fc.constant(0), { nil: undefined }),
    });
    const facts = fc.record({
      owner: fc.constantFrom("needed" as const, "scaled" as const, "deleted" as const, "unborn" as const),
      podExists: fc.boolean(),
    });
    fc.assert(
      fc.property(claims, facts, ({ retention, binding, detached, retained, slot: n }, seen) => {
        const claim = claimRecord({
          retention,
          binding,
          identity: {
            kind: "Deployment",
            apiVersion: "apps/v1",
            name: "web",
            ...(n === undefined ? {} : { slot: n }),
          },
          status: { phase: "Attached", attachment: attachmentOf("a", { detached }) },
          ...(retained === undefined ? {} : { retained }),
        });
        const found = judge(claim, seen, 0, NOW).kind;
        if (!isAtRest(claim)) assert.ok(found === "keep" || found === "unretain", found);
      }),
    );
  });
});

describe("gatherFacts", () => {
  const podFacts = (name: string, uid: string): PodFacts => ({
    namespace: "shop",
    name,
    uid,
    node: "",
    labels: {},
    annotations: {},
  });
  const set = (replicas: number, start = 0): WorkloadFacts => ({
    kind: "StatefulSet",
    namespace: "shop",
    name: "mysql",
    uid: "u",
    replicas,
    start,
  });
  const inventory = (
    pods: readonly PodFacts[],
    workload: WorkloadFacts | "unknown" | undefined,
  ): Inventory => ({
    pod: async (_, name) => pods.find((pod) => pod.name === name),
    workload: async () => workload,
    namespace: async () => undefined,
    fenced: async () => false,
  });
  const own = podFacts("mysql-0", "uid-of-mysql-0");
  const bare: Partial<Claim> = { identity: { kind: "Pod", apiVersion: "v1", name: "mysql-0" } };
  const used: Partial<Claim> = { binding: bindingTo("mysql-0", "x") };
  const promisedTo = (podName: string): Partial<Claim> => ({
    ...bare,
    name: "c-1",
    binding: bindingTo(podName, "", { token: "t", podUID: "" }),
  });
  const rows: readonly (readonly [string, string, Partial<Claim>, Inventory])[] = [
    ["needed, no pod", "an ordinal that the set wants", {}, inventory([], set(1))],
    ["needed, pod", "an ordinal with its pod", {}, inventory([own], set(1))],
    ["scaled, no pod", "an ordinal above", {}, inventory([], set(0))],
    ["scaled, no pod", "an ordinal below the start", {}, inventory([], set(3, 1))],
    ["deleted, no pod", "a set that is gone", {}, inventory([], undefined)],
    ["deleted, pod", "a set that is gone, its pod is not", {}, inventory([own], undefined)],
    ["unborn, no pod", "a set that nobody heard of", {}, inventory([], "unknown")],
    ["needed, pod", "a set that nobody heard of, its pod is there", {}, inventory([own], "unknown")],
    ["needed, no pod", "a set that nobody heard of, used before", used, inventory([], "unknown")],
    ["needed, pod", "a bare pod", bare, inventory([own], undefined)],
    ["unborn, no pod", "a bare pod that never came", bare, inventory([], undefined)],
    ["deleted, no pod", "a bare pod that is gone", { ...bare, ...used }, inventory([], undefined)],
    [
      "deleted, no pod",
      "a bare pod that was kept",
      { ...bare, retained: { since: 0, because: "deleted" } },
      inventory([], undefined),
    ],
    [
      "needed, no pod",
      "a bare pod with a successor of its name",
      { ...bare, ...used },
      inventory([podFacts("mysql-0", "u2")], undefined),
    ],
    ["unborn, no pod", "a promise to a pod without a name", promisedTo(""), inventory([own], undefined)],
    [
      "unborn, no pod",
      "a promise to no pod, and one that is called like the claim",
      promisedTo(""),
      inventory([podFacts("c-1", "u2")], undefined),
    ],
    [
      "needed, pod",
      "a promise to a pod that is there",
      promisedTo("web-x"),
      inventory([podFacts("web-x", "u2")], undefined),
    ],
    [
      "needed, no pod",
      "a slot",
      { identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 3 } },
      inventory([], set(1)),
    ],
  ];
  it("asks whether the node is fenced only while a sandbox may be alive there", async () => {
    const fencing = { ...inventory([], undefined), fenced: async (node: string) => node === "x" };
    const fenced = async (claim: Partial<Claim>) => (await gatherFacts(claimRecord(claim), fencing)).fenced;
    assert.equal(await fenced(used), true);
    assert.equal(await fenced({ binding: bindingTo("mysql-0", "y") }), false);
    assert.equal(await fenced(bare), false);
  });

  for (const [outcome, title, claim, world] of rows) {
    it(`${title}: ${outcome}`, async () => {
      const { owner, podExists } = await gatherFacts(claimRecord(claim), world);
      assert.equal(`${owner}, ${podExists ? "pod" : "no pod"}`, outcome);
    });
  }
});
