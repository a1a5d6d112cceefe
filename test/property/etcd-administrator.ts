// SPDX-License-Identifier: Apache-2.0
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { HostRegistry } from "../../allocator/store/etcd/hosts.ts";
import { openEtcdStore } from "../../allocator/store/etcd/store.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import { loadCache } from "../../cli/backend/embedded-backend.ts";
import { fencedClaims, markGone } from "../../cli/commands/fenced-claims.ts";
import type { ManualClock } from "../support/clock.ts";
import { addrs, claimRecord, poolRecord, reservationsOf } from "../support/fixtures.ts";
import type { SeededRandom } from "../support/random.ts";
import { EtcdLink } from "./etcd-link.ts";
import type { MemoryEtcd } from "./memory-etcd.ts";

const POOL = poolRecord("lan", "10.1.0.0/29", { cooldown: "0s", limits: { perNamespace: 8 } });
/** A claim that a person made, for the container of its name. */
export const FIXED: Claim = claimRecord({
  ...{ namespace: "default", name: "fixed", identity: { kind: "Pod", apiVersion: "v1", name: "fixed" } },
  ...{ addresses: addrs("10.1.0.6"), request: { addresses: addrs("10.1.0.6") }, handMade: true },
});

/** A person with `berthctl --etcd`, who always reaches etcd. */
export class EtcdAdministrator {
  readonly #store: Store;
  readonly #client: EtcdClient;
  readonly #registry: HostRegistry;
  readonly #context: Omit<Parameters<typeof release>[0], "view">;

  constructor({ etcd, clock, random }: { etcd: MemoryEtcd; clock: ManualClock; random: SeededRandom }) {
    const link = new EtcdLink(etcd, random);
    const deps = { clock, random, log: noopLogger };
    this.#client = new EtcdClient(
      { endpoints: ["http://etcd:2379"] },
      { ...deps, connect: () => link.connection() },
    );
    this.#store = openEtcdStore({ ...deps, client: this.#client });
    this.#registry = new HostRegistry(this.#client);
    this.#context = { ...deps, store: this.#store, serial: new KeyedMutex() };
  }

  async makePool(): Promise<void> {
    await this.#store.create("pool", POOL);
    await this.#store.create("claim", FIXED);
    for (const one of reservationsOf(FIXED, "lan")) await this.#store.create("reservation", one);
  }

  async all<K extends Kind>(kind: K): Promise<readonly Stored<K>[]> {
    return await listed(this.#store, kind);
  }

  /** As `berthctl fence --yes`: false where the host is alive. */
  async fence(name: string, watch: () => Promise<void>): Promise<boolean> {
    const host = await this.#registry.get(name);
    if (host === undefined) return false;
    await watch();
    const etcd = { registry: this.#registry, claims: () => this.all("claim") };
    const marked = await markGone(etcd, host, { at: 1, by: "a person" });
    if (marked === "alive") return false;
    const context = { ...this.#context, view: await loadCache(this.#store) };
    for (const seen of (await fencedClaims(etcd, marked)).claims) await release(context, seen);
    return true;
  }

  async close(): Promise<void> {
    await this.#store.close();
    await this.#client.close();
  }
}
