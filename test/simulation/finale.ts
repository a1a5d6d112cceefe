// SPDX-License-Identifier: Apache-2.0
import type { RecordCache } from "../../allocator/cache/cache.ts";
import { unavailableByDefault } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { claimObject } from "../support/objects.ts";
import { SeededRandom } from "../support/random.ts";
import { NAMESPACE } from "./cast.ts";
import { comeBack, fence } from "./faults.ts";
import { Violation } from "./invariant-check.ts";
import { unfairness } from "./needs.ts";
import type { Node } from "./node.ts";
import { endPod, isThere } from "./node-acts.ts";
import { open } from "./over-act.ts";
import { refusedReplacement } from "./replacements.ts";
import type { Flow } from "./schedule.ts";
import type { World } from "./world.ts";

/** All is well from here on: nothing is lost, and whoever waits longest goes first. */
export const CALM: Flow = { events: 5_000, order: "old", trouble: 0, random: new SeededRandom(1) };
const BEAT_MS = 10_000;
/** Calls that hang are over by then. */
const SETTLED_BY_MS = 50_000;
/** Every hold has expired, and was judged. */
const FAIR_BY_MS = 150_000;
/** A sandbox that went without a DEL is found within 60 s, a pod that never came is given up after 120 s. */
const GONE_BY_MS = 150_000;
/** Two looks at sandboxes, a person, the longest cooldown, a pass. */
const FREE_BY_MS = 140_000;

/**
 * Ends a run: everybody is well again, all that can be deleted is deleted, time goes on. Invariant 6: nothing is left.
 */
export async function finish(world: World, leavesFenced: boolean): Promise<void> {
  heal(world, leavesFenced);
  await passes(world, SETTLED_BY_MS, () => false, returnBlocks);
  hearOfDeletions(world);
  // blocks that pods use stay until those are gone
  const areBlocksBack = () => world.servesBlocks || world.records.list("block").length === 0;
  const isFair = () => areBlocksBack() && unfairness(world) === undefined;
  await passes(world, FAIR_BY_MS, isFair, returnBlocks);
  // an ADD that has waited for what is over now makes a claim at the end, which has its own term
  await passes(world, FAIR_BY_MS, isFair, returnBlocks);
  // what a node has in a block is rightly refused
  const hasBlocks = world.records.list("block").length > 0;
  const unfair =
    unfairness(world) ??
    (hasBlocks ? undefined : await refusedReplacement(world, (done) => letBe(world, done)));
  if (unfair !== undefined) throw new Violation(`invariant 6: when all was well, ${unfair}`);
  await deleteAll(world);
  await passes(world, GONE_BY_MS, () => leftover(world) === undefined);
  const left = leftover(world);
  if (left !== undefined)
    throw new Violation(`invariant 6: claim ${left.key} is left ${GONE_BY_MS / 1_000} s after all`);
  await passes(world, FREE_BY_MS, () => leftIn(world) === undefined, releaseAll);
  const words = leftIn(world);
  if (words !== undefined) throw new Violation(`invariant 6: at the end ${words}`);
}

/** Nodes need no blocks any more, and say so until it is true. */
async function returnBlocks(world: World): Promise<void> {
  const blocks = world.records.list("block");
  await Promise.all(blocks.map((block) => world.webhook(0)?.takeBack(block)));
}

async function releaseAll(world: World): Promise<void> {
  await releaseByHand(world);
  if (world.servesBlocks) await returnBlocks(world);
}

/** What is retained, and what people made, goes when they say so; they say it until it is true. */
async function releaseByHand({ records, clients }: World): Promise<void> {
  const claims = records.list("claim");
  await Promise.all(claims.map(({ record }) => clients.withdraw(claimObject(record.name, {}, NAMESPACE), 0)));
}

/** A claim that nobody may be blamed for keeping. */
function leftover({ records }: World): Stored<"claim"> | undefined {
  return records
    .list("claim")
    .find(({ record }) => record.retained === undefined && record.handMade !== true);
}

