// SPDX-License-Identifier: Apache-2.0
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import type { Claim } from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import { countFamilies } from "../planning/eligibility.ts";
import type { ByFamily, Use } from "../pool/namespace-bounds.ts";

/** Of one pool. */
interface Counted {
  readonly held: ByFamily;
  readonly cooling: ByFamily;
  readonly byClaim: ReadonlyMap<string, readonly Address[]>; // name of a claim -> what it holds
  /** What no claim holds, and is kept from others. */
  readonly cools: ReadonlySet<Address>;
}

/**
 * What a namespace has, by a list of its claims. Many ask about it at the same moment, each about what others than one claim have: all is
 * counted once, for each of them would count 50,000 addresses anew before anybody else has his turn.
 */
export class NamespaceUse {
  readonly #view: RecordReader;
  readonly #namespace: string;
  readonly #holders = new Map<string, Map<Address, string>>(); // pool -> address -> name of the claim that holds it
  readonly #counted = new Map<string, Counted>();

  constructor(view: RecordReader, namespace: string) {
    this.#view = view;
    this.#namespace = namespace;
  }

  enter({ name, addresses }: Claim): void {
    for (const address of addresses) {
      const pool = this.#view.poolOf(address)?.name;
      if (pool === undefined) continue;
      const holders = this.#holders.get(pool) ?? new Map<Address, string>();
      this.#holders.set(pool, holders.set(address, name));
    }
  }

  /**
   * What the namespace has beside the claim. What cools, or is shown as it was before it did, is taken from the view: to read all
   * reservations anew would cost more than the few that a view which is behind has not heard of.
   */
  beside({ name, addresses }: Claim, pool: string): Use {
    const { held, cooling, byClaim, cools } = this.#countedIn(pool);
    const listed = byClaim.get(name) ?? [];
    const isKept = (address: Address) => this.#isKept(this.#view.reservation(address)?.record, pool);
    const lost = listed.filter((address) => !addresses.includes(address) && isKept(address));
    const own = addresses.filter((address) => cools.has(address));
    return {
      held: sum(held, countFamilies(listed), -1),
      cooling: sum(sum(cooling, countFamilies(own), -1), countFamilies(lost), 1),
    };
  }

  #countedIn(pool: string): Counted {
    const known = this.#counted.get(pool);
    if (known !== undefined) return known;
    const holders = this.#holders.get(pool) ?? new Map<Address, string>();
    const byClaim = new Map<string, Address[]>();
    for (const [address, name] of holders) byClaim.set(name, [...(byClaim.get(name) ?? []), address]);
    const cools = new Set<Address>();
    for (const { record } of this.#view.reservations(pool)) {
      if (!holders.has(record.address) && this.#isKept(record, pool)) cools.add(record.address);
    }
    const counted = { held: countFamilies(holders.keys()), cooling: countFamilies(cools), byClaim, cools };
    this.#counted.set(pool, counted);
    return counted;
  }

  #isKept(kept: Reservation | undefined, pool: string): boolean {
    return kept?.pool === pool && kept.claim.namespace === this.#namespace;
  }
}

function sum(some: ByFamily, others: ByFamily, sign: 1 | -1): ByFamily {
  const { IPv4 = 0, IPv6 = 0 } = others;
  return { IPv4: (some.IPv4 ?? 0) + sign * IPv4, IPv6: (some.IPv6 ?? 0) + sign * IPv6 };
}
