// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import type { Context } from "../cache/context.ts";
import { type Address, type Family, familyOf, parseCidr, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval } from "../ip/ip-range.ts";
import { isDetached } from "../lifecycle/bind.ts";
import type { Block } from "../model/block.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import type { ClusterState } from "../model/cluster-state.ts";
import type { Stored } from "../store/store.ts";
import { inSlices } from "./in-slices.ts";

/** In case a change was missed; and `ServerTimes` must be asked about each record before it forgets it. */
const ALL_EVERY_MS = 300_000;

/** Claims read in one go, in 1 ms or so. */
const SLICE = 500;
const NOTHING: Readonly<Record<Family, IntervalSet>> = { IPv4: new IntervalSet(), IPv6: new IntervalSet() };

type Looked = "claim" | "reservation";

/** What a pass looks at. Each record is read when its turn comes. */
export interface PassScope {
  claims(): Iterable<Stored<"claim">>;
  reservations(): Iterable<Stored<"reservation">>;
}

/**
 * Which records a pass of the garbage collector looks at (ADR 0045): unsettled ones, about which time alone may change the decision, and
 * those that have changed since the last pass or whose pods, workloads or nodes have. It looks at all of them every ALL_EVERY_MS, and in
 * each pass where changes are not told (`onChange`).
 */
export class Unsettled {
  readonly #view: Context["view"];
  readonly #clock: Context["clock"];
  readonly #state: ClusterState;
  readonly #keys: Readonly<Record<Looked, Set<string>>> = { claim: new Set(), reservation: new Set() };
  readonly #objects = new Map<string, readonly [kind: string, key: string]>(); // both of them -> what has changed
  readonly #namespaces = new Set<string>(); // whose annotations or labels have changed
  #owned = NOTHING; // addresses of blocks that were granted, or whose holes have changed
  readonly #nodes = new Set<string>(); // to which settled claims are bound whose sandboxes may be alive
  readonly #following: readonly (() => void)[] | undefined;
  /** Monotonic: a pass from then on looks at all. */
  #allAt = Number.NEGATIVE_INFINITY;

  /** `state`: what is known of the owners of what is settled. */
  constructor({ view, clock }: Pick<Context, "view" | "clock">, state: ClusterState) {
    this.#view = view;
    this.#clock = clock;
    this.#state = state;
    this.#following = this.#follow();
  }

