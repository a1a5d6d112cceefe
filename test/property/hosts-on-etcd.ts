// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import type { AttachmentKey, SandboxNotice } from "../../ipam-plugin/agent/claims/claim-source.ts";
import type { EtcdSide } from "../../ipam-plugin/agent/claims/etcd/etcd-side.ts";
import { ManualClock } from "../support/clock.ts";
import { SeededRandom } from "../support/random.ts";
import { EtcdAdministrator, FIXED } from "./etcd-administrator.ts";
import { HostAgent, type Running } from "./host-agent.ts";
import { MemoryEtcd } from "./memory-etcd.ts";

const NAMES = ["host-a", "host-b", "host-c"];
const NETWORK = { pools: ["lan"], rangeSets: [] };
const LIVE = new AbortController().signal;
/** As long as a host may be silent before it is fenced. */
const WATCHED_MS = 25_000;
/** Longer than an orphan is waited for. */
const LONG_MS = 200_000;
/** In this many turns of the event loop a call ends that waits for nothing. */
const TURNS = 12;

interface Container extends Running {
  readonly host: HostAgent;
}

/** Hosts whose agents have everything but sockets and journals, on an etcd in memory that hears their bytes. */
export class HostsOnEtcd {
  readonly trace: string[] = [];
  readonly #etcd = new MemoryEtcd();
  readonly #clock = new ManualClock();
  readonly #random: SeededRandom;
  readonly #administrator: EtcdAdministrator;
  readonly #hosts: readonly HostAgent[];
  readonly #running = new Map<string, Container>(); // claim -> container
  readonly #adding = new Map<string, HostAgent>(); // claim -> whose ADD is under way
  readonly #fencing = new Set<HostAgent>();
  #made = 0;

