// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../allocator/base/errors.ts";
import { requestFor } from "../../allocator/demand/build-request.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { placeOf } from "../../allocator/store/kubernetes/objects.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, itemPath, RESERVATIONS } from "../../kube/api/resource.ts";
import type { ClusterCaches } from "../../webhook/cluster-state/caches.ts";
import { openTestReplica } from "../api/replica-deps.ts";
import { applicantOf, granted, namespaceFacts } from "../support/fixtures.ts";
import { deleteAll } from "./bare.ts";
import { type Contender, NAMESPACE, POOL } from "./contender.ts";

/** Berth as a replica of its webhook runs it: its allocator, its store, its copy of the records from watches. */
export class BerthAllocator implements Contender {
  readonly #connection: Connection;
  #replica: ClusterCaches | undefined;
  #made: { readonly claim: string; readonly addresses: readonly string[] }[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Resolves when its copy is complete, and is kept up to date. Nothing is taken before. */
  async watch(): Promise<void> {
    this.#replica ??= await openTestReplica(this.#connection);
  }

  /** Ends its watches, so that they cost those nothing whose turn it is. */
  async rest(): Promise<void> {
    await this.#replica?.close();
    this.#replica = undefined;
  }

  async take(name: string): Promise<number> {
    if (this.#replica === undefined) throw new Error("it does not watch");
    const identity = { kind: "Pod", apiVersion: "v1", name };
    const podIdentity = { kind: "named", claim: name, identity } as const;
    const namespace = namespaceFacts(NAMESPACE);
    const now = Date.now();
    const allocation = granted(
      requestFor(applicantOf({ podIdentity, namespace, request: { pools: [POOL] }, token: name, now })),
    );
    const answer = await reserve(this.#replica.context, allocation, "pod");
    if (isRefusal(answer)) throw new Error(`${name} is refused: ${answer.message}`);
    const { addresses } = answer.claim.record;
    this.#made.push({ claim: name, addresses });
    return 0;
  }

  async clear(): Promise<void> {
    const made = this.#made;
    this.#made = [];
    const paths = made.flatMap(({ claim, addresses }) => [
      itemPath(CLAIMS, { namespace: NAMESPACE, name: claim }),
      ...addresses.map((address) =>
        itemPath(RESERVATIONS, placeOf("reservation", address) ?? { name: address }),
      ),
    ]);
    await deleteAll(this.#connection, paths);
  }
}
