// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/ip/address.ts";
import { type Claim, DEFAULT_RETENTION } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import { placeOf, specOf } from "../../allocator/store/kubernetes/objects.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, itemPath, type ObjectName, RESERVATIONS } from "../../kube/api/resource.ts";
import { addressAt, type Contender, NAMESPACE, POOL } from "./contender.ts";
import { BARE_CLAIMS, BARE_RESERVATIONS } from "./stand-ins.ts";

/** Each counts up in a part of so many addresses, from its begin again when that is used up and given back. */
export const PART = 4_000;
/** How many deletions are under way at once. */
const CLEARING = 32;

/** The two records that Berth writes for a new identity with this address. */
export function recordsOf(name: string, address: Address, nonce: string) {
  const claim: Claim = {
    namespace: NAMESPACE,
    name,
    identity: { kind: "Pod", apiVersion: "v1", name },
    request: { pools: [POOL] },
    retention: DEFAULT_RETENTION,
    addresses: [address],
    nonce,
    admittedAt: Date.now(),
    status: {},
  };
  const reservation: Reservation = { address, pool: POOL, claim: { namespace: NAMESPACE, name }, nonce };
  return { claim, reservation };
}

/**
 * What the API server can do: the same two objects of the same schema by the same client, and nothing else. Addresses
 * are counted up, in a part of the pool that nobody else uses. `watched`: in Berth's own kinds, which its replicas
 * watch.
 */
export class BareCreates implements Contender {
  readonly #connection: Connection;
  readonly #kinds: { readonly reservations: Client; readonly claims: Client };
  readonly #from: number;
  #count = 0;
  #made: (readonly [Client, ObjectName])[] = [];

  constructor(connection: Connection, options: { readonly from: number; readonly watched: boolean }) {
    this.#connection = connection;
    const [reservations, claims] = options.watched
      ? [RESERVATIONS, CLAIMS]
      : [BARE_RESERVATIONS, BARE_CLAIMS];
    this.#kinds = {
      reservations: new Client(connection, reservations),
      claims: new Client(connection, claims),
    };
    this.#from = options.from;
  }

  async take(name: string): Promise<number> {
    const address = addressAt(this.#from + (this.#count++ % PART));
    const { claim, reservation } = recordsOf(name, address, `nonce-of-${name}`.padEnd(26, "x"));
    await this.#create(
      this.#kinds.reservations,
      placeOf("reservation", address),
      specOf("reservation", reservation),
    );
    await this.#create(this.#kinds.claims, { namespace: NAMESPACE, name }, specOf("claim", claim));
    return 0;
  }

  async #create(client: Client, place: ObjectName | undefined, spec: object): Promise<void> {
    if (place === undefined) throw new RangeError("no place for an object");
    const made = await client.create(place, { spec, metadata: {} });
    if (made === undefined) throw new Error(`${client.resource.kind} ${place.name} is there already`);
    this.#made.push([client, place]);
  }

  async clear(): Promise<void> {
    const made = this.#made;
    this.#made = [];
    await deleteAll(
      this.#connection,
      made.map(([client, place]) => itemPath(client.resource, place)),
    );
  }
}

/** Deletes objects by their paths, many at a time. */
export async function deleteAll(connection: Connection, paths: readonly string[]): Promise<void> {
  const left = paths.values();
  const work = async () => {
    for (const path of left) {
      const { status } = await connection.call({ method: "DELETE", path });
      if (status !== 200 && status !== 202 && status !== 404) throw new Error(`DELETE ${path}: ${status}`);
    }
  };
  await Promise.all(Array.from({ length: CLEARING }, work));
}
