// SPDX-License-Identifier: Apache-2.0

import { barChart } from "./chart.ts";
import { atMost, type Figure } from "./figure.ts";
import { formatFixed, formatNumber } from "./number-format.ts";
import { firstAdd } from "./probe.ts";
import { Server, socketOf, spawnStack } from "./running-stack.ts";
import { type FixedPod, StackData } from "./stack-data.ts";
import type { StackSetup } from "./stack-setup.ts";
import { median, summarise } from "./statistics.ts";

const FULL = { claims: 100_000, rounds: 7 };
const QUICK = { claims: 5_000, rounds: 2 };
const ATTACHED = 110;

/** A data folder that a stack is started on again and again. */
interface Folder {
  readonly name: string;
  readonly dataDir: string;
  readonly pods: Iterator<FixedPod, unknown>;
  /** Milliseconds from exec until an ADD was answered, and until everything serves. */
  readonly agent: number[];
  readonly ready: number[];
}

/** How long a node has no agent when it is restarted after a crash. */
export async function measureStart(setup: StackSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const folders: Folder[] = [];
  for (const claims of [0, size.claims]) {
    setup.say(`a stack with ${ATTACHED} attachments and ${formatFixed(claims, 0)} more claims`);
    folders.push(await prepare(setup, claims, size.rounds));
  }
  const runtime: number[] = [];
  for (let round = 0; round < size.rounds; round++) {
    setup.say(`round ${round + 1} of ${size.rounds}`);
    for (const folder of folders) await startOnce(folder, round);
    runtime.push(await startRuntime());
  }
  return report(folders, runtime);
}

async function prepare(setup: StackSetup, claims: number, rounds: number): Promise<Folder> {
  const dataDir = setup.room();
  let waiting: readonly FixedPod[] = [];
  await StackData.write(dataDir, async (auditInput) => {
    const attached = await auditInput.reserve(ATTACHED);
    await auditInput.admit(attached);
    await auditInput.attach(attached, dataDir);
    await auditInput.reserve(claims);
    waiting = await auditInput.reserve(rounds);
    await auditInput.admit(waiting);
  });
  // The first start after an installation compiles the program; it ends by itself, as when it is upgraded.
  const { server } = await spawnStack(dataDir);
  await server.end("SIGTERM");
  const name = `${ATTACHED} attachments, ${formatFixed(ATTACHED + claims + rounds, 0)} claims`;
  return { name, dataDir, pods: waiting.values(), agent: [], ready: [] };
}

/** From exec to serving; then the process is killed, so that the next one finds what a crash leaves. */
async function startOnce({ dataDir, pods, agent, ready }: Folder, round: number): Promise<void> {
  const pod = pods.next();
  if (pod.done === true) throw new Error("too few pods were made for this figure");
  const began = performance.now();
  const starting = spawnStack(dataDir);
  try {
    agent.push((await firstAdd(socketOf(dataDir), pod.value, `start-${round}`)) - began);
  } finally {
    const { server } = await starting;
    ready.push(server.readyAt - began);
    await server.end("SIGKILL");
  }
}

/** Node.js itself: nothing written for it can start sooner. */
async function startRuntime(): Promise<number> {
  const { server } = await Server.start(process.execPath, ["-e", "console.log()"]);
  await server.end("SIGKILL");
  return server.readyAt - server.startedAt;
}

function report(folders: readonly Folder[], runtime: readonly number[]): Figure {
  const rowOf = (name: string, times: readonly number[]) => {
    const { p50, least, most } = summarise(times);
    return [name, formatNumber(p50), `${formatNumber(least)}-${formatNumber(most)}`];
  };
  const rows = [
    ...folders.flatMap(({ name, agent, ready }) => [
      rowOf(`${name}: an ADD is answered`, agent),
      rowOf(`${name}: everything serves`, ready),
    ]),
    rowOf("Node.js alone", runtime),
  ];
  const headings = ["", "median ms", "rounds"];
  return {
    name: "start",
    title: "Start after a crash, from exec to serving",
    tables: [{ title: "milliseconds, in turn", headings, rows }],
    plots: [
      {
        name: "start",
        about: "milliseconds from exec until an ADD is answered and until everything serves",
        svg: barChart({
          title: "Start after a crash",
          groups: folders.map(({ name }) => name),
          groupTitle: "what is stored",
          valueTitle: "milliseconds",
          scale: "linear",
          limit: { value: 1_000, name: "reach: 1 s" },
          series: [
            { name: "an ADD is answered", values: folders.map(({ agent }) => median(agent)) },
            { name: "everything serves", values: folders.map(({ ready }) => median(ready)) },
            { name: "Node.js alone", values: folders.map(() => median(runtime)) },
          ],
        }),
      },
    ],
    goals: folders
      .slice(-1)
      .map(({ name, agent }) =>
        atMost(
          `exec to the first ADD answered, ${name}`,
          1,
          median(agent) / 1000,
          (s) => `${formatFixed(s, 2)} s`,
        ),
      ),
    data: { folders: folders.map(({ name, agent, ready }) => ({ name, agent, ready })), runtime },
  };
}
