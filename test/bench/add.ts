// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { type MeasuredLevel, reportAdd } from "./add-report.ts";
import { byTag, drive, type Step } from "./driver.ts";
import type { Figure } from "./figure.ts";
import { formatFixed } from "./number-format.ts";
import { startStack } from "./running-stack.ts";
import { dynamicSandbox, fixedSandbox, Network, type Verb } from "./sandboxes.ts";
import { type FixedPod, StackData } from "./stack-data.ts";
import type { StackSetup } from "./stack-setup.ts";

/** A node with so many addresses taken, for both plugins. */
interface Level extends MeasuredLevel {
  readonly network: Network;
  readonly socket: string;
  /** Each is attached once: the first time is when a claim is bound. */
  readonly pods: Iterator<FixedPod, unknown>;
  /** Sandboxes of each round beside host-local, which takes its time. */
  readonly perRound: number;
  readonly together: ReadonlyMap<string, readonly number[]>[];
  readonly alone: ReadonlyMap<string, readonly number[]>[];
}

const FULL = { levels: [0, 250, 1_000, 4_000, 60_000], rounds: 5, perRound: 80, warmUp: 300 };
const QUICK = { levels: [0, 1_000], rounds: 2, perRound: 20, warmUp: 60 };

/** From exec to exit of ADD and DEL, beside host-local, with more and more addresses taken on the node. */
export async function measureAdd(setup: StackSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const levels: Level[] = [];
  for (const taken of size.levels) {
    setup.say(`a node with ${formatFixed(taken, 0)} addresses taken`);
    levels.push(await prepare(setup, taken, size));
  }
  for (const level of levels) await warmUp(setup, level, size.warmUp);
  for (let round = 0; round < size.rounds; round++) {
    setup.say(`round ${round + 1} of ${size.rounds}`);
    for (const level of levels) level.together.push(await runTogether(setup, level, round));
    await runAlone(setup, levels, { round, count: size.perRound });
  }
  return reportAdd(levels, setup.hostLocal !== undefined);
}

async function prepare(setup: StackSetup, taken: number, size: typeof FULL): Promise<Level> {
  const folder = setup.room();
  const network = new Network(folder);
  const dataDir = join(folder, "data");
  let pods: readonly FixedPod[] = [];
  await StackData.write(dataDir, async (auditInput) => {
    const { cidr, scope, netns } = network;
    await auditInput.fillRange({ cidr, scope, netns, count: taken });
    await auditInput.reserve(taken);
    pods = await auditInput.reserve(size.warmUp + 2 * size.rounds * size.perRound);
    await auditInput.admit(pods);
  });
  if (setup.hostLocal !== undefined) network.fillHostLocal(taken);
  const { socket } = await startStack(setup, dataDir);
  const perRound = Math.max(6, Math.min(size.perRound, Math.round((size.perRound * 1_500) / (taken + 1))));
  return { taken, network, socket, pods: pods.values(), perRound, together: [], alone: [] };
}

/** The agent's code has to be compiled by V8, as on a node that has run for an hour. */
async function warmUp(setup: StackSetup, level: Level, count: number): Promise<void> {
  const steps: Step[] = [{ parallel: 4 }];
  for (let i = 0; i < count; i++) steps.push(...ours(level, "ADD", `warm-${i}`));
  steps.push({ parallel: 4 });
  for (let i = 0; i < count; i++)
    steps.push(rangeCall(level, "DEL", `warm-${i}`), blockCall(level, "DEL", `warm-${i}`));
  await drive(setup.driver, steps);
}

/** Both sides in turn: one sandbox of each comes, then they go. */
async function runTogether(
  setup: StackSetup,
  level: Level,
  round: number,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const { network, perRound } = level;
  const { hostLocal } = setup;
  const steps: Step[] = [];
  for (let i = 0; i < perRound; i++) {
    const name = `together-${round}-${i}`;
    const pod = nextPod(level);
    for (const verb of ["ADD", "DEL"] as const) {
      steps.push(rangeCall(level, verb, name));
      if (hostLocal !== undefined) {
        steps.push(network.hostLocal(`host-local ${verb}`, verb, dynamicSandbox(name), hostLocal));
      }
      steps.push(network.fixed(`claim ${verb}`, verb, fixedSandbox(pod, name), level.socket));
    }
  }
  return byTag(await drive(setup.driver, steps));
}

/** Berth alone, on each node in turn: whether it takes longer where more is taken. */
async function runAlone(
  setup: StackSetup,
  levels: readonly Level[],
  { round, count }: { round: number; count: number },
): Promise<void> {
  const steps: Step[] = [];
  for (let i = 0; i < count; i++) {
    const name = `alone-${round}-${i}`;
    for (const level of levels) {
      const pod = nextPod(level);
      for (const verb of ["ADD", "DEL"] as const) {
        const { network, socket, taken } = level;
        steps.push({ ...rangeCall(level, verb, name), tag: `${taken} berth ${verb}` });
        steps.push(network.fixed(`${taken} claim ${verb}`, verb, fixedSandbox(pod, name), socket));
        steps.push({ ...blockCall(level, verb, name), tag: `${taken} block ${verb}` });
      }
      steps.push(level.network.floor(`${level.taken} floor`));
    }
  }
  const found = [...byTag(await drive(setup.driver, steps))];
  for (const level of levels) {
    const own = found.filter(([tag]) => tag.startsWith(`${level.taken} `));
    level.alone.push(new Map(own.map(([tag, values]) => [tag.slice(tag.indexOf(" ") + 1), values])));
  }
}

function ours(level: Level, verb: Verb, name: string): readonly Step[] {
  const claim = level.network.fixed(`claim ${verb}`, verb, fixedSandbox(nextPod(level), name), level.socket);
  return [rangeCall(level, verb, name), claim, blockCall(level, verb, name)];
}

function blockCall({ network, socket }: Level, verb: Verb, name: string) {
  return network.block(`block ${verb}`, verb, dynamicSandbox(`${name}-block`), socket);
}

function rangeCall({ network, socket }: Level, verb: Verb, name: string) {
  return network.berth(`berth ${verb}`, verb, dynamicSandbox(name), socket);
}

function nextPod({ pods }: Level): FixedPod {
  const next = pods.next();
  if (next.done === true) throw new Error("too few pods were made for this figure");
  return next.value;
}