  close(): void {
    for (const end of this.#following ?? []) end();
  }

  async begin(): Promise<PassScope> {
    const now = this.#clock.monotonic();
    if (this.#following === undefined || now >= this.#allAt) {
      this.#allAt = now + ALL_EVERY_MS;
      // all are looked at, so nothing need be noted; a pass that breaks off is made again as a whole (`addAll`)
      const { claim, reservation } = this.#keys;
      for (const noted of [claim, reservation, this.#objects, this.#namespaces, this.#nodes]) noted.clear();
      this.#owned = NOTHING;
      return { claims: () => this.#view.claims(), reservations: () => this.#view.reservations() };
    }
    await this.#addFenced();
    this.#addChanged();
    await this.#addAffected();
    const claims = [...this.#keys.claim];
    return {
      claims: () => this.#found("claim", claims, (key) => this.#view.claim(key)),
      reservations: () =>
        this.#found("reservation", [...this.#keys.reservation], (key) =>
          this.#view.reservation(key as Address),
        ),
    };
  }

  /** The pass has read these: from here on each change of them counts for the next pass. */
  take(kind: Looked, records: readonly { readonly key: string }[]): void {
    for (const { key } of records) this.#keys[kind].delete(key);
  }

  /** The next pass looks at these again. */
  add(kind: Looked, keys: Iterable<string>): void {
    for (const key of keys) this.#keys[kind].add(key);
  }

  /** The claim is looked at again only when something changes, or its node is fenced. */
  settle(claim: Claim): void {
    if (claim.binding !== undefined && !isDetached(claim)) this.#nodes.add(claim.binding.node);
  }

  /** The next pass looks at everything. */
  addAll(): void {
    this.#allAt = Number.NEGATIVE_INFINITY;
  }

  *#found<R>(kind: Looked, keys: readonly string[], find: (key: string) => R | undefined): Generator<R> {
    for (const key of keys) {
      const record = find(key);
      if (record === undefined) this.#keys[kind].delete(key);
      else yield record;
    }
  }

  #follow(): readonly (() => void)[] | undefined {
    const [view, state] = [this.#view, this.#state];
    if (view.onChange === undefined || view.claimsOnNode === undefined || state.onChange === undefined)
      return undefined;
    return [
      state.onChange((kind, key) => this.#objectChanged(kind, key)),
      view.onChange("claim", (key, _, before) => {
        this.add("claim", [key]);
        // addresses that it listed before may be listed by no claim now
        this.add("reservation", before?.record.addresses ?? []);
      }),
      view.onChange("reservation", (address, _, before) => {
        this.add("reservation", [address]);
        if (before !== undefined) this.add("claim", [claimKey(before.record.claim)]);
      }),
      view.onChange("pool", (_, now, before) => {
        // which pools there are decides which requests of workloads' templates are for Berth
        if (!isDeepStrictEqual(now?.record, before?.record)) this.addAll();
      }),
      view.onChange("block", (_, now, before) => {
        // its node may give addresses now that claims list
        if (now !== undefined && !isDeepStrictEqual(now.record.holes, before?.record.holes))
          this.#own(now.record);
      }),
    ];
  }

  /** Only noted: the next pass looks their claims up, once for many changes. */
  #objectChanged(kind: string, key: string): void {
    if (kind === "Namespace") this.#namespaces.add(key);
    else this.#objects.set(`${kind} ${key}`, [kind, key]);
  }

  #own(block: Block): void {
    const cidr = parseCidr(block.cidr);
    if (cidr === undefined) return;
    if (this.#owned === NOTHING) this.#owned = { IPv4: new IntervalSet(), IPv6: new IntervalSet() };
    this.#owned[cidr.family].addInterval(fullInterval(cidr));
  }

  /** No index finds these claims: all claims are read once, which costs little beside judging all of them. */
  async #addAffected(): Promise<void> {
    const [namespaces, owned] = [new Set(this.#namespaces), this.#owned];
    if (namespaces.size === 0 && owned === NOTHING) return;
    this.#namespaces.clear(); // changes from here on count for the next pass
    this.#owned = NOTHING;
    await inSlices(this.#clock, this.#view.claims(), SLICE, (part) => {
      for (const { key, record } of part) {
        const isIn = (address: Address) => owned[familyOf(address)].has(toNumber(address));
        if (namespaces.has(record.namespace) || record.addresses.some(isIn)) this.#keys.claim.add(key);
      }
    });
  }

  #addChanged(): void {
    for (const [kind, key] of this.#objects.values()) {
      const [namespace = "", name = ""] = key.split("/");
      const claims =
        kind === "Pod"
          ? this.#view.claimsOfPod(namespace, name)
          : this.#view.claims({ kind, namespace, name });
      for (const { key: claim } of claims) this.#keys.claim.add(claim);
    }
    this.#objects.clear();
  }

  /** A node may become fenced because time has passed, of which no change tells. */
  async #addFenced(): Promise<void> {
    // all at once: for hosts of an etcd one call answers for all, and it takes long to fail when etcd is away
    const answers = [...this.#nodes].map(async (node) => ({
      node,
      // a fault counts as fenced: who judges the claims meets it again
      isFenced: await this.#state.fenced(node).catch(() => true),
    }));
    for (const { node, isFenced } of await Promise.all(answers)) {
      if (!isFenced) continue;
      this.#nodes.delete(node);
      for (const { key } of this.#view.claimsOnNode?.(node) ?? []) this.#keys.claim.add(key);
    }
  }
}
