// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../../allocator/base/errors.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { PoolRecord } from "../../../allocator/pool/pool.ts";
import type { WriteAnswer } from "../../../allocator/store/etcd/client.ts";
import type {
  Change,
  ChangeResult,
  KeyValue,
  Range,
  RangeResult,
} from "../../../allocator/store/etcd/messages.ts";
import type { Store } from "../../../allocator/store/store.ts";
import { ManualClock } from "../../../test/support/clock.ts";
import { addr, claimRecord, reservationsOf, storedAs } from "../../../test/support/fixtures.ts";
import { FormerNetwork } from "../former-network.ts";

const FOLDER = "/etcd-cni/networks/lan";

/** An etcd with network `lan` of cni-ipam-etcd, and what an import makes beside it, by no rules but that an address is given once. */
export class FormerEtcd {
  readonly pools = new Map<string, PoolRecord>();
  readonly claims = new Map<string, Claim>();
  readonly reported: string[] = [];
  readonly clock = new ManualClock();
  /** Happens before a change of a key. */
  changing = (_change: Change) => {};
  /** The answers of changes do not come. */
  isLosing = false;
  readonly #keys = new Map<string, KeyValue>();
  #revision = 0;

  /** With the bounds that cni-ipam-etcd wrote last. */
  constructor(rangeStart: string, rangeEnd: string) {
    this.#put(
      FOLDER,
      JSON.stringify([[{ rangeStart, rangeEnd, subnet: "10.0.0.0/24", gateway: "10.0.0.254" }]]),
    );
  }

  use(address: string, container: string): void {
    this.#put(`${FOLDER}/used/${address}`, container);
  }

  end(address: string): void {
    this.#keys.delete(`${FOLDER}/used/${address}`);
  }

  /** address -> whose it is, by the keys of cni-ipam-etcd */
  used(): Readonly<Record<string, string>> {
    const own = [...this.#keys.values()].filter(({ key }) => key !== FOLDER);
    return Object.fromEntries(own.map(({ key, value }) => [key.slice(`${FOLDER}/used/`.length), value]));
  }

  /** The addresses of each claim. */
  given(): Readonly<Record<string, readonly Address[]>> {
    return Object.fromEntries([...this.claims].map(([name, { addresses }]) => [name, addresses]));
  }

  hold(name: string, address: string, over: Partial<Claim> = {}): void {
    const addresses = [addr(address)];
    this.claims.set(name, claimRecord({ namespace: "default", name, addresses, handMade: true, ...over }));
  }

  get network(): FormerNetwork {
    return new FormerNetwork(
      { range: (range) => this.#range(range), change: (change) => this.#change(change) },
      "lan",
    );
  }

  get parts() {
    return {
      network: this.network,
      store: this.store,
      clock: { sleep: async () => {} },
      makePool: async (pool: PoolRecord) => void this.pools.set(pool.name, pool),
      makeClaim: async ({ name }: Pick<Claim, "name">, address: Address) => {
        const holder = this.#holderOf(address);
        if (holder !== undefined) return `${address} is taken by ${holder.name}`;
        this.hold(name, address);
        return undefined;
      },
      releaseClaim: async ({ name }: Pick<Claim, "name">) => void this.claims.delete(name),
      report: ({ address, container }: { readonly address: Address; readonly container: string }) =>
        void this.reported.push(`${address} ${container}`),
    };
  }

  get store(): Pick<Store, "get"> {
    const get = async (kind: string, key: string) => {
      if (kind === "pool")
        return this.pools.has(key) ? storedAs("pool", this.pools.get(key) as PoolRecord) : undefined;
      if (kind === "claim") {
        const claim = this.claims.get(key.replace("default/", ""));
        return claim && storedAs("claim", claim);
      }
      const holder = this.#holderOf(key);
      const reservation = holder && reservationsOf(holder).find(({ address }) => address === key);
      return reservation && storedAs("reservation", reservation);
    };
    return { get: get as Store["get"] };
  }

  #holderOf(address: string): Claim | undefined {
    return [...this.claims.values()].find(({ addresses }) => addresses.some((own) => own === address));
  }

  #put(key: string, value: string): void {
    this.#revision++;
    this.#keys.set(key, { key, value, createRevision: 1, modRevision: this.#revision });
  }

  async #range({ key, end }: Range): Promise<RangeResult> {
    const entries = [...this.#keys.values()].filter((one) =>
      end === undefined ? one.key === key : one.key >= key && one.key < end,
    );
    return { cluster: "1", term: 1, revision: this.#revision, entries, more: false };
  }

  async #change(change: Change): Promise<WriteAnswer<ChangeResult>> {
    this.changing(change);
    const there = this.#keys.get(change.key);
    const done = (there?.modRevision ?? 0) === change.modRevision;
    if (done) this.#put(change.key, change.value ?? "");
    if (this.isLosing) return { kind: "lost", error: new BerthError("STORE_UNAVAILABLE", "lost") };
    return { kind: "answer", done, revision: this.#revision, there: done ? undefined : there, unmet: false };
  }
}
