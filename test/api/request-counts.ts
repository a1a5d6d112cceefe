// SPDX-License-Identifier: Apache-2.0
import type { Connection } from "../../kube/api/connection.ts";

export interface Requests {
  readonly resource?: string;
  /** As the API server calls it: GET, LIST, WATCH, POST, PUT, PATCH, DELETE. */
  readonly verb?: string;
  readonly subresource?: string;
}

/** How many requests the API server has answered since it started, by its own metrics. */
export type RequestCounts = (wanted: Requests) => number;

/** Reads the counts as they are now. */
export async function requestCounts(connection: Connection): Promise<RequestCounts> {
  const { status, body } = await connection.call({ method: "GET", path: "/metrics" });
  if (status !== 200 || typeof body !== "string") throw new Error(`no metrics: ${status}`);
  const lines = body.split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
  return (wanted) => {
    const labels = Object.entries(wanted).map(([name, value]) => `${name}="${value}"`);
    return lines
      .filter((line) => labels.every((label) => line.includes(label)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  };
}
