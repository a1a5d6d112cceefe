// SPDX-License-Identifier: Apache-2.0

import type { ServerNames } from "./issue.ts";
import type { RotationPolicy } from "./rotation.ts";

/** So long nothing that is written may be unknown to an API server or a replica; less where lives are short. */
const SETTLE_MS = 60_000;
const SETTLE_SHARE = 1 / 10;

/** What the API server calls the Service by. */
export function namesOf(namespace: string, service: string): ServerNames {
  const name = `${service}.${namespace}.svc`;
  return { dnsNames: [name, `${name}.cluster.local`], addresses: [] };
}

export function termsOf(
  namespace: string,
  of: { readonly service: string; readonly leafMs: number; readonly authorityMs: number },
): RotationPolicy {
  const { service, leafMs, authorityMs } = of;
  const settleMs = Math.min(SETTLE_MS, leafMs * SETTLE_SHARE);
  return { names: namesOf(namespace, service), leafMs, authorityMs, settleMs };
}
