// SPDX-License-Identifier: Apache-2.0

import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { around } from "../../allocator/lifecycle/block-conflict.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import { singleOf } from "../../allocator/pool/blocks.ts";
import type { StoredHost } from "../../allocator/store/etcd/hosts.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import type { ServiceFacts } from "../../webhook/cluster-state/services.ts";
import type { AttachmentUse } from "./attachment-report.ts";
import { UnreadRecords } from "./unread-records.ts";

/** The objects around the records: those of the API server, or those that were admitted on the embedded stack. */
export interface Objects extends ClusterState {
  object(kind: string, namespace: string, name: string): Promise<KubeObject | undefined>;
  /** Those of the namespace at least, all of them if it is absent. */
  objects(kind: string, namespace?: string): Promise<readonly KubeObject[]>;
  /** Those of the namespace, all of them if it is absent, one by one: in a cluster no more than a page is in memory. */
  each(kind: string, namespace?: string): AsyncIterable<KubeObject>;
}

/** Where a command reads and writes: a data folder, a cluster, or the etcd that hosts share. */
export interface Backend {
  readonly place: "data" | "cluster" | "etcd";
  readonly store: Store;
  readonly world: Objects;
  /** Where namespaced things are looked for when no namespace is given. */
  readonly namespace: string;
  /** Of the stack on this host; empty when none runs, in a cluster and in etcd. */
  readonly node: string;
  /** Those of the namespace at least, all of them if it is absent. */
  claims(namespace?: string): Promise<readonly Stored<"claim">[]>;
  /** What uses the addresses of these claims; on a data folder everything that its journal has. */
  uses(claims: Iterable<Claim>): Promise<readonly AttachmentUse[]>;
  /** The hosts that share an etcd; absent elsewhere. */
  hosts?(): Promise<readonly StoredHost[]>;
  /** What Services have; present in a cluster. */
  readonly services?: () => Promise<ServiceFacts>;
  /** The addresses of this host; present on one that has a data folder. */
  readonly hostOccupants?: () => readonly Occupied[];
  /** What was found so far that cannot be read; present where lists pass such over. */
  readonly unread?: UnreadRecords;
  /** Why no stack may start on the data folder, in words; absent in a cluster, where agents say it themselves. */
  readonly refusedJournal?: () => Promise<string | undefined>;
  /** Lets go of exactly the claim that was seen; `changed`: it is no longer that, and nothing was done. */
  giveBack(context: Context, seen: Stored<"claim">): Promise<"released" | "changed">;
}

/** The namespace of an operand without one: as `apply` and `get` have it. */
export function namespaceFor(backend: Backend, given: string | undefined): string {
  return given ?? backend.namespace;
}

/** The same for a command that only tells what there is: what cannot be read is noted, and not in the view. */
export async function readableCache(
  store: Pick<Store, "get" | "list">,
  address: Address,
): Promise<{ readonly view: RecordCache; readonly unread: UnreadRecords }> {
  const unread = new UnreadRecords();
  const reading: Pick<Store, "get" | "list"> = {
    get: (kind, key) => unread.read(kind, key, () => store.get(kind, key)),
    list: (kind) => store.list(kind),
  };
  return { view: await partialCache(reading, [address]), unread };
}

async function blocksWith(
  store: Pick<Store, "get">,
  view: RecordCache,
  address: Address,
): Promise<Stored<"block">[]> {
  const blocks: Stored<"block">[] = [];
  for (const cidr of around(view, address)) {
    const block = await store.get("block", cidr);
    const single = block?.record.division && (await store.get("block", singleOf(address)));
    blocks.push(...[block, single].flatMap((one) => one ?? []));
  }
  return blocks;
}

/** For a command that decides by itself, on what is stored. */
export function contextOn(
  store: Store,
  view: RecordCache,
  { clock, random }: Pick<Context, "clock" | "random">,
): Context & { readonly view: RecordCache } {
  return { store, view, clock, random, log: noopLogger, serial: new KeyedMutex() };
}

/** A view of all pools, and of these addresses alone: their reservations, the claims that those are for, and the blocks that they are in. */
export async function partialCache(
  store: Pick<Store, "get" | "list">,
  addresses: readonly Address[],
): Promise<RecordCache> {
  const cache = new RecordCache(noopLogger);
  const put = <K extends Kind>(kind: K, stored: Stored<K>) => cache.apply(kind, { type: "put", stored });
  for await (const stored of store.list("pool")) put("pool", stored);
  for (const address of addresses) {
    for (const block of await blocksWith(store, cache, address)) put("block", block);
    const reservation = await store.get("reservation", address);
    if (reservation === undefined) continue;
    put("reservation", reservation);
    const claim = await store.get("claim", claimKey(reservation.record.claim));
    if (claim !== undefined) put("claim", claim);
  }
  return cache;
}
