// SPDX-License-Identifier: Apache-2.0
// What Cilium's agents do with a CiliumNode, by the letter of pkg/ipam of v1.20.2 (and v1.15.0, which is the same in this), step by step as a
// test asks: `crd.go` (nodeStore, crdAllocator) and `multipool_manager.go` with `pool.go`. The code itself runs in
// test/cilium/agent; this needs no Go.
import assert from "node:assert/strict";
import { fromNumber, parseCidr } from "../../allocator/ip/address.ts";
import { fullInterval } from "../../allocator/ip/ip-range.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import type { KubeItem } from "../../kube/api/resource.ts";
import { CILIUM_NODES } from "../../webhook/controllers/cilium/cilium-node.ts";

export interface CiliumObject extends KubeItem {
  readonly spec: {
    readonly ipam?: {
      readonly pool?: Readonly<Record<string, object>>;
      readonly podCIDRs?: readonly string[];
      readonly "pod-cidr-allocation-threshold"?: number;
      readonly "pod-cidr-release-threshold"?: number;
      readonly pools?: {
        readonly requested?: readonly {
          readonly pool: string;
          readonly needed: Readonly<Record<string, number>>;
        }[];
        readonly allocated?: readonly { readonly pool: string; readonly cidrs: readonly string[] }[];
      };
    };
  };
  readonly status?: {
    readonly ipam?: {
      readonly used?: Readonly<Record<string, object>>;
      readonly "release-ips"?: Readonly<Record<string, string>>;
      readonly "pod-cidrs"?: Readonly<Record<string, { readonly status: string }>>;
      readonly "operator-status"?: { readonly error?: string };
    };
  };
}

/** An agent of one node. `sync` is what its informer does, `report` its writes: at most every 15 s, and as late as one likes. */
export interface CiliumAgent {
  readonly node: string;
  /** Addresses that pods have. */
  readonly used: ReadonlySet<string>;
  sync(): Promise<void>;
  report(): Promise<void>;
  /** Undefined: it has none that is free. */
  add(): string | undefined;
  del(address: string): void;
}

export abstract class Agent {
  readonly node: string;
  readonly used = new Set<string>();
  protected readonly client: Client;

  constructor(connection: Connection, node: string) {
    this.node = node;
    this.client = new Client(connection, CILIUM_NODES);
  }

  async read(): Promise<CiliumObject | undefined> {
    return (await this.client.get({ name: this.node })) as CiliumObject | undefined;
  }
}

/** Mode `crd`. */
export class CrdAgent extends Agent implements CiliumAgent {
  #own: CiliumObject | undefined; // nodeStore.ownNode
  #releases: Record<string, string> = {}; // its status.ipam.release-ips, with the agent's answers

