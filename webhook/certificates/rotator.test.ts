// SPDX-License-Identifier: Apache-2.0
// Replicas, API servers that lag, crashes and wrong clocks, in memory; signatures are real.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { runsOf } from "../../test/support/runs.ts";
import { CertificateWorld, DAY_MS, TERMS } from "../testing/certificate-world.ts";

const REPLICAS = 3;
const replica = fc.nat(REPLICAS - 1);
const act = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant("go" as const), replica }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("rest" as const), replica }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("hear" as const), replica }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("crash" as const), replica }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.oneof(
        { weight: 2, arbitrary: fc.integer({ min: 1, max: TERMS.settleMs / 3 }) },
        { weight: 2, arbitrary: fc.constant(TERMS.settleMs) },
        { weight: 1, arbitrary: fc.integer({ min: 1, max: 40 }).map((days) => days * DAY_MS) },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("jump" as const),
      replica,
      days: fc.integer({ min: -40, max: 60 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("demand" as const),
      what: fc.constantFrom("leaf", "authority", "authority"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("damage" as const),
      what: fc.constantFrom("leaf", "key", "authority", "all"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("clear" as const), configuration: fc.nat(1) }),
  },
);

describe("certificates kept by several replicas", () => {
  it("whatever happens in whatever order: every API server can verify every certificate that is served", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 20, maxLength: 120 }), async (acts) => {
        const world = new CertificateWorld(REPLICAS);
        await world.settle();
        assert.equal(world.served.size, 1, "three replicas serve one certificate");
        for (const one of acts) await world.act(one);
        world.setClocksRight();
        await world.settle();
        world.judgeRest();
      }),
      { numRuns: runsOf(30, 3), endOnFailure: true },
    );
  });

  it("an authority that came and was lost while a replica was reading is trusted on", async () => {
    const world = new CertificateWorld(REPLICAS);
    await world.settle();
    const reads = { kind: "go", replica: 0 } as const;
    // the configurations have been read, the authority has not
    for (const one of [reads, reads]) await world.act(one);
    await world.act({ kind: "demand", what: "authority" });
    for (let n = 0; n < 3; n++) {
      await world.act({ kind: "rest", replica: 1 });
      await world.act({ kind: "pass", ms: TERMS.settleMs });
    }
    assert.equal(world.written.length, 2, "the second authority's certificate is served");
    await world.act({ kind: "damage", what: "all" });
    await world.act({ kind: "rest", replica: 0 });
    await world.settle();
    world.judgeRest();
    assert.equal(world.authorities, 3, "the first, the one that was lost, and a new one");
  });

  it("authorities come and go, and a quiet year leaves one", async () => {
    const world = new CertificateWorld(REPLICAS);
    await world.settle();
    const first = world.bundle;
    for (let day = 0; day < 800; day += 10) {
      await world.act({ kind: "pass", ms: 10 * DAY_MS });
      await world.settle();
      world.judgeRest();
    }
    assert.notEqual(world.bundle, first, "the authority was renewed");
    assert.ok(world.written.length >= 800 / 60, "certificates were renewed");
    assert.ok(world.written.length <= 60, `${world.written.length} writes in 800 days`);
    assert.equal(world.authorities, 1);
  });
});
