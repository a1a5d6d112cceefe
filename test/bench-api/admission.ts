// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import type { Figure } from "../bench/figure.ts";
import { openLoop } from "../bench/load.ts";
import { addNoopWebhook, admissionTimes, NOOP_NAMESPACE, openAdmissionPlane } from "./admission-plane.ts";
import { type AdmissionLoad, type PodKind, reportAdmission } from "./admission-report.ts";
import type { ApiSetup } from "./api-setup.ts";
import { NAMESPACE, POOL } from "./contender.ts";
import { between } from "./histogram.ts";
import type { Plane } from "./plane.ts";
import { PodCreator, PodRefused } from "./pod-creator.ts";

const FULL = {
  rates: [
    { perSecond: 100, ms: 4_000 },
    { perSecond: 400, ms: 2_500 },
  ],
  rounds: 3,
  settleMs: 1_000,
};
const QUICK = {
  rates: [
    { perSecond: 40, ms: 500 },
    { perSecond: 80, ms: 500 },
  ],
  rounds: 2,
  settleMs: 200,
};
/** Pods that are being created at once, at most. */
const LINES = 48;
const TAKEN = 100;
const STICKY = { "berth.dev/pools": POOL, "berth.dev/sticky": "true" };

type Rate = (typeof FULL)["rates"][number];
type RoundsOfLoad = AdmissionLoad & { readonly rounds: AdmissionLoad["rounds"][number][] };

/** How long the API server waits for the webhook when pods are created, beside a webhook that does nothing. */
export async function measureAdmission(setup: ApiSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const plane = await openAdmissionPlane(setup, TAKEN);
  await addNoopWebhook(setup, plane);
  const loads = size.rates.map(({ perSecond }) => ({
    noop: loadOf("noop", perSecond),
    new: loadOf("new", perSecond),
    again: loadOf("again", perSecond),
  }));
  for (let round = -1; round < size.rounds; round++) {
    setup.say(round < 0 ? "warming up" : `round ${round + 1} of ${size.rounds}`);
    const rates = round < 0 ? size.rates.slice(0, 1) : size.rates;
    for (const [i, rate] of rates.entries()) {
      for (const kind of ["noop", "new", "again"] as const) {
        const measured = await measureOne(plane, kind, { rate, tag: `r${round + 1}-${rate.perSecond}` });
        if (round >= 0) loads[i]?.[kind].rounds.push(measured);
        await pause(size.settleMs);
      }
    }
  }
  return reportAdmission(loads.flatMap((load) => [load.noop, load.new, load.again]));
}

function loadOf(kind: PodKind, perSecond: number): RoundsOfLoad {
  return { kind, perSecond, rounds: [] };
}

/** Pods at that rate, which are gone again afterwards; those that come again have the names of those that were new. */
async function measureOne(plane: Plane, kind: PodKind, at: { rate: Rate; tag: string }) {
  const creator = new PodCreator(plane.connection, kind === "noop" ? NOOP_NAMESPACE : NAMESPACE);
  const annotations = kind === "noop" ? {} : STICKY;
  const names: string[] = [];
  let refused = 0;
  const read = () => admissionTimes(plane.connection, kind === "noop" ? "noop" : "berth");
  const ask = async () => {
    const name = `${at.tag}-${names.length}`;
    names.push(name);
    await creator.make(name, annotations).catch((error: unknown) => {
      if (!(error instanceof PodRefused)) throw error;
      refused++;
    });
  };
  const before = await read();
  const began = performance.now();
  const times = await openLoop(ask, LINES, at.rate);
  const seconds = (performance.now() - began) / 1000;
  const after = await read();
  const waits = between(before.mutating, after.mutating);
  const checks = between(before.validating, after.validating);
  await creator.remove(names);
  return { waits, checks, times, refused, reached: (names.length - refused) / seconds };
}
