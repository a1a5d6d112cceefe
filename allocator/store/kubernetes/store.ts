// SPDX-License-Identifier: Apache-2.0

import { type Body, Client } from "../../../kube/api/client.ts";
import type { Connection } from "../../../kube/api/connection.ts";
import type { KubeItem, ObjectName } from "../../../kube/api/resource.ts";
import { listAndWatch } from "../../../kube/watch/list-watch.ts";
import type { WatchMetrics } from "../../../kube/watch/watch-metrics.ts";
import { BerthError, isCorrupt } from "../../base/errors.ts";
import type { Clock, Logger, Metrics, Random } from "../../base/ports.ts";
import type { BlockStatus } from "../../model/block.ts";
import type { Claim, ClaimStatus } from "../../model/claim.ts";
import { keyOf } from "../codec.ts";
import { MAX_ATTEMPTS } from "../retry-on-conflict.ts";
import type {
  Change,
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Store,
  Stored,
} from "../store.ts";
import { mustBeOpen } from "../writes.ts";
import {
  blockStatusPatch,
  finalizersFor,
  isGone,
  keyOfPlace,
  mayBeUnknown,
  needsReport,
  placeOf,
  resourceOf,
  specOf,
  statusPatch,
  storedOf,
} from "./objects.ts";

export interface KubernetesStoreDeps {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Objects in a page of a list, 500 if absent. */
  readonly pageSize?: number;
  /** How a watch makes its full pass, `stream` if absent. */
  readonly pass?: "stream" | "pages";
  /** Told how the watches are. */
  readonly health?: WatchMetrics;
  readonly metrics?: Metrics;
}

const PAGE_SIZE = 500;
/** Set to something new when a write changes nothing else: the port promises a new revision for every write. */
const REPEAT = "berth.dev/repeat";
/** So long after a create of a claim was refused in a namespace, the next one there is rehearsed first. */
const REFUSING_MS = 60_000;
const MOST_REFUSING = 1_000;
/** A create that finds the name taken, and then nothing under it, looks again so often. */
const CREATE_ROUNDS = 5;

/**
 * The store in the custom resources of an API server. Uniqueness is that of object names; every change names the
 * resourceVersion and uid that were seen. Closing it ends its watches; the connection belongs to whoever opened it.
 */
export function openKubernetesStore(deps: KubernetesStoreDeps): Store {
  return new KubernetesStore(deps);
}

class KubernetesStore implements Store {
  /** `metadata.creationTimestamp`, which the API server sets. */
  readonly stampsSeconds = true;
  readonly #deps: KubernetesStoreDeps;
  readonly #clients: { readonly [K in Kind]: Client };
  readonly #closing = new AbortController();
  readonly #refusing = new Map<string, number>(); // namespace -> until when its claims are rehearsed, monotonic

