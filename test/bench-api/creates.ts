// SPDX-License-Identifier: Apache-2.0
import { createClock } from "../../system/clock.ts";
import type { Figure } from "../bench/figure.ts";
import { formatFixed } from "../bench/number-format.ts";
import type { ApiSetup } from "./api-setup.ts";
import type { ContenderName } from "./contender.ts";
import { reportCreates } from "./creates-report.ts";
import type { LoadKey, LoadRound } from "./measured-load.ts";
import type { Order } from "./orders.ts";
import { openPlane, type Plane, timeDisk } from "./plane.ts";
import { WorkerProcess } from "./worker-process.ts";

const FULL = { taken: [100, 50_000], counts: [1, 16, 64], rounds: 4, warmMs: 400, ms: 2_000, writes: 200 };
const QUICK = { taken: [100, 500], counts: [1, 8], rounds: 2, warmMs: 100, ms: 400, writes: 20 };
/** Replicas of the webhook: so many copies of the records are kept up to date. */
const REPLICAS = 4;
/** Until all processes have heard when they begin. */
const LEAD_MS = 50;

type Size = typeof FULL;

/** The processes of workers of one API server, by their number. */
interface Site {
  readonly plane: Plane;
  readonly workerProcesses: ReadonlyMap<number, readonly WorkerProcess[]>;
  /**
   * Where only one set of processes could watch, it goes on: a large copy takes long to load, and costs nothing as long as nobody
   * changes what it is of. Where there are several, each watches for its own turn alone.
   */
  readonly alwaysWatched: boolean;
}

interface RoundsOfLoad extends LoadKey {
  readonly site: Site;
  readonly rounds: LoadRound[];
}

/** Addresses in a second from one pool, beside bare creates and models of what others do. */
export async function measureCreates(setup: ApiSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const sites: Site[] = [];
  for (const taken of size.taken) {
    setup.say(`an API server with ${formatFixed(taken, 0)} addresses taken`);
    const plane = await openPlane(setup, taken);
    const counts = taken === size.taken[0] ? [1, REPLICAS] : [1];
    const workerProcesses = await startWorkers(setup, plane, counts);
    sites.push({ plane, workerProcesses, alwaysWatched: counts.length === 1 });
  }
  const disk = timeDisk(setup.folder, size.writes);
  const loads = loadsOf(sites, size);
  setup.say("warming up");
  await runRound(loads, { ...size, ms: size.ms / 4 }, 0);
  for (const load of loads) load.rounds.length = 0;
  for (let round = 1; round <= size.rounds; round++) {
    setup.say(`round ${round} of ${size.rounds}`);
    await runRound(loads, size, round);
  }
  const [few = 0, many = 0] = size.taken;
  return reportCreates(loads, { counts: size.counts, few, many, replicas: REPLICAS, disk });
}

async function startWorkers(
  setup: ApiSetup,
  plane: Plane,
  counts: readonly number[],
): Promise<ReadonlyMap<number, readonly WorkerProcess[]>> {
  const access = plane.control.kubeConfig().exportConfig();
  const workerProcesses = new Map<number, WorkerProcess[]>();
  let number = 0;
  for (const count of counts) {
    const started: WorkerProcess[] = [];
    workerProcesses.set(count, started);
    for (let i = 0; i < count; i++) {
      const workerProcess = await WorkerProcess.start({
        access,
        replicas: REPLICAS / count,
        number: number++,
      });
      setup.defer(() => workerProcess.end());
      started.push(workerProcess);
    }
  }
  return workerProcesses;
}

/** In the order of a round: those that are compared stand together. */
function loadsOf([near, far]: readonly Site[], { counts }: Size): readonly RoundsOfLoad[] {
  if (near === undefined || far === undefined) throw new RangeError("there are two API servers");
  const load = (site: Site, contender: ContenderName, workers: number, processes = 1): RoundsOfLoad => {
    return { contender, workers, processes, taken: site.plane.taken, site, rounds: [] };
  };
  const most = counts.at(-1) ?? 1;
  return [
    ...counts.flatMap((workers) =>
      (["bare", "berth", "one object", "lease"] as const).map((contender) => load(near, contender, workers)),
    ),
    load(near, "quick lease", most),
    load(near, "watched", most),
    load(near, "berth", most, REPLICAS),
    load(near, "bare", most, REPLICAS),
    load(far, "bare", most),
    load(far, "watched", most),
    load(far, "berth", most),
  ];
}

/** Whoever comes first in one round comes last in the next. */
async function runRound(loads: readonly RoundsOfLoad[], size: Size, round: number): Promise<void> {
  for (const load of round % 2 === 0 ? loads : loads.toReversed()) {
    load.rounds.push(await measureOne(load, size, `r${round}`));
  }
}

async function measureOne(load: RoundsOfLoad, size: Size, round: string): Promise<LoadRound> {
  const { contender, workers, processes, site } = load;
  const workerProcesses = site.workerProcesses.get(processes) ?? [];
  const informers = contender === "berth" || contender === "watched" || site.alwaysWatched;
  await tellAll(workerProcesses, { verb: informers ? "watch" : "rest" });
  const before = site.plane.cpu();
  const share = workers / workerProcesses.length;
  const had = workerProcesses.map((workerProcess) => workerProcess.cpuMs);
  const hours = { startAt: createClock().monotonic() + LEAD_MS, warmMs: size.warmMs, ms: size.ms };
  const answers = await Promise.all(
    workerProcesses.map((workerProcess, i) => {
      const tag = `${round}-${contender.replace(" ", "-")}-${workers}-${processes}-${i}`;
      return workerProcess.tell({ verb: "work", contender, workers: share, hours, tag });
    }),
  );
  const after = site.plane.cpu();
  const used = answers.reduce((sum, { cpuMs }, i) => sum + cpuMs - (had[i] ?? 0), 0);
  const shifts = answers.flatMap(({ shift }) => shift ?? []);
  const done = Math.max(
    1,
    shifts.reduce((sum, shift) => sum + shift.done, 0),
  );
  await tellAll(workerProcesses, { verb: "clear" });
  if (!site.alwaysWatched) await tellAll(workerProcesses, { verb: "rest" });
  return {
    times: shifts.flatMap(({ times }) => times),
    again: shifts.reduce((sum, { again }) => sum + again, 0),
    ms: size.ms,
    cpu: {
      apiServer: (after.apiServer - before.apiServer) / done,
      etcd: (after.etcd - before.etcd) / done,
      workers: used / done,
    },
  };
}

async function tellAll(workerProcesses: readonly WorkerProcess[], order: Order): Promise<void> {
  await Promise.all(workerProcesses.map((workerProcess) => workerProcess.tell(order)));
}
