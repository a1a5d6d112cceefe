// SPDX-License-Identifier: Apache-2.0
// What something costs the API server, by its own count of the requests that it answered.
import type { Connection } from "../../kube/api/connection.ts";

/** `PATCH ipclaims/status` -> how many, `PATCH ipclaims (409)` of those that wrote nothing; what was not asked is not in it. */
export type Calls = Readonly<Record<string, number>>;

const LINE = /^apiserver_request_total\{(.*)\} (\S+)$/;

/** Every request that was answered since the API server started; its own clients are among them. */
export async function callsSoFar(connection: Connection): Promise<Calls> {
  const { status, body } = await connection.call({ method: "GET", path: "/metrics" });
  if (status !== 200 || typeof body !== "string") throw new Error(`no metrics: ${status}`);
  const calls: Record<string, number> = {};
  for (const line of body.split("\n")) {
    const [, labels = "", count = ""] = LINE.exec(line) ?? [];
    const label = (name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
    const what = [label("resource"), label("subresource")].filter((part) => part !== "").join("/");
    if (what === "") continue;
    const key = `${label("verb")} ${what}${label("code") === "409" ? " (409)" : ""}`;
    calls[key] = (calls[key] ?? 0) + Number(count);
  }
  return calls;
}

/** What came between two counts, of these resources, in the order of the alphabet. */
export function callsBetween(before: Calls, now: Calls, resources: readonly string[]): Calls {
  const rows = Object.entries(now).map(([key, count]) => [key, count - (before[key] ?? 0)] as const);
  return Object.fromEntries(
    rows
      .filter(([key, count]) => count > 0 && resources.includes(key.split(/[ /]/)[1] ?? ""))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** `GET pods 2, PATCH ipclaims 1` */
export function inWords(calls: Calls): string {
  const words = Object.entries(calls).map(([key, count]) => `${key} ${count}`);
  return words.length === 0 ? "nothing" : words.join(", ");
}
