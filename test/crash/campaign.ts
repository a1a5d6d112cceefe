// SPDX-License-Identifier: Apache-2.0
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { noopLogger } from "../../allocator/base/ports.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import { startStack } from "../../cli/embedded/stack.ts";
import { createRandom } from "../../system/random.ts";
import { ApiServer } from "../support/api-server.ts";
import { eventually } from "../support/eventually.ts";
import { LeapingClock } from "../support/leaping-clock.ts";
import { namespace, pod, podOf, pool, statefulSet } from "../support/manifests.ts";
import { SeededRandom } from "../support/random.ts";
import { networkOf, Runtime } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";
import { defectsOf } from "./defects.ts";
import { type Found, Promises } from "./promises.ts";
import { PlainSubject, PodSubject, type Site, type Subject, sorted } from "./subject.ts";

const WORKERS = 6;
/** In which DELs that meet nobody are on the spool. */
const SPOOLING_MS = 200;
const SET = statefulSet("shop", "set", { replicas: 8 }, { "berth.dev/pools": "any" });
const MANIFESTS = [
  namespace("shop"),
  pool("pinned", ["10.20.0.0/24", "fd00:20::/64"]),
  pool("any", ["10.21.0.0/24"]),
  pool("bound", ["10.22.0.0/20"]),
];
const LOCAL = networkOf({ ranges: [[{ subnet: "10.30.0.0/24" }]] }, { name: "local" });

/** One stack that is killed again and again under load, and what it has promised. */
export class Campaign {
  readonly stack: ChildStack;
  readonly counts: Record<string, number> = {};
  readonly faults: string[] = [];
  readonly #random: SeededRandom;
  readonly #promises = new Promises();
  readonly #subjects: readonly Subject[];
  readonly #busy = new Set<Subject>();
  readonly #site: Site;
  #api: ApiServer;

  private constructor(stack: ChildStack, seed: number) {
    this.stack = stack;
    this.#random = new SeededRandom(seed);
    this.#api = new ApiServer(stack.endpoint);
    this.#site = {
      api: () => this.#api,
      runtime: new Runtime({ socket: stack.socket, network: networkOf() }),
      random: this.#random,
      promises: this.#promises,
      count: (what) => this.#count(what),
      fault: (words) => void this.faults.push(words),
    };
    this.#subjects = subjectsOf(stack.socket);
  }

  static async start(seed: number): Promise<Campaign> {
    const stack = await ChildStack.start({ manifests: MANIFESTS });
    try {
      const campaign = new Campaign(stack, seed);
      await campaign.#api.create(SET);
      return campaign;
    } catch (error) {
      await stack.remove();
      throw error;
    }
  }

  get promised(): number {
    return this.#promises.size;
  }

  /** Load, a kill at some moment of it, load for a while on a stack that is down, and a start that may be killed too. */
  async cycle(): Promise<void> {
    const over = new AbortController();
    const load = Promise.all(Array.from({ length: WORKERS }, () => this.#work(over.signal)));
    await this.#someSteps();
    await this.stack.kill9();
    this.#count("kills");
    await pause(this.#random.below(60));
    over.abort();
    // Half of the starts meet calls that are still on their way; ADDs wait for the stack in any case.
    if (this.#random.below(2) === 0) await Promise.race([load, pause(SPOOLING_MS)]);
    await this.#countSpooled();
    if (this.#random.below(5) === 0) await this.#dieStarting();
    await this.stack.start();
    await load;
    this.#api.close();
    this.#api = new ApiServer(this.stack.endpoint);
  }

  /** What is wrong now, in words; nothing while the stack keeps what it promised. */
  async wrongs(): Promise<readonly string[]> {
    const broken = await eventually("spooled releases are through", async () => {
      const found = await this.#find();
      return this.#promises.unreleased(found).length === 0 ? this.#promises.broken(found) : undefined;
    });
    return [...this.faults, ...broken, ...(await defectsOf(this.stack))];
  }

  /** Everything is ended and deleted; then time passes for a stack that starts once more: what is left. */
  async leftovers(): Promise<unknown> {
    for (const subject of this.#subjects) await subject.end(this.#site);
    await this.#api.delete(await this.#api.create(SET));
    await this.stack.kill9();
    const clock = new LeapingClock();
    const { dataDir, socket } = this.stack;
    const last = await startStack({
      dataDir,
      socketPath: socket,
      clock,
      random: createRandom(),
      log: noopLogger,
    });
    await clock.leap(240_000);
    await last.close();
    const claims = await this.stack.read(async ({ store }) =>
      (await listed(store, "claim")).map(({ record }) => JSON.stringify(record)),
    );
    const holders = Object.keys(await this.stack.holders());
    const attached = await this.stack.attachedContainers();
    return { claims, holders, attached, findings: await this.stack.findings() };
  }

  async remove(): Promise<void> {
    this.#api.close();
    await this.stack.remove();
  }

  async #work(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const idle = this.#subjects.filter((subject) => !this.#busy.has(subject));
      const subject = this.#random.pick(idle);
      this.#busy.add(subject);
      await subject.step(this.#site).finally(() => this.#busy.delete(subject));
      this.#count("steps");
    }
  }

  /** A process that has just started is slow, the more so on a busy machine: it is to have done something. */
  async #someSteps(): Promise<void> {
    const [steps, until] = [this.#random.below(40), Date.now() + 800];
    const done = this.counts["steps"] ?? 0;
    await pause(this.#random.below(100));
    while ((this.counts["steps"] ?? 0) < done + steps && Date.now() < until) await pause(1);
  }

  async #dieStarting(): Promise<void> {
    const starting = this.stack.start().catch(() => undefined);
    await pause(this.#random.below(600));
    await this.stack.kill9();
    await starting;
    this.#count("kills while starting");
  }

  async #countSpooled(): Promise<void> {
    const names = await readdir(join(this.stack.folder, "spool")).catch(() => []);
    this.#count("DELs found on the spool", names.filter((name) => name.endsWith(".del")).length);
  }

  async #find(): Promise<Found> {
    const claims = Object.entries(await this.stack.claims("shop"));
    const attached = await this.stack.read(async ({ attachments }) =>
      attachments().map(({ containerID, result }): [string, string] => [
        containerID,
        sorted(result.addresses.map(({ address }) => address).join(",")),
      ]),
    );
    return {
      claims: Object.fromEntries(claims.map(([name, addresses]) => [name, sorted(addresses)])),
      attached: new Map(attached),
    };
  }

  #count(what: string, by = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + by;
  }
}

function subjectsOf(socket: string): readonly Subject[] {
  const pinned = Array.from({ length: 12 }, (_, i) => {
    const ips = i % 2 === 0 ? `10.20.0.${10 + i}` : `10.20.0.${10 + i},fd00:20::${10 + i}`;
    const name = `pin-${i}`;
    return new PodSubject(name, false, () => pod("shop", name, { "berth.dev/ips": ips }));
  });
  const ordinals = Array.from({ length: 8 }, (_, i) => new PodSubject(`set-${i}`, true, () => podOf(SET, i)));
  const local = new Runtime({ socket, network: LOCAL });
  const bound = new Runtime({ socket, network: networkOf({ pools: ["bound"] }, { name: "bound" }) });
  const containers = Array.from({ length: 8 }, () => new PlainSubject(local));
  const strangers = Array.from({ length: 4 }, (_, i) => new PlainSubject(bound, `stranger-${i}`));
  return [...pinned, ...ordinals, ...containers, ...strangers];
}
