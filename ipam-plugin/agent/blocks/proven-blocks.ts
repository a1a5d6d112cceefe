// SPDX-License-Identifier: Apache-2.0
import { NODE_GRACE_MS } from "../../../allocator/model/cluster-state.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { OwnedBlock } from "../journal/owned-blocks.ts";
import type { BlockSource } from "./block-source.ts";
import type { JournalledBlocks } from "./journalled-blocks.ts";
import { idOf, ownedOf } from "./returned-addresses.ts";

/**
 * A block that the journal does not know of this boot is `unproven` until this agent has written its status. An agent with another
 * journal, that is lost, may have sent word that it is given back, or a controller may have seen the node fenced while it was
 * off; what they write later is a conflict from then on. So none is proven while the Node counts as fenced, and those that
 * were are proven anew after that, or when the Node object is another one: while it was gone it counted as fenced. One that
 * was made for another Node object of this name, of whose sandboxes nothing is known here, waits until that one counts as fenced.
 */
export class ProvenBlocks {
  readonly #source: BlockSource;
  readonly #journalled: JournalledBlocks;
  #nodeUID: string | undefined;
  readonly #proven = new Set<string>(); // CIDR and UID of those whose status this process has written

  constructor(source: BlockSource, journalled: JournalledBlocks) {
    this.#source = source;
    this.#journalled = journalled;
  }

  /**
   * Whether the block may be proven now: the Node object is not fenced, and the block is of it, of this machine by its journal, or
   * of an object that counts as fenced.
   */
  mayProve(stored: Stored<"block">): boolean {
    const own = this.#source.ownNode?.();
    if (own === undefined) return this.#source.ownNode === undefined;
    if (own.fenced) return false;
    const isOwn = own.uid === stored.record.nodeUID || this.#journalled.of(ownedOf(stored)) !== undefined;
    return isOwn || own.seenForMs >= NODE_GRACE_MS;
  }

  /** By CIDR and UID: its status is written. */
  prove(id: string): void {
    this.#journalled.trust(id);
    this.#proven.add(id);
  }

  /** By CIDR and UID. */
  isProven(id: string): boolean {
    const { statuses, ownNode } = this.#source;
    const isAlone = statuses === undefined || ownNode === undefined; // what it writes is written before it goes on
    return isAlone || this.#proven.has(id) || this.#journalled.isOfThisBoot(id);
  }

  /**
   * To be called whenever the Node object may have changed. Where it counts as fenced, is gone or is another one, the blocks may
   * be taken back from here on; the next process is to know that, too.
   */
  followNode(): void {
    const own = this.#source.ownNode?.();
    const isAnother = this.#nodeUID !== undefined && this.#nodeUID !== own?.uid;
    if (own?.fenced || isAnother) {
      this.#proven.clear();
      this.#journalled.doubtAll();
    }
    this.#nodeUID = own?.uid;
    if (own !== undefined) this.#journalled.ofNode(own.uid);
  }

  forget(block: Pick<OwnedBlock, "cidr" | "uid">): void {
    this.#proven.delete(idOf(block));
  }
}
