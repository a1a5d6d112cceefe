// SPDX-License-Identifier: Apache-2.0
// Who asks for what. There are few addresses and many who want them, so that they meet.

import type { Labels } from "../../allocator/base/ports.ts";
import {
  FAMILIES,
  IPS,
  POOLS,
  STICKY,
  TTL,
  WHEN_DELETED,
  WHEN_SCALED,
} from "../../allocator/manifest/annotations.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import type { Json } from "../support/objects.ts";

export const NAMESPACE = "shop";
export const WEBHOOKS: readonly string[] = ["w1", "w2", "w3"];
/** The garbage collectors beside it: two at once must be safe. */
export const HOUSEKEEPERS: readonly string[] = ["w1", "w2"];
export const NODES: readonly string[] = ["n1", "n2"];

/** The pool that nodes have blocks of. */
export const WEB = "web";

export const POOL_RECORDS: readonly PoolRecord[] = [
  {
    name: "db",
    spec: {
      ranges: [
        { cidr: "10.0.0.0/24", from: "10.0.0.1", to: "10.0.0.6" },
        { cidr: "fd00::/64", from: "fd00::1", to: "fd00::6" },
      ],
      reserved: ["10.0.0.6"],
      priority: 1,
    },
  },
  { name: WEB, spec: { ranges: [{ cidr: "10.0.1.0/29" }], blockSize: { ipv4: 31 }, cooldown: "5s" } },
];

/** Some of the same addresses once more, as two replicas may let pass at the same moment (ADR 0038): for those who ask alone. */
export const OVER: PoolRecord = {
  name: "over",
  spec: { ranges: [{ cidr: "10.0.1.0/29", from: "10.0.1.2", to: "10.0.1.5" }], cooldown: "5s" },
};
export const OVER_REQUESTS: readonly Labels[] = [
  { [POOLS]: OVER.name },
  { [IPS]: "10.0.1.3" },
  { [POOLS]: WEB },
  { [IPS]: "10.0.1.4", [POOLS]: OVER.name },
];

/** The same with blocks that are single addresses, as a pool gets that is made as the default without a size. */
export const POOLS_OF_SINGLES: readonly PoolRecord[] = POOL_RECORDS.map((pool) =>
  pool.name === WEB ? { ...pool, spec: { ...pool.spec, blockSize: { ipv4: 32 } } } : pool,
);

/** What a pod without an owner asks for: names are few, so that one name asks for different things. */
export const POD_NAMES: readonly string[] = ["a", "b", "c"];
export const POD_REQUESTS: readonly Labels[] = [
  { [IPS]: "10.0.0.1" },
  { [IPS]: "10.0.0.1,fd00::1" },
  { [STICKY]: "true" },
  { [IPS]: "10.0.0.2", [WHEN_DELETED]: "Retain", [TTL]: "1m" },
  { [POOLS]: "web" },
  { [STICKY]: "true", [FAMILIES]: "IPv6" },
  { [STICKY]: "true", [WHEN_DELETED]: "Release" },
  { [IPS]: "10.0.0.6/fd00::2", [WHEN_DELETED]: "Retain" },
  {},
];

export const STATEFUL_SET = "s";
/** Of a StatefulSet of the name that was there before everything. */
export const FORMER_UID = "u0";
export const SET_REQUESTS: readonly Labels[] = [
  { [IPS]: "10.0.0.3;10.0.0.4;10.0.0.5" },
  { [STICKY]: "true" },
  { [POOLS]: "web", [WHEN_SCALED]: "Release" },
  { [IPS]: "10.0.0.3/fd00::3;10.0.0.4/fd00::4;10.0.0.5/fd00::5", [WHEN_DELETED]: "Retain", [TTL]: "1m" },
  { [IPS]: "10.0.0.2-10.0.0.4", [WHEN_SCALED]: "Release" },
];

export const DEPLOYMENT = "d";
export const SLOT_REQUESTS: readonly Labels[] = [
  { [IPS]: "10.0.1.1-10.0.1.3" },
  { [POOLS]: "web" },
  { [STICKY]: "true" },
  { [IPS]: "10.0.1.1;10.0.1.2;10.0.0.4", [WHEN_DELETED]: "Retain", [TTL]: "1m" },
];
export const MOST_REPLICAS = 3;

/** A pod that nothing tells from its like. */
export const ANONYMOUS: Labels = { [POOLS]: "web" };

/** Its pods fail, and are tried again while those that failed stay. */
export const JOB = "j";
export const JOB_REQUESTS: readonly Labels[] = [{ [IPS]: "10.0.1.4;10.0.1.5" }, { [POOLS]: "web" }, {}];
export const JOB_INDEXES = 2;

/** What owns pods and is read by nobody: a bare ReplicaSet, an Argo Rollout, a StatefulSet of another API group. */
export const REPLICA_SET = "r";
export const ROLLOUT = "o";
export const FOREIGN_SET = "x";
export const FOREIGN_GROUP = "apps.example.com/v1";
export const FOREIGN_REQUESTS: readonly Labels[] = [
  { [IPS]: "10.0.1.5;10.0.1.6" },
  { [POOLS]: "web" },
  { [STICKY]: "true" },
];

/** Claims that people make, for pods of that name, or for an index of the Job. */
export const CLAIM_NAMES: readonly string[] = ["a", "h", "j-0"];
export const CLAIM_SPECS: readonly Json[] = [
  { request: { addresses: ["10.0.0.2"] } },
  { request: { pools: ["web"] } },
  { request: { pools: ["db"], families: ["IPv6"] } },
];

/** Of lives with several interfaces, under these keys: what is asked for above -> what is asked for instead. The addresses are the same, and as few. */
export const ON_INTERFACES: ReadonlyMap<string, string> = new Map([
  ["10.0.0.1,fd00::1", "10.0.0.1,fd00::1@net1"],
  ["10.0.0.2", "10.0.0.2,10.0.0.5@net1"],
  ["10.0.0.6/fd00::2", "10.0.0.6@net1,10.0.0.1@net1,fd00::2"],
  ["10.0.0.3;10.0.0.4;10.0.0.5", "10.0.0.3,10.0.0.1@net1;10.0.0.4,10.0.0.2@net1;10.0.0.5"],
  ["10.0.0.3/fd00::3;10.0.0.4/fd00::4;10.0.0.5/fd00::5", "10.0.0.3-10.0.0.5,fd00::3-fd00::5@net1"],
  ["web", "web,db/IPv6@net1"],
]);
export const SPREAD_KEYS: readonly string[] = [IPS, POOLS];
