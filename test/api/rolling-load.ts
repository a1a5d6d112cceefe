// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "../../kube/api/connection.ts";
import { statusOf } from "../../kube/api/status.ts";
import { NAMESPACE } from "./agent-cluster.ts";

export interface LoadResult {
  readonly reviews: number;
  /** What was said to those that failed, and when: ms since the beginning. */
  readonly failed: readonly string[];
  readonly seconds: number;
}

/** More would only wait for each other on a slow machine, until the API server gives up. */
const MOST_PENDING = 10;

/**
 * So many rehearsals of pods each second, whether the ones before were answered or not: each is a review, and writes
 * nothing. Runs until `work` is over and everything was answered.
 */
export async function underLoad(
  connection: Connection,
  perSecond: number,
  work: () => Promise<void>,
): Promise<LoadResult> {
  const failed: string[] = [];
  const pending = new Set<Promise<void>>();
  const began = performance.now();
  let sent = 0;
  const stop = new AbortController();
  const send = async (n: number) => {
    const words = await rehearse(connection, n);
    if (words !== undefined) failed.push(`${Math.round(performance.now() - began)}: ${words}`);
  };
  const sending = (async () => {
    while (!stop.signal.aborted) {
      const due = ((performance.now() - began) / 1_000) * perSecond;
      // a machine that cannot keep up sends fewer, and does not drown
      while (sent < due && pending.size < MOST_PENDING) {
        const review = send(sent++).finally(() => pending.delete(review));
        pending.add(review);
      }
      await pause(5);
    }
  })();
  try {
    await work();
  } finally {
    stop.abort();
    await sending;
    await Promise.all(pending);
  }
  return { reviews: sent, failed, seconds: (performance.now() - began) / 1_000 };
}

/** Undefined when Berth has said what the pod would get; else what was said. */
export async function rehearse(connection: Connection, n: number): Promise<string | undefined> {
  const metadata = { name: `load-${n}`, annotations: { "berth.dev/pools": "db" } };
  const spec = {
    containers: [{ name: "main", image: "registry.example/app:1" }],
    automountServiceAccountToken: false,
  };
  try {
    const {
      status,
      body,
      warnings = [],
    } = await connection.call({
      method: "POST",
      path: `/api/v1/namespaces/${NAMESPACE}/pods`,
      query: { dryRun: "All" },
      body: { apiVersion: "v1", kind: "Pod", metadata, spec },
      timeoutMs: 60_000,
    });
    if (status !== 201) return `${status} ${statusOf(body, status).message}`;
    return warnings.some((words) => words.includes("would")) ? undefined : `not reviewed: ${warnings.join()}`;
  } catch (error) {
    return String(error);
  }
}
