// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal, type Refusal } from "../../../../allocator/base/errors.ts";
import type { RecordCache } from "../../../../allocator/cache/cache.ts";
import type { Context } from "../../../../allocator/cache/context.ts";
import { findOverlap } from "../../../../allocator/pool/overlap.ts";
import { type PoolRecord, parseStoredPool } from "../../../../allocator/pool/pool.ts";
import type { HostRegistry } from "../../../../allocator/store/etcd/hosts.ts";
import type { AttachmentKey, PodRef } from "../claim-source.ts";
import type { SaidNames, SharedConfig } from "../shared-networks.ts";
import { containerName, NAMESPACE } from "./container-name.ts";
import { unprovable } from "./etcd-claims.ts";
import { differsFrom, poolName, poolOfNetwork, unclearAddresses } from "./network-pool.ts";
import type { Presence } from "./presence.ts";

interface EtcdNetworksOptions {
  readonly context: Context & { readonly view: RecordCache };
  /** This host's name. */
  readonly node: string;
  readonly registry: Pick<HostRegistry, "get">;
  readonly presence: Pick<Presence, "refusal" | "beat">;
  /** Resolves once this host is known in etcd, and every record is known here. Rejects in words when that takes too long. */
  readonly whole: () => Promise<void>;
}

/** Networks that are kept in one etcd. */
export class EtcdNetworks {
  readonly #options: EtcdNetworksOptions;

  constructor(options: EtcdNetworksOptions) {
    this.#options = options;
  }

  /** As SharedNetworks has it. */
  async poolsOf(network: string, config: SharedConfig): Promise<readonly string[] | Refusal> {
    return await proven(namesOf(network, config), () => this.#poolsOf(network, config));
  }

  async refusalFor(network: string, config: SharedConfig): Promise<Refusal | undefined> {
    return await proven(namesOf(network, config), async () => {
      const own = await this.#judge(network, config);
      if (isRefusal(own)) return own;
      await this.#options.registry.get(this.#options.node); // nothing is given that etcd does not confirm
      return undefined;
    });
  }

  async #poolsOf(network: string, config: SharedConfig): Promise<readonly string[] | Refusal> {
    const own = await this.#judge(network, config);
    if (isRefusal(own) || Array.isArray(own)) return own;
    const pool = own as PoolRecord;
    const { store, view, log } = this.#options.context;
    if (view.pool(pool.name) !== undefined) return [pool.name];
    const made = await store.create("pool", pool);
    view.apply("pool", { type: "put", stored: made.stored });
    if (made.kind === "created")
      log.info("pool made of a network's configuration", { pool: pool.name, network });
    const differs = made.kind === "created" ? undefined : differsFromStored(made.stored.record, pool);
    return differs ?? [pool.name];
  }

  async holderOf(
    container: AttachmentKey,
    { pod, name }: SaidNames,
    pools: readonly string[],
  ): Promise<PodRef> {
    const said = pod ?? (name === undefined ? undefined : { namespace: NAMESPACE, name, uid: "" });
    if (said === undefined) return containerName(container);
    const { store, view } = this.#options.context;
    const key = `${said.namespace}/${said.name}`;
    const claim = (await proven(pools, () => store.get("claim", key)))?.record;
    const isForIt =
      claim?.handMade === true &&
      claim.addresses.every((address) => pools.includes(view.poolOf(address)?.name ?? ""));
    return isForIt ? said : containerName(container);
  }

  /** The pools that the configuration names, or the one that it is. */
  async #judge(
    network: string,
    { pools, rangeSets }: SharedConfig,
  ): Promise<readonly string[] | PoolRecord | Refusal> {
    const { presence, whole } = this.#options;
    await whole();
    if (presence.refusal !== undefined) await presence.beat(); // whatever it was may be over since
    if (presence.refusal !== undefined) throw new BerthError("NOT_READY", presence.refusal);
    const unclear = unclearAddresses(network, { pools, rangeSets });
    if (unclear !== undefined) return unclear;
    if (pools.length > 0) return pools;
    return this.#fit(poolOfNetwork(network, rangeSets));
  }

  #fit(own: PoolRecord | Refusal): PoolRecord | Refusal {
    if (isRefusal(own)) return own;
    const { view } = this.#options.context;
    const stored = view.pool(own.name);
    if (stored !== undefined) return differsFrom(stored, own) ?? own;
    const read = parseStoredPool(own);
    return isRefusal(read) ? read : (findOverlap(view.pools(), read) ?? own);
  }
}

function differsFromStored(stored: PoolRecord, own: PoolRecord): Refusal | undefined {
  const read = parseStoredPool(stored);
  return isRefusal(read) ? read : differsFrom(read, own);
}

/** The pools by which a network is known, before anybody has looked. */
export function namesOf(network: string, { pools }: SharedConfig): readonly string[] {
  return pools.length > 0 ? pools : [poolName(network)];
}

/** What etcd's silence makes of an ADD, in the words for an operator. */
export async function proven<T>(pools: readonly string[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof BerthError ? unprovable(error, pools) : error;
  }
}
