// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { REFUSALS } from "../../allocator/base/errors.ts";
import {
  type Condition,
  conditionsOf,
  generationOf,
  mergeConditions,
  reasonOf,
  withoutManagedFields,
} from "./conditions.ts";

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0, 999);
const OLD = "2025-12-31T00:00:00Z";
const said = { type: "Ready", status: "True", reason: "Reserved", message: "10.0.0.1 is reserved" } as const;
const before: Condition = { ...said, observedGeneration: 1, lastTransitionTime: OLD };
const foreign: Condition = {
  type: "Audited",
  status: "Unknown",
  reason: "R",
  message: "",
  lastTransitionTime: OLD,
};

describe("conditions", () => {
  it("are what they were when nothing is new, in whatever order", () => {
    const all = [foreign, before];
    assert.equal(mergeConditions(all, [said], { generation: 1, now: NOW }), all);
  });

  it("take over the generation and the words, and keep the time while the status stays", () => {
    const words = { ...said, message: "10.0.0.2 is reserved" };
    assert.deepEqual(mergeConditions([before], [words], { generation: 2, now: NOW }), [
      { ...before, message: "10.0.0.2 is reserved", observedGeneration: 2 },
    ]);
  });

  it("have the time at which the status changed, without fractions, and leave others alone", () => {
    const lost = { type: "Ready", status: "False", reason: "AddressTaken", message: "held" } as const;
    assert.deepEqual(mergeConditions([foreign, before], [lost], { generation: 1, now: NOW }), [
      { ...lost, observedGeneration: 1, lastTransitionTime: "2026-01-01T12:00:00Z" },
      foreign,
    ]);
  });

  it("are cut where the API server would refuse them", () => {
    const [long] = mergeConditions([], [{ ...said, message: "x".repeat(40_000) }], {
      generation: 0,
      now: NOW,
    });
    assert.equal(long?.message.length, 32_768);
  });

  it("are read from an object, which may have none", () => {
    const metadata = { name: "a", uid: "u", resourceVersion: "1", generation: 3 };
    const item = { metadata, status: { conditions: [before] } };
    assert.deepEqual(conditionsOf(item), [before]);
    assert.equal(generationOf(item), 3);
    const bare = { metadata: { name: "a", uid: "u", resourceVersion: "1" } };
    assert.deepEqual(conditionsOf(bare), []);
    assert.equal(generationOf(bare), 0);
  });

  it("do without what is long and never looked at", () => {
    const metadata = { name: "a", uid: "u", resourceVersion: "1", managedFields: [{ manager: "kubectl" }] };
    assert.deepEqual(withoutManagedFields({ metadata }), {
      metadata: { name: "a", uid: "u", resourceVersion: "1" },
    });
  });

  it("have reasons that Kubernetes takes, one for each refusal", () => {
    assert.equal(reasonOf("ADDRESS_TAKEN"), "AddressTaken");
    const reasons = Object.keys(REFUSALS).map(reasonOf);
    for (const reason of reasons) assert.match(reason, /^[A-Z][A-Za-z]+$/);
    assert.equal(new Set(reasons).size, reasons.length);
  });
});
