// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { attachmentOf, bindingTo, claimRecord, NOW, storedAs } from "../../test/support/fixtures.ts";
import { type Claim, DEFAULT_RETENTION, type Retention } from "../model/claim.ts";
import { isDetached } from "./bind.ts";
import { decideRetention, isSettled, type OwnerState } from "./retention.ts";

const GONE: OwnerState = { owner: "deleted", podLives: false };

function verdict(claim: Claim, facts: Partial<OwnerState> = {}, now = NOW, createdAt = NOW): string {
  const found = decideRetention(claim, { ...GONE, ...facts }, createdAt, now);
  if (found.kind === "release") return `release ${found.reason}`;
  return found.kind === "retain" ? `retain ${found.because}` : found.kind;
}

const kept = (over: Partial<Retention>) => claimRecord({ retention: { ...DEFAULT_RETENTION, ...over } });
const slot = (over: Partial<Claim>) =>
  claimRecord({ identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 }, ...over });
const live: Partial<Claim> = { binding: bindingTo("a", "x") };
const ended: Partial<Claim> = {
  ...live,
  status: { attachment: attachmentOf("a", { detached: true }) },
};
/** As `ended`, of a pod that was found by its token. */
const passedOn = { ...ended, binding: bindingTo("a", "node-a", { token: "t1" }) };
const hold = bindingTo("", "", { token: "t1", podUID: "" });

/** Somebody deleted it past admission. */
const doomed = (over: Partial<Claim>) => claimRecord({ deleting: true, ...over });
const RETAIN = { retention: { ...DEFAULT_RETENTION, whenDeleted: "Retain" } } as const;

describe("judge", () => {
  const rows: readonly (readonly [string, string, Claim, Partial<OwnerState>])[] = [
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
    ["retain deleted", "a slot of a Deployment that is gone, Retain", slot(RETAIN), {}],
    [
      "release deleted",
      "a slot of an owner that is not read, Retain",
      slot({ ...RETAIN, identity: { kind: "ReplicaSet", apiVersion: "apps/v1", name: "ro-abc", slot: 0 } }),
      {},
    ],
    [
      "release deleted",
      "a slot of an owner that is not read, retained before",
      slot({
        ...RETAIN,
        identity: { kind: "Rollout", apiVersion: "argoproj.io/v1alpha1", name: "ro", slot: 0 },
        retained: { since: NOW, because: "deleted" },
      }),
      {},
    ],
    ["release scaled", "scaled, Release", kept({ whenScaled: "Release" }), { owner: "scaled" }],
    ["retain scaled", "scaled, Retain", claimRecord(), { owner: "scaled" }],
    ["keep", "deleted, its pod is there", claimRecord(), { podLives: true }],
    ["keep", "deleted, bound", claimRecord(live), {}],
    ["release deleted", "deleted, bound to a node that is fenced", claimRecord(live), { fenced: true }],
    ["keep", "needed, bound to a node that is fenced", claimRecord(live), { owner: "needed", fenced: true }],
    ["release deleted", "deleted, detached", claimRecord(ended), {}],
    ["keep", "deleted, held just now", claimRecord({ binding: hold }), {}],
    ["keep", "scaled, held just now", claimRecord({ binding: hold }), { owner: "scaled" }],
    ["keep", "deleted, admitted again just now", claimRecord({ ...ended, admittedAt: NOW + 1 }), {}],
    [
      "release deleted",
      "deleted, admitted before it was bound",
      claimRecord({ ...ended, admittedAt: NOW }),
      {},
    ],
    ["keep", "made by hand", claimRecord({ handMade: true }), {}],
    ["keep", "releasing already", claimRecord({ releasing: true }), {}],
    ["keep", "not reserved", claimRecord({ nonce: "", addresses: [] }), {}],
    ["keep", "unseen, young", claimRecord(), { owner: "unseen" }],
    ["keep", "unseen, bound", claimRecord(live), { owner: "unseen" }],
    ["keep", "a slot that nobody has", slot({}), { owner: "needed" }],
    ["keep", "a slot whose pod lives", slot(live), { owner: "needed", podLives: true }],
    ["keep", "a slot whose pod is gone and its sandbox is not", slot(live), { owner: "needed" }],
    ["release-hold", "a slot whose pod and sandbox are gone", slot(passedOn), { owner: "needed" }],
    [
      "release-hold",
      "a Job's index whose pod and sandbox are gone",
      claimRecord(passedOn),
      { owner: "needed" },
    ],
    ["keep", "a slot held just now", slot({ binding: hold }), { owner: "needed" }],
    ["keep", "no slot: its binding stays", claimRecord(ended), { owner: "needed" }],
    ["keep", "deleted by hand, in use", doomed(live), { owner: "needed", podLives: true }],
    ["keep", "deleted by hand, its pod is gone and its sandbox is not", doomed(live), {}],
    ["release deleted", "deleted by hand, detached, and needed", doomed(ended), { owner: "needed" }],
    ["release deleted", "deleted by hand, on a fenced node", doomed(live), { podLives: true, fenced: true }],
    ["release deleted", "deleted by hand, bound to nobody", doomed({}), { owner: "needed", podLives: true }],
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
    assert.equal(verdict(claimRecord(), { owner: "unseen" }, NOW + 119_999), "keep");
    assert.equal(verdict(claimRecord(), { owner: "unseen" }, NOW + 120_000), "release never-came");
    const again = claimRecord({ admittedAt: NOW + 60_000 });
    assert.equal(verdict(again, { owner: "unseen" }, NOW + 179_999), "keep");
    assert.equal(verdict(again, { owner: "unseen" }, NOW + 180_000), "release never-came");
    assert.equal(verdict(claimRecord(), { owner: "unseen", podLives: true }, NOW + 1e9), "keep");
  });

  it("keeps what is held for a pod for 120 s, whatever is known of the owner", () => {
    for (const owner of ["deleted", "scaled", "unseen"] as const) {
      const claim = kept({ whenScaled: "Release" });
      assert.equal(verdict({ ...claim, binding: hold }, { owner }, NOW + 119_999), "keep", owner);
      assert.match(verdict({ ...claim, binding: hold }, { owner }, NOW + 120_000), /^release /, owner);
    }
    const again = claimRecord({ ...ended, admittedAt: NOW + 1_000 });
    assert.equal(verdict(again, {}, NOW + 120_999), "keep");
    assert.equal(verdict(again, {}, NOW + 121_000), "release deleted");
  });

  it("keeps a claim that nobody ever used for 120 s after it was held anew", () => {
    const anew = claimRecord({ binding: { ...hold, since: NOW + 100_000 } });
    assert.equal(verdict(anew, { owner: "unseen" }, NOW + 219_999), "keep");
    assert.equal(verdict(anew, { owner: "unseen" }, NOW + 220_000), "release never-came");
  });

  it("takes a slot's hold back after 120 s without its pod", () => {
    const facts: Partial<OwnerState> = { owner: "needed" };
    assert.equal(verdict(slot({ binding: hold }), facts, NOW + 119_999), "keep");
    assert.equal(verdict(slot({ binding: hold }), facts, NOW + 120_000), "release-hold");
    assert.equal(verdict(slot({ binding: hold }), { ...facts, podLives: true }, NOW + 1e9), "keep");
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
      owner: fc.constantFrom("needed" as const, "scaled" as const, "deleted" as const, "unseen" as const),
      podLives: fc.boolean(),
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
          status: { attachment: attachmentOf("a", { detached }) },
          ...(retained === undefined ? {} : { retained }),
        });
        const found = decideRetention(claim, seen, 0, NOW).kind;
        if (!isDetached(claim)) assert.ok(found === "keep" || found === "unretain", found);
      }),
    );
  });
});

