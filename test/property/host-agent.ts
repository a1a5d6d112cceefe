// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger, noopMetrics } from "../../allocator/base/ports.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { SandboxNotice } from "../../ipam-plugin/agent/claims/claim-source.ts";
import { type EtcdSide, openEtcdSide } from "../../ipam-plugin/agent/claims/etcd/etcd-side.ts";
import type { ManualClock } from "../support/clock.ts";
import { SeededRandom } from "../support/random.ts";
import { EtcdLink } from "./etcd-link.ts";
import type { MemoryEtcd } from "./memory-etcd.ts";

/** A container, and what it was answered. */
export interface Running {
  readonly notice: SandboxNotice;
  readonly addresses: readonly Address[];
}

export interface HostParts {
  readonly etcd: MemoryEtcd;
  readonly clock: ManualClock;
  readonly random: SeededRandom;
  readonly name: string;
  /** What its journal has: the containers that run. */
  readonly running: (host: HostAgent) => readonly Running[];
}

/** One of many hosts: processes that follow each other, and what its journal keeps between them. */
export class HostAgent {
  readonly name: string;
  /** Ends that etcd was not told of. */
  untold: SandboxNotice[] = [];
  isOn = false;
  /** ADDs that are under way. */
  adds = 0;
  link: EtcdLink;
  readonly #parts: HostParts;
  readonly #ending: Promise<void>[] = [];
  #side: EtcdSide | undefined;
  readonly #former = new Set<string>(); // ids of its processes so far

  constructor(parts: HostParts) {
    this.name = parts.name;
    this.#parts = parts;
    this.link = new EtcdLink(parts.etcd, parts.random);
  }

  get side(): EtcdSide {
    if (this.#side === undefined) throw new TypeError(`${this.name} is off`);
    return this.#side;
  }

  isServedBy(side: EtcdSide): boolean {
    return this.#side === side;
  }

  start(): void {
    const { etcd, clock, random, name, running } = this.#parts;
    const { state } = this.link;
    this.link = new EtcdLink(etcd, random);
    this.link.state = state;
    const { link } = this;
    const id = `${name} ${this.#former.size}`;
    const former = new Set(this.#former);
    this.#former.add(id);
    this.#side = openEtcdSide({
      process: { id, isFormer: (other) => former.has(other) },
      ...{ access: { endpoints: ["http://etcd:2379"] }, node: name, journal: () => `journal of ${name}` },
      ...{ clock, random: new SeededRandom(random.below(1e9)), log: noopLogger, metrics: noopMetrics },
      connect: () => link.connection(),
    });
    this.isOn = true;
    this.#side.start(() =>
      running(this).map(({ notice: { claim, attachment }, addresses }) => {
        return { claim, ...attachment, addresses };
      }),
    );
    for (const { notice } of running(this)) void this.#side.claimSource.attached(notice);
  }

  /** As `kill -9`, or as the power goes. */
  stop(): void {
    this.link.end();
    if (this.#side !== undefined) this.#ending.push(this.#side.close());
    this.#side = undefined;
    this.isOn = false;
  }

  /** Ends with everything that was ever begun. */
  async close(): Promise<void> {
    this.stop();
    await Promise.all(this.#ending);
  }

  /** As the agent does again and again. */
  async tell(): Promise<void> {
    for (const notice of [...this.untold]) {
      if (!this.isOn) return;
      const reported = await untilFault(() => this.side.claimSource.detached(notice));
      if (reported) this.untold = this.untold.filter((one) => one !== notice);
    }
  }

  async absent(claim: string): Promise<void> {
    if (this.isOn) await untilFault(() => this.side.claimSource.absent(claim));
  }
}

/** Whether it was done. */
async function untilFault(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof BerthError)) throw error;
    return false;
  }
}
