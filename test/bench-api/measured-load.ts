// SPDX-License-Identifier: Apache-2.0
import { type Comparison, compare, median } from "../bench/statistics.ts";
import type { ContenderName } from "./contender.ts";

/** Who works, how many of them, and where. */
export interface LoadKey {
  readonly contender: ContenderName;
  readonly workers: number;
  /** 4: as four replicas of a Deployment, each with its own copy of the records; 1: all four in one process. */
  readonly processes: number;
  /** Addresses that are taken from the beginning. */
  readonly taken: number;
}

/** What one round of a load gave. */
export interface LoadRound {
  /** Addresses taken within the time that counts, and how long each took, milliseconds. */
  readonly times: readonly number[];
  readonly again: number;
  /** Length of the time that counts. */
  readonly ms: number;
  /** Processor time for each address, milliseconds. */
  readonly cpu: { readonly apiServer: number; readonly etcd: number; readonly workers: number };
}

export interface MeasuredLoad extends LoadKey {
  readonly rounds: readonly LoadRound[];
}

/** Addresses in a second, by rounds. Of a round that brought none: as if it had brought one. */
export function ratesOf({ rounds }: MeasuredLoad): readonly number[] {
  return rounds.map(({ times, ms }) => (Math.max(times.length, 1) * 1000) / ms);
}

export function rateOf(load: MeasuredLoad): number {
  return median(ratesOf(load));
}

/** The rates of one load to those of another, which were measured in the same rounds. */
export function compareRates(ours: MeasuredLoad, theirs: MeasuredLoad): Comparison {
  const rounds = (load: MeasuredLoad) => ratesOf(load).map((rate) => [rate]);
  return compare(rounds(ours), rounds(theirs));
}

export function find(loads: readonly MeasuredLoad[], key: LoadKey): MeasuredLoad | undefined {
  return loads.find(
    ({ contender, workers, processes, taken }) =>
      contender === key.contender &&
      workers === key.workers &&
      processes === key.processes &&
      taken === key.taken,
  );
}
