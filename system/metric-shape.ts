// SPDX-License-Identifier: Apache-2.0

/** What a metric is. */
export interface Definition {
  readonly type: "counter" | "histogram" | "gauge";
  /** Who exposes it: a replica of the webhook, the agent of a node, or both. */
  readonly by: "webhook" | "agent" | "both";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds, seconds; of a histogram. */
  readonly buckets?: readonly number[];
}

/** Of several metrics: from what is done at once to what a person has to look at. */
export const WAIT_SECONDS = [0.001, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
