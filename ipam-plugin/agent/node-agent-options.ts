// SPDX-License-Identifier: Apache-2.0

import type { Clock, Logger, Metrics, Random } from "../../allocator/base/ports.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { Database } from "../../allocator/store/sqlite/database.ts";
import type { Connection } from "../../kube/api/connection.ts";
import type { HostLocalLeases } from "./journal/host-local-leases.ts";
import type { RecordOf, RuntimeRecords } from "./journal/runtime-records.ts";
import type { UnreadRecords } from "./journal/unread-records.ts";

export interface NodeAgentOptions {
  /** This node's name in the cluster. */
  readonly node: string;
  /** Closed with the agent. */
  readonly connection: Connection;
  /** Where the journal is kept; stays the caller's to close. */
  readonly database: Database;
  readonly socketPath: string;
  readonly bootId: string;
  /** What the runtime says of this node's sandboxes. */
  readonly runtimeRecords: RuntimeRecords;
  /** What it says nothing of, though it has a record. */
  readonly unreadRecords: UnreadRecords;
  /** And of one of them; absent: nothing. */
  readonly recordOf?: RecordOf;
  /** What host-local gave away before its network was Berth's. */
  readonly hostLocalLeases?: HostLocalLeases;
  /** Aborts when the process is told to end: one that must not serve waits for a person until then. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Which requests in other systems' words are for Berth; `all` of them if absent. */
  readonly dialects?: Dialects;
  /** The folder of the certificates of etcds that networks name; absent: no network is kept in etcd. */
  readonly etcdCertificates?: string;
  /** Refusals name nodes and blocks; absent: they count them. */
  readonly refusalsNameAll?: boolean;
  /** Pods may come to be without a review; absent: each that is to be reviewed was. */
  readonly unreviewedPods?: boolean;
}
