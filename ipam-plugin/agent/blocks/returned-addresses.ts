// SPDX-License-Identifier: Apache-2.0
import { type Address, fromNumber, parseCidr, toNumber } from "../../../allocator/ip/address.ts";
import { without } from "../../../allocator/ip/ip-range.ts";
import { holesOf, holesText, networkOfBlock, returnedOf } from "../../../allocator/model/block.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { JournalBlock, OwnedBlock } from "../journal/owned-blocks.ts";

/** The block as its record has it. */
export function ownedOf({ key, uid, record }: Stored<"block">): OwnedBlock {
  return { cidr: key, uid, pool: record.pool, holes: record.holes };
}

export function idOf({ cidr, uid }: Pick<OwnedBlock, "cidr" | "uid">): string {
  return `${cidr}\0${uid}`;
}

/** What this process knows to be given back of blocks one by one, besides their records and the journal. */
export class ReturnedAddresses {
  readonly #known = new Map<string, readonly Address[]>(); // CIDR and UID -> addresses

  of(stored: Stored<"block">): readonly Address[] {
    return this.#known.get(idOf(ownedOf(stored))) ?? [];
  }

  note(stored: Stored<"block">, addresses: readonly Address[]): void {
    this.#known.set(idOf(ownedOf(stored)), addresses);
  }

  forget(block: Pick<OwnedBlock, "cidr" | "uid">): void {
    this.#known.delete(idOf(block));
  }

  /** The block without them: so far as the record says it, the journal, where they are holes, and this process. */
  ownedOf(stored: Stored<"block">, row: JournalBlock | undefined): OwnedBlock {
    const block = ownedOf(stored);
    const said = [...returnedOf(stored.record), ...this.of(stored)];
    const isJournalled = row !== undefined && row.holes.join() !== block.holes.join();
    const network = parseCidr(stored.key);
    if (network === undefined || (said.length === 0 && !isJournalled)) return block;
    const holes = holesOf(block);
    for (const address of said) holes.add(toNumber(address));
    if (isJournalled) for (const interval of holesOf(row)) holes.addInterval(interval);
    return { ...block, holes: holesText(holes, network.family) };
  }
}

/** What was given back one by one: first what the record says, in its order, which only grows. */
export function returnedIn(stored: Stored<"block">, { holes }: OwnedBlock): readonly Address[] {
  const said = returnedOf(stored.record);
  const network = networkOfBlock(stored.key);
  const all: Address[] = [];
  for (const { first, last } of without([...holesOf({ holes })], holesOf(stored.record)))
    for (let n = first; n <= last; n++) all.push(fromNumber(n, network.family));
  return [...said, ...all.filter((address) => !said.includes(address))];
}
