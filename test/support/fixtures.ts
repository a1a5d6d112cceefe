// SPDX-License-Identifier: Apache-2.0
// Records and views of them, for tests of what decides.

import assert from "node:assert/strict";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { AllocationInput } from "../../allocator/demand/build-request.ts";
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import type { Block } from "../../allocator/model/block.ts";
import {
  type Binding,
  type Claim,
  type ClaimAttachment,
  DEFAULT_RETENTION,
} from "../../allocator/model/claim.ts";
import type {
  NamespaceState,
  PodState,
  WorkloadRef,
  WorkloadState,
} from "../../allocator/model/cluster-state.ts";
import type { ClaimPlace } from "../../allocator/model/container-claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { AddressConstraints } from "../../allocator/planning/plan.ts";
import { type Pool, type PoolRecord, type PoolSpec, parsePool } from "../../allocator/pool/pool.ts";
import { keyOf } from "../../allocator/store/codec.ts";
import type { Kind, Records, Stored } from "../../allocator/store/store.ts";

export const NOW = Date.UTC(2026, 0, 1);

export function addr(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new TypeError(`${text} is no address`);
  return address;
}

export function addrs(...texts: readonly string[]): Address[] {
  return texts.map(addr);
}

/** A pool record of these CIDRs. */
export function poolRecord(
  name: string,
  cidrs: string | readonly string[],
  spec: Partial<PoolSpec> = {},
): PoolRecord {
  const texts = typeof cidrs === "string" ? [cidrs] : cidrs;
  return { name, spec: { ranges: texts.map((cidr) => ({ cidr })), ...spec } };
}

export function parsed(record: PoolRecord): Pool {
  return granted(parsePool(record));
}

/** The design's example: IPv4 .50 to .199 with a hole, IPv6 /64, ten addresses only by request. */
export const DB_POOL: PoolRecord = {
  name: "db",
  spec: {
    ranges: [
      {
        cidr: "10.20.0.0/24",
        from: "10.20.0.50",
        to: "10.20.0.199",
        gateway: "10.20.0.100",
        exclude: ["10.20.0.60-10.20.0.69"],
      },
      { cidr: "fd00:20::/64" },
    ],
    reserved: ["10.20.0.50-10.20.0.59"],
  },
};

/** The claim of ordinal 0 of StatefulSet mysql in namespace shop, with one address and at rest. */
export function claimRecord(over: Partial<Claim> = {}): Claim {
  return {
    namespace: "shop",
    name: "mysql-0",
    identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 },
    request: { addresses: addrs("10.20.0.70") },
    retention: DEFAULT_RETENTION,
    addresses: addrs("10.20.0.70"),
    nonce: "n1",
    status: {},
    ...over,
  };
}

/** The reservations that such a claim relies on. */
export function reservationsOf(claim: Claim, pool = "db"): Reservation[] {
  const { namespace, name, nonce } = claim;
  return claim.addresses.map((address) => ({ address, pool, claim: { namespace, name }, nonce }));
}

export function reservationRecord(address: string, over: Partial<Reservation> = {}): Reservation {
  return {
    address: addr(address),
    pool: "db",
    claim: { namespace: "shop", name: "mysql-0" },
    nonce: "n1",
    ...over,
  };
}

export function bindingTo(podName: string, node: string, over: Partial<Binding> = {}): Binding {
  return { token: "", podName, podUID: `uid-of-${podName}`, node, since: NOW, ...over };
}

export function attachmentOf(podName: string, over: Partial<ClaimAttachment> = {}): ClaimAttachment {
  return {
    node: "node-a",
    containerID: `sandbox-of-${podName}`,
    interface: "eth0",
    podUID: `uid-of-${podName}`,
    since: NOW,
    detached: false,
    ...over,
  };
}

let revisions = 0;

export function storedAs<K extends Kind>(
  kind: K,
  record: Records[K],
  over: Partial<Stored<K>> = {},
): Stored<K> {
  revisions++;
  const key = keyOf(kind, record);
  return { key, record, uid: `uid-${key}`, revision: String(revisions), createdAt: NOW, ...over };
}

export interface Holdings {
  readonly pools?: readonly PoolRecord[];
  readonly claims?: readonly Claim[];
  readonly reservations?: readonly Reservation[];
  /** Absent: blocks are not followed. */
  readonly blocks?: readonly Block[];
  readonly place?: ClaimPlace;
}

/** A cache that has seen exactly these records. */
export function viewOf({ pools = [], claims = [], reservations = [], blocks, place }: Holdings): RecordCache {
  const cache = new RecordCache(noopLogger, place);
  fill(cache, "pool", pools);
  fill(cache, "claim", claims);
  fill(cache, "reservation", reservations);
  if (blocks !== undefined) fill(cache, "block", blocks);
  return cache;
}

function fill<K extends Kind>(cache: RecordCache, kind: K, records: readonly Records[K][]): void {
  cache.apply(kind, { type: "relist" });
  for (const record of records) cache.apply(kind, { type: "put", stored: storedAs(kind, record) });
  cache.apply(kind, { type: "synced" });
}

export function namespaceFacts(
  name = "shop",
  annotations: NamespaceState["annotations"] = {},
): NamespaceState {
  return { name, labels: { "kubernetes.io/metadata.name": name }, annotations };
}

/** A workload of namespace shop. */
export function refTo(kind: string, name: string, apiVersion = "apps/v1"): WorkloadRef {
  return { apiVersion, kind, namespace: "shop", name };
}

/** A StatefulSet of apps/v1 whose pods ask to be sticky, unless it is said otherwise. */
export function workloadFactsOf(over: Partial<WorkloadState> = {}): WorkloadState {
  return {
    ...refTo("StatefulSet", "mysql"),
    uid: "u",
    replicas: 1,
    start: 0,
    annotations: { "berth.dev/sticky": "true" },
    hostNetwork: false,
    ...over,
  };
}

/** A pod of namespace shop that runs. */
export function podFactsOf(name: string, over: Partial<PodState> = {}): PodState {
  return {
    namespace: "shop",
    name,
    uid: `uid-of-${name}`,
    node: "",
    labels: {},
    annotations: {},
    ended: false,
    ...over,
  };
}

/** What identity shop/mysql-0 asks for. */
export function askFor(over: Partial<AddressConstraints> = {}): AddressConstraints {
  return {
    namespace: "shop",
    name: "mysql-0",
    namespaceLabels: { "kubernetes.io/metadata.name": "shop" },
    podLabels: { app: "mysql" },
    ...over,
  };
}

/** Pod mysql-0 of StatefulSet mysql, asking for nothing yet. */
export function applicantOf(over: Partial<AllocationInput> = {}): AllocationInput {
  const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 };
  return {
    podIdentity: { kind: "named", claim: "mysql-0", identity },
    request: {},
    namespace: namespaceFacts(),
    podLabels: { app: "mysql" },
    start: 0,
    token: "tokentokentokentokentokent",
    now: NOW,
    ...over,
  };
}

/** What was expected to be granted. */
export function granted<T>(value: T | Refusal): Exclude<T, Refusal> {
  assert.ok(!isRefusal(value), isRefusal(value) ? `refused: ${value.code}: ${value.message}` : "");
  return value as Exclude<T, Refusal>;
}

/** What was expected to be refused, as "CODE: message". */
export function refusalOf(value: unknown): string {
  assert.ok(
    isRefusal(value),
    `not refused: ${JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}` : v))}`,
  );
  return `${value.code}: ${value.message}`;
}
