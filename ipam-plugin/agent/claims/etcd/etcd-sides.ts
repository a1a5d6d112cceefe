// SPDX-License-Identifier: Apache-2.0
import { isRefusal, messageOf, type Refusal, refuse } from "../../../../allocator/base/errors.ts";
import { KeyedMutex } from "../../../../allocator/base/keyed-mutex.ts";
import type { Pool } from "../../../../allocator/pool/pool.ts";
import { accessKey, type EtcdAccess, readEndpoints } from "../../../../allocator/store/etcd/access.ts";
import { EtcdClient } from "../../../../allocator/store/etcd/client.ts";
import { PREFIX } from "../../../../allocator/store/etcd/entry.ts";
import type { EtcdConfig } from "../../../cni/etcd-config.ts";
import type { Attachment } from "../../journal/attachment.ts";
import type { KnownEtcds } from "../../journal/known-etcds.ts";
import { placeOf } from "../claim-place.ts";
import type { AttachmentKey, ClaimSource, PodRef, SandboxNotice } from "../claim-source.ts";
import type { SaidNames, SharedConfig, SharedNetworks, SharedPools } from "../shared-networks.ts";
import { accessOf, type EtcdRules } from "./certificate-paths.ts";
import { namesOf, proven } from "./etcd-networks.ts";
import { type EtcdSide, type EtcdSideOptions, openEtcdSide } from "./etcd-side.ts";
import { formerNotice } from "./former-containers.ts";
import { type InUse, inUseOf } from "./in-use.ts";
import { SideClaims } from "./side-claims.ts";

interface EtcdSidesOptions extends Omit<EtcdSideOptions, "access"> {
  /** The etcd that the agent was started with; absent: it has those alone that networks name. */
  readonly access?: EtcdAccess;
  /** Claims that are in no etcd; absent: there are none but those of `access`. */
  readonly others?: ClaimSource;
  /** What networks may name. */
  readonly rules: EtcdRules;
  /** Those that attachments of the journal may be in. */
  readonly journalled: KnownEtcds<EtcdAccess>;
}

/** One that a network named. */
interface Side {
  readonly name: string;
  readonly etcd: EtcdSide;
  /** As it called itself when it was reached last, by this process or an earlier one. */
  readonly before: string;
  /** A call of this process's life needed it. */
  asked: boolean;
}

/** Each has all its records in memory, and nobody has more than a few. */
const MOST = 16;
/** Of a random token: tells a few apart. */
const NAME_LENGTH = 10;

/** All etcds of an agent: one connection to each cluster, however many networks, URLs and certificates name it. */
export class EtcdSides implements SharedNetworks {
  readonly claimSource: SideClaims;
  readonly #options: EtcdSidesOptions;
  readonly #own: EtcdSide | undefined;
  readonly #sides = new Map<string, Side>(); // name -> etcd
  readonly #byAccess = new Map<string, Side | "own">(); // accessKey -> etcd that is reached so
  readonly #opening = new KeyedMutex();
  /** What containers of this host have of an etcd, without what stands before the claims' names. */
  #inUse: ((etcd: string | undefined) => readonly InUse[]) | undefined;

