// SPDX-License-Identifier: Apache-2.0
// A day in a cluster, with the controllers and the scheduler of Kubernetes and real agents; kubelets are played. Pods of
// every kind of workload are created, evicted, completed, failed, rolled, scaled, deleted by force and restored, their nodes rebooted, and the API server killed. At
// the end every address is held by somebody who needs it, and no pod waits. BERTH_SEED replays the choices, not the timing.
import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { SeededRandom } from "../support/random.ts";
import { isFull } from "../support/runs.ts";
import { berthctlCheck } from "./chaos-end.ts";
import { CRON_JOBS } from "./cluster-resources.ts";
import { ACTS, DayActs } from "./day-acts.ts";
import { apply, remove } from "./day-calls.ts";
import { DayCluster } from "./day-cluster.ts";
import { unrest } from "./day-end.ts";
import { workloads } from "./day-objects.ts";
import { haveControllersOrSkip } from "./kubernetes-controllers.ts";

const SEED = Number(process.env["BERTH_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
/** 1: some 40 pods at a time. */
const SCALE = Number(process.env["BERTH_DAY_SCALE"] ?? (isFull ? 12 : 1));
const SECONDS = Number(process.env["BERTH_DAY_SECONDS"] ?? (isFull ? 600 : 6));
/** It is given up when nothing has changed for so long; controllers that were refused again and again wait for minutes. */
const STILL_MS = 600_000;
/**
 * Before that a person looks. An owner that is deleted and made again while the API server is away is the same to the garbage collector of
 * Kubernetes, which goes by names there and keeps its pods until it is started again.
 */
const LOOKED_AT_MS = 120_000;
/** Kubernetes itself may be longer about it than anybody waits. */
const LONGEST_MS = 3_600_000;

/** Where the last two may not be built yet (`make controllers`), a short day is left out. */
const PARTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;

if (haveControllersOrSkip(PARTS)) {
  describe(`a day in a cluster (BERTH_SEED=${SEED} BERTH_DAY_SCALE=${SCALE} BERTH_DAY_SECONDS=${SECONDS})`, () => {
    const random = new SeededRandom(SEED);
    const applied = workloads(SCALE);
    let cluster: DayCluster;
    let acts: DayActs;

    before(async () => {
      cluster = await DayCluster.open();
      acts = new DayActs({ cluster, random, scale: SCALE, applied, short: SECONDS < 60 });
    });
    after(async () => {
      await cluster?.close();
    });

    it("ends with every address held by somebody who needs it, and no pod that waits", {
      timeout: LONGEST_MS,
    }, async (test) => {
      const began = performance.now();
      await morning();
      await pastNoon();
      await evening();
      const calm = performance.now();
      await untilCalm(test);
      const wrongs = cluster.expected.wrongs.filter(({ pod }) => !cluster.expected.excused.has(pod));
      assert.deepEqual(
        wrongs.map(({ pod, what }) => `${pod} ${what}`),
        [],
      );
      assert.match(await berthctlCheck(cluster.plane), /^0 /);
      const seconds = [calm - began, performance.now() - calm].map((ms) => Math.round(ms / 1000));
      const sandboxes = cluster.kubelets.reduce((sum, { made }) => sum + made, 0);
      test.diagnostic(JSON.stringify({ ...Object.fromEntries(acts.tally), seconds, sandboxes }));
    });

    async function morning(): Promise<void> {
      for (const workload of applied) await apply(cluster.admin, workload);
      await acts.renew();
    }

    /** Whatever the machine has time for, and everything once at least. */
    async function pastNoon(): Promise<void> {
      for (const until = Date.now() + SECONDS * 1_000; Date.now() < until; ) {
        await acts.next();
        await pause(random.fraction() * 400);
      }
      for (const act of ACTS.filter((one) => !acts.tally.has(one))) await acts.happen(act);
    }

    /** What people want is as they said first, and they look after their pods until all run. */
    async function evening(): Promise<void> {
      for (const workload of applied)
        if (workload.replicas !== undefined) await acts.scale(workload, workload.replicas);
      await remove(cluster.admin, CRON_JOBS, "minutely");
    }

    async function untilCalm(test: TestContext): Promise<void> {
      let last = "";
      let isLookedAt = false;
      for (let changed = Date.now(); ; ) {
        await acts.renew();
        const now = (await unrest(cluster, { applied, scale: SCALE })).join("\n");
        if (now === "") return;
        if (now !== last) {
          changed = Date.now();
          test.diagnostic(`waits for: ${now.split("\n").slice(0, 5).join("; ")}`);
        }
        last = now;
        if (!isLookedAt && Date.now() - changed > LOOKED_AT_MS) {
          isLookedAt = true;
          test.diagnostic("nothing changes: the controllers of Kubernetes are started again");
          await cluster.restartControllers();
        }
        if (Date.now() - changed > STILL_MS) throw new Error(`it does not become calm:\n${now}`);
        await pause(1_000);
      }
    }
  });
}
