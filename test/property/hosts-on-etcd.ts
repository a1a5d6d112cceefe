// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { bareNamespace, type ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { ClaimCreated, Kind, Store, Stored } from "../../allocator/store/store.ts";
import type { SandboxEvent } from "../../ipam-plugin/agent/claims/claim-source.ts";
import { EmbeddedClaims } from "../../ipam-plugin/agent/claims/embedded.ts";
import { containerName, isContainerName } from "../../ipam-plugin/agent/claims/etcd/container-name.ts";
import { poolRecord } from "../support/fixtures.ts";
import { SeededRandom } from "../support/random.ts";
import { openWorld, type World } from "../support/world.ts";

const POOL = poolRecord("lan", "10.1.0.0/29", { cooldown: "0s", limits: { perNamespace: 8 } });
const NAMES = ["host-a", "host-b", "host-c"];
const LIVE = new AbortController().signal;
/** Longer than an orphan is waited for, and a hold. */
const LONG_MS = 200_000;

/** `deaf`: what it writes is done, and it does not hear so. */
type Link = "up" | "cut" | "deaf";

interface Host {
  readonly name: string;
  link: Link;
  isOn: boolean;
  claims: EmbeddedClaims;
  collector: GarbageCollector;
  /** In its journal: ends that etcd was not told of. */
  untold: SandboxEvent[];
}

interface Container {
  readonly host: Host;
  readonly notice: SandboxEvent;
  readonly addresses: readonly string[];
}

/** Everything of the agents but their sockets and journals, on a store that all share. */
export class HostsOnEtcd {
  readonly trace: string[] = [];
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #turns = new KeyedMutex();
  readonly #fenced = new Set<string>();
  readonly #hosts: readonly Host[];
  readonly #running = new Map<string, Container>(); // claim -> container
  readonly #adding = new Map<string, Host>(); // claim -> whose ADD is under way
  #made = 0;

