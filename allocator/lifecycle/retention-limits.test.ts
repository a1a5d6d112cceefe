// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import {
  addrs,
  bindingTo,
  claimRecord,
  NOW,
  parsed,
  poolRecord,
  storedAs,
  viewOf,
} from "../../test/support/fixtures.ts";
import type { Claim, Retention } from "../model/claim.ts";
import { mostRetainedBy } from "../pool/namespace-bounds.ts";
import type { PoolSpec } from "../pool/pool-spec.ts";
import type { Unknown } from "../store/store.ts";
import type { OwnerState } from "./retention.ts";
import { RetentionLimits } from "./retention-limits.ts";

const RETAIN: Retention = { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: null };
const HOUR = 3_600_000;
const GONE: OwnerState = { owner: "deleted", podLives: false, fenced: true };
const SCALED: OwnerState = { ...GONE, owner: "scaled" };

function claim(n: number, over: Partial<Claim> = {}): Claim {
  const used = { binding: bindingTo(`db-${n}`, "node-a") };
  return claimRecord({
    name: `db-${n}`,
    addresses: addrs(`10.20.0.${n + 1}`),
    retention: RETAIN,
    ...used,
    ...over,
  });
}

const retained = (n: number, ago: number) => claim(n, { retained: { since: NOW - ago, because: "deleted" } });

/** What becomes of the claim beside those that the view has, and what was logged. */
function judged(
  subject: Claim,
  beside: readonly Claim[],
  limits: PoolSpec["limits"] = {},
  { unknown, ...facts }: OwnerState & { readonly unknown?: readonly Unknown[] } = GONE,
) {
  const view = viewOf({
    pools: [poolRecord("db", "10.20.0.0/24", { limits })],
    claims: [...beside, subject],
  });
  const clock = { ...new ManualClock(), now: () => NOW, monotonic: () => 0, sleep: async () => {} };
  const stored = { ...storedAs("claim", subject), ...(unknown === undefined ? {} : { unknown }) };
  const verdict = new RetentionLimits({ view, clock }).judge(stored, facts);
  if (verdict.kind !== "release") return { is: verdict.kind, reasons: [] };
  return { is: verdict.reason, reasons: verdict.because === undefined ? [] : [verdict.because] };
}

