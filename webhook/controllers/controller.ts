// SPDX-License-Identifier: Apache-2.0

import type { Metrics } from "../../allocator/base/ports.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Family } from "../../allocator/ip/address.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { Connection } from "../../kube/api/connection.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import type { PoolAccess } from "../admission/admission-context.ts";
import type { Informers } from "../cluster-state/informers.ts";

/** Who collects garbage. Nothing may go wrong when two believe that they lead, or nobody does. */
export interface Leadership {
  /** This replica holds the lease, by its own monotonic clock. */
  leads(): boolean;
  /** Called whenever this replica has come to lead; gives what takes the handler away again. */
  onGain(handler: () => void): () => void;
}

/** What the installation says that closes the port to strangers, besides a client certificate. */
export const REVIEWERS_BY = ["NetworkPolicy", "ClosedElsewhere", "nothing"] as const;
export type ReviewersBy = "ClientCertificate" | (typeof REVIEWERS_BY)[number];

/** What the controllers work with. */
export interface ControllerDeps {
  /** Its view is `cache`. */
  readonly context: Context;
  readonly cache: RecordCache;
  readonly watches: Informers;
  readonly inventory: {
    /** From the watches: costs nothing and may lag. */
    readonly cached: ClusterState;
    /** From the API server. */
    readonly live: ClusterState;
  };
  readonly leadership: Leadership;
  readonly connection: Connection;
  /** Who may use which pool; absent: nobody has the verb. */
  readonly access?: PoolAccess;
  /** What keeps strangers from sending reviews; absent: nothing is said about it. */
  readonly reviewersBy?: ReviewersBy;
  /** Events and conditions tell whoever reads a namespace of what others have; absent: they do. */
  readonly refusalsNameAll?: boolean;
  /** Which requests in other systems' words are for Berth; `all` of them if absent. */
  readonly dialects?: Dialects;
  /** The families of which each Node gets a CIDR, in the order in which its spec lists them; none if absent. */
  readonly nodeCIDRs?: readonly Family[];
  /** An event on each pod whose claim is bound; absent: only where something was in its way. */
  readonly boundEvents?: boolean;
  readonly events: { record(notice: EventInput): void };
  readonly metrics: Metrics;
  /** The claim may have lost what it was kept for: whoever leads judges it soon. */
  readonly enqueueForGc: (claim: Claim) => void;
}
