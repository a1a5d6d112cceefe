// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Json, pod, review, statefulPod } from "../support/objects.ts";
import { bigPod } from "./big-pod.ts";
import { barChart } from "./chart.ts";
import { atMost, type Figure } from "./figure.ts";
import { closedLoop, openLoop, type Send } from "./load.ts";
import { formatFixed, formatNumber } from "./number-format.ts";
import { ReviewLine, reviewRequest } from "./review-line.ts";
import { type Endpoint, Server, startStack } from "./running-stack.ts";
import { POOL, StackData } from "./stack-data.ts";
import type { StackSetup } from "./stack-setup.ts";
import { median, quantile, summarise } from "./statistics.ts";

const NOOP = fileURLToPath(new URL("./noop-webhook.ts", import.meta.url));
const FULL = { claims: 100_000, rounds: 4, closedMs: 1_000, openMs: 2_000 };
const QUICK = { claims: 5_000, rounds: 2, closedMs: 300, openMs: 500 };
/** Connections: the API server has few, and they carry one request each at a time. */
const LINES = 8;
const PER_SECOND = 200;
/** The pods of a node, which are there in both stacks. */
const ATTACHED = 110;
const ANNOTATIONS = { "berth.dev/pools": POOL.name };

type Kind = "new" | "dry" | "again" | "unmatched";
const KINDS: readonly Kind[] = ["new", "dry", "again", "unmatched"];
const KIND_NAMES: Readonly<Record<Kind, string>> = {
  new: "a new pod",
  dry: "a new pod, dry run",
  again: "a pod admitted before",
  unmatched: "a pod that asks for nothing",
};

/** One kind of question to one server, and what came of it round by round. */
interface Lane {
  readonly name: string;
  readonly kind: Kind | undefined;
  /** Of the stack; undefined for the no-op. */
  readonly claims: number | undefined;
  readonly send: Send;
  readonly rates: number[];
  readonly times: (readonly number[])[];
}

/** What admission adds to the creation of a pod, beside a webhook that does nothing. */
export async function measureReviews(setup: StackSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const lanes = [await noopLane(setup)];
  for (const claims of [0, size.claims]) {
    setup.say(`a stack with ${formatFixed(ATTACHED + claims, 0)} claims`);
    lanes.push(...(await stackLanes(setup, claims)));
  }
  for (let round = -1; round < size.rounds; round++) {
    setup.say(round < 0 ? "warming up" : `round ${round + 1} of ${size.rounds}`);
    for (const { send, rates } of lanes) {
      const { rate } = await closedLoop(send, LINES, size.closedMs);
      if (round >= 0) rates.push(rate);
    }
    for (const { send, times } of lanes) {
      const found = await openLoop(send, LINES, { perSecond: PER_SECOND, ms: size.openMs });
      if (round >= 0) times.push(found);
    }
  }
  return report(lanes, ATTACHED + size.claims);
}

async function noopLane(setup: StackSetup): Promise<Lane> {
  const folder = setup.room();
  const { server, line } = await Server.start(process.execPath, [NOOP, folder]);
  setup.defer(() => server.end("SIGKILL"));
  const endpoint = { port: Number(line), ca: await readFile(join(folder, "ca.crt"), "utf8") };
  const request = reviewRequest(asReview(bigPod(pod("web-0"))));
  const send = await senderOf(setup, endpoint, () => request);
  return { name: "no-op webhook", kind: undefined, claims: undefined, send, rates: [], times: [] };
}

async function stackLanes(setup: StackSetup, claims: number): Promise<readonly Lane[]> {
  const dataDir = setup.room();
  const again: Buffer[] = [];
  await StackData.write(dataDir, async (auditInput) => {
    const pods = await auditInput.reserve(ATTACHED);
    await auditInput.admit(pods);
    await auditInput.attach(pods, join(dataDir, "stack.json"));
    await auditInput.reserve(claims);
    for (const { namespace, name } of pods) {
      const [set = "", ordinal = ""] = name.split(/-(?=\d+$)/);
      const made = statefulPod(set, Number(ordinal), { namespace, annotations: ANNOTATIONS });
      again.push(reviewRequest(asReview(bigPod(made))));
    }
  });
  const { webhook } = await startStack(setup, dataDir);
  const unmatched = reviewRequest(asReview(bigPod(pod("web-0"))));
  const requests: Readonly<Record<Kind, () => Buffer>> = {
    new: newPods(false),
    dry: newPods(true),
    again: inTurn(again),
    unmatched: () => unmatched,
  };
  const lanes = KINDS.map(async (kind): Promise<Lane> => {
    const send = await senderOf(setup, webhook, requests[kind]);
    const name = `${KIND_NAMES[kind]}, ${formatFixed(ATTACHED + claims, 0)} claims`;
    return { name, kind, claims: ATTACHED + claims, send, rates: [], times: [] };
  });
  return await Promise.all(lanes);
}

