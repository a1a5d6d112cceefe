// SPDX-License-Identifier: Apache-2.0
import { type Comparison, compare, median } from "../bench/statistics.ts";
import type { ContenderName } from "./contender.ts";

/** Who works, how many of them, and where. */
export interface LaneKey {
  readonly contender: ContenderName;
  readonly workers: number;
  /** 4: as four replicas of a Deployment, each with its own copy of the records; 1: all four in one process. */
  readonly processes: number;
  /** Addresses that are taken from the beginning. */
  readonly taken: number;
}

/** What one round of a lane gave. */
export interface LaneRound {
  /** Addresses taken within the time that counts, and how long each took, milliseconds. */
  readonly times: readonly number[];
  readonly again: number;
  /** Length of the time that counts. */
  readonly ms: number;
  /** Processor time for each address, milliseconds. */
  readonly cpu: { readonly apiServer: number; readonly etcd: number; readonly workers: number };
}

export interface MeasuredLane extends LaneKey {
  readonly rounds: readonly LaneRound[];
}

/** Addresses in a second, by rounds. Of a round that brought none: as if it had brought one. */
export function ratesOf({ rounds }: MeasuredLane): readonly number[] {
  return rounds.map(({ times, ms }) => (Math.max(times.length, 1) * 1000) / ms);
}

export function rateOf(lane: MeasuredLane): number {
  return median(ratesOf(lane));
}

/** The rates of one lane to those of another, which were measured in the same rounds. */
export function compareRates(ours: MeasuredLane, theirs: MeasuredLane): Comparison {
  const rounds = (lane: MeasuredLane) => ratesOf(lane).map((rate) => [rate]);
  return compare(rounds(ours), rounds(theirs));
}

export function find(lanes: readonly MeasuredLane[], key: LaneKey): MeasuredLane | undefined {
  return lanes.find(
    ({ contender, workers, processes, taken }) =>
      contender === key.contender &&
      workers === key.workers &&
      processes === key.processes &&
      taken === key.taken,
  );
}
