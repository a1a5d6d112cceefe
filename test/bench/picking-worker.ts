// SPDX-License-Identifier: Apache-2.0
// Picks free addresses in a thread of its own: a million reservations are to leave nothing behind in the heap.
import { parentPort, workerData } from "node:worker_threads";
import { isRefusal } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import { type Address, fromNumber, parseCidr } from "../../allocator/ip/address.ts";
import { planAddresses } from "../../allocator/planning/address-plan.ts";
import type { AddressConstraints } from "../../allocator/planning/plan.ts";

/** What to fill, and how often to pick. */
export interface PickingTask {
  readonly cidr: string;
  /** So many addresses at the beginning of the CIDR are filled. */
  readonly filled: number;
  /** Parts of them that are taken: 0.5 for every other one. */
  readonly fills: readonly number[];
  readonly rounds: number;
  readonly picks: number;
}

/** Nanoseconds of one pick, by round, for each fill. */
export type PickingTimes = readonly (readonly number[])[];

const ASK = { namespaceLabels: {}, podLabels: {}, namespace: "bench", pools: ["bench"] };

/** Mulberry32: the same addresses in each run. */
function chances(): () => number {
  let state = 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function cacheFilled({ cidr, filled }: PickingTask, part: number): RecordCache {
  const cache = new RecordCache(noopLogger);
  const limits = { perNamespace: 2_147_483_647 };
  const pool = { name: "bench", spec: { ranges: [{ cidr }], limits } };
  const stored = { uid: "u", revision: "1", createdAt: 0 };
  cache.apply("pool", { type: "put", stored: { ...stored, key: pool.name, record: pool } });
  const parsed = parseCidr(cidr);
  if (parsed === undefined) throw new Error(`${cidr} is no CIDR`);
  const chance = chances();
  for (let i = 1; i < filled - 1; i++) {
    if (chance() >= part) continue;
    const address: Address = fromNumber(parsed.base + BigInt(i), parsed.family);
    const record = { address, pool: pool.name, claim: { namespace: "bench", name: "holder" }, nonce: "n" };
    cache.apply("reservation", { type: "put", stored: { ...stored, key: address, record } });
  }
  return cache;
}

/** Plans for as many identities, and takes the first candidate of each. */
function pickMany(cache: RecordCache, asks: readonly AddressConstraints[]): number {
  const began = process.hrtime.bigint();
  for (const constraints of asks) {
    const plan = planAddresses(cache, constraints);
    if (isRefusal(plan)) throw new Error(plan.message);
    for (const lot of plan.familyPlans) {
      const first = lot.candidates[Symbol.iterator]().next();
      if (first.done === true) throw new Error("there is no free address");
    }
  }
  return Number(process.hrtime.bigint() - began) / asks.length;
}

function measure(task: PickingTask): PickingTimes {
  const caches = task.fills.map((part) => cacheFilled(task, part));
  const times = task.fills.map((): number[] => []);
  for (let round = 0; round < task.rounds; round++) {
    const asks = Array.from(
      { length: task.picks },
      (_, i): AddressConstraints => ({ ...ASK, name: `pod-${round}-${i}` }),
    );
    for (const [i, cache] of caches.entries()) times[i]?.push(pickMany(cache, asks));
  }
  return times;
}

parentPort?.postMessage(measure(workerData as PickingTask));
