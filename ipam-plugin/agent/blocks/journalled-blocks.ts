// SPDX-License-Identifier: Apache-2.0
import type { BlockChange, JournalBlock, OwnedBlock } from "../journal/owned-blocks.ts";
import { idOf } from "./returned-addresses.ts";

/** In place of a boot: the journal's word about the block does not count before it is proven. */
const DOUBTED = "";

/** What the journal has of the node's blocks, and which of these it is still to be told to doubt. */
export class JournalledBlocks {
  readonly #bootId: string;
  readonly #rows = new Map<string, JournalBlock>(); // CIDR and UID -> what the journal has of it
  #nodeUID = "";
  readonly #doubted = new Set<string>(); // CIDR and UID of those of which the journal is still to be told that they are unproven

  constructor(stored: readonly JournalBlock[], bootId: string) {
    this.#bootId = bootId;
    for (const block of stored) this.#rows.set(idOf(block), block);
  }

  all(): Iterable<JournalBlock> {
    return this.#rows.values();
  }

  of(block: Pick<OwnedBlock, "cidr" | "uid">): JournalBlock | undefined {
    return this.#rows.get(idOf(block));
  }

  /** By CIDR and UID: the journal has it of this boot, and does not doubt it. */
  isOfThisBoot(id: string): boolean {
    return this.#rows.get(id)?.bootId === this.#bootId;
  }

  /** Those that are not among these, by CIDR and UID. */
  besides(known: ReadonlySet<string>): readonly JournalBlock[] {
    return [...this.#rows].filter(([id]) => !known.has(id)).map(([, row]) => row);
  }

  /** What the journal is to be told of those that it is to doubt, but for those that it is to forget. */
  doubted(gone: readonly JournalBlock[]): readonly JournalBlock[] {
    const departed = new Set(gone.map(idOf));
    return [...this.#doubted].flatMap((id) => (departed.has(id) ? [] : (this.#rows.get(id) ?? [])));
  }

  /** The host's Node object is this one: what the journal has of another one does not count before it is proven. */
  ofNode(uid: string): void {
    this.#nodeUID = uid;
    this.#doubt(({ nodeUID }) => nodeUID !== "" && nodeUID !== uid);
  }

  doubtAll(): void {
    this.#doubt(() => true);
  }

  #doubt(which: (row: JournalBlock) => boolean): void {
    for (const [id, row] of this.#rows) {
      if (row.bootId === DOUBTED || !which(row)) continue;
      this.#rows.set(id, { ...row, bootId: DOUBTED });
      this.#doubted.add(id);
    }
  }

  /** By CIDR and UID: it is proven by now. */
  trust(id: string): void {
    this.#doubted.delete(id);
  }

  /** Undefined: the journal says so already. */
  rowFor(block: OwnedBlock): JournalBlock | undefined {
    const row = this.of(block);
    const isSame = row?.bootId === this.#bootId && row.nodeUID === this.#nodeUIDOf(block);
    if (isSame && row.holes.join() === block.holes.join()) return undefined;
    return this.rowOf(block, row?.returningAt ?? 0);
  }

  /** The block as it is seen to be this node's now. */
  rowOf({ cidr, uid, pool, holes }: OwnedBlock, returningAt: number): JournalBlock {
    const nodeUID = this.#nodeUIDOf({ cidr, uid });
    return { cidr, uid, pool, holes, bootId: this.#bootId, nodeUID, returningAt };
  }

  /** Blocks are listed before the Node object is: until then the journal's word about it stays, to be compared with that. */
  #nodeUIDOf(block: Pick<OwnedBlock, "cidr" | "uid">): string {
    return this.#nodeUID === "" ? (this.of(block)?.nodeUID ?? "") : this.#nodeUID;
  }

  /** The journal has it. */
  written({ put = [], gone = [] }: BlockChange): void {
    for (const row of put) {
      const id = idOf(row);
      const isOlder = this.#doubted.has(id) && row.bootId !== DOUBTED; // it was on its way when the doubt came
      this.#rows.set(id, isOlder ? { ...row, bootId: DOUBTED } : row);
      if (!isOlder) this.#doubted.delete(id);
    }
    for (const row of gone) {
      this.#doubted.delete(idOf(row));
      this.#rows.delete(idOf(row));
    }
  }
}
