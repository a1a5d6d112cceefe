// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BindingEvidence, BindTarget } from "../../../allocator/lifecycle/bind.ts";
import { HOLD_TIMEOUT_MS } from "../../../allocator/lifecycle/hold.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { attachmentOf, bindingTo, claimRecord, NOW } from "../../../test/support/fixtures.ts";
import type { ObservedPod } from "../../cluster-state/observed-objects.ts";
import { gatherEvidence } from "./binding-evidence.ts";

function podSeen(name: string, over: Partial<ObservedPod> = {}): ObservedPod {
  const ids = { namespace: "shop", name, uid: `uid-of-${name}`, node: "x" };
  const is = { up: true, deleting: false, exempt: false, ended: false };
  return { ...ids, labels: {}, annotations: {}, ...is, ...over };
}

interface Cluster {
  /** As the watch has them, and as they are. */
  readonly seen?: readonly ObservedPod[];
  readonly there?: readonly ObservedPod[];
  readonly fenced?: readonly string[];
}

function witnessOf({ seen = [], there = [], fenced = [] }: Cluster) {
  const asked: string[] = [];
  const inventory = {
    async pod(namespace: string, name: string) {
      asked.push(`pod ${namespace}/${name}`);
      return there.find((pod) => pod.name === name);
    },
    async fenced(node: string) {
      asked.push(`node ${node}`);
      return fenced.includes(node);
    },
    admittedWith: async (_: string, token: string) =>
      seen.find(({ annotations }) => annotations["berth.dev/token"] === token),
  };
  const pods = { get: (key: string) => seen.find(({ namespace, name }) => `${namespace}/${name}` === key) };
  return { asked, witness: { inventory, pods } };
}

const b = (node: string, over: Partial<BindTarget> = {}): BindTarget => ({
  ...{ name: "b", uid: "uid-of-b", node, token: "t1" },
  ...over,
});
const bound = (over: Partial<Claim> = {}) =>
  claimRecord({ binding: bindingTo("a", "x", { token: "t1" }), ...over });
const detached = bound({
  status: { attachment: attachmentOf("a", { detached: true }) },
});
const met = claimRecord({ binding: bindingTo("a", "", { token: "t1" }) });
const unmet = claimRecord({ binding: bindingTo("", "", { token: "t2", podUID: "" }) });
const NONE: BindingEvidence = { fenced: false, holdExpired: false };
const OVER: BindingEvidence = { fenced: false, holdExpired: true };

describe("gatherEvidence", () => {
  const a = podSeen("a");
  const rows: readonly (readonly [string, Claim, BindTarget, Cluster, BindingEvidence, readonly string[]])[] =
    [
      ["bound to nobody", claimRecord(), b("y"), {}, NONE, []],
      ["on the same node, A gone", bound(), b("x"), {}, NONE, []],
      ["detached, A gone", detached, b("y"), {}, NONE, []],
      ["A on X, B on Y, nothing known", bound(), b("y"), {}, NONE, ["node x"]],
      ["A on X, B on Y, X fenced", bound(), b("y"), { fenced: ["x"] }, { ...NONE, fenced: true }, ["node x"]],
      [
        "on the same node, A there",
        bound(),
        b("x"),
        { seen: [a] },
        { ...NONE, holderThere: true },
        ["node x"],
      ],
      ["detached, A there", detached, b("y"), { seen: [a] }, { ...NONE, holderThere: true }, ["node x"]],
      ["on the same node, A has ended", bound(), b("x"), { seen: [podSeen("a", { ended: true })] }, NONE, []],
      ["on the same node, A's successor", bound(), b("x"), { seen: [podSeen("a", { uid: "u2" })] }, NONE, []],
      ["held for A, who is there", met, b("y"), { there: [a] }, NONE, ["pod shop/a"]],
      ["held for A, who is gone", met, b("y"), { seen: [a] }, OVER, ["pod shop/a"]],
      [
        "held for A, a successor there",
        met,
        b("y"),
        { there: [podSeen("a", { uid: "u2" })] },
        OVER,
        ["pod shop/a"],
      ],
      ["held for A, A asks", met, b("y", { name: "a", uid: "uid-of-a" }), {}, NONE, []],
      ["held for nobody seen yet", unmet, b("y"), {}, NONE, []],
    ];
  for (const [title, claim, pod, cluster, evidence, calls] of rows) {
    it(`${title}: asks ${calls.join(", ") || "nobody"}`, async () => {
      const { asked, witness } = witnessOf(cluster);
      assert.deepEqual(await gatherEvidence(witness, claim, pod, NOW + HOLD_TIMEOUT_MS - 1), evidence);
      assert.deepEqual(asked, calls);
    });
  }

  it("keeps a hold for nobody seen yet for its time", async () => {
    const { asked, witness } = witnessOf({});
    assert.deepEqual(await gatherEvidence(witness, unmet, b("y"), NOW + HOLD_TIMEOUT_MS), OVER);
    assert.deepEqual(asked, []);
  });

  it("keeps a hold for as long as a pod with its token is there, though nobody has met it", async () => {
    const late = NOW + 10 * HOLD_TIMEOUT_MS;
    for (const [pod, evidence] of [
      [podSeen("a", { annotations: { "berth.dev/token": "t2" } }), NONE],
      [podSeen("a", { annotations: { "berth.dev/token": "t2" }, ended: true }), OVER],
    ] as const) {
      const { witness } = witnessOf({ seen: [pod] });
      assert.deepEqual(await gatherEvidence(witness, unmet, b("y"), late), evidence);
    }
  });
});
