// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../../../allocator/base/errors.ts";
import type { CniArgs } from "../../cni/args.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";
import type { AttachmentKey, PodRef, SandboxNotice } from "./claim-source.ts";

/** What of a network's configuration says where its addresses are kept, and which they are. */
export type SharedConfig = Pick<IpamConfig, "etcd" | "pools" | "rangeSets">;

/** What a runtime says that a container is called: a pod, or a name alone. */
export type SaidNames = Pick<CniArgs, "pod" | "name">;

/** What serves a network. */
export interface SharedPools {
  /** The etcd that has them; absent: the one that this agent was started with. */
  readonly etcd?: string;
  readonly pools: readonly string[];
}

/** Networks whose addresses are kept in etcd for many hosts: what the agent asks beside its claims. */
export interface SharedNetworks {
  /** The agent was started with an etcd: networks that name pools, and no etcd, are kept there. */
  readonly hasOwn: boolean;
  /**
   * The pools that serve a network: those that it names, or the one that its ranges are in, which is made with the first
   * call. Throws BerthError when it cannot know.
   */
  poolsOf(network: string, config: SharedConfig): Promise<SharedPools | Refusal>;
  /**
   * Whom an address is kept for: the container by itself, or who the runtime says that it is, if a person has made a claim
   * for that one. Throws BerthError when it cannot know.
   */
  holderOf(container: AttachmentKey, said: SaidNames, shared: SharedPools): Promise<PodRef>;
  /**
   * What to tell of the end of a container that was never attached here, as far as is known: it may have its address from
   * before this plugin was. Undefined: nobody.
   */
  formerNotice(container: AttachmentKey): SandboxNotice | undefined;
  /** What an ADD of the network would be refused with, whichever container it is for. Makes no pool; throws as the others. */
  refusalFor(network: string, config: SharedConfig): Promise<Refusal | undefined>;
}
