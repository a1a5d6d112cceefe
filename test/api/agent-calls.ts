// SPDX-License-Identifier: Apache-2.0
// Calls as an agent makes them, or a thief of its token, and what the API server says to them.
import type { Call, Connection } from "../../kube/api/connection.ts";
import { statusOf } from "../../kube/api/status.ts";
import { attachmentOf } from "../support/fixtures.ts";

export const SHOP = "/apis/berth.dev/v1alpha1/namespaces/shop/ipclaims";

/** What the API server says to a call: "200" or "403 why". */
export async function reported(connection: Connection, call: Call): Promise<string> {
  const { status, body } = await connection.call(call);
  return status < 300 ? String(status) : `${status} ${statusOf(body, status).message}`;
}

/** A report of the agent's about that claim. */
export function report(claim: string, over: object = {}): Call {
  const attachment = { ...attachmentOf(claim), node: "node-a", since: "2026-01-01T00:00:00Z" };
  const status = { attachment: { ...attachment, ...over } };
  return merge(`${SHOP}/${claim}/status`, { status });
}

export function merge(path: string, body: object = {}): Call {
  return { method: "PATCH", path, contentType: "application/merge-patch+json", body };
}

export const denied = (policy: string, words: string) =>
  new RegExp(
    `^403 .*ValidatingAdmissionPolicy '${policy}' with binding '${policy}' denied request: ${words}$`,
  );