describe("how much may be retained", () => {
  it("is a quarter of the pool's smallest family for one namespace, 16 at least, for 720 h", () => {
    const of = (...cidrs: string[]) => parsed(poolRecord("p", cidrs)).retention;
    assert.deepEqual(of("10.20.0.0/24"), { perNamespace: 63, ttlMs: 720 * HOUR });
    assert.deepEqual(of("10.20.0.0/24", "fd00::/64"), { perNamespace: 63, ttlMs: 720 * HOUR });
    assert.equal(of("10.20.0.0/29").perNamespace, 16);
    assert.ok(of("fd00::/64").perNamespace > 1e18);
    const spec = { limits: { retention: { perNamespace: 3, ttl: "1h" } } };
    assert.deepEqual(parsed(poolRecord("p", "10.20.0.0/24", spec)).retention, {
      perNamespace: 3,
      ttlMs: HOUR,
    });
  });

  it("is the whole pool for the one namespace that it is for, unless it says less", () => {
    const of = (more: object = {}, matchLabels: object = { "kubernetes.io/metadata.name": "shop" }) => {
      const spec = { namespaceSelector: { matchLabels }, ...more };
      const { retention } = parsed(poolRecord("p", "10.20.0.0/24", spec as PoolSpec));
      return ["shop", "bank"].map((namespace) => mostRetainedBy(namespace, retention));
    };
    assert.deepEqual(of(), [254, 63]);
    assert.deepEqual(of({ limits: { retention: { perNamespace: 3 } } }), [3, 3]);
    assert.deepEqual(of({}, { "kubernetes.io/metadata.name": "shop", team: "db" }), [254, 63]);
    const cidrs = ["10.20.0.0/24", "fd00::/126"];
    const [shop = 0, bank] = of({ ranges: cidrs.map((cidr) => ({ cidr })) });
    assert.ok(shop >= 254, "whose claims have one family each");
    assert.equal(bank, 16);
    const naming = { key: "kubernetes.io/metadata.name", operator: "In", values: ["bank"] };
    assert.deepEqual(of({ namespaceSelector: { matchExpressions: [naming] } }), [63, 254]);
    assert.deepEqual(of({ namespaceSelector: { matchLabels: { team: "db" } } }), [63, 63]);
  });

  it("is a share for a namespace that a pool was for, too, before it was for another one alone", () => {
    const of = (namespace: string) => {
      const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
      const beside = Array.from({ length: 63 }, (_, n) => retained(n, 5));
      const view = viewOf({
        pools: [poolRecord("db", "10.20.0.0/24", { namespaceSelector })],
        claims: [...beside, claim(99)],
      });
      const clock = { ...new ManualClock(), now: () => NOW, monotonic: () => 0, sleep: async () => {} };
      return new RetentionLimits({ view, clock }).judge(storedAs("claim", claim(99)), GONE).kind;
    };
    assert.deepEqual([of("shop"), of("bank")], ["retain", "release"]);
  });

  it("ends where the namespace has as many as the pool keeps, and says what to do", () => {
    const two = { retention: { perNamespace: 2 } };
    assert.equal(judged(claim(9), [retained(1, 5)], two).is, "retain");
    const full = judged(claim(9), [retained(1, 5), retained(2, 5)], two);
    assert.equal(full.is, "deleted");
    assert.deepEqual(full.reasons, [
      'namespace shop has 2 claims that are retained in pool "db", which keeps 2; release some, or raise limits.retention.perNamespace of the pool',
    ]);
    const other = [retained(1, 5), retained(2, 5)].map((each) => ({ ...each, namespace: "bank" }));
    assert.equal(judged(claim(9), other, two).is, "retain");
    assert.equal(judged(claim(9), [retained(1, 5), retained(2, 5)], two, SCALED).is, "scaled");
  });

  it("keeps those that were retained first when there came to be too many", () => {
    const two = { retention: { perNamespace: 2 } };
    const [first, second, third] = [retained(1, 30), retained(2, 20), retained(3, 10)];
    assert.equal(judged(first, [second, third], two).is, "keep");
    assert.equal(judged(second, [first, third], two).is, "keep");
    assert.equal(judged(third, [first, second], two).is, "expired");
  });

  it("is no reason to release what somebody needs again, or what a sandbox may use", () => {
    const none = { retention: { perNamespace: 0, ttl: "0" } };
    assert.equal(judged(retained(1, HOUR), [], none, { ...GONE, owner: "needed" }).is, "unretain");
    assert.equal(judged(retained(1, HOUR), [], none, { ...GONE, podLives: true }).is, "keep");
    assert.equal(judged(retained(1, HOUR), [], none, { ...GONE, fenced: false }).is, "keep");
    assert.equal(judged(claim(1, { handMade: true }), [], none).is, "keep");
  });

  describe("what is needed again", () => {
    const two = { retention: { perNamespace: 2 } };
    const needed: OwnerState = { ...GONE, owner: "needed" };
    const all = [retained(1, 30), retained(2, 20), retained(3, 10)];
    const view = viewOf({ pools: [poolRecord("db", "10.20.0.0/24", { limits: two })], claims: all });

    function limitsAt(at: { ms: number }, seen = view) {
      const clock = { ...new ManualClock(), now: () => NOW, monotonic: () => at.ms, sleep: async () => {} };
      return new RetentionLimits({ view: seen, clock });
    }
    const marks = (...names: readonly (string | undefined)[]) =>
      all.map(({ name, retained: mark }) => {
        const key = `shop/${name}`;
        return { key, since: mark?.since ?? 0, isNeeded: names.includes(key) };
      });
    const verdictOf = (limits: RetentionLimits, claim: Claim, facts: OwnerState) =>
      limits.judge(storedAs("claim", claim), facts).kind;

    it("is left to whatever binds it for 30 s, unless its time is over before a pod can have come", () => {
      const at = { ms: 5 };
      const limits = limitsAt(at, viewOf({ pools: [poolRecord("db", "10.20.0.0/24")], claims: all }));
      assert.equal(verdictOf(limits, retained(1, 30), needed), "keep");
      at.ms += 29_999;
      assert.equal(verdictOf(limits, retained(1, 30), needed), "keep");
      at.ms += 1;
      assert.equal(verdictOf(limits, retained(1, 30), needed), "unretain");
      assert.equal(verdictOf(limits, retained(1, 30), SCALED), "retain", "its time begins anew");
      assert.equal(verdictOf(limits, retained(1, 0), SCALED), "keep", "as it did");
      assert.equal(verdictOf(limits, retained(1, 0), needed), "keep", "it was not needed in between");
      const of = (ttlMs: number, ago: number): Claim => ({
        ...retained(2, ago),
        retention: { ...RETAIN, ttlMs },
      });
      assert.equal(verdictOf(limitsAt(at), of(HOUR, HOUR - 120_001), needed), "keep");
      assert.equal(verdictOf(limitsAt(at), of(HOUR, HOUR - 120_000), needed), "unretain");
      const chosen = { ...retained(2, 20), retention: { ...RETAIN, whenDeleted: "Release" as const } };
      assert.equal(verdictOf(limitsAt(at), chosen, needed), "unretain");
    });

    it("counts no more among what is retained, whichever is looked at first", () => {
      const renewed = limitsAt(
        { ms: 5 },
        viewOf({ pools: [poolRecord("db", "10.20.0.0/24", { limits: two })], claims: all.slice(1) }),
      );
      assert.equal(verdictOf(renewed, retained(2, 20), needed), "keep");
      assert.equal(verdictOf(renewed, retained(2, 20), GONE), "retain", "it is one of two itself");
      const [first, second, third] = all.map((claim) => claim.name).map((name) => `shop/${name}`);
      const at = { ms: 5 };
      assert.equal(verdictOf(limitsAt(at), retained(3, 10), GONE), "release");
      for (const key of [first, second]) {
        const limits = limitsAt(at);
        limits.noteMarked(marks(key));
        assert.equal(verdictOf(limits, retained(3, 10), GONE), "keep");
        assert.equal(verdictOf(limits, claim(9), GONE), "release", "two are still retained");
        limits.noteMarked(marks(first, second));
        assert.equal(verdictOf(limits, claim(9), GONE), "retain");
        limits.noteMarked(marks());
        assert.equal(verdictOf(limits, retained(3, 10), GONE), "release");
      }
      const both = limitsAt(
        at,
        viewOf({
          pools: [poolRecord("db", "10.20.0.0/24", { limits: { retention: { perNamespace: 1 } } })],
          claims: all.slice(0, 2),
        }),
      );
      verdictOf(both, retained(1, 30), needed);
      verdictOf(both, retained(2, 20), needed);
      assert.equal(verdictOf(both, retained(1, 30), GONE), "retain", "the only one that counts");
      const unseen = limitsAt(at);
      unseen.noteMarked(marks().map((mark) => ({ ...mark, isNeeded: "unknown" as const })));
      assert.equal(
        verdictOf(unseen, retained(1, 30), GONE),
        "keep",
        "that nobody could see it proves nothing",
      );
      verdictOf(unseen, retained(2, 20), { ...needed, isGuessed: true });
      assert.equal(verdictOf(unseen, retained(2, 20), GONE), "keep");
      const limits = limitsAt(at);
      verdictOf(limits, retained(1, 30), needed);
      assert.equal(verdictOf(limits, retained(3, 10), GONE), "keep");
      limits.noteMarked(marks(first, third));
      at.ms += 30_000;
      assert.equal(
        verdictOf(limits, retained(1, 30), needed),
        "unretain",
        "it is counted from when it was first seen",
      );
    });
  });

  it("lasts for the shorter of the two times", () => {
    const hour = { retention: { ttl: "1h" } };
    assert.equal(judged(retained(1, HOUR - 1), [], hour).is, "keep");
    assert.equal(judged(retained(1, HOUR), [], hour).is, "expired");
    const brief = { ...retained(1, HOUR / 2), retention: { ...RETAIN, ttlMs: HOUR / 2 } };
    assert.equal(judged(brief, [], hour).is, "expired");
    assert.deepEqual(judged(retained(1, 720 * HOUR), []).reasons, [
      'it was retained for 720h, the most that pool "db" allows; raise limits.retention.ttl of the pool for others',
    ]);
    assert.deepEqual(judged(brief, []).reasons, [], "it asked for no more");
  });

  it("is what every pool allows that one of its addresses is of, and it counts in each", () => {
    const loose = { limits: { retention: { perNamespace: 9, ttl: "720h" } } };
    const strict = { limits: { retention: { perNamespace: 1, ttl: "1h" } } };
    const pools = [
      poolRecord("db", "10.20.0.0/24", loose),
      poolRecord("db6", "fd00:20::/64", loose),
      poolRecord("lan", "10.30.0.0/24", strict),
    ];
    const kept = (n: number, ago: number, ...addresses: readonly string[]) => ({
      ...retained(n, ago),
      addresses: addrs(...addresses),
    });
    const three = (n: number, ago: number) =>
      kept(n, ago, `10.20.0.${n}`, `fd00:20::${n}`, `fd00:20::f${n}`, `10.30.0.${n}`);
    const verdictOf = (subject: Claim, ...beside: readonly Claim[]) => {
      const view = viewOf({ pools, claims: [...beside, subject] });
      const clock = { ...new ManualClock(), now: () => NOW, monotonic: () => 0, sleep: async () => {} };
      return new RetentionLimits({ view, clock }).judge(storedAs("claim", subject), GONE).kind;
    };
    assert.equal(verdictOf(three(1, HOUR - 1)), "keep");
    assert.equal(verdictOf(three(1, HOUR)), "release", "its time in the third pool is over");
    assert.equal(verdictOf(three(2, 5), kept(1, 9, "10.30.0.9")), "release");
    assert.equal(verdictOf(kept(2, 5, "10.30.0.9"), three(1, 9)), "release", "the other counts in the third");
    assert.equal(verdictOf(kept(2, 5, "10.20.0.9"), three(1, 9)), "keep", "it counts in each once");
  });

  it("does not concern a choice of a newer version, which releases nothing", () => {
    const unknown = [{ path: ["retention"], key: "whenDeleted", value: "Archive", takenFor: "Retain" }];
    const none = { retention: { perNamespace: 0, ttl: "1h" } };
    assert.equal(judged(retained(1, 1_000 * HOUR), [], none, { ...GONE, unknown }).is, "keep");
    assert.equal(judged(claim(1), [], none, { ...GONE, unknown }).is, "retain");
    const field = [{ path: ["retention"], key: "whenMoved", value: "Retain" }];
    assert.equal(
      judged(retained(1, HOUR), [], none, { ...GONE, unknown: field }).is,
      "expired",
      "a field is ignored",
    );
  });

  it("is nothing for a claim that no pod ever had, once its owner is deleted", () => {
    const { binding: _, ...unused } = claim(1);
    const gone = judged(unused, []);
    assert.deepEqual([gone.is, gone.reasons], ["deleted", ["no pod ever had its addresses"]]);
    assert.equal(judged(unused, [], {}, SCALED).is, "retain");
  });
});
