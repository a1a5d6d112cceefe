// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { pod, review } from "../support/objects.ts";
import { barChart } from "./chart.ts";
import { drive } from "./driver.ts";
import { atMost, type Figure } from "./figure.ts";
import { closedLoop } from "./load.ts";
import { formatFixed } from "./number-format.ts";
import { ReviewLine, reviewRequest } from "./review-line.ts";
import { type RunningStack, Server, startStack } from "./running-stack.ts";
import { fixedSandbox, Network } from "./sandboxes.ts";
import { type FixedPod, StackData } from "./stack-data.ts";
import type { StackSetup } from "./stack-setup.ts";

const NOOP = fileURLToPath(new URL("./noop-webhook.ts", import.meta.url));
const FULL = { claims: [200, 100_000], settleMs: 12_000, workMs: 4_000, adds: 200 };
const QUICK = { claims: [20, 5_000], settleMs: 1_000, workMs: 500, adds: 20 };
const MIB = 2 ** 20;

interface Footprint {
  readonly name: string;
  /** Bytes. */
  readonly rested: ReturnType<Server["memory"]>;
  readonly worked: ReturnType<Server["memory"]>;
}

/** Resident memory of each process, at rest and after work. */
export async function measureMemory(setup: StackSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const noop = await Server.start(process.execPath, [NOOP, setup.room()]);
  setup.defer(() => noop.server.end("SIGKILL"));
  const stacks: { name: string; stack: RunningStack; work: () => Promise<void> }[] = [];
  for (const claims of size.claims) stacks.push(await prepare(setup, claims, size));
  setup.say("at rest");
  await pause(size.settleMs);
  const rested = stacks.map(({ stack }) => stack.server.memory());
  setup.say("at work");
  for (const { work } of stacks) await work();
  const footprints = stacks.map(({ name, stack }, i): Footprint => {
    const worked = stack.server.memory();
    return { name, rested: rested[i] ?? worked, worked };
  });
  const idle = noop.server.memory();
  return report([...footprints, { name: "no-op webhook", rested: idle, worked: idle }]);
}

async function prepare(setup: StackSetup, claims: number, size: typeof FULL) {
  const folder = setup.room();
  const network = new Network(folder);
  const dataDir = join(folder, "data");
  let pods: readonly FixedPod[] = [];
  await StackData.write(dataDir, async (auditInput) => {
    await auditInput.reserve(claims - size.adds);
    pods = await auditInput.reserve(size.adds);
    await auditInput.admit(pods);
  });
  const stack = await startStack(setup, dataDir);
  const line = await ReviewLine.open(stack.webhook);
  setup.defer(async () => line.close());
  const request = reviewRequest({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: review(pod("web-0")),
  });
  const work = async () => {
    await closedLoop(() => line.ask(request), 1, size.workMs);
    const adds = pods.map((one) => network.fixed("ADD", "ADD", fixedSandbox(one, one.name), stack.socket));
    await drive(setup.driver, adds);
  };
  return { name: `stack, ${formatFixed(claims, 0)} claims and reservations`, stack, work };
}

function report(footprints: readonly Footprint[]): Figure {
  const mib = (bytes: number) => formatFixed(bytes / MIB, 0);
  const rows = footprints.map(({ name, rested, worked }) => [
    name,
    mib(rested.resident),
    mib(rested.anonymous),
    mib(worked.resident),
    mib(worked.anonymous),
  ]);
  const headings = ["", "RSS at rest", "anonymous", "RSS after work", "anonymous"];
  const [full] = footprints.slice(-2);
  return {
    name: "memory",
    title: "Resident memory",
    tables: [{ title: "MiB, from /proc/PID/status", headings, rows }],
    plots: [
      {
        name: "memory",
        about: "resident memory of each process, at rest and after work",
        svg: barChart({
          title: "Resident memory",
          groups: footprints.map(({ name }) => name),
          groupTitle: "process",
          valueTitle: "MiB",
          scale: "linear",
          limit: { value: 256, name: "reach: 256 MiB" },
          series: [
            { name: "at rest", values: footprints.map(({ rested }) => rested.resident / MIB) },
            { name: "after work", values: footprints.map(({ worked }) => worked.resident / MIB) },
          ],
        }),
      },
    ],
    goals:
      full === undefined
        ? []
        : [
            atMost(
              `RSS after work, ${full.name}`,
              256,
              full.worked.resident / MIB,
              (size) => `${formatFixed(size, 0)} MiB`,
            ),
          ],
    data: footprints,
  };
}
