// SPDX-License-Identifier: Apache-2.0
// Which interface of its pod has a claim that names none.

import { networkAttachments } from "../../../../allocator/manifest/network-attachments.ts";
import { type Claim, claimKey } from "../../../../allocator/model/claim.ts";
import { placesOf } from "../../../../allocator/model/interfaces.ts";
import type { Stored } from "../../../../allocator/store/store.ts";
import { serves } from "../claim-result.ts";
import type { AttachRequest } from "../claim-source.ts";
import { type Holder, isOf } from "./holder.ts";
import type { NodeCache } from "./node-cache.ts";

interface ClaimInterfacesOptions {
  readonly view: Pick<NodeCache, "pod">;
  readonly holderOf: (claim: string) => Holder | undefined;
  /** Has the status of the claim checked. */
  readonly checkSoon: (claim: string) => void;
}

export class ClaimInterfaces {
  readonly #options: ClaimInterfacesOptions;
  readonly #contested = new Map<string, string>(); // claim -> UID of the pod of which another interface asked, too

  constructor(options: ClaimInterfacesOptions) {
    this.#options = options;
  }

  /**
   * The interface that has the claim already, and keeps it for all sandboxes of the pod; undefined: any may. That another one asks
   * is noted: no annotation need say that a pod has several, as runtimes and Multus may have networks for all pods.
   */
  has(
    { key, record }: Stored<"claim">,
    { attachment }: Pick<AttachRequest, "attachment">,
  ): string | undefined {
    const { binding, status } = record;
    const holder = this.#options.holderOf(key);
    const reported = status.attachment?.podUID === binding?.podUID ? status.attachment?.interface : undefined;
    const known = isOf(holder, binding) ? holder?.attachment.interface : undefined;
    const has = binding?.interface ?? known ?? (reported === "" ? undefined : reported);
    if (has !== undefined && binding !== undefined && !serves(record, { attachment }, has))
      this.#contest(key, binding.podUID);
    return has;
  }

  /** Any of several interfaces may have the claim: after a restart only its status says which one has had it. */
  isAmongSeveral(claim: Claim): boolean {
    const { namespace, binding } = claim;
    if (claim.interface !== undefined || placesOf(claim) !== undefined || binding === undefined) return false;
    if (this.#contested.get(claimKey(claim)) === binding.podUID) return true;
    const pod = this.#options.view.pod({ namespace, name: binding.podName });
    return networkAttachments(pod?.annotations ?? {}, namespace).length > 0;
  }

  /** The claim is bound to the pod of that UID; undefined: to none of this node. */
  changed(claim: string, podUID: string | undefined): void {
    if (this.#contested.get(claim) !== podUID) this.#contested.delete(claim);
  }

  #contest(claim: string, podUID: string): void {
    if (this.#contested.get(claim) === podUID) return;
    this.#contested.set(claim, podUID);
    this.#options.checkSoon(claim);
  }
}