  /** updateLocalNodeResource */
  async sync(): Promise<void> {
    const own = await this.read();
    if (own?.metadata.resourceVersion === this.#own?.metadata.resourceVersion) return;
    this.#own = own;
    this.#releases = { ...own?.status?.ipam?.["release-ips"] };
    const pool = own?.spec.ipam?.pool;
    if (pool === undefined) return;
    for (const [ip, state] of Object.entries(this.#releases)) {
      if (state === "ready-for-release" || state === "do-not-release") continue;
      if (!(ip in pool)) {
        if (state === "released") delete this.#releases[ip];
        else this.#releases[ip] = "do-not-release";
      } else if (state === "marked-for-release") {
        this.#releases[ip] = this.used.has(ip) ? "do-not-release" : "ready-for-release";
      }
    }
  }

  /** refreshNode: UpdateStatus with the version that it has; a conflict is tried again later. */
  async report(): Promise<void> {
    if (this.#own === undefined) return;
    const { uid, resourceVersion } = this.#own.metadata;
    const before = this.#own.status?.ipam;
    const gone = (was: object | undefined, now: object) =>
      Object.fromEntries(Object.keys(was ?? {}).flatMap((key) => (key in now ? [] : [[key, null]])));
    const used = Object.fromEntries([...this.used].map((ip) => [ip, { owner: "pod" }]));
    const ipam = {
      used: { ...gone(before?.used, used), ...used },
      "release-ips": { ...gone(before?.["release-ips"], this.#releases), ...this.#releases },
    };
    const body = { metadata: { uid, resourceVersion }, status: { ipam } };
    const written = await this.client.patch({ name: this.node }, { type: "merge", body }, "status");
    if (written !== undefined) this.#own = written as CiliumObject;
  }

  /** allocateNext */
  add(): string | undefined {
    const pool = this.#own?.spec.ipam?.pool ?? {};
    const free = Object.keys(pool).find((ip) => {
      const isLeaving = ["marked-for-release", "ready-for-release", "released"].includes(
        this.#releases[ip] ?? "",
      );
      return !this.used.has(ip) && !isLeaving;
    });
    if (free !== undefined) this.used.add(free);
    return free;
  }

  del(address: string): void {
    assert.ok(this.used.delete(address));
  }
}

/** Mode `multi-pool`, IPv4 of one pool. */
export class MultiPoolAgent extends Agent implements CiliumAgent {
  readonly #pool: string;
  readonly #preAlloc: number;
  #own: CiliumObject | undefined;
  #allocators: string[] = []; // cidrPool.ipAllocators
  #released = new Set<string>();
  #pending = 0;

  constructor(connection: Connection, node: string, pool = "default", preAlloc = 8) {
    super(connection, node);
    this.#pool = pool;
    this.#preAlloc = preAlloc;
  }

  /** upsertPoolLocked, updatePool */
  async sync(): Promise<void> {
    this.#own = await this.read();
    const entries = this.#own?.spec.ipam?.pools?.allocated ?? [];
    const entry = entries.find(({ pool }) => pool === this.#pool);
    if (entry === undefined) return;
    const listed = new Set(entry.cidrs);
    this.#released = new Set([...this.#released].filter((cidr) => listed.has(cidr)));
    const kept = this.#allocators.filter((cidr) => listed.has(cidr) || this.#usedIn(cidr) > 0);
    const added = [...listed].filter((cidr) => !kept.includes(cidr) && !this.#released.has(cidr));
    this.#allocators = [...kept, ...added];
  }

  /** updateLocalNode */
  async report(): Promise<void> {
    if (this.#own === undefined) return;
    const needed = neededIPCeil(this.used.size + this.#pending, this.#preAlloc);
    this.#releaseExcess(Math.max(needed - this.used.size, 0));
    const { pools } = this.#own.spec.ipam ?? {};
    const others = (pools?.allocated ?? []).filter(({ pool }) => pool !== this.#pool);
    const own =
      this.#allocators.length === 0 ? [] : [{ pool: this.#pool, cidrs: this.#allocators.toSorted() }];
    const requested = [{ pool: this.#pool, needed: { "ipv4-addrs": needed } }];
    const { uid, resourceVersion } = this.#own.metadata;
    const body = {
      metadata: { uid, resourceVersion },
      spec: { ipam: { pools: { requested, allocated: [...others, ...own] } } },
    };
    await this.client.patch({ name: this.node }, { type: "merge", body });
  }

  /** releaseExcessCIDRsMultiPool */
  #releaseExcess(needed: number): void {
    let free = this.#allocators.reduce((sum, cidr) => sum + this.#freeIn(cidr), 0);
    const kept: string[] = [];
    for (const cidr of this.#allocators.toReversed()) {
      const own = this.#freeIn(cidr);
      if (this.#usedIn(cidr) === 0 && free - own >= needed) {
        this.#released.add(cidr);
        free -= own;
      } else kept.push(cidr);
    }
    this.#allocators = kept.reverse();
  }

  #usedIn(cidr: string): number {
    return addressesOf(cidr).filter((ip) => this.used.has(ip)).length;
  }

  #freeIn(cidr: string): number {
    return addressesOf(cidr).length - 2 - this.#usedIn(cidr);
  }

  add(): string | undefined {
    for (const cidr of this.#allocators) {
      const free = addressesOf(cidr)
        .slice(1, -1)
        .find((ip) => !this.used.has(ip));
      if (free === undefined) continue;
      this.used.add(free);
      this.#pending = 0;
      return free;
    }
    this.#pending = 1;
    return undefined;
  }

  del(address: string): void {
    assert.ok(this.used.delete(address));
  }
}

function neededIPCeil(count: number, preAlloc: number): number {
  const quotient = Math.floor(count / preAlloc);
  return (quotient + (count % preAlloc > 0 ? 2 : 1)) * preAlloc;
}

export function addressesOf(text: string): readonly string[] {
  const cidr = parseCidr(text);
  assert.ok(cidr, text);
  const { first, last } = fullInterval(cidr);
  return Array.from({ length: Number(last - first) + 1 }, (_, i) =>
    fromNumber(first + BigInt(i), cidr.family),
  );
}
