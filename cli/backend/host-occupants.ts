// SPDX-License-Identifier: Apache-2.0
// Addresses that this host has itself: no pod may have them (ADR 0026).

import { networkInterfaces } from "node:os";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import { type Address, type Family, parseAddress } from "../../allocator/ip/address.ts";
import type { IntervalSet } from "../../allocator/ip/interval-set.ts";
import type { ClaimPlace } from "../../allocator/model/container-claim.ts";
import type { Occupant } from "../../allocator/model/occupant.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import type { Pool } from "../../allocator/pool/pool.ts";

/** A bridge may get its address with the first pod: looking costs a tenth of a millisecond. */
const LOOK_EVERY_MS = 1_000;

/** An address of this host, and the interface that has it. */
interface HostAddress {
  readonly address: Address;
  readonly interface: string;
}

export function hostOccupants(): Occupied[] {
  return occupantsOf(hostAddresses());
}

function occupantsOf(all: readonly HostAddress[]): Occupied[] {
  return all.map(({ address, interface: name }) => [address, { kind: "host", namespace: "", name }]);
}

/** Those that are up in the network namespace of this process, without loopback. */
function hostAddresses(): readonly HostAddress[] {
  const found: HostAddress[] = [];
  for (const [name, entries = []] of Object.entries(networkInterfaces())) {
    for (const entry of entries) {
      const address = entry.internal ? undefined : parseAddress(entry.address);
      if (address !== undefined) found.push({ address, interface: name });
    }
  }
  return found;
}

/** The records in memory, beside the addresses that this host has: looked at when somebody plans. */
export class HostRecordCache extends RecordCache {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #read: () => readonly HostAddress[];
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    log: Logger,
    clock: Pick<Clock, "monotonic">,
    { read = hostAddresses, place = {} }: { read?: () => readonly HostAddress[]; place?: ClaimPlace } = {},
  ) {
    super(log, place);
    this.#clock = clock;
    this.#read = read;
  }

  override unpickable(pool: Pool, family: Family): IntervalSet {
    this.#look();
    return super.unpickable(pool, family);
  }

  override occupant(address: Address): Occupant | undefined {
    this.#look();
    return super.occupant(address);
  }

  #look(): void {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    const seen = new Map(occupantsOf(this.#read()));
    for (const address of [...this.occupants().keys()]) if (!seen.has(address)) this.vacate(address);
    for (const [address, occupant] of seen) {
      if (this.occupants().get(address)?.name !== occupant.name) this.occupy(address, occupant);
    }
  }
}
