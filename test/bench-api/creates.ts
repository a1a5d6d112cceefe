// SPDX-License-Identifier: Apache-2.0
import { createClock } from "../../system/clock.ts";
import type { Figure } from "../bench/figure.ts";
import { formatFixed } from "../bench/number-format.ts";
import type { ApiSetup } from "./api-setup.ts";
import type { ContenderName } from "./contender.ts";
import { reportCreates } from "./creates-report.ts";
import type { LaneKey, LaneRound } from "./lane.ts";
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
  readonly crews: ReadonlyMap<number, readonly WorkerProcess[]>;
  /**
   * Where only one crew could watch, it goes on: a large copy takes long to load, and costs nothing as long as nobody
   * changes what it is of. Where there are several, each watches for its own turn alone.
   */
  readonly alwaysWatched: boolean;
}

interface Lane extends LaneKey {
  readonly site: Site;
  readonly rounds: LaneRound[];
}

/** Addresses in a second from one pool, beside bare creates and models of what others do. */
export async function measureCreates(setup: ApiSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const sites: Site[] = [];
  for (const taken of size.taken) {
    setup.say(`an API server with ${formatFixed(taken, 0)} addresses taken`);
    const plane = await openPlane(setup, taken);
    const counts = taken === size.taken[0] ? [1, REPLICAS] : [1];
    const crews = await startCrews(setup, plane, counts);
    sites.push({ plane, crews, alwaysWatched: counts.length === 1 });
  }
  const disk = timeDisk(setup.folder, size.writes);
  const lanes = lanesOf(sites, size);
  setup.say("warming up");
  await runRound(lanes, { ...size, ms: size.ms / 4 }, 0);
  for (const lane of lanes) lane.rounds.length = 0;
  for (let round = 1; round <= size.rounds; round++) {
    setup.say(`round ${round} of ${size.rounds}`);
    await runRound(lanes, size, round);
  }
  const [few = 0, many = 0] = size.taken;
  return reportCreates(lanes, { counts: size.counts, few, many, replicas: REPLICAS, disk });
}

async function startCrews(
  setup: ApiSetup,
  plane: Plane,
  counts: readonly number[],
): Promise<ReadonlyMap<number, readonly WorkerProcess[]>> {
  const access = plane.control.kubeConfig().exportConfig();
  const crews = new Map<number, WorkerProcess[]>();
  let number = 0;
  for (const count of counts) {
    const started: WorkerProcess[] = [];
    crews.set(count, started);
    for (let i = 0; i < count; i++) {
      const crew = await WorkerProcess.start({ access, replicas: REPLICAS / count, crew: number++ });
      setup.defer(() => crew.end());
      started.push(crew);
    }
  }
  return crews;
}

/** In the order of a round: those that are compared stand together. */
function lanesOf([near, far]: readonly Site[], { counts }: Size): readonly Lane[] {
  if (near === undefined || far === undefined) throw new RangeError("there are two API servers");
  const lane = (site: Site, contender: ContenderName, workers: number, processes = 1): Lane => {
    return { contender, workers, processes, taken: site.plane.taken, site, rounds: [] };
  };
  const most = counts.at(-1) ?? 1;
  return [
    ...counts.flatMap((workers) =>
      (["bare", "berth", "one object", "lease"] as const).map((contender) => lane(near, contender, workers)),
    ),
    lane(near, "quick lease", most),
    lane(near, "watched", most),
    lane(near, "berth", most, REPLICAS),
    lane(near, "bare", most, REPLICAS),
    lane(far, "bare", most),
    lane(far, "watched", most),
    lane(far, "berth", most),
  ];
}

/** Whoever comes first in one round comes last in the next. */
async function runRound(lanes: readonly Lane[], size: Size, round: number): Promise<void> {
  for (const lane of round % 2 === 0 ? lanes : lanes.toReversed()) {
    lane.rounds.push(await measureOne(lane, size, `r${round}`));
  }
}

async function measureOne(lane: Lane, size: Size, round: string): Promise<LaneRound> {
  const { contender, workers, processes, site } = lane;
  const crews = site.crews.get(processes) ?? [];
  const informers = contender === "berth" || contender === "watched" || site.alwaysWatched;
  await tellAll(crews, { verb: informers ? "watch" : "rest" });
  const before = site.plane.cpu();
  const share = workers / crews.length;
  const had = crews.map((crew) => crew.cpuMs);
  const hours = { startAt: createClock().monotonic() + LEAD_MS, warmMs: size.warmMs, ms: size.ms };
  const answers = await Promise.all(
    crews.map((crew, i) => {
      const tag = `${round}-${contender.replace(" ", "-")}-${workers}-${processes}-${i}`;
      return crew.tell({ verb: "work", contender, workers: share, hours, tag });
    }),
  );
  const after = site.plane.cpu();
  const used = answers.reduce((sum, { cpuMs }, i) => sum + cpuMs - (had[i] ?? 0), 0);
  const shifts = answers.flatMap(({ shift }) => shift ?? []);
  const done = Math.max(
    1,
    shifts.reduce((sum, shift) => sum + shift.done, 0),
  );
  await tellAll(crews, { verb: "clear" });
  if (!site.alwaysWatched) await tellAll(crews, { verb: "rest" });
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

async function tellAll(crews: readonly WorkerProcess[], order: Order): Promise<void> {
  await Promise.all(crews.map((crew) => crew.tell(order)));
}
