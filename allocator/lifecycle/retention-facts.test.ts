// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  bindingTo,
  claimRecord,
  DB_POOL,
  podFactsOf,
  viewOf,
  workloadFactsOf,
} from "../../test/support/fixtures.ts";
import { ownReader } from "../demand/foreign-pools.ts";
import type { OwnReader } from "../manifest/pod-claim.ts";
import type { Claim } from "../model/claim.ts";
import type { ClusterState, PodState, WorkloadAnswer } from "../model/cluster-state.ts";
import { OWN_OF_EACH } from "../model/dialect.ts";
import { observeOwner } from "./retention.ts";
import {
  asking,
  asks,
  elsewhere,
  failed,
  given,
  inventory,
  mute,
  observeAll,
  ordinal,
  own,
  plain,
  podFacts,
  type Row,
  reader,
  set,
  unmet,
  used,
  web,
} from "./testing/observed-owners.ts";

const admitted = (pod: PodState, workload: WorkloadAnswer): ClusterState => ({
  ...inventory([], workload),
  admittedWith: async (_, token) => (token === pod.annotations["berth.dev/token"] ? pod : undefined),
});
const reported = (claim: string, more: Partial<PodState> = {}) =>
  podFactsOf("web-x", { annotations: { "berth.dev/claim": claim, "berth.dev/token": "t" }, ...more });
const bare: Partial<Claim> = { identity: { kind: "Pod", apiVersion: "v1", name: "mysql-0" } };
const heldFor = (podName: string): Partial<Claim> => ({
  ...bare,
  name: "c-1",
  binding: bindingTo(podName, "", { token: "t", podUID: "" }),
});
const index: Partial<Claim> = {
  identity: { kind: "Job", apiVersion: "batch/v1", name: "mysql", ordinal: 0 },
};
const job = (isDone: (index: number) => boolean) => workloadFactsOf({ kind: "Job", isDone });
const another = podFactsOf("mysql-0", { annotations: { "berth.dev/claim": "c-2" } });
const anonymous: Partial<Claim> = { name: "c-1", identity: web };
const slotOf = (n: number): Partial<Claim> => ({ name: `web-slot-${n}`, identity: { ...web, slot: n } });
const ROWS: readonly Row[] = [
  [
    "needed, pod",
    "a pod that nobody has met but by its token",
    { ...heldFor(""), identity: web },
    admitted(reported("c-1"), set(1)),
  ],
  [
    "needed, pod",
    "a slot's pod that nobody has met but by its token",
    { ...slotOf(0), ...unmet },
    admitted(reported("web-slot-0"), workloadFactsOf({ slots: 1 })),
  ],
  [
    "needed, no pod",
    "a slot whose pod with the token has ended",
    { ...slotOf(0), ...unmet },
    admitted(reported("web-slot-0", { ended: true }), workloadFactsOf({ slots: 1 })),
  ],
  [
    "needed, no pod",
    "a slot whose pod with the token was given another claim",
    { ...slotOf(0), ...unmet },
    admitted(reported("web-slot-1"), workloadFactsOf({ slots: 1 })),
  ],
  ["needed, pod", "a pod by itself", bare, inventory([given], undefined)],
  ["unseen, no pod", "a pod of whose name one has another claim", bare, inventory([another], undefined)],
  ["unseen, no pod", "a pod of whose name one asks for nothing", bare, inventory([plain], undefined)],
  [
    "unseen, no pod",
    "a pod of whose name one asks another system",
    bare,
    inventory([podFactsOf("mysql-0", { uid: "u2", annotations: elsewhere })], undefined),
  ],
  ["needed, pod", "a pod of whose name one asks, which no review saw", bare, inventory([asks], undefined)],
  [
    "deleted, no pod",
    "a used one of whose name another asks for nothing",
    { ...bare, binding: bindingTo("mysql-0", "x", { podUID: "u0" }) },
    inventory([plain], undefined),
  ],
  [
    "needed, pod",
    "a used one whose pod's UID the runtime did not say",
    { ...bare, binding: bindingTo("mysql-0", "x", { podUID: "" }) },
    inventory([plain], undefined),
  ],
  [
    "deleted, no pod",
    "a used one of whose name one has another claim",
    { ...bare, binding: bindingTo("mysql-0", "x", { podUID: "u0" }) },
    inventory([another], undefined),
  ],
  [
    "needed, pod",
    "the pod that it is bound to, whatever that was told",
    { ...bare, ...used },
    inventory([another], undefined),
  ],
  [
    "unseen, no pod",
    "a pod of a Deployment that asks by pool, not come",
    { ...anonymous, binding: bindingTo("", "", { token: "t", podUID: "" }) },
    inventory([], set(1)),
  ],
  [
    "needed, pod",
    "a pod of a Deployment that asks by pool",
    { ...anonymous, binding: bindingTo("web-x", "x", { token: "t" }) },
    inventory([podFactsOf("web-x")], set(1)),
  ],
  [
    "deleted, no pod",
    "a pod of a Deployment that asks by pool, gone",
    { ...anonymous, binding: bindingTo("web-x", "x", { token: "t" }) },
    inventory([], set(1)),
  ],
  [
    "deleted, no pod",
    "a pod of a Deployment that asks by pool, ended",
    { ...anonymous, binding: bindingTo("web-x", "x", { token: "t" }) },
    inventory([podFactsOf("web-x", { ended: true })], set(1)),
  ],
  [
    "needed, no pod",
    "a slot of an ended pod",
    { ...slotOf(0), binding: bindingTo("web-x", "x", { token: "t" }) },
    inventory([podFactsOf("web-x", { ended: true })], set(1)),
  ],
  [
    "deleted, no pod",
    "a slot that the list has lost",
    slotOf(2),
    inventory([], workloadFactsOf({ slots: 2 })),
  ],
  [
    "needed, no pod",
    "an index of a Job",
    index,
    inventory(
      [],
      job(() => false),
    ),
  ],
  [
    "deleted, no pod",
    "an index of a Job that is done",
    { ...index, ...used },
    inventory(
      [],
      job(() => true),
    ),
  ],
  ["unseen, no pod", "an index of a Job that nobody heard of", index, inventory([], "unknown")],
  [
    "deleted, no pod",
    "an index of a Job that nobody heard of, its pod is gone",
    { ...index, ...used },
    inventory([], "unknown"),
  ],
  ["needed, pod", "a bare pod", bare, inventory([given], undefined)],
  ["deleted, no pod", "a bare pod that has ended", { ...bare, ...used }, inventory([failed], undefined)],
  ["unseen, no pod", "a bare pod that has ended before it had a node", bare, inventory([failed], undefined)],
  ["unseen, no pod", "a bare pod that never came", bare, inventory([], undefined)],
  ["deleted, no pod", "a bare pod that is gone", { ...bare, ...used }, inventory([], undefined)],
  [
    "deleted, no pod",
    "a bare pod that was kept",
    { ...bare, retained: { since: 0, because: "deleted" } },
    inventory([], undefined),
  ],
  [
    "needed, pod",
    "a bare pod with a successor of its name",
    { ...bare, ...used },
    inventory([given], undefined),
  ],
  ["unseen, no pod", "a hold for a pod without a name", heldFor(""), inventory([own], undefined)],
  [
    "unseen, no pod",
    "a hold for no pod, and one that is called like the claim",
    heldFor(""),
    inventory([podFacts("c-1", "u2")], undefined),
  ],
  [
    "needed, pod",
    "a hold for a pod that is there",
    heldFor("web-x"),
    inventory([podFacts("web-x", "u2")], undefined),
  ],
  [
    "needed, no pod",
    "a slot",
    { identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 3 } },
    inventory([], set(1)),
  ],
];

