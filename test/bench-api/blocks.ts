// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { inParallel } from "../../allocator/base/parallel.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { BlockDistributor } from "../../allocator/blocks/distributor.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import { parseCidr } from "../../allocator/ip/address.ts";
import { fullInterval } from "../../allocator/ip/ip-range.ts";
import { blocksAhead } from "../../allocator/pool/blocks.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { syncRecords } from "../../webhook/cluster-state/record-cache.ts";
import { type Calls, callsBetween, callsSoFar } from "../api/chaos-calls.ts";
import { openStore } from "../api/open-store.ts";
import type { Figure } from "../bench/figure.ts";
import { formatFixed } from "../bench/number-format.ts";
import { hostDeps } from "../support/host-deps.ts";
import type { ApiSetup } from "./api-setup.ts";
import { type Phase, reportBlocks } from "./blocks-report.ts";
import { openPlane, type Plane } from "./plane.ts";

const FULL = { nodes: 1_000, pods: 100, taken: 1_000 };
const QUICK = { nodes: 40, pods: 100, taken: 100 };
const POOL = "cut";
const SIZE = 64;
const CIDR = "10.96.0.0/12";
/** Agents that write at the same time. */
const AGENTS = 32;
const COUNTED = ["ipblocks", "ipreservations", "ippools"];

/** Blocks of one /12 for a thousand nodes: granted, proven, used, and given back, by the leader's own code. */
export async function measureBlocks(setup: ApiSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  setup.say(`${formatFixed(size.nodes, 0)} nodes with ${size.pods} pods each`);
  const plane = await openPlane(setup, size.taken);
  const leader = await Leader.start(setup, plane);
  await leader.store.create("pool", {
    name: POOL,
    spec: { ranges: [{ cidr: CIDR }], blockSize: { ipv4: 26 }, cooldown: "0s" },
  });
  const nodes = Array.from({ length: size.nodes }, (_, n) => ({ node: `node-${n}`, nodeUID: `uid-${n}` }));
  leader.needs = nodes.map((one) => ({ ...one, pods: size.pods }));
  const expected = size.nodes * (Math.ceil(size.pods / SIZE) + blocksAhead(undefined));
  const made = await leader.phase("granted to nodes", expected, async (blocks) => blocks >= 0.9 * expected);
  const all = await leader.blocks();
  const granted = { ...made, blocks: all.length };
  const doubles = overlaps(all);
  const used = await leader.phase(
    "proven, and their use told, by agents",
    all.length,
    async () => true,
    async () => {
      await inParallel(all, AGENTS, async (block) => {
        const status = { node: block.record.node, used: 0 };
        const proven = await leader.store.reportBlock(block, status);
        if (proven.kind === "replaced")
          await leader.store.reportBlock(proven.stored, { ...status, used: 40 });
      });
    },
  );
  leader.needs = [];
  const returned = await leader.phase(
    "given back",
    all.length,
    async (blocks) => blocks === 0,
    async () => {
      await inParallel(await leader.blocks(), AGENTS, async (block) => {
        const status = { node: block.record.node, used: 0, returnedAt: Date.now() };
        await leader.store.reportBlock(block, status);
      });
    },
  );
  const left = (await leader.blocks()).length;
  return reportBlocks({ ...size, phases: [granted, used, returned], blocks: all.length, doubles, left });
}

/** The replica that leads, as far as blocks are concerned. */
class Leader {
  readonly store: Store;
  /** What the nodes' pods need now. */
  needs: readonly { readonly node: string; readonly nodeUID: string; readonly pods: number }[] = [];
  readonly #distributor: BlockDistributor;
  readonly #view: RecordCache;
  readonly #plane: Plane;

  private constructor(
    plane: Plane,
    parts: { store: Store; view: RecordCache; distributor: (of: Leader) => BlockDistributor },
  ) {
    this.#plane = plane;
    this.store = parts.store;
    this.#view = parts.view;
    this.#distributor = parts.distributor(this);
  }

  static async start(setup: ApiSetup, plane: Plane): Promise<Leader> {
    const deps = hostDeps();
    const store = openStore(plane.connection);
    const view = new RecordCache(noopLogger);
    const stop = new AbortController();
    const following = syncRecords({ store, cache: view, ...deps }, stop.signal);
    setup.defer(async () => {
      stop.abort();
      await following.ended;
    });
    await following.synced;
    const distributor = (of: Leader) =>
      new BlockDistributor(
        { ...deps, store, view, serial: new KeyedMutex() },
        { nodesFor: (pool) => (pool.name === POOL ? of.needs : []), evidence: async () => undefined },
      );
    return new Leader(plane, { store, view, distributor });
  }

  async blocks(): Promise<readonly Stored<"block">[]> {
    return await listed(this.store, "block");
  }

  /** Passes until so many blocks are there as is wanted; what it took, and what it cost. */
  async phase(
    what: string,
    blocks: number,
    isOver: (blocks: number) => Promise<boolean>,
    first: () => Promise<void> = async () => {},
  ): Promise<Phase> {
    const before = await callsSoFar(this.#plane.connection);
    const began = performance.now();
    await first();
    for (;;) {
      const there = [...this.#view.blocks()].length;
      if (await isOver(there)) break;
      await this.#distributor.pass();
      await pause(10);
    }
    const ms = performance.now() - began;
    const calls: Calls = callsBetween(before, await callsSoFar(this.#plane.connection), COUNTED);
    return { what, blocks, ms, calls };
  }
}

/** How many blocks share an address with another one. */
function overlaps(blocks: readonly Stored<"block">[]): number {
  const intervals = blocks.flatMap(({ key }) => {
    const cidr = parseCidr(key);
    return cidr === undefined ? [] : [fullInterval(cidr)];
  });
  const sorted = intervals.sort((a, b) => (a.first < b.first ? -1 : 1));
  return sorted.filter(({ first }, i) => i > 0 && first <= (sorted[i - 1]?.last ?? -1n)).length;
}
