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
import type { Labels } from "../base/ports.ts";
import { ownReader } from "../demand/foreign-pools.ts";
import type { OwnReader } from "../manifest/pod-claim.ts";
import type { Claim } from "../model/claim.ts";
import type { ClusterState, PodState, WorkloadAnswer } from "../model/cluster-state.ts";
import { OWN_OF_EACH } from "../model/dialect.ts";
import { observeOwner } from "./retention.ts";

describe("gatherFacts", () => {
  const podFacts = (name: string, uid: string) => podFactsOf(name, { uid });
  const set = (replicas: number, start = 0) => workloadFactsOf({ replicas, start });
  const inventory = (pods: readonly PodState[], workload: WorkloadAnswer): ClusterState => ({
    pod: async (_, name) => pods.find((pod) => pod.name === name),
    workload: async () => workload,
    namespace: async () => undefined,
    fenced: async () => false,
  });
  const own = podFactsOf("mysql-0", { annotations: { "berth.dev/claim": "mysql-0" } });
  const failed = podFactsOf("mysql-0", { ended: true });
  const plain = podFacts("mysql-0", "u2");
  const asks = podFactsOf("mysql-0", { uid: "u2", annotations: { "berth.dev/pools": "db" } });
  const given = podFactsOf("mysql-0", { uid: "u2", annotations: { "berth.dev/claim": "mysql-0" } });
  const toldOthers = podFactsOf("mysql-0", {
    uid: "u2",
    annotations: { "berth.dev/claim": "mysql-0", "berth.dev/addresses": "10.20.0.99" },
  });
  const kept: Partial<Claim> = { retained: { since: 0, because: "deleted" } };
  const another = podFactsOf("mysql-0", { annotations: { "berth.dev/claim": "c-2" } });
  const mute = workloadFactsOf({ annotations: {} });
  const reader = ownReader({ view: viewOf({ pools: [DB_POOL] }), dialects: OWN_OF_EACH });
  const elsewhere = { "cni.projectcalico.org/ipAddrs": '["172.31.9.9"]' };
  const berths = { "cni.projectcalico.org/ipAddrs": '["10.20.0.70"]' };
  const asking = (annotations: Labels) =>
    inventory([podFactsOf("mysql-0", { uid: "u2", annotations })], workloadFactsOf({ annotations }));
  const ordinal = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 };
  const former = { ...ordinal, uid: "u-1" };
  const foreign = { ...ordinal, apiVersion: "apps.pingcap.com/v1" };
  const web = { kind: "Deployment", apiVersion: "apps/v1", name: "web" };
  const anonymous: Partial<Claim> = { name: "c-1", identity: web };
  const slotOf = (n: number): Partial<Claim> => ({ name: `web-slot-${n}`, identity: { ...web, slot: n } });
  const index: Partial<Claim> = {
    identity: { kind: "Job", apiVersion: "batch/v1", name: "mysql", ordinal: 0 },
  };
  const job = (isDone: (index: number) => boolean) => workloadFactsOf({ kind: "Job", isDone });
  const bare: Partial<Claim> = { identity: { kind: "Pod", apiVersion: "v1", name: "mysql-0" } };
  const used: Partial<Claim> = { binding: bindingTo("mysql-0", "x") };
  const heldFor = (podName: string): Partial<Claim> => ({
    ...bare,
    name: "c-1",
    binding: bindingTo(podName, "", { token: "t", podUID: "" }),
  });
  const reported = (claim: string, more: Partial<PodState> = {}) =>
    podFactsOf("web-x", { annotations: { "berth.dev/claim": claim, "berth.dev/token": "t" }, ...more });
  const admitted = (pod: PodState, workload: WorkloadAnswer): ClusterState => ({
    ...inventory([], workload),
    admittedWith: async (_, token) => (token === pod.annotations["berth.dev/token"] ? pod : undefined),
  });
  const unmet = { binding: bindingTo("", "", { token: "t", podUID: "" }) };
  const rows: readonly (readonly [string, string, Partial<Claim>, ClusterState])[] = [
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
    ["needed, no pod", "an ordinal that the set wants", {}, inventory([], set(1))],
    ["needed, pod", "a pod by itself", bare, inventory([given], undefined)],
    ["unseen, no pod", "a pod of whose name one has another claim", bare, inventory([another], undefined)],
    ["unseen, no pod", "a pod of whose name one asks for nothing", bare, inventory([plain], undefined)],
    [
      "deleted, no pod",
      "an ordinal of a set that is gone, whose name one has that asks for nothing",
      {},
      inventory([plain], undefined),
    ],
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
    ["needed, pod", "an ordinal with its pod", {}, inventory([own], set(1))],
    ["scaled, no pod", "an ordinal above", {}, inventory([], set(0))],
    ["scaled, no pod", "an ordinal below the start", {}, inventory([], set(3, 1))],
    ["deleted, no pod", "a set that is gone", {}, inventory([], undefined)],
    ["deleted, pod", "a set that is gone, its pod is not", {}, inventory([own], undefined)],
    [
      "deleted, no pod",
      "a retained one of a set that is gone, of whose name a pod was told other addresses",
      kept,
      inventory([toldOthers], undefined),
    ],
    [
      "scaled, no pod",
      "a retained ordinal above, of whose name a pod of a former set was told other addresses",
      kept,
      inventory([toldOthers], set(0)),
    ],
    [
      "deleted, pod",
      "one that is not retained, whose pod was told other addresses and may yet get them",
      {},
      inventory([toldOthers], undefined),
    ],
    ["deleted, pod", "a retained one whose pod was told its addresses", kept, inventory([own], undefined)],
    ["unseen, no pod", "a set that cannot be read", {}, inventory([], "unknown")],
    ["needed, pod", "a set that cannot be read, its pod is there", {}, inventory([own], "unknown")],
    ["needed, no pod", "a set that cannot be read, used before", used, inventory([], "unknown")],
    ["unseen, no pod", "a set that nobody applied", {}, inventory([], "never admitted")],
    ["needed, pod", "a set that nobody applied, its pod is there", {}, inventory([own], "never admitted")],
    ["scaled, no pod", "a set that nobody applied, used before", used, inventory([], "never admitted")],
    [
      "deleted, no pod",
      "an ordinal of a set that was replaced by a smaller one",
      { identity: former },
      inventory([], set(0)),
    ],
    [
      "needed, no pod",
      "an ordinal that a set of the same name wants",
      { identity: former },
      inventory([], set(1)),
    ],
    ["needed, no pod", "an ordinal whose pod has ended", used, inventory([failed], set(1))],
    [
      "deleted, no pod",
      "an ordinal that was given to no pod since its template asks for nothing",
      used,
      inventory([plain], mute),
    ],
    [
      "deleted, no pod",
      "an ordinal that was given to no pod since its template asks another system",
      used,
      asking(elsewhere),
    ],
    [
      "needed, pod",
      "an ordinal whose template asks for an address of a pool in another system's words",
      { binding: bindingTo("mysql-0", "x", { podUID: "" }) },
      asking(berths),
    ],
    [
      "needed, pod",
      "an ordinal whose template asks for nothing, and whose next pod asks, which no review saw",
      used,
      inventory([asks], mute),
    ],
    [
      "deleted, pod",
      "an ordinal of a set that is gone, whose next pod asks, which no review saw",
      used,
      inventory([asks], undefined),
    ],
    [
      "deleted, pod",
      "a retained ordinal of a set that is gone, whose next pod asks, which no review saw",
      { ...used, ...kept },
      inventory([asks], undefined),
    ],
    [
      "scaled, pod",
      "an ordinal above, whose next pod was given it and is not bound yet",
      used,
      inventory([given], set(0)),
    ],
    [
      "deleted, no pod",
      "an ordinal whose template and next pod ask, and have the host's network by now",
      used,
      inventory([{ ...asks, onHostNetwork: true }], workloadFactsOf({ hostNetwork: true })),
    ],
    [
      "needed, pod",
      "an ordinal whose next pod asks and is of a template from before the host's network",
      used,
      inventory([asks], workloadFactsOf({ hostNetwork: true })),
    ],
    [
      "deleted, no pod",
      "an ordinal whose next pod asks and has ended, of a set that is gone",
      used,
      inventory([{ ...asks, ended: true }], undefined),
    ],
    ["needed, no pod", "an ordinal without a pod whose template asks for nothing", used, inventory([], mute)],
    ["needed, pod", "an ordinal whose pod was made to ask by others", used, inventory([given], mute)],
    ["needed, pod", "an ordinal whose pod has its address from before", used, inventory([own], mute)],
    ["unseen, no pod", "a StatefulSet of another API group", { identity: foreign }, inventory([], undefined)],
    [
      "needed, pod",
      "a StatefulSet of another API group, its pod is there",
      { identity: foreign, ...used },
      inventory([own], undefined),
    ],
    [
      "deleted, no pod",
      "a StatefulSet of another API group, its pod is gone",
      { identity: foreign, ...used },
      inventory([], set(1)),
    ],
    [
      "deleted, no pod",
      "a StatefulSet's pod of another name that is gone",
      { name: "db", ...used },
      inventory([], set(1)),
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
    [
      "unseen, no pod",
      "a bare pod that has ended before it had a node",
      bare,
      inventory([failed], undefined),
    ],
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

  for (const [outcome, title, claim, world] of rows) {
    it(`${title}: ${outcome}`, async () => {
      const { owner, podLives } = await observeOwner(claimRecord(claim), world, reader);
      assert.equal(`${owner}, ${podLives ? "pod" : "no pod"}`, outcome);
    });
  }
});