function heal(world: World, leavesFenced: boolean): void {
  world.schedule.tell("everybody", () => "is well again");
  world.quota.most = undefined;
  open(world);
  for (const post of world.posts) {
    post.frozen = false;
    post.cut = false;
    post.deaf = false;
  }
  for (const node of world.nodes) {
    // Whoever cannot have the old journal back boots the host.
    if (node.on && node.hasOtherJournal) {
      node.powerOff();
      node.powerOn();
    }
    if (!node.on && !leavesFenced) comeBack(world, node);
    if (!node.on && !world.cluster.fenced.has(node.name)) fence(world, node, 0);
    if (node.on) hearOfAll(world, node);
  }
}

/** Also of what was being deleted when everybody became well. */
function hearOfDeletions(world: World): void {
  for (const node of world.nodes) if (node.on) hearOfAll(world, node);
}

/** Its kubelet ends what is deleted, and starts what is not. */
function hearOfAll(world: World, node: Node): void {
  for (const pod of node.pods.values()) if (!isThere(world, pod)) endPod({ node, pod });
  node.lookAfterAll();
}

async function deleteAll(world: World): Promise<void> {
  const { cluster, nodes, clients } = world;
  for (const node of nodes) for (const pod of node.pods.values()) endPod({ node, pod });
  for (const node of nodes)
    for (const sandbox of node.sandboxes) if (sandbox.phase === "up") node.stopSandbox(sandbox);
  for (const kind of ["StatefulSet", "Deployment", "Pod"]) {
    for (const object of cluster.all(kind)) {
      await letBe(world, clients.withdraw(object.json.value, 0));
    }
  }
}

async function letBe<T>(world: World, done: Promise<T>): Promise<T> {
  await world.flow(CALM);
  return await done;
}

/** Time goes by until it is done, and no longer than that. */
async function passes(
  world: World,
  mostMs: number,
  isDone: () => boolean,
  meanwhile: (world: World) => Promise<void> = async () => {},
): Promise<void> {
  for (let ms = 0; ms <= mostMs && !isDone(); ms += BEAT_MS) {
    await letBe(world, meanwhile(world));
    world.schedule.time += BEAT_MS;
  }
  await world.flow(CALM);
}

function leftIn(world: World): string | undefined {
  return leftInStore(world) ?? firstOf(world.nodes, leftOnNode) ?? leftInCaches(world);
}

function leftInStore({ records }: World): string | undefined {
  const [claim] = records.list("claim");
  if (claim !== undefined) return `claim ${claim.key} is left`;
  const [reservation] = records.list("reservation");
  const [block] = records.list("block");
  if (block !== undefined) return `block ${block.key} is left with ${block.record.node}`;
  return reservation && `address ${reservation.key} is left reserved for ${reservation.record.claim.name}`;
}

function leftOnNode({ name, on, agent }: Node): string | undefined {
  if (!on) return undefined;
  if (agent?.serves !== true) return `the agent of ${name} does not serve`;
  const [attached] = agent.attachments?.attached() ?? [];
  if (attached !== undefined) return `the journal of ${name} has sandbox ${attached.containerID}`;
  const [untold] = agent.attachments?.unreported() ?? [];
  return untold && `the journal of ${name} has an untold end of sandbox ${untold.containerID}`;
}

/** Free and held are all there is, for everybody. */
function leftInCaches({ caches, invariants, records }: World): string | undefined {
  const pools = invariants.pools.filter(({ name }) => records.get("pool", name) !== undefined);
  for (const { who, cache } of caches) {
    for (const pool of pools) {
      const words = firstOf(pool.families, (family) => leftInCache(cache, pool.name, family));
      if (words !== undefined) return `${who} ${words}`;
    }
  }
  return undefined;
}

function leftInCache(cache: RecordCache, name: string, family: "IPv4" | "IPv6"): string | undefined {
  const pool = cache.pool(name);
  if (pool === undefined) return `does not see pool ${name}`;
  const held = cache.held(name, NAMESPACE)[family];
  if (held !== 0) return `sees ${held} ${family} addresses of ${name} held`;
  const taken = cache.unpickable(pool, family).size - unavailableByDefault(pool, family).size;
  return taken === 0n ? undefined : `sees ${taken} ${family} addresses of ${name} taken`;
}

function firstOf<T>(items: readonly T[], words: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = words(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
