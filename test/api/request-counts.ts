// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "../../kube/api/connection.ts";

export interface Requests {
  readonly resource?: string;
  /** As the API server calls it: GET, LIST, WATCH, POST, PUT, PATCH, DELETE. */
  readonly verb?: string;
  readonly subresource?: string;
}

/** How many requests the API server has answered since it started, by its own metrics. */
export type RequestCounts = (wanted: Requests) => number;

/** What tests and Berth ask for; an API server goes on asking itself for leases. */
const COUNTED = /resource="(ip[a-z]+|pods|events)"/;
const SHORTEST_MS = 100;

/** The counts once nothing is added any more: who was closed may have asked a last time, and what was answered is counted afterwards. */
export async function settledCounts(connection: Connection): Promise<RequestCounts> {
  for (let before: string | undefined; ; ) {
    const began = performance.now();
    const lines = await linesOf(connection);
    const now = lines.filter((line) => COUNTED.test(line)).join("\n");
    if (now === before) return countsIn(lines);
    before = now;
    // a machine that is slow to say this is slow to count
    await pause(SHORTEST_MS + 2 * (performance.now() - began));
  }
}

/** Reads the counts as they are now. */
export async function requestCounts(connection: Connection): Promise<RequestCounts> {
  return countsIn(await linesOf(connection));
}

async function linesOf(connection: Connection): Promise<readonly string[]> {
  const { status, body } = await connection.call({ method: "GET", path: "/metrics" });
  if (status !== 200 || typeof body !== "string") throw new Error(`no metrics: ${status}`);
  return body.split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
}

function countsIn(lines: readonly string[]): RequestCounts {
  return (wanted) => {
    const labels = Object.entries(wanted).map(([name, value]) => `${name}="${value}"`);
    return lines
      .filter((line) => labels.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  };
}
