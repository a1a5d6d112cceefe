// SPDX-License-Identifier: Apache-2.0
// Cilium's agents in mode cluster-pool, as agents.ts has them in other modes: one that has a CIDR for good, and one that has several.
import assert from "node:assert/strict";
import { Agent, addressesOf, type CiliumAgent, type CiliumObject } from "./agents.ts";

/** `hostscope.go`: podCIDRs are read once; pods are served from the first of a family. */
export class ClusterPoolAgent extends Agent implements CiliumAgent {
  #own: readonly string[] | undefined;

  async sync(): Promise<void> {
    if (this.#own !== undefined) return;
    const [first] = (await this.read())?.spec.ipam?.podCIDRs ?? [];
    if (first !== undefined) this.#own = addressesOf(first).slice(1, -1);
  }

  async report(): Promise<void> {}

  add(): string | undefined {
    const free = this.#own?.find((ip) => !this.used.has(ip));
    if (free !== undefined) this.used.add(free);
    return free;
  }

  del(address: string): void {
    assert.ok(this.used.delete(address));
  }
}

/** A range of a `podCIDRPool`. */
interface PodRange {
  readonly cidr: string;
  isRemoved: boolean;
}

/** Mode `cluster-pool-v2beta` of 1.14.0 and before, IPv4: `clusterpool.go` (crdWatcher) and `pool.go` (podCIDRPool). */
export class GrowingClusterPoolAgent extends Agent implements CiliumAgent {
  #own: CiliumObject | undefined;
  #ranges: PodRange[] = []; // ipAllocators
  #released = new Set<string>();

  /** localNodeUpdated, updatePool */
  async sync(): Promise<void> {
    const own = await this.read();
    if (own === undefined) return;
    this.#own = own;
    const listed = new Set(own.spec.ipam?.podCIDRs);
    this.#released = new Set([...this.#released].filter((cidr) => listed.has(cidr)));
    const kept = this.#ranges.filter((range) => {
      if (listed.has(range.cidr)) return true;
      range.isRemoved ||= this.#usedIn(range.cidr) > 0;
      return this.#usedIn(range.cidr) > 0;
    });
    const added = [...listed].filter((cidr) => !kept.some((range) => range.cidr === cidr));
    this.#ranges = [...kept, ...added.map((cidr) => ({ cidr, isRemoved: false }))];
  }

  /** updateCiliumNodeStatus */
  async report(): Promise<void> {
    if (this.#own === undefined) return;
    const { uid, resourceVersion } = this.#own.metadata;
    const before = this.#own.status?.ipam?.["pod-cidrs"] ?? {};
    const now = this.#states();
    const gone = Object.keys(before).flatMap((cidr) => (cidr in now ? [] : [[cidr, null] as const]));
    const body = {
      metadata: { uid, resourceVersion },
      status: { ipam: { "pod-cidrs": { ...Object.fromEntries(gone), ...now } } },
    };
    await this.client.patch({ name: this.node }, { type: "merge", body }, "status");
  }

  /** clusterPoolV2Beta1Status: what is released counts as that, whoever uses it after all. */
  #states(): Readonly<Record<string, { readonly status: string }>> {
    const { ipam } = this.#own?.spec ?? {};
    const growBelow = ipam?.["pod-cidr-allocation-threshold"] || 8;
    const free = this.#releaseExcess(ipam?.["pod-cidr-release-threshold"] || 16);
    const ranges = this.#ranges.map(({ cidr }) => {
      const isDepleted = free < growBelow || this.#freeIn(cidr) === 0;
      return [cidr, { status: isDepleted ? "depleted" : "in-use" }] as const;
    });
    const released = [...this.#released].map((cidr) => [cidr, { status: "released" }] as const);
    return Object.fromEntries([...ranges, ...released]);
  }

  /** calculateIPsLocked, releaseExcessCIDRsLocked; gives what was free before. */
  #releaseExcess(shrinkAbove: number): number {
    const counted = this.#ranges.filter(({ cidr, isRemoved }) => !isRemoved && !this.#released.has(cidr));
    const before = counted.reduce((sum, { cidr }) => sum + this.#freeIn(cidr), 0);
    let free = before;
    for (const range of this.#ranges.toReversed()) {
      if (this.#released.has(range.cidr) || this.#usedIn(range.cidr) > 0) continue;
      const own = this.#freeIn(range.cidr);
      if (!range.isRemoved && free - own < shrinkAbove) continue;
      if (!range.isRemoved) free -= own;
      range.isRemoved = false;
      this.#released.add(range.cidr);
    }
    return before;
  }

  #usedIn(cidr: string): number {
    return addressesOf(cidr).filter((ip) => this.used.has(ip)).length;
  }

  #freeIn(cidr: string): number {
    return addressesOf(cidr).length - 2 - this.#usedIn(cidr);
  }

  /** allocateNext: of a range that is released too, as long as it is listed. */
  add(): string | undefined {
    for (const { cidr } of this.#ranges.filter(({ isRemoved }) => !isRemoved)) {
      const free = addressesOf(cidr)
        .slice(1, -1)
        .find((ip) => !this.used.has(ip));
      if (free === undefined) continue;
      this.used.add(free);
      return free;
    }
    return undefined;
  }

  del(address: string): void {
    assert.ok(this.used.delete(address));
  }
}
