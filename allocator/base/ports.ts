// SPDX-License-Identifier: Apache-2.0
import type { LOG_KEYS } from "./log-keys.ts";

/** Time, injected so that tests can stop it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. Jumps. For records that people read and other hosts compare. */
  now(): number;
  /** Milliseconds since an arbitrary point of this host (CLOCK_MONOTONIC). Never jumps back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `ring` after `ms`, unless what it gives is called before. Cheaper than a sleep that is ended by a signal; absent: that does. */
  alarm?(ms: number, ring: () => void): () => void;
}

/** Randomness, injected so that a run can be replayed. */
export interface Random {
  /** 26 characters of [a-z2-7], 128 bits: a nonce, token or uid that nobody else makes. */
  token(): string;
  /** In [0, 1). */
  fraction(): number;
}

/** The vocabulary is closed: whoever wants another key says in LOG_KEYS what it means. */
export type LogFields = { readonly [Key in keyof typeof LOG_KEYS]?: unknown };

/** A constant message and fields; never text built from values. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export const noopLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export type Labels = Readonly<Record<string, string>>;

/** One value of a gauge. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** Asked at every scrape; what it does not name any more is no longer exposed. */
export type Collect = () => Iterable<Sample> | Promise<Iterable<Sample>>;

/** What is measured, by name (`berth_...`); the names and their meaning stand in system/metric-definitions.ts. */
export interface Metrics {
  increment(name: string, labels?: Labels): void;
  observe(name: string, value: number, labels?: Labels): void;
  /** Absent where nobody scrapes. Several may add to one gauge, each with labels of its own. */
  gauge?(name: string, collect: Collect): void;
}

export const noopMetrics: Metrics = { increment() {}, observe() {} };

export interface Readiness {
  readonly ready: boolean;
  /** Why not, for people. */
  readonly reason: string;
}
