// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { FailingStore, type Failure } from "../../test/support/failing-store.ts";
import { reservationRecord } from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { ownedIn } from "../cache/block-index.ts";
import { BlockDistributor } from "./distributor.ts";
import { capacities, check, distributor, Nodes, shared } from "./testing/block-nodes.ts";

/**
 * Two nodes get blocks, one gives one back that the other lacks, and the distributor's process dies at its n-th write (0: never),
 * to be followed by another one.
 */
async function lifeKilledAt(at: number, failure: Failure) {
  await using world = await openWorld({ pools: [shared(30)], clock: new ManualClock() });
  const nodes = new Nodes();
  const store = new FailingStore(world.realStore, at, failure);
  let blocks = new BlockDistributor({ ...world.context, store, view: world.cache }, nodes);
  const pass = async () => {
    await world.settle();
    try {
      await blocks.pass();
    } catch {
      assert.ok(store.died);
      blocks = distributor(world, nodes);
      await world.settle();
      await blocks.pass();
    }
    await world.settle();
    await check(world, 30);
  };
  nodes.pods.set("node-a", 12);
  await pass();
  await pass();
  nodes.pods.set("node-a", 7).set("node-b", 12);
  for (let round = 0; round < 10; round++) {
    await pass();
    for (const seen of await world.all("block")) {
      if (seen.record.recalledAt !== undefined && seen.record.status === undefined)
        await world.realStore.reportBlock(seen, { node: seen.record.node, used: 0, returnedAt: 1 });
    }
    world.clock.advance(20_000);
  }
  return { writes: store.writes, capacities: await capacities(world) };
}

type Step =
  | { readonly act: "pods"; readonly node: string; readonly count: number }
  | { readonly act: "fence" | "forget"; readonly node: string }
  | { readonly act: "reserve" | "free"; readonly n: number }
  | { readonly act: "return"; readonly n: number }
  | { readonly act: "pass" | "both" | "settle" | "time" };

const node = fc.constantFrom("node-a", "node-b", "node-c");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ act: fc.constant("pods" as const), node, count: fc.nat(12) }),
  fc.record({ act: fc.constantFrom("fence" as const, "forget" as const), node }),
  fc.record({
    act: fc.constantFrom("reserve" as const, "free" as const),
    n: fc.integer({ min: 50, max: 70 }),
  }),
  fc.record({ act: fc.constant("return" as const), n: fc.nat(20) }),
  fc.record({
    act: fc.constantFrom(
      "pass" as const,
      "pass" as const,
      "both" as const,
      "settle" as const,
      "time" as const,
    ),
  }),
);

/** Two replicas that hand out blocks, nodes that come, grow and end, and fixed addresses in between. */
class Life {
  readonly #world: World;
  readonly #nodes = new Nodes();
  readonly #replicas: readonly BlockDistributor[];

  constructor(world: World) {
    this.#world = world;
    this.#replicas = [distributor(world, this.#nodes), distributor(world, this.#nodes)];
  }

  async take(step: Step): Promise<void> {
    const [first, second] = this.#replicas;
    if (step.act === "pods") {
      if (!this.#nodes.fenced.has(step.node)) this.#nodes.pods.set(step.node, step.count);
    } else if (step.act === "fence" || step.act === "forget") {
      if (step.act === "fence") this.#nodes.fenced.add(step.node);
      this.#nodes.pods.delete(step.node);
    } else if (step.act === "reserve" || step.act === "free") await this.#fixed(step.act, `10.0.0.${step.n}`);
    else if (step.act === "return") await this.#return(step.n);
    else if (step.act === "settle") await this.#world.settle();
    else if (step.act === "time") this.#world.clock.advance(20_000);
    else await Promise.all([first?.pass(), step.act === "both" ? second?.pass() : undefined]);
  }

  /** A fixed address is reserved only where no node has it, as whoever relies on one finds out. */
  async #fixed(act: "reserve" | "free", address: string): Promise<void> {
    const { realStore } = this.#world;
    const there = await realStore.get("reservation", address);
    if (act === "free" && there !== undefined) await realStore.remove("reservation", there);
    const blocks = await this.#world.all("block");
    const isOwned = blocks.some(({ record }) => {
      const n = 0x0a00_0000n + BigInt(address.slice("10.0.0.".length));
      return ownedIn(record).intervals.some(({ first, last }) => n >= first && n <= last);
    });
    if (act === "reserve" && there === undefined && !isOwned)
      await realStore.create("reservation", reservationRecord(address, { pool: "web" }));
  }

  async #return(n: number): Promise<void> {
    const blocks = await this.#world.all("block");
    const block = blocks[n % Math.max(1, blocks.length)];
    if (block !== undefined) this.#nodes.returned.add(block.uid);
  }

  /** All nodes end: nothing may be left. */
  async end(): Promise<number> {
    for (const name of ["node-a", "node-b", "node-c"]) await this.take({ act: "fence", node: name });
    for (let pass = 0; pass < 4; pass++) {
      await this.#world.settle();
      await this.#replicas[0]?.pass();
      this.#world.clock.advance(60_000);
    }
    return (await this.#world.all("block")).length;
  }
}

describe("any life of blocks", () => {
  it("killed before or after any of its writes, is gone on with by the next one", async () => {
    const reference = await lifeKilledAt(0, "before");
    assert.ok(reference.writes > 20, String(reference.writes));
    for (const failure of ["before", "after"] as const) {
      for (let at = 1; at <= reference.writes; at++) {
        const { capacities: found } = await lifeKilledAt(at, failure);
        assert.deepEqual(found, reference.capacities, `${failure} write ${at}`);
      }
    }
  });

  it("has no overlap, nothing reserved in a node's hands, and leaves nothing behind", async () => {
    const lives = fc.record({
      length: fc.constantFrom(29, 30, 31, 32),
      steps: fc.array(step, { maxLength: 30 }),
    });
    const property = fc.asyncProperty(lives, async ({ length, steps }) => {
      await using world = await openWorld({ pools: [shared(length)], clock: new ManualClock() });
      const life = new Life(world);
      for (const one of steps) {
        await life.take(one);
        await check(world, length);
      }
      assert.equal(await life.end(), 0);
    });
    await fc.assert(property, { numRuns: runsOf(500) });
  });
});
