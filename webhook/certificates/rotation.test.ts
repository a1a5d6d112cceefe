// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { describe, it } from "node:test";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { bundleOf, parseBundle } from "./ca-bundle.ts";
import { issueAuthority, issueServingCertificate } from "./issue.ts";
import {
  type CertSecret,
  type ObservedCerts,
  observedSinceOf,
  plan,
  type RotationPolicy,
  type Step,
  validateServingCert,
} from "./rotation.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const SETTLE_MS = 60_000;
const NAME = "berth-webhook.berth-system.svc";
const TERMS: RotationPolicy = {
  names: { dnsNames: [NAME], addresses: [] },
  leafMs: 90 * DAY_MS,
  authorityMs: 3650 * DAY_MS,
  settleMs: SETTLE_MS,
};
const BLANK: CertSecret = {
  bundle: "",
  authorityKey: "",
  leaf: { cert: "", key: "" },
  rotate: "",
  retireAfter: "",
  beside: "",
  mixed: false,
};

const clock = new ManualClock();
const [first, second, third] = [
  await issueAuthority(clock),
  await issueAuthority(clock),
  await issueAuthority(clock),
];
const leafOf = (authority: CertificatePair, names = TERMS.names) =>
  issueServingCertificate(authority, names, clock);
const [leaf, next, last] = [await leafOf(first), await leafOf(second), await leafOf(third)];
/** How a certificate and a time from now on are kept. */
const until = ({ cert }: CertificatePair, ms: number) =>
  `${new X509Certificate(cert).fingerprint256}=${new Date(clock.now() + ms).toISOString()}`;
const lasting = await issueServingCertificate(first, TERMS.names, clock, { ms: 3649 * DAY_MS });
const both = bundleOf(parseBundle(second.cert + first.cert));
const alone = bundleOf(parseBundle(first.cert));
const QUIET: CertSecret = { ...BLANK, bundle: alone, beside: alone, authorityKey: first.key, leaf };
/** A new authority is there, the leaf is still the old one's. */
const TURNING: CertSecret = { ...QUIET, bundle: both, beside: both, authorityKey: second.key };

interface Case {
  readonly kept?: CertSecret | undefined;
  /** Of the two configurations; what stands in the Secret if absent. */
  readonly trusted?: ObservedCerts["trusted"];
  /** For how long it has been as it is, ms. */
  readonly stands?: number;
  readonly later?: number;
}

function planned({ kept = QUIET, trusted, stands = 0, later = 0 }: Case): Step {
  const known: ObservedCerts = { kept, trusted: trusted ?? [[kept.bundle, kept.bundle], [kept.bundle]] };
  const since = observedSinceOf(observedSinceOf(undefined, known, 0), known, stands);
  return plan(known, since, TERMS, { now: clock.now() + later, monotonic: stands });
}

const kindOf = (one: Case) => planned(one).kind;

