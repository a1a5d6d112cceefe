// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Store } from "../../allocator/store/store.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { attachmentOf, bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { isPhaseStale, startPhases } from "./phase-controller.ts";

const UNREPORTED: Claim["status"] = { phase: "Pending" };

/** A leader's controller on that world, and what it has written. */
function startOn(world: World, over: { leads?: boolean; report?: Store["report"] } = {}) {
  const written: string[] = [];
  const leadership = { leads: () => over.leads ?? true, gain: () => {} };
  const report: Store["report"] = async (seen, status) => {
    written.push(`${seen.record.name} ${status.phase}`);
    return await (over.report ?? world.store.report.bind(world.store))(seen, status);
  };
  const store: Store = Object.create(world.store, { report: { value: report } });
  const onGain = (handler: () => void) => {
    leadership.gain = handler;
    return () => {};
  };
  const controller = startPhases({
    context: { ...world.context, store },
    cache: world.cache,
    leadership: { leads: () => leadership.leads(), onGain },
  });
  return { controller, written, leadership };
}

async function pass(world: World, ms: number): Promise<void> {
  world.clock.advance(ms);
  await eventLoopTurns(20);
}

function claims(count: number): Claim[] {
  return Array.from({ length: count }, (_, i) => claimRecord({ name: `old-${i}`, status: UNREPORTED }));
}

describe("a phase in the status", () => {
  it("is behind when the claim stands elsewhere, unless the claim is on its way out", () => {
    assert.equal(isPhaseStale(claimRecord()), false);
    assert.equal(isPhaseStale(claimRecord({ status: UNREPORTED })), true);
    assert.equal(isPhaseStale(claimRecord({ status: UNREPORTED, releasing: true })), false);
    assert.equal(isPhaseStale(claimRecord({ status: UNREPORTED, nonce: "", addresses: [] })), false);
    assert.equal(isPhaseStale(claimRecord({ binding: bindingTo("mysql-0", "node-a") })), true);
  });

  it("is written 5 s after the last change, once, and nothing else of the status with it", async () => {
    await using world = await openWorld({ clock: new ManualClock() });
    const { controller, written } = startOn(world);
    const status = { phase: "Attached", attachment: attachmentOf("mysql-0", { detached: true }) } as const;
    await world.realStore.create("claim", claimRecord({ status }));
    await world.settle();
    await pass(world, 4_000);
    const seen = world.cache.claim("shop/mysql-0");
    assert.ok(seen);
    await world.realStore.replace("claim", seen, claimRecord({ admittedAt: 1, status }));
    await world.settle();
    await pass(world, 4_999);
    assert.deepEqual(written, []);
    await pass(world, 1);
    await world.settle();
    assert.deepEqual(world.cache.claim("shop/mysql-0")?.record.status, { ...status, phase: "Reserved" });
    await pass(world, 60_000);
    assert.deepEqual(written, ["mysql-0 Reserved"]);
    await controller.close();
  });

  it("is left to whoever reports it meanwhile", async () => {
    await using world = await openWorld({ clock: new ManualClock() });
    const { controller, written } = startOn(world);
    const binding = bindingTo("mysql-0", "node-a");
    await world.realStore.create("claim", claimRecord({ binding }));
    await world.settle();
    await pass(world, 4_999);
    const seen = world.cache.claim("shop/mysql-0");
    assert.ok(seen);
    await world.realStore.report(seen, { phase: "Attached", attachment: attachmentOf("mysql-0") });
    await world.settle();
    await pass(world, 60_000);
    assert.deepEqual(written, []);
    await controller.close();
  });

  it("is written ten times a second at most, and first for what changes now", async () => {
    await using world = await openWorld({ clock: new ManualClock() });
    for (const claim of claims(30)) await world.realStore.create("claim", claim);
    await world.settle();
    const { controller, written } = startOn(world);
    await eventLoopTurns(20);
    await pass(world, 5_000);
    assert.deepEqual(written, ["old-0 Reserved"]);
    await world.realStore.create("claim", claimRecord({ name: "fresh", status: UNREPORTED }));
    await world.settle();
    for (let tenth = 0; tenth < 10; tenth++) await pass(world, 100);
    assert.equal(written.length, 11);
    await pass(world, 4_000);
    await pass(world, 100);
    assert.deepEqual(written.slice(11), ["fresh Reserved", "old-11 Reserved"]);
    await controller.close();
  });

  it("is judged again after a conflict, and tried again after a fault when the others have waited too", async () => {
    await using world = await openWorld({ clock: new ManualClock() });
    for (const claim of claims(2)) await world.realStore.create("claim", claim);
    await world.settle();
    const outcomes = [
      async () => ({ kind: "conflict" }) as const,
      async () => {
        throw new BerthError("STORE_UNAVAILABLE", "the API server does not answer");
      },
    ];
    const report: Store["report"] = (...args) => (outcomes.shift() ?? (() => world.store.report(...args)))();
    const { controller, written } = startOn(world, { report });
    await eventLoopTurns(20);
    await pass(world, 5_000);
    await pass(world, 100);
    assert.deepEqual(written.splice(0), ["old-0 Reserved", "old-1 Reserved"]);
    await pass(world, 4_999);
    assert.deepEqual(written, []);
    await pass(world, 1);
    await pass(world, 100);
    assert.deepEqual(written, ["old-0 Reserved", "old-1 Reserved"]);
    await world.settle();
    assert.deepEqual(
      [...world.cache.claims()].map(({ record }) => record.status.phase),
      ["Reserved", "Reserved"],
    );
    await controller.close();
  });

  it("is written by the leader alone, who looks at all claims when it comes to lead", async () => {
    await using world = await openWorld({ clock: new ManualClock() });
    const { controller, written, leadership } = startOn(world, { leads: false });
    await world.realStore.create("claim", claimRecord({ status: UNREPORTED }));
    await world.settle();
    await pass(world, 60_000);
    assert.deepEqual(written, []);
    leadership.leads = () => true;
    leadership.gain();
    await eventLoopTurns(20);
    await pass(world, 5_000);
    assert.deepEqual(written, ["mysql-0 Reserved"]);
    await controller.close();
  });
});
