// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { attachmentOf, bindingTo, claimRecord, NOW } from "../../test/support/fixtures.ts";
import { isRefusal } from "../base/errors.ts";
import type { Claim } from "../model/claim.ts";
import { type BindingEvidence, type BindTarget, isDetached, planBind } from "./bind.ts";

const NONE: BindingEvidence = { fenced: false, holdExpired: false };

function podOn(name: string, node: string, over: Partial<BindTarget> = {}): BindTarget {
  return { name, uid: `uid-of-${name}`, node, token: "", ...over };
}

function answer(claim: Claim, pod: BindTarget, facts: Partial<BindingEvidence> = {}): string {
  const plan = planBind(claim, pod, { ...NONE, ...facts }, NOW + 5);
  if (isRefusal(plan)) return plan.code;
  if (plan.kind === "bound") return "bound";
  const { since, ...binding } = plan.binding;
  assert.equal(since, NOW + 5);
  const { name: podName, uid: podUID, ...where } = pod;
  assert.deepEqual(binding, { ...where, podName, podUID });
  return "bind";
}

const free = claimRecord();
const held = (over = {}) =>
  claimRecord({ binding: { ...bindingTo("", "", { token: "t1", podUID: "" }), ...over } });
const bound = (over: Partial<Claim> = {}) => claimRecord({ binding: bindingTo("a", "x"), ...over });
const attached = (detached: boolean, podUID = "uid-of-a") =>
  bound({ status: { attachment: attachmentOf("a", { detached, podUID }) } });

