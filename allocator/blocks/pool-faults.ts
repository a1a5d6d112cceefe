// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../base/ports.ts";
import { Rests } from "../base/rests.ts";
import type { Pool } from "../pool/pool.ts";

/** Multiples of it, without their whole parts, are spread evenly however many there are. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/** Who asks for a block of a pool. */
interface Asker {
  readonly node: string;
  readonly nodeUID: string;
}

/** Who asked in vain in a try that met a fault: the next ones are for others, until the pool has rested. */
interface Failed {
  /** As it was then. */
  readonly pool: Pool;
  readonly refused: Set<string>;
  /** For whom nothing was tried, since nothing went well. */
  readonly untried: Set<string>;
  /** What was wrong is not that of who asked. */
  isWhole: boolean;
}

interface Trying {
  /** Blocks are for those alone who have not asked in vain before. */
  readonly isRest: boolean;
  readonly failed: Failed | undefined;
  /** What was wrong first, in this pass. */
  readonly said: Said | undefined;
  /** For whom it was tried in vain, or not at all, in this pass. */
  readonly inVain: Set<string>;
  /** Who asked for something in this pass. */
  readonly asked: Set<string>;
}

/** What is told of a pool. */
interface Said {
  readonly words: string;
  /** Who was refused with these words; absent: they are of more than that. */
  readonly of: string | undefined;
}

