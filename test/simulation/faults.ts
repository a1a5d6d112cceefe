// SPDX-License-Identifier: Apache-2.0
import type { Act } from "./act.ts";
import { endAll } from "./endings.ts";
import type { Node } from "./node.ts";
import { forget } from "./node-acts.ts";
import type { Post } from "./process.ts";
import type { StepKind } from "./steps.ts";
import type { Outcome } from "./tally.ts";
import type { World } from "./world.ts";

const WAITS_MS = [200, 2_000, 12_000, 12_000, 35_000, 35_000, 130_000, 660_000];
/** Which of them is as long as a call that stalls. */
export const STALL_WAIT = 1;
const YEAR_MS = 31_536_000_000;
const JUMPS_MS = [1_000, -1_000, 130_000, -130_000, 3_600_000, -3_600_000, YEAR_MS, -YEAR_MS];

function postOf({ posts }: World, n: number): Post {
  const post = posts[n % posts.length];
  if (post === undefined) throw new RangeError("nobody is there");
  return post;
}

const wait: Act = (world, { a }) => {
  const ms = WAITS_MS[a % WAITS_MS.length] ?? 0;
  world.schedule.tell("time", () => `passes: ${ms / 1_000} s`);
  world.schedule.time += ms;
  return "done";
};

/** One in so many crashes of an agent is none: another one is started beside it, on its journal. */
const LEFT_EVERY = 4;

const crash: Act = (world, { a, b }) => {
  const post = postOf(world, a);
  if (post.process === undefined) return "idle";
  if (b % LEFT_EVERY === 0 && world.nodes.some((node) => node.post === post)) {
    world.schedule.tell(post.name, () => "another one is started BESIDE it");
    world.tally.note("agent beside another", "done");
    post.startBeside();
    return "done";
  }
  world.schedule.tell(post.name, () => "CRASHES");
  post.crash();
  return "done";
};

/** Begins or ends; there are rarely several at once, or nothing would happen at all. */
function toggle(flag: "frozen" | "cut" | "deaf"): Act {
  return (world, { a, b }) => {
    const affected = world.posts.filter((post) => post[flag]);
    const post = (b % 3 === 0 ? undefined : affected[a % Math.max(1, affected.length)]) ?? postOf(world, a);
    if (post.process === undefined) return "idle";
    post[flag] = !post[flag];
    world.schedule.tell(post.name, () => `is ${post[flag] ? "" : "no longer "}${flag}`);
    return "done";
  };
}

const skew: Act = (world, { a, b }) => {
  const post = postOf(world, a);
  post.skew = JUMPS_MS[b % JUMPS_MS.length] ?? 0;
  world.schedule.tell(post.name, () => `its wall clock is ${post.skew / 1_000} s ahead`);
  return "done";
};

function nodeOf({ nodes }: World, n: number): Node | undefined {
  return nodes[n % nodes.length];
}

/** In order, when its pods end first, or not. */
const reboot: Act = (world, { a, b }) => {
  const node = nodeOf(world, a);
  if (node?.on !== true) return "idle";
  if (b % 3 === 0) endAll(world, node, b);
  world.schedule.tell(node.name, () => "REBOOTS");
  node.powerOff();
  node.powerOn();
  return "done";
};

/** Of one node at a time: what is lost with it nobody else knows. */
const journal: Act = (world, { a, b }) => {
  const node = world.nodes.find(({ hasOtherJournal }) => hasOtherJournal) ?? nodeOf(world, a);
  if (node?.on !== true) return "idle";
  if (!node.hasOtherJournal && b % 3 === 0) {
    world.schedule.tell(node.name, () => "its journal is COPIED, for when it is lost");
    world.tally.note("copied journal", "done");
    node.copyJournal();
    return "done";
  }
  world.schedule.tell(node.name, () => `its journal is ${node.hasOtherJournal ? "BACK" : "LOST"}`);
  world.tally.note(node.hasOtherJournal ? "found journal" : "lost journal", "done");
  if (node.hasOtherJournal) node.findJournal();
  // An answer that is on its way to the runtime when both go is in no record yet: nobody can know of it (ADR 0009).
  else node.loseJournal(b % 2 === 0 && node.starting.length === 0);
  return "done";
};

/** On, then off, then fenced or not, then on again. */
const power: Act = (world, { a, b }) => {
  const node = world.nodes.find(({ on }) => !on) ?? nodeOf(world, a);
  if (node === undefined) return "idle";
  if (node.on) {
    world.schedule.tell(node.name, () => "loses its POWER");
    node.powerOff();
    return "done";
  }
  return world.cluster.fenced.has(node.name) || b % 3 === 0 ? comeBack(world, node) : fence(world, node, b);
};

/** Whoever fences a node knows that it is off. Its pods are deleted. */
export function fence(world: World, node: Node, webhook: number): Outcome {
  world.schedule.tell(node.name, () => "is FENCED");
  world.cluster.fenced.add(node.name);
  for (const pod of node.pods.values()) forget(world, pod, webhook);
  node.pods.clear();
  return "done";
}

export function comeBack(world: World, node: Node): Outcome {
  world.schedule.tell(node.name, () => "has power again");
  world.cluster.fenced.delete(node.name);
  node.powerOn();
  return "done";
}

export const faults = {
  wait,
  crash,
  freeze: toggle("frozen"),
  cut: toggle("cut"),
  deaf: toggle("deaf"),
  skew,
  reboot,
  journal,
  power,
} satisfies Partial<Record<StepKind, Act>>;
