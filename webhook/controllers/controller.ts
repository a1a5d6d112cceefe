// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../../allocator/claim.ts";
import type { Context } from "../../allocator/context.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import type { Mirror } from "../../allocator/mirror.ts";
import type { Metrics } from "../../allocator/ports.ts";
import type { Connection } from "../../kube/connection.ts";
import type { Notice } from "../../kube/events.ts";
import type { PoolAccess } from "../admission/desk.ts";
import type { Watches } from "../cluster/watches.ts";

/** Who does the housekeeping. Nothing may go wrong when two believe that they lead, or nobody does. */
export interface Leadership {
  /** This replica holds the lease, by its own monotonic clock. */
  leads(): boolean;
  /** Called whenever this replica has come to lead; gives what takes the handler away again. */
  onGain(handler: () => void): () => void;
}

/** What the controllers work with. */
export interface ControllerDeps {
  /** Its view is `mirror`. */
  readonly context: Context;
  readonly mirror: Mirror;
  readonly watches: Watches;
  readonly inventory: {
    /** From the watches: costs nothing and may lag. */
    readonly cached: Inventory;
    /** From the API server. */
    readonly live: Inventory;
  };
  readonly leadership: Leadership;
  readonly connection: Connection;
  /** Who may use which pool; absent: nobody has the verb. */
  readonly access?: PoolAccess;
  readonly events: { record(notice: Notice): void };
  readonly metrics: Metrics;
  /** The claim may have lost what it was kept for: whoever leads judges it soon. */
  readonly suspect: (claim: Claim) => void;
}

/** Works in the background from its start on. */
export interface Controller {
  /** Ends after the work at hand. Repeatable. */
  close(): Promise<void>;
}