/** Why blocks, or CIDRs of nodes, of pools could not be given in the last pass, and for whom they are not tried in this one. */
export class PoolFaults {
  readonly #rests: Rests;
  #before: ReadonlyMap<string, Said> = new Map();
  #said = new Map<string, Said>(); // pool -> in this pass
  readonly #failed = new Map<string, Failed>(); // pool -> of the last try for all
  readonly #trying = new Map<string, Trying>(); // pool -> in this pass
  readonly #refusals = new Map<string, number>(); // who was refused -> by which refusal of all at last
  #count = 0;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#rests = new Rests(clock);
  }

  /** By the name of the pool. */
  get words(): ReadonlyMap<string, string> {
    return new Map([...this.#said].map(([name, { words }]) => [name, words]));
  }

  beginPass(): void {
    this.#before = this.#said;
    this.#said = new Map();
    this.#trying.clear();
    this.#rests.forgetOld();
    if (this.#before.size === 0) this.#refusals.clear();
    for (const name of this.#failed.keys()) if (!this.#before.has(name)) this.#failed.delete(name);
  }

  /** Of all who are there, which is more than who asks: one that is gone, and comes again, is refused nothing yet. */
  forgetGone(there: () => Iterable<Asker>): void {
    if (this.#failed.size === 0 && this.#refusals.size === 0) return;
    const keys = new Set(Array.from(there(), keyOf));
    const all = [...this.#failed.values()].flatMap(({ refused, untried }) => [refused, untried]);
    for (const known of [this.#refusals, ...all])
      for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
  }

  /**
   * Begins a try of the pool, once in a pass. If it met a fault a moment ago, and is the same since, it stands as it was told, and blocks of
   * it are for those alone who have not asked before.
   */
  begin(pool: Pool): void {
    const said = this.#before.get(pool.name);
    const failed = this.#failed.get(pool.name);
    const isRest = said !== undefined && failed?.pool === pool && this.#rests.isResting(pool.name);
    if (isRest) this.#said.set(pool.name, said);
    this.#trying.set(pool.name, tryOf(isRest));
  }

  /** Whether what met a fault a moment ago was more than what some asked for. */
  restsWhole({ name }: Pool): boolean {
    return this.#trying.get(name)?.isRest === true && this.#failed.get(name)?.isWhole === true;
  }

  /**
   * Those who are tried now. A try of all begins with some from everywhere, and who was refused comes last: it ends where nothing goes well,
   * and others would never have their turn.
   */
  due<A extends Asker>(pool: Pool, askers: readonly A[]): readonly A[] {
    for (const one of askers) this.#trying.get(pool.name)?.asked.add(keyOf(one));
    const failed = this.#failed.get(pool.name);
    if (failed === undefined) return askers;
    const { refused, untried } = failed;
    const fresh = askers.filter((one) => !refused.has(keyOf(one)));
    if (this.#trying.get(pool.name)?.isRest === true) return fresh.filter((one) => !untried.has(keyOf(one)));
    return [...spread(fresh), ...spread(askers.filter((one) => refused.has(keyOf(one))))];
  }

  /** A number by which a plan has those first who were not refused, and then those whose refusal is longest ago: it may not be any more. */
  lineOf(one: Asker): number {
    return this.#refusals.get(keyOf(one)) ?? 0;
  }

  /**
   * Whom a plan is to leave out, for what it has for them to go to others: first all who were refused, or have no turn now, and then, where
   * all are tried, those of this pass alone: who was refused before may not be any more.
   */
  *leftOut({ name }: Pool): Generator<(one: Asker) => boolean, void, void> {
    const { isRest = false, inVain = new Set() } = this.#trying.get(name) ?? {};
    if (!isRest && inVain.size === 0) return;
    const { refused, untried } = this.#failed.get(name) ?? {};
    const all = [inVain, refused, isRest ? untried : undefined];
    yield (one) => all.some((keys) => keys?.has(keyOf(one)));
    if (!isRest) yield (one) => inVain.has(keyOf(one));
  }

  /** They have what they asked for. */
  served({ name }: Pool, askers: readonly Asker[]): void {
    for (const one of askers) {
      const key = keyOf(one);
      this.#trying.get(name)?.inVain.delete(key);
      this.#refusals.delete(key);
      for (const failed of [this.#failed.get(name), this.#trying.get(name)?.failed])
        failed?.refused.delete(key);
    }
  }

  /** `of`: whom it kept from having theirs, first of all the one that the words are of; absent: it is more than that. */
  met(
    pool: Pool,
    words: string,
    of?: { readonly refused: readonly Asker[]; readonly untried: readonly Asker[] },
  ): void {
    const { name } = pool;
    const [first] = of?.refused ?? [];
    const trying = this.#trying.get(name) ?? tryOf(false);
    const said = trying.said ?? { words, of: first && keyOf(first) };
    this.#said.set(name, this.#before.get(name) ?? said);
    const failed = trying.isRest ? this.#failed.get(name) : trying.failed;
    const refusedBefore = this.#failed.get(name)?.refused;
    const all = failed ?? { pool, refused: new Set(refusedBefore), untried: new Set(), isWhole: false };
    for (const one of of?.refused ?? []) {
      all.refused.add(keyOf(one));
      this.#refusals.set(keyOf(one), ++this.#count);
    }
    for (const one of of?.untried ?? []) all.untried.add(keyOf(one));
    for (const one of [...(of?.refused ?? []), ...(of?.untried ?? [])]) trying.inVain.add(keyOf(one));
    if (of === undefined) all.isWhole = true;
    this.#trying.set(name, { ...trying, failed: all, said });
  }

  /** All of the pool was tried. For whom it was tried beside the others' rest changes nothing about that. */
  tried({ name }: Pool): void {
    const trying = this.#trying.get(name);
    if (trying === undefined || trying.isRest) return;
    if (trying.failed === undefined) {
      this.#failed.delete(name);
      this.#rests.end(name);
    } else {
      this.#failed.set(name, trying.failed);
      this.#rests.begin(name);
      this.#say(name, trying);
    }
  }

  /** The words stay, which may name another block each time, until the one that they are of is served or gone, or asks no more. */
  #say(name: string, { said, failed, asked, inVain }: Trying): void {
    const before = this.#before.get(name);
    if (said === undefined || before === undefined) return;
    const { of } = before;
    const asks = (key: string) => failed?.refused.has(key) === true && (asked.has(key) || inVain.has(key));
    const isStill = of === undefined ? said.of === undefined : asks(of);
    if (!isStill) this.#said.set(name, said);
  }
}

function tryOf(isRest: boolean): Trying {
  return { isRest, failed: undefined, said: undefined, inVain: new Set(), asked: new Set() };
}

/** However few one takes of the first, they are from all parts of what was given. */
function spread<T>(all: readonly T[]): readonly T[] {
  const places = all.map((one, n) => ({ one, place: (n * GOLDEN) % 1 }));
  return places.sort((a, b) => a.place - b.place).map(({ one }) => one);
}

/** A Node that was made again under its name is another. */
function keyOf({ node, nodeUID }: Asker): string {
  return `${node} ${nodeUID}`;
}
