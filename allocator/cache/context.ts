// SPDX-License-Identifier: Apache-2.0
import type { KeyedMutex } from "../base/keyed-mutex.ts";
import type { Clock, Logger, Random } from "../base/ports.ts";
import type { Dialects } from "../model/dialect.ts";
import type { Store, Stored } from "../store/store.ts";
import type { RecordReader } from "./reader.ts";
import type { Spread } from "./spread.ts";

/** What every act on the records needs: the store, what is cached of it, a clock and randomness. */
export interface Context {
  readonly store: Store;
  readonly view: RecordReader;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Which requests in other systems' words are for Berth; absent: `all` of them. */
  readonly dialects?: Dialects;
  /** By claim key: racing requests for one identity wait for each other instead of undoing each other. */
  readonly serial: KeyedMutex;
  /** How long this attempt has met a reservation as it is, milliseconds; absent: it is no attempt that meets one twice. */
  readonly metFor?: (found: Stored<"reservation">) => number;
  /** Keeps allocators that are at work at the same time apart; absent: each goes by the plan alone. */
  readonly spread?: Spread;
}
