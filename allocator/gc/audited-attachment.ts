// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../ip/address.ts";

/** One live use of addresses on a node, as its agent's journal has it. */
export interface AuditedAttachment {
  readonly node: string;
  /** What addresses that only the node knows are unique in: one text for each network and dataDir. */
  readonly network: string;
  readonly containerID: string;
  readonly interface: string;
  readonly claim?: string;
  /** Its addresses are of the configuration of the network of this name, and of no pool. */
  readonly ofNetwork?: string;
  /** Its addresses are of its node's blocks of this pool, and of no claim. */
  readonly ofBlocksOf?: string;
  readonly addresses: readonly Address[];
}