async function senderOf(setup: StackSetup, endpoint: Endpoint, next: () => Buffer): Promise<Send> {
  const lines = await Promise.all(Array.from({ length: LINES }, () => ReviewLine.open(endpoint)));
  setup.defer(async () => {
    for (const line of lines) line.close();
  });
  return async (i) => await lines[i]?.ask(next());
}

/** Another name each time, in bytes that are made once. In a dry run all is decided and nothing written. */
function newPods(dryRun: boolean): () => Buffer {
  const prefix = dryRun ? "dry" : "pod";
  const placeholder = `${prefix}-000000000`;
  const made = bigPod(pod(placeholder, { annotations: ANNOTATIONS }));
  const services = reviewRequest(asReview(made, dryRun)).toString().split(placeholder);
  let n = 0;
  return () => {
    n++;
    return Buffer.from(services.join(`${prefix}-${String(n).padStart(9, "0")}`));
  };
}

function inTurn(requests: readonly Buffer[]): () => Buffer {
  let n = 0;
  return () => {
    n = (n + 1) % requests.length;
    return requests[n] ?? Buffer.alloc(0);
  };
}

function asReview(object: Json, dryRun = false): object {
  const request = review(object, "CREATE", { dryRun });
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
}

function report(lanes: readonly Lane[], many: number): Figure {
  const [noop] = lanes;
  const noopRate = median(noop?.rates ?? []);
  const rows = lanes.map(({ name, rates, times }) => {
    const { p50, p99 } = summarise(times.flat());
    const rate = median(rates);
    return [
      name,
      formatNumber(rate),
      formatFixed(rate / noopRate, 2),
      formatNumber(p50),
      formatNumber(p99),
      formatNumber(overNoop(times, noop?.times ?? [])),
    ];
  });
  const headings = ["", "reviews/s", "to no-op", "p50 ms", "p99 ms", "p99 over no-op"];
  const title = `closed loop on ${LINES} connections, then ${PER_SECOND} reviews a second whatever happens (p50, p99)`;
  return {
    name: "reviews",
    title: "Admission reviews of pods over TLS",
    tables: [{ title, headings, rows }],
    plots: [plotOf(lanes)],
    goals: lanes
      .filter(({ claims }) => claims === many)
      .map(({ name, times }) =>
        atMost(
          `review p99 over a no-op webhook, ${name}`,
          5,
          overNoop(times, noop?.times ?? []),
          (ms) => `${formatFixed(ms, 2)} ms`,
        ),
      ),
    data: lanes.map(({ name, rates, times }) => ({ name, rates, times: summarise(times.flat()) })),
  };
}

/** By how much the 99th percentile of a round is above that of the no-op in the same round; the median of the rounds. */
function overNoop(times: Lane["times"], noop: Lane["times"]): number {
  return median(times.map((round, i) => quantile(round, 0.99) - quantile(noop[i] ?? [], 0.99)));
}

function plotOf(lanes: readonly Lane[]) {
  const stacks = [...new Set(lanes.flatMap(({ claims }) => claims ?? []))];
  const p99Of = (lane: Lane | undefined) =>
    lane === undefined ? undefined : summarise(lane.times.flat()).p99;
  const svg = barChart({
    title: `99th percentile of a review, ${PER_SECOND} in a second`,
    groups: KINDS.map((kind) => KIND_NAMES[kind]),
    groupTitle: "what is reviewed",
    valueTitle: "milliseconds",
    scale: "linear",
    series: [
      { name: "no-op webhook", values: KINDS.map(() => p99Of(lanes[0])) },
      ...stacks.map((claims) => ({
        name: `berth, ${formatFixed(claims, 0)} claims`,
        values: KINDS.map((kind) =>
          p99Of(lanes.find((lane) => lane.kind === kind && lane.claims === claims)),
        ),
      })),
    ],
  });
  return {
    name: "reviews",
    about: "99th percentile of reviews beside those of a webhook that does nothing",
    svg,
  };
}
