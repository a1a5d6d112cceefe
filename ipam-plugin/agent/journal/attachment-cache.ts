// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../../allocator/ip/address.ts";
import type { NetworkKey } from "../../cni/config.ts";
import { AddressSet, type AddressUse } from "./address-set.ts";
import { type Attachment, type AttachmentId, attachmentKey, scopeId } from "./attachment.ts";
import type { Change, Journal, JournalContents } from "./journal.ts";

/**
 * The journal's attachments in memory, with indexes. What is read here is on the disk already: a change is written
 * first and published after. Only `space` runs ahead: an address is held while its attachment is being written.
 */
export class AttachmentCache {
  readonly #journal: Journal;
  readonly #use: AddressUse | undefined;
  readonly #byPlace = new Map<string, Attachment>(); // id of the place -> attachment or tombstone
  readonly #byClaim = new Map<string, Set<string>>(); // claim -> ids of attached places
  readonly #byPod = new Map<string, Set<string>>(); // UID of the pod -> ids of places, with tombstones
  readonly #byInterface = new Map<string, Set<string>>(); // container and interface -> ids of places in any network, with tombstones
  readonly #byPoolAddress = new Map<Address, Set<string>>(); // address of a pool -> ids of attached places
  readonly #pending = new Set<string>(); // ids of places whose detachment has yet to be told
  readonly #spaces = new Map<string, AddressSet>(); // id of the scope -> addresses taken in it
  readonly #waiting = new Map<string, Set<() => void>>(); // id of the place -> who waits for its detachment

  /** Reads the journal, unless what it has is given. `use` is told of addresses in use. Throws what Journal.load throws. */
  constructor(journal: Journal, use?: AddressUse, contents: JournalContents = journal.load()) {
    this.#journal = journal;
    this.#use = use;
    const { attachments, positions } = contents;
    for (const attachment of attachments) this.#publish(attachment);
    for (const { state, source, result, detachedAt } of attachments) {
      if (state === "attached" || source !== "block") continue;
      for (const { address } of result.addresses) use?.wasFreed(address, detachedAt);
    }
    for (const { scope, rangeSet, address } of positions) this.space(scope).advance(rangeSet, address);
  }

  get(place: AttachmentId): Attachment | undefined {
    return this.#byPlace.get(attachmentKey(place));
  }

  /** The attachment, or tombstone, at the place of that id. */
  at(id: string): Attachment | undefined {
    return this.#byPlace.get(id);
  }

  /** Whether the place of that id has an attachment and no tombstone. */
  isAttached(id: string): boolean {
    return this.#byPlace.get(id)?.state === "attached";
  }

  /** Attachments and tombstones. Must not be held across a change. */
  all(): Iterable<Attachment> {
    return this.#byPlace.values();
  }