describe("a claim that is kept", () => {
  const needed: Partial<OwnerState> = { owner: "needed" };
  const running: Partial<OwnerState> = { ...needed, podLives: true };
  const retained = { since: NOW, because: "scaled" } as const;
  const rows: readonly (readonly [boolean, string, Partial<Claim>, Partial<OwnerState>])[] = [
    [true, "its pod runs", live, running],
    [true, "its pod runs, and its owner is gone", live, { podLives: true }],
    [true, "its ordinal is wanted and nobody has it", {}, needed],
    [true, "a sandbox may have its addresses", live, {}],
    [true, "a person made it", { handMade: true }, {}],
    [false, "its owner cannot be seen", {}, { ...needed, isGuessed: true }],
    [
      false,
      "it is held for a pod that has not come",
      { binding: bindingTo("a", "", { token: "t1" }) },
      needed,
    ],
    [false, "its pod is found by a token", { binding: hold }, running],
    [false, "nobody has used it yet", {}, { owner: "unseen" }],
    [false, "it is retained", { ...RETAIN, retained }, {}],
    [false, "it is retained, and wanted again", { retained }, running],
    [false, "it is being released", { releasing: true }, running],
  ];
  for (const [expected, name, over, facts] of rows) {
    it(`${expected ? "is" : "is not"} settled when ${name}`, () => {
      const stored = storedAs("claim", claimRecord(over));
      assert.equal(isSettled(stored, { ...GONE, ...facts }), expected);
    });
  }

  it("is kept at any time when it is settled, and its node stays", () => {
    const arbitrary = fc.record({
      over: fc.constantFrom(...rows.map(([, , over]) => over), ended, passedOn),
      facts: fc.record({
        owner: fc.constantFrom("needed", "scaled", "deleted", "unseen"),
        podLives: fc.boolean(),
      }),
      now: fc.integer({ min: NOW, max: NOW + 1e9 }),
    });
    fc.assert(
      fc.property(arbitrary, ({ over, facts, now }) => {
        const claim = claimRecord(over);
        if (isSettled(storedAs("claim", claim), facts)) assert.equal(verdict(claim, facts, now), "keep");
      }),
    );
  });
});
