// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, type ObjectName, RESERVATIONS } from "../../kube/api/resource.ts";

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

/** What was asked meanwhile about these resources: "VERB resource" -> how often, where it was. */
export function requestsBetween(
  [start, end]: readonly [RequestCounts, RequestCounts],
  resources: readonly string[],
  verbs: readonly string[],
): Record<string, number> {
  const rows = resources.flatMap((resource) =>
    verbs.map((verb) => {
      const wanted = { resource, verb };
      return [`${verb} ${resource}`, end(wanted) - start(wanted)] as const;
    }),
  );
  return Object.fromEntries(rows.filter(([, count]) => count > 0));
}

/** The read that a new claim costs: none if the API server made it in the second of its reservation (ADR 0044). */
export async function readBack(
  connection: Connection,
  claim: ObjectName,
  address: string,
): Promise<Readonly<Record<string, number>>> {
  const [made, reserved] = await Promise.all([
    new Client(connection, CLAIMS).get(claim),
    new Client(connection, RESERVATIONS).get({ name: address }),
  ]);
  assert.ok(made?.metadata.creationTimestamp && reserved?.metadata.creationTimestamp);
  const isQuick = made.metadata.creationTimestamp === reserved.metadata.creationTimestamp;
  return isQuick ? {} : { "GET ipreservations": 1 };
}