  constructor(deps: KubernetesStoreDeps) {
    this.#deps = deps;
    const client = (kind: Kind) => new Client(deps.connection, resourceOf(kind));
    this.#clients = {
      pool: client("pool"),
      claim: client("claim"),
      reservation: client("reservation"),
      block: client("block"),
    };
  }

  async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    const place = this.#place(kind, keyOf(kind, record));
    const status = "request" in record ? record.status : undefined;
    const finalizers = finalizersFor(undefined, record);
    const body = { spec: specOf(kind, record), metadata: finalizers ? { finalizers } : {} };
    for (let round = 0; round < CREATE_ROUNDS; round++) {
      const item = await this.#tryCreate(kind, place, body);
      if (item !== undefined) {
        const whole = status && needsReport(status) ? await this.#reportFirst(place, item, status) : item;
        return { kind: "created", stored: storedOf(kind, whole) };
      }
      const there = await this.#clients[kind].get(place);
      if (there !== undefined) return { kind: "exists", stored: storedOf(kind, there) };
    }
    const words = `${kind} ${keyOf(kind, record)} is created and deleted by others again and again`;
    throw new BerthError("REVISION_CONFLICT", words, { details: { kind, key: keyOf(kind, record) } });
  }

  async mayCreate(claim: Claim): Promise<void> {
    const until = this.#refusing.get(claim.namespace);
    if (until === undefined) return;
    if (this.#deps.clock.monotonic() < until) {
      const place = this.#place("claim", keyOf("claim", claim));
      await this.#clients.claim.rehearseCreate(place, { spec: specOf("claim", claim) });
    }
    this.#refusing.delete(claim.namespace);
  }

  async #tryCreate(kind: Kind, place: ObjectName, body: Body): Promise<KubeItem | undefined> {
    try {
      return await this.#clients[kind].create(place, body);
    } catch (error) {
      const refused = error instanceof BerthError && error.code === "WRITE_REFUSED";
      if (refused && place.namespace !== undefined) this.#refuses(place.namespace);
      throw error;
    }
  }

  #refuses(namespace: string): void {
    if (this.#refusing.size >= MOST_REFUSING) this.#refusing.clear();
    this.#refusing.set(namespace, this.#deps.clock.monotonic() + REFUSING_MS);
  }

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    mustBeOpen(this.#closing);
    const place = placeOf(kind, key);
    const item = place && (await this.#clients[kind].get(place));
    return item && storedOf(kind, item);
  }

  /** Binding a claim to a node also puts Berth's finalizer on it, and ending that takes it away: in this one write. */
  async replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    if (keyOf(kind, next) !== seen.key) {
      throw new BerthError("INTERNAL", `${kind} ${seen.key} cannot become ${keyOf(kind, next)}`);
    }
    const place = this.#place(kind, seen.key);
    const client = this.#clients[kind];
    const finalizers = finalizersFor(seen, next);
    const operations = [
      { op: "replace", path: "/metadata/uid", value: seen.uid },
      { op: "replace", path: "/metadata/resourceVersion", value: seen.revision },
      { op: "replace", path: "/spec", value: specOf(kind, next, seen) },
      ...(finalizers ? [{ op: "add", path: "/metadata/finalizers", value: finalizers }] : []),
    ];
    const item = await client.patch(place, { type: "json", operations, mayBeUnknown: mayBeUnknown(next) });
    if (item?.metadata.resourceVersion !== seen.revision || isGone(item)) return this.#resultOf(kind, item);
    // It changed nothing, and the API server gives no new revision for that.
    const metadata = { ...preconditionsOf(seen), annotations: { [REPEAT]: this.#deps.random.token() } };
    return this.#resultOf(kind, await client.patch(place, { type: "merge", body: { metadata } }));
  }

  async report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return await this.#reportOf("claim", seen, statusPatch(status, seen));
  }

  async reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    return await this.#reportOf("block", seen, blockStatusPatch(status));
  }

  async #reportOf<K extends Kind>(kind: K, seen: Stored<K>, status: Body): Promise<ReplaceResult<K>> {
    const place = this.#place(kind, seen.key);
    const metadata = preconditionsOf(seen);
    const item = await this.#report(kind, place, { metadata, status });
    if (item?.metadata.resourceVersion !== seen.revision) return this.#resultOf(kind, item);
    const repeat = { metadata, status: { repeat: this.#deps.random.token() } };
    return this.#resultOf(kind, await this.#report(kind, place, repeat));
  }

  async remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    const place = this.#place(kind, seen.key);
    const removed = await this.#clients[kind].remove(place, preconditionsOf(seen));
    if (!removed) this.#conflict();
    return { kind: removed ? "removed" : "conflict" };
  }

  /** In the order of the objects' names: that of keys, but for IPv6 addresses, which are in the order of their numbers. */
  async *list<K extends Kind>(kind: K, namespace?: string): AsyncGenerator<Stored<K>, void, void> {
    mustBeOpen(this.#closing);
    const selection = namespace === undefined ? {} : { namespace };
    for await (const { items } of this.#clients[kind].pages(selection, this.#deps.pageSize ?? PAGE_SIZE)) {
      for (const item of items) yield storedOf(kind, item);
    }
  }

  async listAtOnce<K extends Kind>(kind: K, namespace: string): Promise<readonly Stored<K>[] | undefined> {
    mustBeOpen(this.#closing);
    const from = { limit: this.#deps.pageSize ?? PAGE_SIZE, next: "" };
    const page = await this.#clients[kind].pageAtOnce({ namespace }, from);
    return page?.next === "" ? page.items.map((item) => storedOf(kind, item)) : undefined;
  }

  /**
   * An object that is no record is logged, and is as if it were gone: everybody may write objects into an API server,
   * and one of them must not end what all replicas live by. Its name stays taken, for creates decide about that.
   */
  async *watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncGenerator<Change<K>, void, void> {
    const { connection, clock, random, log, pageSize, pass, health } = this.#deps;
    const options = {
      ...{ connection, clock, random, log, resource: resourceOf(kind) },
      ...(pageSize === undefined ? {} : { pageSize }),
      ...(pass === undefined ? {} : { pass }),
      ...(health === undefined ? {} : { health }),
    };
    const ends = AbortSignal.any([signal, this.#closing.signal]);
    for await (const change of listAndWatch(options, ends)) {
      if (change.type === "relist" || change.type === "synced") {
        yield change;
        continue;
      }
      const stored = change.type === "put" ? this.#readable(kind, change.item) : undefined;
      const key = keyOfPlace(kind, change.item.metadata);
      if (stored !== undefined) yield { type: "put", stored };
      else if (key !== undefined) yield { type: "gone", key };
    }
  }

  #readable<K extends Kind>(kind: K, item: KubeItem): Stored<K> | undefined {
    try {
      return storedOf(kind, item);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      this.#deps.log.error("record cannot be read and is passed over", {
        kind,
        key: error.details["key"],
        error: error.message,
      });
      return undefined;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }

  /** The status of a claim that was just made; whoever changes the claim meanwhile must not make it fail. */
  async #reportFirst(place: ObjectName, made: KubeItem, status: ClaimStatus): Promise<KubeItem> {
    let item = made;
    for (let round = 0; round < MAX_ATTEMPTS; round++) {
      const { uid, resourceVersion } = item.metadata;
      const body = { metadata: { uid, resourceVersion }, status: statusPatch(status) };
      const reported = await this.#report("claim", place, body);
      if (reported !== undefined) return reported;
      const now = await this.#clients.claim.get(place);
      if (now?.metadata.uid !== uid) return item;
      item = now;
    }
    return item;
  }

  #report(kind: Kind, place: ObjectName, body: Body): Promise<KubeItem | undefined> {
    return this.#clients[kind].patch(place, { type: "merge", body }, "status");
  }

  #resultOf<K extends Kind>(kind: K, item: KubeItem | undefined): ReplaceResult<K> {
    if (item !== undefined) return { kind: "replaced", stored: storedOf(kind, item) };
    this.#conflict();
    return { kind: "conflict" };
  }

  #conflict(): void {
    this.#deps.metrics?.increment("berth_store_conflicts_total");
  }

  #place(kind: Kind, key: string): ObjectName {
    mustBeOpen(this.#closing);
    const place = placeOf(kind, key);
    if (place !== undefined) return place;
    const words = `${kind} ${key} cannot be stored: its name is no name in Kubernetes`;
    throw new BerthError("INTERNAL", words, { details: { kind, key } });
  }
}

function preconditionsOf({ uid, revision }: Stored<Kind>): { uid: string; resourceVersion: string } {
  return { uid, resourceVersion: revision };
}