  private constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    const parts = { etcd: this.#etcd, clock: this.#clock, random: this.#random };
    this.#administrator = new EtcdAdministrator(parts);
    this.#hosts = NAMES.map(
      (name) => new HostAgent({ ...parts, name, running: (host) => this.#runningOn(host) }),
    );
  }

  static async open(seed: number): Promise<HostsOnEtcd> {
    const hosts = new HostsOnEtcd(seed);
    await hosts.#done(hosts.#administrator.makePool());
    for (const host of hosts.#hosts) host.start();
    await hosts.#pass(20_000);
    return hosts;
  }

  async close(): Promise<void> {
    const ended = [this.#administrator.close(), ...this.#hosts.map((host) => host.close())];
    await this.#done(Promise.all(ended));
  }

  /** One or two things happen at once. */
  async step(): Promise<void> {
    const acts = Array.from({ length: 1 + this.#random.below(2) }, () => this.#act());
    await this.#done(Promise.all(acts));
    await this.#check();
  }

  /** All is well again, and every container ends. */
  async end(): Promise<void> {
    for (const host of this.#hosts) {
      this.#return(host);
      host.link.state = "up";
    }
    for (const container of [...this.#running.values()]) await this.#done(this.#remove(container));
    for (let round = 0; round < 4; round++) {
      for (const host of this.#hosts) await this.#done(this.#clean(host));
      await this.#pass(LONG_MS);
    }
    const left = [...(await this.#all("reservation")), ...(await this.#all("claim"))];
    assert.deepEqual(
      left.map(({ key }) => key),
      [FIXED.addresses[0], claimKey(FIXED)],
      "left",
    );
  }

  async #act(): Promise<void> {
    const host = this.#random.pick(this.#hosts);
    const dice = this.#random.below(100);
    if (dice < 38) return await this.#add(host);
    if (dice < 58) {
      const own = [...this.#running.values()].filter((one) => one.host === host);
      if (own.length > 0) await this.#remove(this.#random.pick(own));
    } else if (dice < 74) {
      host.link.state = this.#random.pick(["up", "up", "up", "cut", "deaf"] as const);
      this.#say(`${host.name} ${host.link.state}`);
    } else if (dice < 79) this.#kill(host);
    else if (dice < 85) await this.#fence(host);
    else if (dice < 91) this.#return(host);
    else if (dice < 94) this.#etcd.compact();
    else {
      await this.#pass(this.#random.pick([3_000, 12_000, LONG_MS]));
      await this.#clean(host);
    }
  }

  async #add(host: HostAgent): Promise<void> {
    if (!host.isOn || this.#fencing.has(host)) return;
    const { side } = host;
    const attachment = { network: "lan", containerID: `box-${this.#made++}`, interface: "eth0" };
    const said = this.#random.below(5) === 0 ? { name: "fixed" } : {};
    const claims: string[] = [];
    host.adds++;
    try {
      const pools = await side.networks.poolsOf("lan", NETWORK);
      if (isRefusal(pools)) return;
      const pod = await side.networks.holderOf(attachment, said, pools);
      const claim = `${pod.namespace}/${pod.name}`;
      // the agent makes the second container of a name wait for the end of the first
      if (this.#running.has(claim) || this.#adding.has(claim)) return;
      claims.push(claim);
      this.#adding.set(claim, host);
      const addresses = await this.#give(side, { pod, attachment });
      // its process was killed meanwhile: nobody was answered
      if (addresses === undefined || !host.isServedBy(side)) return;
      this.#say(`${attachment.containerID} on ${host.name} has ${addresses.join()}`);
      this.#running.set(claim, { host, notice: { claim, pod, attachment }, addresses });
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      this.#say(`${attachment.containerID} on ${host.name}: ${error.code}`);
    } finally {
      host.adds--;
      for (const claim of claims) this.#adding.delete(claim);
    }
  }

  async #give(
    side: EtcdSide,
    of: { readonly pod: SandboxNotice["pod"]; readonly attachment: AttachmentKey },
  ): Promise<readonly Address[] | undefined> {
    const request = { ...of, pools: NETWORK.pools, addresses: [], annotations: undefined };
    const found = await side.claimSource.find(request, LIVE);
    if (isRefusal(found) || found.kind !== "found") return undefined;
    const given = await side.claimSource.attach(found, request, LIVE);
    if (isRefusal(given) || given.kind !== "claimed") return undefined;
    return given.addresses.map(({ address }) => address);
  }

  async #remove({ host, notice }: Container): Promise<void> {
    if (!this.#running.delete(notice.claim)) return;
    this.#say(`${notice.attachment.containerID} ends`);
    host.untold.push(notice);
    await host.tell();
  }

  /** What a host looks for in the background: what it was told to give back, and what nobody uses. */
  async #clean(host: HostAgent): Promise<void> {
    if (!host.isOn) return;
    await host.tell();
    for (const claim of host.side.claimSource.inUse()) {
      const isRunning = this.#running.get(claim)?.host === host || this.#adding.get(claim) === host;
      const isKnown = isRunning || host.untold.some((notice) => notice.claim === claim);
      if (!isKnown) await host.absent(claim);
    }
  }

  /** A new process of the host: what the old one had in memory is lost. */
  #kill(host: HostAgent): void {
    if (!host.isOn || this.#fencing.has(host)) return;
    this.#say(`kill ${host.name}`);
    host.stop();
    host.start();
  }

  /** Its containers are stopped, its agent with them or cut off from etcd; a person says so, and its claims go. */
  async #fence(host: HostAgent): Promise<void> {
    if (!host.isOn || host.adds > 0 || this.#fencing.has(host)) return;
    this.#fencing.add(host);
    if (this.#random.below(2) === 0) host.stop();
    else host.link.state = "cut";
    for (const { notice, host: of } of [...this.#running.values()]) {
      if (of !== host) continue;
      this.#running.delete(notice.claim);
      host.untold.push(notice);
    }
    try {
      const done = await this.#administrator.fence(host.name, () => this.#clock.sleep(WATCHED_MS));
      this.#say(`${host.name} is ${done ? "fenced" : "alive"}`);
    } finally {
      this.#fencing.delete(host);
    }
  }

  #return(host: HostAgent): void {
    if (host.isOn) return;
    this.#say(`${host.name} is back`);
    host.start();
  }

  #runningOn(host: HostAgent): readonly Running[] {
    return [...this.#running.values()].filter((one) => one.host === host);
  }

  async #check(): Promise<void> {
    const holders = new Map<string, string>(); // address -> claim
    const kept = new Map(
      (await this.#all("reservation")).map(({ record }) => [String(record.address), record]),
    );
    for (const [claim, { addresses }] of this.#running) {
      for (const address of addresses) {
        assert.equal(holders.get(address), undefined, `${address} is given twice`);
        holders.set(address, claim);
        const record = kept.get(address);
        assert.equal(record && claimKey(record.claim), claim, `${address} is lost`);
      }
    }
  }

  #all<K extends Kind>(kind: K): Promise<readonly Stored<K>[]> {
    return this.#done(this.#administrator.all(kind));
  }

  /** Time passes for everybody. */
  async #pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 2_500) {
      this.#clock.advance(2_500);
      await turns();
    }
  }

  /** Until it is done; time passes as far as somebody waits for it. */
  async #done<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const end = () => {
      isDone = true;
    };
    work.then(end, end);
    for (;;) {
      await turns(() => isDone);
      if (isDone) return await work;
      this.#clock.advance(500);
    }
  }

  #say(what: string): void {
    this.trace.push(what);
  }
}

async function turns(enough: () => boolean = () => false): Promise<void> {
  for (let turn = 0; turn < TURNS && !enough(); turn++) await nextTurn();
}
