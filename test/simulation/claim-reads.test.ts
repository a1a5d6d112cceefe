// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { MemoryRecords } from "../model/memory-records.ts";
import { addrs, claimRecord, reservationsOf } from "../support/fixtures.ts";
import { pod, workload } from "../support/objects.ts";
import { SeededRandom } from "../support/random.ts";
import { POOL_RECORDS, STATEFUL_SET } from "./cast.ts";
import { Cluster, objectOf } from "./cluster.ts";
import { InvariantCheck } from "./invariant-check.ts";
import { Post } from "./process.ts";
import { Schedule } from "./schedule.ts";
import { type ProcessDeps, processDeps } from "./setting.ts";

const ADDRESS = "10.0.0.2";
const KEY = "shop/s-0";
/** A StatefulSet's, which is not there yet; no pod ever had it. */
const CLAIM = claimRecord({
  name: "s-0",
  identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: STATEFUL_SET, ordinal: 0 },
  request: { addresses: addrs(ADDRESS) },
  addresses: addrs(ADDRESS),
});
const ANSWER = { [ASSIGNED_CLAIM]: "s-0", [ASSIGNED_ADDRESSES]: ADDRESS };

/** A replica that follows the store; a pod of the ordinal's name is there, and no StatefulSet. */
async function replica() {
  const schedule = new Schedule({ tells: false, observer: () => invariants.judge() });
  const records = new MemoryRecords();
  const cluster = new Cluster({ beforeChange: () => invariants.beforeChange(), podKept: () => {} });
  const invariants = new InvariantCheck({ records, cluster, schedule, pools: POOL_RECORDS });
  const setting = { records, cluster, invariants, quota: { most: undefined }, injection: {}, blocks: false };
  const started: ProcessDeps[] = [];
  const post = new Post(schedule, "w1", (process) =>
    started.push(processDeps(process, { ...setting, enqueueForGc: () => {} }, "webhook")),
  );
  post.start();
  const { context } = started[0] ?? assert.fail();
  const flow = () => schedule.flow({ events: 100, order: "old", trouble: 0, random: new SeededRandom() });
  for (const pool of POOL_RECORDS) records.create("pool", pool, 0);
  cluster.keep(objectOf(pod("s-0", { uid: "u1", annotations: ANSWER })));
  await flow();
  const makeClaim = () => {
    for (const reservation of reservationsOf(CLAIM)) records.create("reservation", reservation, 0);
    records.create("claim", CLAIM, 0);
  };
  const keepSet = () =>
    cluster.keep(objectOf(workload("StatefulSet", STATEFUL_SET, { uid: "u2", replicas: 1 })));
  const read = async () => {
    const stored = context.store.get("claim", KEY);
    await flow();
    return (await stored) ?? assert.fail();
  };
  const shown = () => context.view.claim(KEY) ?? assert.fail();
  /** Makes it the pod's, as somebody decided who had seen that. */
  const take = async (seen: Stored<"claim">) => {
    const next: Claim = { ...CLAIM, identity: { kind: "Pod", apiVersion: "v1", name: "s-0" } };
    const result = context.store.replace("claim", seen, next);
    await flow();
    return (await result).kind;
  };
  return { flow, makeClaim, keepSet, read, shown, take };
}

const TAKEN = /claim shop\/s-0 was taken from StatefulSet s, which wanted it all the time/;

describe("what a write rests on", () => {
  it("is what the cache showed before the StatefulSet came, although somebody else has read the claim since", async () => {
    const { flow, makeClaim, keepSet, read, shown, take } = await replica();
    makeClaim();
    await flow();
    keepSet();
    await read();
    assert.equal(await take(shown()), "replaced");
  });

  it("is a read after the StatefulSet came, although the cache knew the claim before", async () => {
    const { flow, makeClaim, keepSet, read, take } = await replica();
    makeClaim();
    await flow();
    keepSet();
    const seen = await read();
    await assert.rejects(() => take(seen), TAKEN);
  });

  it("is what the cache heard after the StatefulSet came, when nobody has read the claim", async () => {
    const { flow, makeClaim, keepSet, shown, take } = await replica();
    makeClaim();
    keepSet();
    await flow();
    await assert.rejects(() => take(shown()), TAKEN);
  });
});
