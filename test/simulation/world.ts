// SPDX-License-Identifier: Apache-2.0
import type { Database } from "../../allocator/store/sqlite/database.ts";
import { MemoryRecords } from "../model/memory-records.ts";
import { HOUSEKEEPERS, NODES, OVER, POOL_RECORDS, POOLS_OF_SINGLES, WEBHOOKS } from "./cast.ts";
import { Clients } from "./clients.ts";
import { Cluster } from "./cluster.ts";
import { InvariantCheck } from "./invariant-check.ts";
import type { Disks } from "./journal-disk.ts";
import { Node } from "./node.ts";
import { podOf } from "./pod.ts";
import { BEGIN, Post } from "./process.ts";
import type { Quota } from "./remote-store.ts";
import { type Flow, Schedule } from "./schedule.ts";
import type { FaultInjection, Setting } from "./setting.ts";
import { Tally } from "./tally.ts";
import { Webhook } from "./webhook.ts";

export interface WorldOptions {
  readonly disks: Disks;
  readonly tally?: Tally;
  readonly injection?: FaultInjection;
  /** Agents serve pods that ask for nothing out of blocks. */
  readonly blocks?: boolean;
  /** A block is a single address. */
  readonly singles?: boolean;
  /** Some pods ask for addresses of two interfaces. */
  readonly interfaces?: boolean;
  /** Keep the story. */
  readonly tells?: boolean;
}

/** Everything of one run: three webhooks, two nodes, one store, and who sees to it that all is well. */
export class World {
  readonly schedule: Schedule;
  readonly records = new MemoryRecords();
  readonly cluster: Cluster;
  readonly quota: Quota = { most: undefined };
  readonly invariants: InvariantCheck;
  readonly tally: Tally;
  readonly clients: Clients;
  readonly posts: readonly Post[];
  readonly nodes: readonly Node[];
  readonly servesBlocks: boolean;
  readonly hasSingles: boolean;
  readonly #webhooks = new Map<string, Webhook>(); // name of the post -> webhook of its present life
  readonly #disks: Disks;
  readonly #databases: Database[] = [];

  constructor(options: WorldOptions) {
    const {
      disks,
      tally = new Tally(),
      injection = {},
      blocks = false,
      singles = false,
      tells = false,
    } = options;
    this.tally = tally;
    this.#disks = disks;
    this.hasSingles = singles;
    const pools = singles ? POOLS_OF_SINGLES : POOL_RECORDS;
    this.schedule = new Schedule({ tells, observer: () => this.invariants.judge() });
    this.cluster = new Cluster({
      beforeChange: () => this.invariants.beforeChange(),
      podKept: (object) => this.#kept(podOf(object)),
    });
    const { records, cluster, schedule } = this;
    for (const pool of pools) records.create("pool", pool, BEGIN);
    this.invariants = new InvariantCheck({ records, cluster, schedule, pools: [...pools, OVER] });
    this.servesBlocks = blocks;
    const enqueueForGc = (claim: Parameters<Setting["enqueueForGc"]>[0]) =>
      this.#leader()?.enqueueForGc(claim);
    const setting = {
      records,
      cluster,
      quota: this.quota,
      invariants: this.invariants,
      injection,
      blocks,
      enqueueForGc,
    };
    const webhooks = WEBHOOKS.map((name) => this.#postOf(name, setting));
    this.nodes = NODES.map((name) => this.#nodeOf(name, setting));
    this.invariants.watchOver(this.nodes);
    this.posts = [...webhooks, ...this.nodes.map(({ post }) => post)];
    this.clients = new Clients({
      schedule,
      cluster,
      tally,
      invariants: this.invariants,
      webhook: (n) => this.webhook(n),
      interfaces: options.interfaces ?? false,
    });
  }

  webhook(n: number): Webhook | undefined {
    return this.#webhooks.get(WEBHOOKS[n % WEBHOOKS.length] ?? "");
  }

  node(name: string): Node | undefined {
    return this.nodes.find((node) => node.name === name);
  }

  get caches() {
    const agents = this.nodes.flatMap(({ agent }) => agent ?? []);
    return [...this.#webhooks.values(), ...agents].map(({ process, cache }) => ({
      who: process.post.name,
      cache,
    }));
  }

  async flow(flow: Flow): Promise<void> {
    this.tally.events += await this.schedule.flow(flow);
  }

  /** Nothing of this world goes on. */
  async close(): Promise<void> {
    for (const process of this.posts.flatMap(({ lived }) => lived)) process.bury();
    for (const database of this.#databases) await this.#disks.giveBack(database);
  }

  #postOf(name: string, setting: Setting): Post {
    const post = new Post(this.schedule, name, (process) => {
      this.#webhooks.set(name, new Webhook(process, setting, HOUSEKEEPERS.includes(name)));
    });
    post.start();
    return post;
  }

  #nodeOf(name: string, setting: Setting): Node {
    const { schedule, tally } = this;
    const database = this.#disks.take();
    this.#databases.push(database);
    const spare = () => {
      const empty = this.#disks.take();
      this.#databases.push(empty);
      return empty;
    };
    return new Node({ name, schedule, tally, setting, database, spare });
  }

  #kept(pod: ReturnType<typeof podOf>): void {
    this.node(pod.node)?.admit(pod);
  }

  #leader(): Webhook | undefined {
    return [...this.#webhooks.values()].find(
      ({ collectsGarbage, process }) => collectsGarbage && process.alive,
    );
  }
}