describe("planBind", () => {
  const rows: readonly (readonly [string, string, Claim, BindTarget, Partial<BindingEvidence>?])[] = [
    ["bind", "bound to nobody, wanted by anyone", free, podOn("a", "x")],
    ["bind", "bound to nobody, wanted before it is scheduled", free, podOn("a", "")],
    ["bind", "with the interface that wants it", free, podOn("a", "x", { interface: "net1" })],

    ["bind", "a hold, its token", held(), podOn("a", "x", { token: "t1" })],
    ["bind", "a hold, its token, not scheduled", held(), podOn("a", "", { token: "t1" })],
    ["CLAIM_BUSY", "a hold, another token", held(), podOn("a", "x", { token: "t2" })],
    ["CLAIM_BUSY", "a hold, no token", held(), podOn("a", "x")],
    [
      "bind",
      "a hold that has expired, another token",
      held(),
      podOn("a", "x", { token: "t2" }),
      { holdExpired: true },
    ],
    [
      "CLAIM_BUSY",
      "a pod with the slot by a later admission, on the same node",
      bound({ binding: bindingTo("a", "x", { token: "t1" }) }),
      podOn("b", "x", { token: "t2" }),
    ],
    [
      "CLAIM_BUSY",
      "a pod with the slot by a later admission, on a fenced node",
      bound({ binding: bindingTo("a", "x", { token: "t1" }) }),
      podOn("b", "y", { token: "t2" }),
      { fenced: true },
    ],
    ["bind", "a hold that has expired, no token", held(), podOn("a", "x"), { holdExpired: true }],
    ["CLAIM_BUSY", "a hold: fencing of no node says nothing", held(), podOn("b", "x"), { fenced: true }],
    [
      "bound",
      "a hold that has met its pod",
      held(bindingTo("a", "", { token: "t1" })),
      podOn("a", "", { token: "t1" }),
    ],
    [
      "bind",
      "a hold that has met its pod, now scheduled",
      held(bindingTo("a", "", { token: "t1" })),
      podOn("a", "x", { token: "t1" }),
    ],
    [
      "CLAIM_BUSY",
      "a copied pod with the token of the first",
      held(bindingTo("a", "", { token: "t1" })),
      podOn("b", "x", { token: "t1" }),
    ],
    [
      "bind",
      "a copied pod, the first is gone",
      held(bindingTo("a", "", { token: "t1" })),
      podOn("b", "x", { token: "t1" }),
      { holdExpired: true },
    ],
    [
      "bind",
      "held for a pod found by its name, wanted by its successor",
      held(bindingTo("a", "")),
      podOn("a", "x", { uid: "u2" }),
    ],

    ["bound", "A on X, A on X", bound(), podOn("a", "x")],
    [
      "bound",
      "A on X, A on X again, the runtime does not say the uid",
      bound(),
      podOn("a", "x", { uid: "" }),
    ],
    ["bind", "A on X, B on X (c)", bound(), podOn("b", "x")],
    ["bind", "A on X, A's successor on X (c)", bound(), podOn("a", "x", { uid: "u2" })],
    ["CLAIM_BUSY", "A on X, B on Y", bound(), podOn("b", "y")],
    ["CLAIM_BUSY", "A on X, A's successor on Y", bound(), podOn("a", "y", { uid: "u2" })],
    ["CLAIM_BUSY", "A on X, A on Y, which cannot be", bound(), podOn("a", "y")],
    ["CLAIM_BUSY", "A on X, B not scheduled", bound(), podOn("b", "")],
    [
      "CLAIM_BUSY",
      "A on X, B on Y: a hold's end is no proof",
      bound(),
      podOn("b", "y"),
      { holdExpired: true },
    ],
    ["bind", "A on X, B on Y, X fenced (b)", bound(), podOn("b", "y"), { fenced: true }],
    ["bind", "A on X, B not scheduled, X fenced (b)", bound(), podOn("b", ""), { fenced: true }],
    ["CLAIM_BUSY", "A attached on X, B on Y", attached(false), podOn("b", "y")],
    ["bind", "A detached on X, B on Y (a)", attached(true), podOn("b", "y")],
    ["CLAIM_BUSY", "A there on X, B on X", bound(), podOn("b", "x"), { holderThere: true }],
    [
      "CLAIM_BUSY",
      "A there and detached on X, B on Y",
      attached(true),
      podOn("b", "y"),
      { holderThere: true },
    ],
    [
      "bind",
      "A there on X, B on Y, X fenced (b)",
      bound(),
      podOn("b", "y"),
      { holderThere: true, fenced: true },
    ],
    ["bound", "A there on X, A on X", bound(), podOn("a", "x"), { holderThere: true }],
    ["CLAIM_BUSY", "A's predecessor detached on X, B on Y", attached(true, "uid-of-older"), podOn("b", "y")],
    ["bound", "A detached on X, A on X once more", attached(true), podOn("a", "x")],

    ["CLAIM_RELEASING", "on its way out", bound({ releasing: true }), podOn("a", "x")],
    ["bound", "being deleted, A on X once more", bound({ deleting: true }), podOn("a", "x")],
    [
      "bound",
      "being deleted, detached, A on X once more",
      { ...attached(true), deleting: true },
      podOn("a", "x"),
    ],
    [
      "CLAIM_RELEASING",
      "being deleted, A's successor on X",
      bound({ deleting: true }),
      podOn("a", "x", { uid: "u2" }),
    ],
    [
      "CLAIM_RELEASING",
      "being deleted, A detached on X, B on Y",
      { ...attached(true), deleting: true },
      podOn("b", "y"),
    ],
    [
      "CLAIM_RELEASING",
      "being deleted, X fenced, B on Y",
      bound({ deleting: true }),
      podOn("b", "y"),
      { fenced: true },
    ],
    ["CLAIM_RELEASING", "being deleted, bound to nobody", { ...free, deleting: true }, podOn("a", "x")],
    [
      "CLAIM_RELEASING",
      "being deleted, a hold that has met its pod",
      { ...held(bindingTo("a", "", { token: "t1" })), deleting: true },
      podOn("a", "", { token: "t1" }),
    ],
    [
      "CLAIM_RELEASING",
      "being deleted, and on its way out",
      bound({ deleting: true, releasing: true }),
      podOn("a", "x"),
    ],
    [
      "CLAIM_RELEASING",
      "on its way out, X fenced",
      claimRecord({ releasing: true }),
      podOn("a", "x"),
      { fenced: true },
    ],
    [
      "CLAIM_MISSING",
      "made by hand, not reserved yet",
      claimRecord({ nonce: "", addresses: [] }),
      podOn("a", "x"),
    ],
  ];
  for (const [outcome, title, claim, pod, facts] of rows) {
    it(`${title}: ${outcome}`, () => assert.equal(answer(claim, pod, facts), outcome));
  }

  it("is since its admission at the earliest, whatever the clock of whoever binds it says", () => {
    const since = (admittedAt: number) => {
      const plan = planBind(claimRecord({ admittedAt }), podOn("a", "x"), NONE, NOW);
      return isRefusal(plan) || plan.kind !== "bind" ? plan.kind : plan.binding.since;
    };
    assert.deepEqual([since(NOW - 500), since(NOW + 500)], [NOW, NOW + 500]);
  });

  it("says who has it and what it is waiting for", () => {
    const words = (claim: Claim, pod: BindTarget) => {
      const plan = planBind(claim, pod, NONE, NOW);
      return isRefusal(plan) ? [plan.message, plan.details] : [];
    };
    assert.deepEqual(words(bound(), podOn("b", "y")), [
      "claim shop/mysql-0 (10.20.0.70) is still bound to pod a on node x, whose sandbox was not seen to end; it moves when that node's agent reports, the node is deleted, or it is tainted out-of-service or annotated berth.dev/fenced=true",
      { claim: "shop/mysql-0", pod: "a", node: "x" },
    ]);
    assert.deepEqual(words(held(), podOn("b", "y")), [
      "claim shop/mysql-0 (10.20.0.70) is held for another pod of its set; it is free again when that pod is gone",
      { claim: "shop/mysql-0", pod: "" },
    ]);
    assert.deepEqual(
      words(claimRecord({ releasing: true }), podOn("b", "y"))[0],
      "the addresses of claim shop/mysql-0 are being given back; try again in a moment",
    );
    const waiting = claimRecord({ nonce: "", status: { message: "pool db is full" } });
    assert.deepEqual(
      words(waiting, podOn("b", "y"))[0],
      "claim shop/mysql-0 has no addresses yet: pool db is full",
    );
  });
});