  attached(): readonly Attachment[] {
    return [...this.#byPlace.values()].filter(({ state }) => state === "attached");
  }

  /** Whether there is anything, be it a tombstone, of that interface of that container, in any network. */
  knows(one: Pick<AttachmentId, "containerID" | "interface">): boolean {
    return this.#byInterface.has(interfaceKey(one));
  }

  /** Ids of the places, in any network, that have the address from a claim or a block. */
  placesOf(address: Address): readonly string[] {
    return [...(this.#byPoolAddress.get(address) ?? [])];
  }

  ofClaim(claim: string): readonly Attachment[] {
    return this.#at(this.#byClaim.get(claim));
  }

  /** Attachments and tombstones of the pod with that UID. */
  ofPod(uid: string): readonly Attachment[] {
    return this.#at(this.#byPod.get(uid));
  }

  /** Detached attachments whose end the claim's status does not say yet. */
  unreported(): readonly Attachment[] {
    return this.#at(this.#pending);
  }

  space(scope: NetworkKey): AddressSet {
    const id = scopeId(scope);
    let space = this.#spaces.get(id);
    if (space === undefined) {
      space = new AddressSet(this.#use);
      this.#spaces.set(id, space);
    }
    return space;
  }

  /** Addresses in use, of all scopes. */
  held(): readonly Address[] {
    return [...this.#spaces.values()].flatMap((space) => space.held());
  }

  /** Writes a change, then publishes it. Rejects with BerthError when nothing of it is kept. */
  async commit(change: Change): Promise<void> {
    await this.#journal.write(change);
    for (const attachment of change.put ?? []) this.#publish(attachment);
    for (const place of change.reported ?? []) this.#publishReported(place);
    for (const place of change.forgotten ?? []) this.#forget(place);
  }

  /** Resolves once the place is not attached any more, or when the signal aborts. */
  async untilDetached(place: AttachmentId, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.get(place)?.state !== "attached") return;
    const id = attachmentKey(place);
    const waiters = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiters);
    const { promise, resolve } = Promise.withResolvers<void>();
    waiters.add(resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    waiters.delete(resolve);
    if (waiters.size === 0 && this.#waiting.get(id) === waiters) this.#waiting.delete(id);
  }

  #publish(attachment: Attachment): void {
    const id = attachmentKey(attachment);
    const before = this.#byPlace.get(id);
    const freedAt = attachment.state === "detached" ? attachment.detachedAt : undefined;
    if (before !== undefined) this.#unindex(id, before, freedAt);
    this.#byPlace.set(id, attachment);
    if (before?.pod?.uid !== attachment.pod?.uid) remove(this.#byPod, before?.pod?.uid, id);
    add(this.#byPod, attachment.pod?.uid, id);
    add(this.#byInterface, interfaceKey(attachment), id);
    if (attachment.state === "attached") {
      this.#index(id, attachment);
    } else {
      if (attachment.noticePending) this.#pending.add(id);
      for (const resolve of this.#waiting.get(id) ?? []) resolve();
    }
  }

  #index(id: string, { claim, scope, source, result }: Attachment): void {
    add(this.#byClaim, claim, id);
    if (source === "claim" || source === "block")
      for (const { address } of result.addresses) add(this.#byPoolAddress, address, id);
    for (const { address } of result.addresses) {
      // written out by the configuration: nobody keeps them apart, and no block gives them
      if (source === "static") this.#use?.held(address);
      else this.space(scope).hold(address, id);
    }
  }

  #unindex(id: string, before: Attachment, freedAt: number | undefined): void {
    const { claim, scope, source, result } = before;
    this.#pending.delete(id);
    for (const { address } of result.addresses) {
      if (source !== "static") this.space(scope).release(address, id, freedAt);
      else if (before.state === "attached") this.#use?.freed(address, freedAt);
      remove(this.#byPoolAddress, address, id);
    }
    remove(this.#byClaim, claim, id);
  }

  #at(ids: Iterable<string> = []): readonly Attachment[] {
    return [...ids].map((id) => this.#byPlace.get(id)).filter((found) => found !== undefined);
  }

  #publishReported(place: AttachmentId): void {
    const current = this.get(place);
    if (current?.state === "detached") this.#publish({ ...current, noticePending: false });
  }

  #forget(place: AttachmentId): void {
    const current = this.get(place);
    if (current?.state !== "detached" || current.noticePending) return;
    const id = attachmentKey(place);
    this.#byPlace.delete(id);
    remove(this.#byPod, current.pod?.uid, id);
    remove(this.#byInterface, interfaceKey(current), id);
  }
}

function interfaceKey({
  containerID,
  interface: name,
}: Pick<AttachmentId, "containerID" | "interface">): string {
  return `${containerID}\0${name}`;
}

function add<K>(index: Map<K, Set<string>>, key: K | undefined, id: string): void {
  if (key !== undefined) index.set(key, (index.get(key) ?? new Set()).add(id));
}

function remove<K>(index: Map<K, Set<string>>, key: K | undefined, id: string): void {
  if (key === undefined) return;
  const ids = index.get(key);
  if (ids?.delete(id) === true && ids.size === 0) index.delete(key);
}