describe("observeOwner", () => {
  it("asks whether the node is fenced only while a sandbox may be alive there", async () => {
    const fencing = { ...inventory([], undefined), fenced: async (node: string) => node === "x" };
    const fenced = async (claim: Partial<Claim>) =>
      (await observeOwner(claimRecord(claim), fencing, reader)).fenced;
    assert.equal(await fenced(used), true);
    assert.equal(await fenced({ binding: bindingTo("mysql-0", "y") }), false);
    assert.equal(await fenced(bare), false);
  });

  it("gives nothing up by another system's words as long as a pool cannot be read", async () => {
    const broken = { ...DB_POOL, name: "newer", spec: { ...DB_POOL.spec, ranges: [] } };
    const view = viewOf({ pools: [DB_POOL, broken] });
    const ownerBy = async (own: OwnReader, world: ClusterState) =>
      (await observeOwner(claimRecord({ ...used, identity: ordinal }), world, own)).owner;
    assert.equal(await ownerBy(ownReader({ view, dialects: OWN_OF_EACH }), asking(elsewhere)), "needed");
    assert.equal(
      await ownerBy(ownReader({ view, dialects: OWN_OF_EACH }), inventory([plain], mute)),
      "deleted",
    );
    const none = { ...OWN_OF_EACH, calico: "none" } as const;
    assert.equal(await ownerBy(ownReader({ view, dialects: none }), asking(elsewhere)), "deleted");
  });

  observeAll(ROWS);
});
