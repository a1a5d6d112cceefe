// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import { Client } from "../api/client.ts";
import type { Connection } from "../api/connection.ts";
import { type KubeItem, LEASES, type ObjectName } from "../api/resource.ts";
import type { LeaseLock, LeaseRecord, ObservedLease } from "./leader-election.ts";

/** Two attempts fit into the time in which a leader must renew. */
const TIMEOUT_MS = 4_000;

interface LeaseSpec {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  readonly leaseTransitions?: number | null;
}

/** A lease of the API server (coordination.k8s.io/v1). Throws what a Client throws. */
export function kubeLeaseLock(connection: Connection, place: Required<ObjectName>): LeaseLock {
  const client = new Client(connection, LEASES, TIMEOUT_MS);
  const seen = (item: KubeItem | undefined) => (item === undefined ? undefined : seenOf(item));
  return {
    read: async () => seen(await client.get(place)),
    create: async (record) => seen(await client.create(place, { spec: specOf(record) })),
    replace: async ({ revision }, record) => {
      const body = { metadata: { resourceVersion: revision }, spec: specOf(record) };
      return seen(await client.patch(place, { type: "merge", body }));
    },
  };
}

function specOf(record: LeaseRecord): LeaseSpec {
  return {
    holderIdentity: record.holder,
    leaseDurationSeconds: Math.ceil(record.durationMs / 1000),
    acquireTime: microTime(record.acquiredAt),
    renewTime: microTime(record.renewedAt),
    leaseTransitions: record.transitions,
  };
}

function seenOf(item: KubeItem): ObservedLease {
  const { spec } = item as KubeItem & { spec?: LeaseSpec };
  if (spec === undefined) throw new BerthError("STATE_CORRUPT", `lease ${item.metadata.name} has no spec`);
  return {
    revision: item.metadata.resourceVersion,
    record: {
      holder: spec.holderIdentity ?? "",
      durationMs: (spec.leaseDurationSeconds ?? 0) * 1000,
      acquiredAt: Date.parse(spec.acquireTime ?? "") || 0,
      renewedAt: Date.parse(spec.renewTime ?? "") || 0,
      transitions: spec.leaseTransitions ?? 0,
    },
  };
}

/** metav1.MicroTime: six digits of a second. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
