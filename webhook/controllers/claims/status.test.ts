// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refuse } from "../../../allocator/base/errors.ts";
import { addrs, NOW } from "../../../test/support/fixtures.ts";
import { awaited, type ClaimVerdict, newsIn, onlyMessageChanged, reportOn } from "./status.ts";

const RESERVED: ClaimVerdict = { kind: "reserved", addresses: addrs("10.20.0.70", "fd00:20::70") };
const TAKEN = refuse("ADDRESS_TAKEN", "address 10.20.0.70 is held by shop/other");

function item(status: unknown, spec: unknown = {}) {
  const metadata = {
    ...{ name: "a", namespace: "shop", uid: "u", resourceVersion: "1" },
    generation: 2,
  };
  return { metadata, spec, status };
}

describe("the status of a claim made by hand", () => {
  it("says what is reserved, and nothing more once it says that", () => {
    const report = reportOn(item({ message: "held" }), RESERVED, NOW);
    assert.deepEqual(report, {
      message: null,
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "Reserved",
          message: "10.20.0.70 and fd00:20::70 are reserved",
          observedGeneration: 2,
          lastTransitionTime: "2026-01-01T00:00:00Z",
        },
      ],
    });
    const written = { conditions: report?.conditions };
    assert.equal(reportOn(item(written), RESERVED, NOW + 60_000), undefined);
  });

  it("says why there are no addresses, in the message too", () => {
    const report = reportOn(item(undefined), TAKEN, NOW);
    assert.equal(report?.message, TAKEN.message);
    assert.deepEqual(
      report?.conditions.map(({ status, reason, message }) => `${status} ${reason}: ${message}`),
      [`False AddressTaken: ${TAKEN.message}`],
    );
  });

  it("tells a refusal in other words from another refusal, and from the same for another request", () => {
    const reported = reportOn(item(undefined), TAKEN, NOW);
    assert.ok(reported);
    const reworded = reportOn(item(reported), { ...TAKEN, message: "held; free nearby: 10.20.0.71" }, NOW);
    const other = reportOn(item(reported), refuse("POOL_EXHAUSTED", "all taken"), NOW);
    const reserved = reportOn(item(reported), RESERVED, NOW);
    assert.ok(reworded && other && reserved);
    assert.equal(onlyMessageChanged(item(reported), reworded), true);
    assert.equal(onlyMessageChanged(item(reported), other), false);
    assert.equal(onlyMessageChanged(item(reported), reserved), false);
    assert.equal(onlyMessageChanged(item(undefined), reported), false);
    const older = {
      ...reported,
      conditions: reported.conditions.map((c) => ({ ...c, observedGeneration: 1 })),
    };
    assert.equal(onlyMessageChanged(item(older), reworded), false);
  });

  it("tells as an event that a claim waits for the one from which it takes over, and warns of no other", () => {
    const mine = { namespace: "shop", takesOver: "other" };
    const held = (holder: string) => refuse("ADDRESS_TAKEN", TAKEN.message, { holder });
    assert.equal(awaited(mine, held("shop/other")), "other");
    for (const [claim, verdict] of [
      [mine, held("shop/third")],
      [mine, held("bank/other")],
      [mine, RESERVED],
      [mine, refuse("POOL_UNKNOWN", "none", { holder: "shop/other" })],
      [{ namespace: "shop" }, held("shop/other")],
    ] as const)
      assert.equal(awaited(claim, verdict), undefined);
    const news = (verdict: ClaimVerdict, waitsFor: string | undefined, before: unknown = undefined) => {
      const report = reportOn(item(before), verdict, NOW);
      const all = report === undefined ? [] : newsIn(item(before), report, waitsFor);
      return all.map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
    };
    const note = "it has its addresses when claim other, from which it takes them over, is deleted";
    assert.deepEqual(news(held("shop/other"), "other"), [`Normal Waiting: ${note}`]);
    assert.deepEqual(news(held("shop/third"), undefined), [`Warning AddressTaken: ${TAKEN.message}`]);
    const waiting = reportOn(item(undefined), held("shop/other"), NOW);
    assert.deepEqual(news(held("shop/other"), "other", waiting), []);
    const reserved = "10.20.0.70 and fd00:20::70 are reserved";
    assert.deepEqual(news(RESERVED, undefined, waiting), [`Normal Reserved: ${reserved}`]);
  });

  it("says that a pod of its name is up without it, and that it is gone", () => {
    const reported = reportOn(item(undefined), RESERVED, NOW, true);
    assert.ok(reported);
    const words = (report = reported) =>
      report.conditions.map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`);
    assert.deepEqual(words(), [
      "Ready=True Reserved: 10.20.0.70 and fd00:20::70 are reserved",
      "Bindable=False PodKeepsAddress: pod a was given no claim when it was created, and is up with another address, which it keeps; the next pod of the name has this claim: delete the pod and create it again",
    ]);
    assert.equal(reportOn(item(reported), RESERVED, NOW + 60_000, true), undefined);
    const gone = reportOn(item(reported), RESERVED, NOW + 60_000);
    assert.equal(words(gone)[1], "Bindable=True Free: the next pod a has this claim");
    assert.equal(reportOn(item(gone), RESERVED, NOW + 90_000), undefined);
  });
});
