// SPDX-License-Identifier: Apache-2.0
// What an agent takes of a node, by how its program is made and how Node.js is told to run it: each time the same agent,
// which takes itself for a pod, serves 100 pods of its node out of blocks, and is looked at.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "../../kube/api/connection.ts";
import { NODES } from "../../kube/api/resource.ts";
import { installDefinitions, makeNamespaces } from "../api/crds.ts";
import { type OwnControlPlane, startControlPlane } from "../api/harness.ts";
import { WEBHOOK_USER } from "../api/plane.ts";
import { make } from "../api/replica-objects.ts";
import { PodProcess, type Program } from "../api/scale-process.ts";
import type { Figure } from "../bench/figure.ts";
import { residentOf } from "../bench/running-stack.ts";
import { Caller, type Said } from "../cni/caller.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { chartProgram } from "../support/chart-program.ts";
import { processorTimeOf } from "../support/processor.ts";
import { type AgentLook, reportAgentMemory } from "./agent-memory-report.ts";
import { agentPrograms, type Form } from "./agent-programs.ts";
import type { ApiSetup } from "./api-setup.ts";
import { fillNode, NODE, SHOP } from "./filled-node.ts";

const FULL = { rounds: 5, pods: 100, settleMs: 1_500 };
const QUICK = { rounds: 1, pods: 10, settleMs: 200 };
const STARTED_MS = 60_000;
/** Between two looks whether it is ready. */
const LOOK_MS = 5;

export async function measureAgentMemory(setup: ApiSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  await buildPlugin();
  const forms = await agentPrograms(chartProgram("agent"), (remove) => setup.defer(remove));
  const plane = await startControlPlane({ users: [WEBHOOK_USER], authorization: "AlwaysAllow" });
  setup.defer(() => plane.close());
  const sandboxes = await fill(plane.connect(), size.pods);
  const looks = new Map<string, AgentLook[]>(); // name of a form -> a look for each round
  for (let round = 1; round <= size.rounds; round++) {
    setup.say(`round ${round} of ${size.rounds}`);
    for (const form of forms) {
      const looked = await look({ form, plane, folder: setup.room(), sandboxes, settleMs: size.settleMs });
      looks.set(form.name, [...(looks.get(form.name) ?? []), looked]);
    }
  }
  return reportAgentMemory(looks);
}

/** A node with four blocks, and pods on it that ask for nothing. */
async function fill(api: Connection, count: number): Promise<readonly Said[]> {
  await installDefinitions(api);
  await makeNamespaces(api, [SHOP]);
  await make(api, NODES, { name: NODE }, {});
  return await fillNode(api, count);
}

async function look(of: {
  form: Form;
  plane: OwnControlPlane;
  folder: string;
  sandboxes: readonly Said[];
  settleMs: number;
}): Promise<AgentLook> {
  const { form, plane, folder, sandboxes, settleMs } = of;
  const socket = join(folder, "run/agent.sock");
  mkdirSync(join(folder, "run"));
  const env = {
    ...{ BERTH_NODE_NAME: NODE, BERTH_SOCKET: socket, BERTH_DATA: join(folder, "data"), BERTH_PORT: "0" },
    FLOOR_DATABASE: join(folder, "floor.db"),
  };
  const program: Program = form;
  const began = performance.now();
  const agent = PodProcess.start({ plane, user: WEBHOOK_USER.name, folder, env, program });
  try {
    await untilReady(agent);
    const [readyMs, startMs] = [performance.now() - began, processorTimeOf(agent.pid)];
    await pause(settleMs);
    const atRest = residentOf(agent.pid);
    if (form.isFloor) return { readyMs, startMs, atRest };
    const runtime = new Caller(socket);
    runtime.ipam = {};
    for (const one of sandboxes) await runtime.add(one);
    for (const one of sandboxes) await runtime.del(one);
    const podMs = (processorTimeOf(agent.pid) - startMs) / sandboxes.length;
    await pause(settleMs);
    return { readyMs, startMs, atRest, podMs, afterWork: residentOf(agent.pid) };
  } finally {
    await agent.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Looks so often that the time is that of the agent and not of the look. */
async function untilReady(agent: PodProcess): Promise<void> {
  for (const until = performance.now() + STARTED_MS; performance.now() < until; await pause(LOOK_MS)) {
    const port = /"port":(\d+).*"agent serves"/.exec(agent.log)?.[1];
    if (port === undefined) continue;
    const { status } = await fetch(`http://127.0.0.1:${port}/readyz`);
    if (status === 200) return;
  }
  throw new Error(`the agent was not ready within ${STARTED_MS} ms\n${agent.log}`);
}
