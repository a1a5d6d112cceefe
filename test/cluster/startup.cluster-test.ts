// SPDX-License-Identifier: Apache-2.0
// What Berth costs a pod's start, beside host-local in the same run.
import assert from "node:assert/strict";
import { cpus } from "node:os";
import { after, before, describe, it } from "node:test";
import { configureNode, type Ipam } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { type Histogram, histogramOf, quantileOf, since } from "./histogram.ts";
import { Lab } from "./lab.ts";
import { statefulSet } from "./objects.ts";
import { PodWatch, quantile, type Start, startAll, stopAll } from "./startup.ts";
import { addTimes, endStopwatch, startStopwatch } from "./stopwatch.ts";

const PODS = Number(process.env["BERTH_PODS"] ?? 200);
/** Each side is first and second as often. */
const ROUNDS: readonly Ipam[] = ["host-local", "berth", "berth", "host-local"];
const WEBHOOK = "apiserver_admission_webhook_admission_duration_seconds";

let lab: Lab;
before(async () => {
  lab = await Lab.open("startup");
});
after(async () => await lab?.close());

interface Round {
  readonly first: Start;
  readonly second: Start;
  /** Milliseconds of each ADD of the IPAM plugin. */
  readonly adds: readonly number[];
  readonly reviews: Histogram;
  /** Milliseconds of this machine's processors for each start and end of a pod: it has nothing else to do. */
  readonly processor: number;
}

/** Milliseconds that this machine's processors have worked. */
function worked(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}

async function reviews(): Promise<Histogram> {
  const text = await lab.must(["get", "--raw", "/metrics"]);
  return histogramOf(text, WEBHOOK, ['name="pods.berth.dev"', 'type="admit"']);
}

/** All pods are started, ended, and started again. */
async function round(ipam: Ipam): Promise<Round> {
  for (const node of lab.cluster.nodes) await configureNode(node, ipam);
  const annotations = { "berth.dev/sticky": "true", "berth.dev/pools": "many" };
  const set = `of-${ipam}`;
  const object = statefulSet(set, { replicas: 0, ...(ipam === "berth" ? { annotations } : {}) });
  await lab.apply([atOnce(object)]);
  await addTimes(lab.cluster);
  const [before, busy] = [await reviews(), worked()];
  const watch = new PodWatch(lab, `app=${set}`);
  try {
    const first = await startAll(lab, watch, set, PODS);
    await stopAll(lab, watch, set);
    const second = await startAll(lab, watch, set, PODS);
    await stopAll(lab, watch, set);
    const adds = await addTimes(lab.cluster);
    const processor = (worked() - busy) / (2 * PODS);
    return { first, second, adds, reviews: since(before, await reviews()), processor };
  } finally {
    watch.close();
    await lab.must(["delete", `statefulset/${set}`, "--timeout=300s"]);
  }
}

function atOnce(set: ReturnType<typeof statefulSet>) {
  return { ...set, spec: { ...(set["spec"] as object), podManagementPolicy: "Parallel" } };
}

/** Milliseconds, to a hundredth. */
const ms = (value: number) => Math.round(value * 100) / 100;

function summary(ipam: Ipam, rounds: readonly Round[]) {
  const starts = rounds.flatMap(({ first, second }) => [first, second]);
  const pods = starts.flatMap((start) => start.pods);
  const adds = rounds.flatMap((one) => one.adds);
  const total = starts.reduce((sum, start) => sum + start.total, 0);
  return {
    ipam,
    total: ms(total),
    first: rounds.map(({ first }) => ms(first.total)),
    again: rounds.map(({ second }) => ms(second.total)),
    pod: { p50: ms(quantile(pods, 0.5)), p99: ms(quantile(pods, 0.99)) },
    add: { p50: ms(quantile(adds, 0.5)), p99: ms(quantile(adds, 0.99)), count: adds.length },
    processor: rounds.map(({ processor }) => ms(processor)),
  };
}

describe("startup", () => {
  it(
    "E0551 many pods start, and start again, with Berth as with host-local",
    caseOptions({ machines: true, slow: true, timeoutMs: 3_600_000 }),
    async () => {
      const times = new Times("E0551");
      const rounds: { readonly ipam: Ipam; readonly round: Round }[] = [];
      await startStopwatch(lab.cluster);
      try {
        for (const ipam of ROUNDS) {
          const one = await round(ipam);
          rounds.push({ ipam, round: one });
          times.step(`round ${rounds.length}, ${ipam}`);
          const took = `${ms(one.first.total)} ms, again ${ms(one.second.total)} ms`;
          console.log(`${ipam}: ${took}, ${ms(one.processor)} ms of processor a pod`);
        }
      } finally {
        await endStopwatch(lab.cluster);
        for (const node of lab.cluster.nodes) await configureNode(node, "berth");
      }
      const of = (ipam: Ipam) => rounds.filter((one) => one.ipam === ipam).map((one) => one.round);
      const [berth, hostLocal] = [summary("berth", of("berth")), summary("host-local", of("host-local"))];
      const [last] = of("berth").slice(-1);
      assert.ok(last !== undefined);
      const review = { p50: ms(quantileOf(last.reviews, 0.5)), p99: ms(quantileOf(last.reviews, 0.99)) };
      const share = (review.p50 + berth.add.p50) / berth.pod.p50;
      const ratio = berth.total / hostLocal.total;
      times.end({ pods: PODS, berth, hostLocal, review, share: ms(share * 100) / 100, ratio: ms(ratio) });
      // what took so long to measure is told before anything can be wrong with it
      for (const { first, second } of of("berth")) {
        assert.deepEqual(second.addresses, first.addresses, "every pod has its address again");
        assert.equal(new Set(first.addresses.values()).size, PODS);
      }
      assert.ok(ratio < 2, `starts take ${ratio.toFixed(2)} times as long as with host-local`);
      await lab.check();
    },
  );
});