  /** Connects in the background with what the journal names. Throws BerthError, as the journal and `access` make it. */
  constructor(options: EtcdSidesOptions) {
    this.#options = options;
    const { access, others, journalled, log } = options;
    this.#own = access && openEtcdSide({ ...options, access });
    const own = this.#own?.claimSource ?? others;
    if (own === undefined) throw new TypeError("claims are neither in an etcd nor elsewhere");
    const sides = (name: string) => this.#sides.get(name)?.etcd.claimSource;
    this.claimSource = new SideClaims({ own, sides, names: () => this.#sides.keys(), log });
    for (const { name, cluster, access: past } of journalled.all()) this.#add(name, cluster, past);
  }

  get hasOwn(): boolean {
    return this.#own !== undefined;
  }

  /** Of the etcd that the agent was started with. */
  pools(): Iterable<Pool> {
    return this.#own?.pools() ?? [];
  }

  /**
   * Says in each etcd that this host is there. `attached`: those of the journal. What the journal names and
   * nothing of this host is in any more is left.
   */
  start(attached: () => readonly Attachment[]): void {
    const inUse = (place: string | undefined) =>
      attached()
        .flatMap(inUseOf)
        .map((use) => ({ ...use, ...placeOf(use.claim) }))
        .filter(({ etcd }) => etcd === place);
    this.#inUse = inUse;
    this.#own?.start(() => inUse(undefined));
    for (const side of this.#sides.values()) {
      this.#startOne(side);
      side.etcd.known.then(() => this.#leaveIfUnused(side)).catch(() => undefined); // closed meanwhile
    }
  }

  async close(): Promise<void> {
    const sides = [...this.#sides.values()].map(({ etcd }) => etcd);
    await Promise.all([this.#own, ...sides].map((etcd) => etcd?.close()));
  }

  async poolsOf(network: string, config: SharedConfig): Promise<SharedPools | Refusal> {
    const place = await this.#placeOf(network, config);
    if (isRefusal(place)) return place;
    const pools = await place.etcd.networks.poolsOf(network, config);
    return isRefusal(pools) ? pools : { ...(place.name && { etcd: place.name }), pools };
  }

  async holderOf(container: AttachmentKey, said: SaidNames, { etcd, pools }: SharedPools): Promise<PodRef> {
    const place = etcd === undefined ? this.#own : this.#sides.get(etcd)?.etcd;
    if (place === undefined) throw new TypeError(`nothing is known of ${etcd}`);
    return await place.networks.holderOf(container, said, pools);
  }

  /** Addresses are imported into the etcd that the agent was started with. */
  formerNotice(container: AttachmentKey): SandboxNotice | undefined {
    return this.hasOwn ? formerNotice(container) : undefined;
  }

  async refusalFor(network: string, config: SharedConfig): Promise<Refusal | undefined> {
    const place = await this.#placeOf(network, config);
    return isRefusal(place) ? place : await place.etcd.networks.refusalFor(network, config);
  }

  async #placeOf(
    network: string,
    config: SharedConfig,
  ): Promise<(Pick<Side, "etcd"> & Partial<Pick<Side, "name">>) | Refusal> {
    const side = await proven(namesOf(network, config), () => this.#sideOf(config.etcd));
    if (isRefusal(side)) return side;
    if (side !== "own") {
      side.asked = true;
      return side;
    }
    if (this.#own !== undefined) return { etcd: this.#own };
    const words = `network ${network} names no etcd, and this agent was started without one`;
    return refuse("REQUEST_INVALID", words, { field: "ipam.etcdConfig" });
  }

  async #sideOf(etcd: EtcdConfig | undefined): Promise<Side | "own" | Refusal> {
    if (etcd === undefined) return "own";
    const endpoints = readEndpoints(etcd.url);
    // whatever its certificates: whoever started the agent said how that one is reached
    if (endpoints.some((url) => this.#options.access?.endpoints.includes(url))) return "own";
    const access = accessOf(etcd, this.#options.rules);
    if (isRefusal(access)) return access;
    const key = accessKey(access);
    return this.#byAccess.get(key) ?? (await this.#opening.run("", () => this.#open(key, access)));
  }

  /** One cluster has one connection, or each would take the other's claims for what a crash has left. */
  async #open(key: string, access: EtcdAccess): Promise<Side | "own" | Refusal> {
    const opened = this.#byAccess.get(key);
    if (opened !== undefined) return opened;
    const { journalled, random, log } = this.#options;
    const cluster = await this.#askCluster(access);
    const place = access.endpoints.join(",");
    if (cluster === (await this.#ownCluster())) {
      this.#byAccess.set(key, "own");
      return "own";
    }
    const same = [...this.#sides.values()].find((side) => (side.etcd.cluster ?? side.before) === cluster);
    if (same !== undefined) {
      await journalled.put({ name: same.name, cluster, access });
      await same.etcd.reachBy(access);
      this.#byAccess.set(key, same);
      log.info("etcd is reached as a network says now", { name: same.name, host: place });
      return same;
    }
    if (this.#sides.size >= MOST) {
      const words = `the networks of this host are kept in ${MOST} etcds, and ${place} is one more; take one out of the networks, and start the agent anew`;
      return refuse("REQUEST_INVALID", words, { field: "ipam.etcdConfig.etcdURL" });
    }
    const name = `etcd-${random.token().slice(0, NAME_LENGTH)}`;
    await journalled.put({ name, cluster, access });
    const side = this.#add(name, cluster, access);
    log.info("etcd is used, as a network says", { name, host: place });
    if (this.#inUse !== undefined) this.#startOne(side);
    return side;
  }

  async #ownCluster(): Promise<string | undefined> {
    const { access } = this.#options;
    return this.#own?.cluster ?? (access && (await this.#askCluster(access)));
  }

  async #askCluster(access: EtcdAccess): Promise<string> {
    const client = new EtcdClient(access, this.#options);
    try {
      return (await client.range({ key: `${PREFIX}/host/${this.#options.node}` })).cluster;
    } finally {
      await client.close();
    }
  }

  #add(name: string, before: string, access: EtcdAccess): Side {
    const etcd = openEtcdSide({ ...this.#options, access });
    const side = { name, etcd, before, asked: false };
    this.#sides.set(name, side);
    this.#byAccess.set(accessKey(access), side);
    return side;
  }

  #startOne(side: Side): void {
    side.etcd.start(() => this.#inUse?.(side.name) ?? []);
  }

  async #leaveIfUnused(side: Side): Promise<void> {
    const isUsed =
      side.asked || this.#inUse?.(side.name).length !== 0 || side.etcd.claimSource.inUse().length > 0;
    if (isUsed || !side.etcd.isOwn) return;
    this.#sides.delete(side.name);
    for (const [key, there] of this.#byAccess) if (there === side) this.#byAccess.delete(key);
    const { journalled, log } = this.#options;
    log.info("etcd is left: no network of this host has been kept there", { name: side.name });
    try {
      await side.etcd.close();
      await journalled.remove(side.name);
    } catch (error) {
      log.warn("etcd was not left; tried again at the next start", {
        name: side.name,
        error: messageOf(error),
      });
    }
  }
}