describe("isDetached", () => {
  const rows: readonly (readonly [boolean, string, Claim])[] = [
    [true, "bound to nobody", free],
    [true, "held", held()],
    [true, "held for a pod that is not scheduled", held(bindingTo("a", ""))],
    [false, "bound", bound()],
    [false, "attached", attached(false)],
    [true, "detached", attached(true)],
    [false, "detached in the life of an older pod", attached(true, "uid-of-older")],
  ];
  for (const [rests, title, claim] of rows) {
    it(`${title}: ${rests}`, () => assert.equal(isDetached(claim), rests));
  }
});

describe("a claim whose sandbox was not seen to end", () => {
  const wordsOf = (facts: Partial<BindingEvidence>) => {
    const plan = planBind(bound(), podOn("b", "y"), { ...NONE, ...facts }, NOW);
    return isRefusal(plan) ? plan.message : plan.kind;
  };

  it("is said to wait for its node in a cluster, and for its host where there are no nodes", () => {
    assert.match(
      wordsOf({}),
      /is still bound to pod a on node x, .*that node's agent reports, .*berth\.dev\/fenced=true$/,
    );
    const onHosts = wordsOf({ onHosts: true });
    assert.match(
      onHosts,
      /is still bound to a on host x, .*that host's agent reports, .*: berthctl fence x$/,
    );
    assert.doesNotMatch(onHosts, /\bnode\b|\bpod\b/);
  });
});