describe("what is planned for certificates", () => {
  it("an empty secret gets an authority and a certificate in one go when nobody trusts anything yet", () => {
    const step = planned({ kept: BLANK, trusted: [["", ""], undefined] });
    const why = "there was none";
    assert.deepEqual(step, { kind: "authority", others: "", leaf: true, why, retireAfter: "" });
    assert.deepEqual(planned({ kept: BLANK, trusted: [["\n"], ["nonsense"]] }), step);
  });

  it("what the configurations trust stays trusted when the secret has lost it, and nothing is signed before", () => {
    const step = planned({ kept: BLANK, trusted: [[QUIET.bundle], [""]] });
    assert.deepEqual([step.kind, "leaf" in step && step.leaf], ["authority", false]);
    assert.equal("others" in step && step.others, QUIET.bundle);
  });

  it("waits while all is well: for the certificate, two thirds of its life", () => {
    assert.deepEqual(planned({}), { kind: "wait", ms: 60 * DAY_MS });
    assert.equal(kindOf({ later: 60 * DAY_MS - 1 }), "wait");
    assert.deepEqual(planned({ later: 60 * DAY_MS }), { kind: "leaf", retireAfter: "", why: "it was due" });
  });

  it("an authority is due at two thirds of its life, and stays trusted beside the new one", () => {
    const later = (3650 * DAY_MS * 2) / 3;
    assert.equal(kindOf({ later }), "leaf", "the certificate is first");
    const kept = { ...QUIET, leaf: lasting };
    assert.equal(kindOf({ kept, later: later - DAY_MS }), "wait");
    const step = planned({ kept, later });
    assert.deepEqual([step.kind, "others" in step && step.others], ["authority", QUIET.bundle]);
  });

  for (const { name, trusted } of [
    { name: "is empty", trusted: [[QUIET.bundle, ""], [QUIET.bundle]] },
    { name: "is somebody else's", trusted: [[QUIET.bundle], [bundleOf(parseBundle(second.cert))]] },
    { name: "holds more", trusted: [[both], [QUIET.bundle]] },
  ]) {
    it(`a caBundle that ${name} is written`, () => {
      assert.deepEqual(planned({ trusted }), { kind: "trust", bundle: QUIET.bundle });
    });
  }

  it("a new authority signs only once it has been trusted for a while, everywhere, without a break", () => {
    const why = "the authority is a new one";
    assert.deepEqual(planned({ kept: TURNING }), { kind: "wait", ms: SETTLE_MS });
    assert.deepEqual(planned({ kept: TURNING, stands: SETTLE_MS - 1 }), { kind: "wait", ms: 1 });
    const retireAfter = until(first, 90 * DAY_MS);
    assert.deepEqual(planned({ kept: TURNING, stands: SETTLE_MS }), { kind: "leaf", retireAfter, why });
    const known = (bundle: string): ObservedCerts => ({ kept: TURNING, trusted: [[both], [bundle]] });
    let since = observedSinceOf(undefined, known(both), 0);
    since = observedSinceOf(since, known(QUIET.bundle), SETTLE_MS / 2);
    assert.equal(since.trustedSince, undefined);
    since = observedSinceOf(since, known(both), SETTLE_MS);
    const step = plan(known(both), since, TERMS, { now: clock.now(), monotonic: SETTLE_MS });
    assert.deepEqual(step, { kind: "wait", ms: SETTLE_MS });
  });

  it("what is seen twice at the same moment is as seen once, whatever was seen before", () => {
    const all = [QUIET, TURNING, BLANK].flatMap((kept) =>
      [[both], [""]].map((one) => ({ kept, trusted: [one] })),
    );
    for (const [before, known] of all.flatMap((before) => all.map((known) => [before, known] as const))) {
      const once = observedSinceOf(observedSinceOf(undefined, before, 0), known, 1);
      assert.deepEqual(observedSinceOf(once, known, 1), once);
    }
  });

  it("a time that was written for a certificate that was not is not written twice", () => {
    const early = new Date(clock.now() + DAY_MS).toISOString();
    const step = planned({ kept: { ...TURNING, retireAfter: early }, stands: SETTLE_MS });
    const retireAfter = until(first, 90 * DAY_MS);
    assert.equal("retireAfter" in step && step.retireAfter, retireAfter, "the later one of the two");
    const late = until(first, 91 * DAY_MS);
    const again = planned({ kept: { ...TURNING, retireAfter: late }, stands: SETTLE_MS });
    assert.equal("retireAfter" in again && again.retireAfter, late);
  });

  it("a key beside the certificate is moved away first, then the bundle beside it put right", () => {
    assert.deepEqual(planned({ kept: { ...QUIET, mixed: true, beside: "" } }), { kind: "move" });
    assert.deepEqual(planned({ kept: { ...QUIET, beside: both } }), { kind: "share" });
  });

  it("an old authority retires when the last certificate of it has ended, by the wall clock and by the own one", () => {
    const retireAfter = new Date(clock.now() + DAY_MS).toISOString();
    const kept = { ...TURNING, leaf: next, retireAfter };
    assert.deepEqual(planned({ kept, stands: SETTLE_MS }), { kind: "wait", ms: DAY_MS });
    assert.equal(kindOf({ kept, later: DAY_MS }), "wait", "the wall clock may have jumped");
    const bundle = bundleOf(parseBundle(second.cert));
    assert.deepEqual(planned({ kept, stands: SETTLE_MS, later: DAY_MS }), {
      ...{ kind: "retire", bundle, retireAfter: "" },
    });
  });

  it("an old authority of which nobody knows gets a time, which a restart does not put off, and the others keep theirs", () => {
    const bundle = bundleOf(parseBundle(third.cert + both));
    const all = { ...QUIET, bundle, beside: bundle, authorityKey: third.key, leaf: last };
    const own = until(first, DAY_MS);
    for (const { retireAfter, limited } of [
      { retireAfter: "", limited: `${until(second, 90 * DAY_MS)},${until(first, 90 * DAY_MS)}` },
      { retireAfter: own, limited: `${until(second, 90 * DAY_MS)},${own}` },
      // nothing that can be read, and one that is not there
      {
        retireAfter: `soon,${until(leaf, 0)}`,
        limited: `${until(second, 90 * DAY_MS)},${until(first, 90 * DAY_MS)}`,
      },
    ]) {
      const kept = { ...all, retireAfter };
      assert.deepEqual(planned({ kept }), { kind: "limit", retireAfter: limited });
    }
    const kept = { ...all, retireAfter: `${own},${until(second, 2 * DAY_MS)}` };
    assert.deepEqual(planned({ kept, stands: SETTLE_MS, later: DAY_MS }), {
      kind: "retire",
      bundle: bundleOf(parseBundle(third.cert + second.cert)),
      retireAfter: until(second, 2 * DAY_MS),
    });
  });

  it("a time alone is of all old authorities that have none: who demands it knows that a key has leaked", () => {
    const bundle = bundleOf(parseBundle(third.cert + both));
    const all = { ...QUIET, bundle, beside: bundle, authorityKey: third.key, leaf: last };
    const kept = { ...all, retireAfter: "2020-01-01T00:00:00Z" };
    assert.deepEqual(planned({ kept }), { kind: "wait", ms: SETTLE_MS });
    assert.deepEqual(planned({ kept, stands: SETTLE_MS }), {
      ...{ kind: "retire", bundle: bundleOf(parseBundle(third.cert)), retireAfter: "" },
    });
    // as earlier versions wrote them, the last for the last
    const [late, early] = [2, 1].map((days) => new Date(clock.now() + days * DAY_MS).toISOString());
    const earlier = { ...all, retireAfter: `${late},${early}` };
    assert.deepEqual(planned({ kept: earlier, stands: SETTLE_MS }), { kind: "wait", ms: 2 * DAY_MS });
  });

  it("does what an administrator demands: a certificate at once, an authority when none is on its way", () => {
    const demanded = "an administrator wants a new one";
    assert.deepEqual(planned({ kept: { ...QUIET, rotate: "leaf" } }), {
      ...{ kind: "leaf", retireAfter: "", why: demanded },
    });
    const step = planned({ kept: { ...QUIET, rotate: "authority" } });
    assert.deepEqual([step.kind, "why" in step && step.why], ["authority", demanded]);
    assert.equal(kindOf({ kept: { ...TURNING, rotate: "authority" } }), "wait");
    assert.equal(kindOf({ kept: { ...TURNING, leaf: next, rotate: "authority" } }), "authority");
  });

  it("what cannot be used is replaced, and it says why", async () => {
    const garbage = { cert: "half a certif", key: "" };
    const elsewhere = await leafOf(first, { dnsNames: ["shop.example"], addresses: [] });
    for (const { kept, kind, why } of [
      { kept: { ...QUIET, leaf: garbage }, kind: "leaf", why: /cannot be read/ },
      {
        kept: { ...QUIET, leaf: { ...leaf, key: first.key } },
        kind: "leaf",
        why: /not that of the certificate/,
      },
      { kept: { ...QUIET, leaf: elsewhere }, kind: "leaf", why: /not for berth-webhook\.berth-system\.svc/ },
      { kept: { ...QUIET, leaf: next }, kind: "leaf", why: /of none of the authorities beside it/ },
      { kept: { ...QUIET, authorityKey: "" }, kind: "authority", why: /cannot be used/ },
      { kept: { ...QUIET, authorityKey: second.key }, kind: "authority", why: /cannot be used/ },
      { kept: { ...QUIET, bundle: "nonsense" }, kind: "authority", why: /cannot be used/ },
    ]) {
      const step = planned({ kept, trusted: [[QUIET.bundle], [QUIET.bundle]] });
      assert.equal(step.kind, kind);
      assert.match("why" in step ? step.why : "", why);
    }
  });

  it("an authority of a clock that was ahead is replaced: nobody takes what it signs before it is valid", () => {
    const step = planned({ later: -DAY_MS });
    assert.deepEqual([step.kind, "why" in step && step.why], ["authority", "it is not valid yet"]);
    assert.equal(planned({}).kind, "wait");
  });

  it("a certificate is of use only for the names and with its authority beside it", () => {
    assert.equal(validateServingCert(QUIET, TERMS.names).checkHost(NAME), NAME);
    assert.throws(() => validateServingCert({ ...QUIET, leaf: next }, TERMS.names), {
      code: "CERTIFICATE_INVALID",
    });
  });

  it("nothing is done without a secret", () => {
    const known: ObservedCerts = { kept: undefined, trusted: [[""], [""]] };
    const step = plan(known, observedSinceOf(undefined, known, 0), TERMS, { now: clock.now(), monotonic: 0 });
    assert.deepEqual(step, { kind: "wait", ms: Number.POSITIVE_INFINITY });
  });
});
