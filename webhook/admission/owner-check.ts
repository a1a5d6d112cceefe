// SPDX-License-Identifier: Apache-2.0
// A pod gets an entry of a list because of the owner that it names. Only who may read that object knows its UID: a stranger does not.

import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import type { PodAllocation } from "../../allocator/demand/pod-allocation.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { PodOwner } from "../../allocator/model/identity.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { apiVersionOf, REPLICASETS } from "../../kube/api/resource.ts";
import { KnownAccess } from "./access-reviews.ts";
import type { AdmissionContext, Owners } from "./admission-context.ts";

/** Why no entry is held for the pod: nothing that it says owns it is there. Of kinds that are not read nothing is said. */
export async function unknownOwner(
  { owners, inventory }: Pick<AdmissionContext, "owners" | "inventory">,
  { metadata: { namespace, owner } }: KubeObject,
  { kind }: PodAllocation,
): Promise<Refusal | undefined> {
  if (owners === undefined || owner === undefined || kind === "own") return undefined;
  const isThere = isReplicaSet(owner)
    ? await owners.isThere(namespace, owner)
    : await isReadAndThere(inventory, namespace, owner);
  if (isThere) return undefined;
  return refuse(
    "OBJECT_INVALID",
    `there is no ${owner.kind} ${namespace}/${owner.name} with the UID that this pod has for its owner; an entry of a list is held for pods of an owner that is there`,
    { namespace },
  );
}

/** A workload that Berth reads anyway, or one that it does not. */
async function isReadAndThere(
  inventory: AdmissionContext["inventory"],
  namespace: string,
  { apiVersion, kind, name, uid }: PodOwner,
): Promise<boolean> {
  const found = await inventory.workload({ apiVersion, kind, namespace, name });
  return typeof found === "string" || found?.uid === uid;
}

function isReplicaSet({ apiVersion, kind }: PodOwner): boolean {
  return kind === REPLICASETS.kind && isSameGroup(apiVersion, apiVersionOf(REPLICASETS));
}

/** Reads a ReplicaSet from the API server, and remembers for a short time that it is there. */
export class LiveOwners implements Owners {
  readonly #replicaSets: Client;
  readonly #known: KnownAccess; // by namespace, name and UID

  constructor(connection: Connection, clock: Pick<Clock, "monotonic">) {
    this.#replicaSets = new Client(connection, REPLICASETS);
    this.#known = new KnownAccess(clock);
  }

  /** Throws BerthError STORE_UNAVAILABLE or TIMED_OUT when the API server does not say. */
  async isThere(namespace: string, { name, uid }: PodOwner): Promise<boolean> {
    const key = `${namespace}/${name}/${uid}`;
    if (this.#known.of(key) === true) return true;
    const found = await this.#replicaSets.get({ namespace, name });
    const isThere = found?.metadata.uid === uid && uid !== "";
    // what is not there may come, and every guess is another one
    if (isThere) this.#known.remember(key, true);
    return isThere;
  }
}
