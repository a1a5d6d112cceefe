// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { FailingStore, type Failure } from "../../test/support/failing-store.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { NodeCidrDistributor } from "./node-cidr-distributor.ts";
import { check, distributor, FOUR, Nodes, SIX, settle } from "./testing/cidr-nodes.ts";

/** Three nodes get theirs, one goes, one is made again; the process dies at its n-th write of a record, or of a Node. */
async function lifeKilledAt(at: number, failure: Failure, tellAt?: number) {
  await using world = await openWorld({ pools: [FOUR, SIX], clock: new ManualClock() });
  const nodes = new Nodes();
  if (tellAt !== undefined) nodes.failAt = { n: tellAt, when: failure };
  const store = new FailingStore(world.realStore, at, failure);
  const families = ["IPv4", "IPv6"] as const;
  let by = distributor(world, nodes, { families, store });
  const round = async () => {
    await settle(world, nodes);
    try {
      await by.pass();
    } catch {
      by = distributor(world, nodes, { families });
    }
    await settle(world, nodes);
    await check(world, nodes);
  };
  nodes.add("old", { podCIDRs: ["10.244.2.0/24", "fd00:10:0:9::/64"] });
  for (const name of ["a", "b", "c"]) nodes.add(name);
  for (let n = 0; n < 3; n++) await round();
  nodes.there.delete("a");
  nodes.add("b");
  for (let n = 0; n < 4; n++) {
    await round();
    if (!store.died) world.clock.advance?.(1_000);
  }
  assert.deepEqual(
    [...nodes.there.values()].map(({ name, podCIDRs }) => [name, podCIDRs.length]).toSorted(),
    [
      ["b", 2],
      ["c", 2],
      ["old", 2],
    ],
  );
  const held = (await world.all("block")).map(({ record }) => record.node).toSorted();
  assert.deepEqual(held, ["b", "b", "c", "c", "old", "old"], `write ${at} ${failure}, told ${tellAt ?? 0}`);
  return { writes: store.writes };
}

describe("the distributor of nodes' CIDRs", () => {
  it("killed before or after any of its writes, is gone on with by the next one", async () => {
    const writes = (await lifeKilledAt(0, "before")).writes;
    assert.ok(writes > 12, String(writes));
    for (const failure of ["before", "after"] as const) {
      for (let at = 1; at <= writes; at++) await lifeKilledAt(at, failure);
      for (let at = 1; at <= 5; at++) await lifeKilledAt(0, failure, at);
    }
  });
});

const step = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), node: fc.nat(5) }),
  fc.record({ kind: fc.constant("remove" as const), node: fc.nat(5) }),
  fc.record({ kind: fc.constant("preset" as const), node: fc.nat(5), cidr: fc.nat(7) }),
  fc.record({ kind: fc.constant("show" as const) }),
  fc.record({ kind: fc.constant("pass" as const), by: fc.nat(1) }),
  fc.record({ kind: fc.constant("both" as const) }),
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Life {
  readonly #world: World;
  readonly #nodes: Nodes;
  readonly #two: readonly NodeCidrDistributor[];
  readonly #foreign = new Set<string>(); // that came with a CIDR: Berth could not keep it from being another's

  constructor(world: World, nodes: Nodes) {
    this.#world = world;
    this.#nodes = nodes;
    this.#two = [distributor(world, nodes), distributor(world, nodes)];
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "show") await settle(this.#world, this.#nodes);
    else if (one.kind === "pass") await this.#two[one.by]?.pass();
    else if (one.kind === "both") await Promise.all(this.#two.map((by) => by.pass()));
    else this.#change(one);
  }

  #change(one: Exclude<Step, { readonly kind: "show" | "pass" | "both" }>): void {
    const name = `n${one.node}`;
    if (one.kind === "remove") this.#nodes.there.delete(name);
    else if (one.kind === "add") this.#nodes.add(name);
    else this.#foreign.add(this.#nodes.add(name, { podCIDRs: [`10.244.${one.cidr}.0/24`] }).uid);
  }

  /** Among the Nodes that Berth has told, no two share an address. */
  judge(): void {
    const reported = [...this.#nodes.there.values()].filter(({ uid }) => !this.#foreign.has(uid));
    const cidrs = reported.flatMap(({ podCIDRs }) => podCIDRs);
    assert.equal(new Set(cidrs).size, cidrs.length, cidrs.join(" "));
  }
}

describe("any life of nodes' CIDRs", () => {
  it("with two distributors and watches that are behind has no address twice, and leaves nothing behind", async () => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      await using world = await openWorld({ pools: [FOUR] });
      const nodes = new Nodes();
      const life = new Life(world, nodes);
      for (const one of steps) {
        await life.take(one);
        life.judge();
      }
      for (const name of [...nodes.there.keys()]) nodes.there.delete(name);
      for (let n = 0; n < 3; n++) {
        await settle(world, nodes);
        await distributor(world, nodes).pass();
      }
      await world.settle();
      assert.deepEqual(await world.all("block"), []);
    });
    await fc.assert(property, { numRuns: runsOf(200, 30) });
  });
});