  private constructor(world: World, seed: number) {
    this.#world = world;
    this.#random = new SeededRandom(seed);
    this.#hosts = NAMES.map((name) => {
      const host = { name, link: "up" as Link, isOn: true, untold: [] };
      return Object.assign(host, this.#process(host));
    });
  }

  static async open(seed: number): Promise<HostsOnEtcd> {
    return new HostsOnEtcd(await openWorld({ pools: [POOL], seed }), seed);
  }

  async close(): Promise<void> {
    await this.#world[Symbol.asyncDispose]();
  }

  /** One or two things happen at once. */
  async step(): Promise<void> {
    const acts = Array.from({ length: 1 + this.#random.below(2) }, () => this.#act());
    await Promise.all(acts);
    await this.#world.settle();
    await this.#check();
  }

  /** All is well again, and every container ends. */
  async end(): Promise<void> {
    for (const host of this.#hosts) {
      host.link = "up";
      this.#return(host);
    }
    for (const container of [...this.#running.values()]) await this.#remove(container);
    for (let round = 0; round < 4; round++) {
      for (const host of this.#hosts) await this.#clean(host);
      this.#world.clock.advance(LONG_MS);
      await this.#world.settle();
    }
    const left = [...(await this.#world.all("reservation")), ...(await this.#world.all("claim"))];
    assert.deepEqual(
      left.map(({ key }) => key),
      [],
      "left",
    );
  }

  /** A new process of the host: what it had in memory is lost. */
  #process(host: Pick<Host, "name" | "link">): Pick<Host, "claims" | "collector"> {
    const store = storeOf(host, this.#world.authority, this.#turns);
    const context = this.#world.another(this.#random.below(1e9), store);
    const inventory = withoutPods(async (name) => this.#fenced.has(name));
    const collector = new GarbageCollector(context, inventory);
    const claims = new EmbeddedClaims({
      ...{ context, inventory, node: host.name, suspect: () => undefined },
      ...{ bindsAtOnce: true, isNew: ({ name }: { readonly name: string }) => isContainerName(name) },
    });
    return { claims, collector };
  }

  async #act(): Promise<void> {
    const host = this.#random.pick(this.#hosts);
    const dice = this.#random.below(100);
    if (dice < 35) return await this.#add(host);
    if (dice < 60) {
      const own = [...this.#running.values()].filter((one) => one.host === host);
      if (own.length > 0) await this.#remove(this.#random.pick(own));
    } else if (dice < 75) {
      host.link = this.#random.pick(["up", "up", "cut", "deaf"] as const);
      this.#say(`${host.name} ${host.link}`);
    } else if (dice < 82) {
      this.#say(`kill ${host.name}`);
      Object.assign(host, this.#process(host));
    } else if (dice < 87) await this.#powerOffAndFence(host);
    else if (dice < 92) this.#return(host);
    else {
      if (this.#random.below(3) === 0) this.#world.clock.advance(LONG_MS);
      await this.#clean(host);
    }
  }

  async #add(host: Host): Promise<void> {
    if (!host.isOn) return;
    const attachment = { network: "lan", containerID: `box-${this.#made++}`, interface: "eth0" };
    const pod = containerName(attachment);
    const request = { pod, attachment, pools: ["lan"], addresses: [], annotations: undefined };
    const notice = { claim: `${pod.namespace}/${pod.name}`, pod, attachment };
    this.#adding.set(notice.claim, host);
    try {
      const found = await host.claims.find(request, LIVE);
      if (isRefusal(found) || found.kind !== "found") return;
      const given = await host.claims.attach(found, request, LIVE);
      if (isRefusal(given) || given.kind !== "claimed") return;
      const addresses = given.addresses.map(({ address }) => address);
      this.#say(`${attachment.containerID} on ${host.name} has ${addresses.join()}`);
      // the power may have gone meanwhile: then it never started, and the journal is read at the boot
      if (host.isOn) this.#running.set(notice.claim, { host, notice, addresses });
      else host.untold.push(notice);
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      this.#say(`${attachment.containerID} on ${host.name}: ${error.code}`);
    } finally {
      this.#adding.delete(notice.claim);
    }
  }

  async #remove({ host, notice }: Container): Promise<void> {
    if (!this.#running.delete(notice.claim)) return;
    this.#say(`${notice.attachment.containerID} ends`);
    host.untold.push(notice);
    await this.#tell(host);
  }

  /** As the agent does again and again. */
  async #tell(host: Host): Promise<void> {
    for (const notice of [...host.untold]) {
      try {
        await host.claims.detached(notice);
        host.untold = host.untold.filter((one) => one !== notice);
        const seen = await this.#world.authority.get("claim", notice.claim);
        if (seen !== undefined) await host.collector.judgeClaim(seen);
      } catch (error) {
        if (!(error instanceof BerthError)) throw error;
      }
    }
  }

  /** What a host does in the background: it tells, looks for what nobody uses, and collects. */
  async #clean(host: Host): Promise<void> {
    if (!host.isOn || host.link !== "up") return;
    this.#say(`${host.name} cleans`);
    await this.#tell(host);
    for (const claim of host.claims.inUse()) {
      const isRunning = this.#running.get(claim)?.host === host || this.#adding.get(claim) === host;
      const isKnown = isRunning || host.untold.some((notice) => notice.claim === claim);
      if (!isKnown) await this.#absent(host, claim);
    }
    await host.collector.pass().catch((error: unknown) => {
      if (!(error instanceof BerthError)) throw error;
    });
  }

  async #absent(host: Host, claim: string): Promise<void> {
    try {
      await host.claims.absent(claim);
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
    }
  }

  /** Its containers end with it; a person says so, and its claims go. */
  async #powerOffAndFence(host: Host): Promise<void> {
    if (!host.isOn) return;
    this.#say(`${host.name} is fenced`);
    host.isOn = false;
    for (const { notice, host: of } of [...this.#running.values()]) {
      if (of !== host) continue;
      this.#running.delete(notice.claim);
      host.untold.push(notice);
    }
    this.#fenced.add(host.name);
    const context = this.#world.another(this.#random.below(1e9), this.#world.authority);
    for (const seen of await this.#world.all("claim")) {
      if (seen.record.binding?.node === host.name) await this.#turns.run("", () => release(context, seen));
    }
  }

  #return(host: Host): void {
    if (host.isOn) return;
    this.#say(`${host.name} is back`);
    this.#fenced.delete(host.name);
    Object.assign(host, this.#process(host), { isOn: true });
  }

  async #check(): Promise<void> {
    const holders = new Map<string, string>(); // address -> claim
    for (const [claim, { addresses }] of this.#running) {
      for (const address of addresses) {
        assert.equal(holders.get(address), undefined, `${address} is given twice`);
        holders.set(address, claim);
        const kept = await this.#world.authority.get("reservation", address);
        assert.equal(kept && claimKey(kept.record.claim), claim, `${address} is lost`);
      }
    }
  }

  #say(what: string): void {
    this.trace.push(what);
  }
}

/** As no host knows another one's containers. */
function withoutPods(fenced: ClusterState["fenced"]): ClusterState {
  return {
    pod: async () => undefined,
    workload: async () => "never admitted",
    namespace: async (name) => bareNamespace(name),
    fenced,
  };
}

/** What a host has of the store that all share: by its link, and with a claim and its reservations in one moment. */
function storeOf(host: { readonly link: Link }, store: Store, turns: KeyedMutex): Store {
  const away = () => new BerthError("STORE_UNAVAILABLE", "etcd cannot be reached");
  const read = async <T>(work: () => Promise<T>): Promise<T> => {
    if (host.link === "cut") throw away();
    return await work();
  };
  const write = async <T>(work: () => Promise<T>): Promise<T> => {
    if (host.link === "cut") throw away();
    const done = await turns.run("", work);
    if (host.link === "deaf") throw away();
    return done;
  };
  return {
    ...{ list: store.list.bind(store), watch: store.watch.bind(store), close: store.close.bind(store) },
    get: (kind, key) => read(() => store.get(kind, key)),
    create: (kind, record) => write(() => store.create(kind, record)),
    replace: (kind, seen, next) => write(() => store.replace(kind, seen, next)),
    report: (seen, status) => write(() => store.report(seen, status)),
    reportBlock: (seen, status) => write(() => store.reportBlock(seen, status)),
    remove: (kind, seen) => write(() => store.remove(kind, seen)),
    createClaim: (claim, reservations) => write(() => createTogether(store, claim, reservations)),
  };
}

/** Nobody else writes meanwhile. */
async function createTogether(
  store: Store,
  claim: Claim,
  reservations: readonly Reservation[],
): Promise<ClaimCreated> {
  const there = async (kind: Kind, key: string) => (await store.get(kind, key)) !== undefined;
  const isThere = await there("claim", claimKey(claim));
  const addresses: Address[] = [];
  for (const { address } of reservations) {
    if (await there("reservation", address)) addresses.push(address);
  }
  if (isThere || addresses.length > 0) return { kind: "exists", claim: isThere, addresses };
  const made: Stored<"reservation">[] = [];
  for (const one of reservations) made.push((await store.create("reservation", one)).stored);
  const bare = (await store.create("claim", claim)).stored;
  const whole = await store.report(bare, claim.status);
  assert.equal(whole.kind, "replaced");
  const stored = whole.kind === "replaced" ? whole.stored : bare;
  return { kind: "created", claim: stored, reservations: made };
}
