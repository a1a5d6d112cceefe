// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../../../allocator/base/errors.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";
import type { AttachmentKey, PodRef } from "./claim-source.ts";

/** What of a network's configuration says where its addresses are kept, and which they are. */
export type SharedConfig = Pick<IpamConfig, "etcd" | "pools" | "rangeSets">;

/** Networks whose addresses are kept in etcd for many hosts: what the agent asks beside its claims. */
export interface SharedNetworks {
  /**
   * The pools that serve a network: those that it names, or the one that its ranges are in, which is made with the first
   * call. Throws BerthError when it cannot know.
   */
  poolsOf(network: string, config: SharedConfig): Promise<readonly string[] | Refusal>;
  /**
   * Whom an address is kept for: the container by itself, or who the runtime says that it is, if a person has made a claim
   * for that one. Throws BerthError when it cannot know.
   */
  holderOf(container: AttachmentKey, said: PodRef | undefined, pools: readonly string[]): Promise<PodRef>;
  /** What an ADD of the network would be refused with, whichever container it is for. Makes nothing; throws as the others. */
  refusalFor(network: string, config: SharedConfig): Promise<Refusal | undefined>;
}
