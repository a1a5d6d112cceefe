// SPDX-License-Identifier: Apache-2.0
// What happens in a day.
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "../../kube/api/connection.ts";
import { type KubeItem, PODS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import type { SeededRandom } from "../support/random.ts";
import {
  apply,
  applyAgain,
  appOf,
  evict,
  forceDelete,
  hasEnded,
  listed,
  makePod,
  merge,
  phaseOf,
  remove,
} from "./day-calls.ts";
import type { DayCluster } from "./day-cluster.ts";
import type { DayKubelet } from "./day-kubelets.ts";
import { type Applied, GENERATED, type Json, NAMESPACE_OF_DAY, pods } from "./day-objects.ts";

/** What happens, by its share. */
const SHARES = {
  ...{ fail: 5, drain: 2, delete: 6, roll: 3, scale: 3, restore: 2, again: 4 },
  ...{ reboot: 1, shutdown: 1, renew: 4, force: 3, outage: 1 },
} as const;
export type Act = keyof typeof SHARES;
export const ACTS = Object.keys(SHARES) as readonly Act[];
const DECK = ACTS.flatMap((act) => Array.from({ length: SHARES[act] }, () => act));

/** With an API server that takes its time to start, controllers are as long without it as in an upgrade of a control plane. */
const LONGEST_OUTAGE_MS = 3_000;
/** Until what was deleted is gone with all that waits for it, on a slow machine. */
const GONE_MS = 600_000;

export interface DayOptions {
  readonly cluster: DayCluster;
  readonly random: SeededRandom;
  readonly scale: number;
  readonly applied: readonly Applied[];
  /** Nothing may happen that leaves what is let go after 120 s only. */
  readonly short: boolean;
}

/** A day's people, disasters and machines. */
export class DayActs {
  /** Act, or what came of one, and how often. */
  readonly tally = new Map<string, number>();
  readonly #options: DayOptions;
  readonly #admin: Connection;

  constructor(options: DayOptions) {
    this.#options = options;
    this.#admin = options.cluster.admin;
  }

  async next(): Promise<void> {
    const { random } = this.#options;
    await this.happen(random.pick(DECK));
  }

  async happen(act: Act): Promise<void> {
    const { random, applied } = this.#options;
    const pods = await listed(this.#admin, PODS);
    const living = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    this.#count(act);
    if (living.length > 0) await this.#acts[act](random.pick(living), random.pick(applied));
  }

  readonly #acts: { readonly [A in Act]: (pod: KubeItem, workload: Applied) => Promise<void> } = {
    fail: async (pod) => {
      if (phaseOf(pod) === "Running") await this.#fail(pod, "Evicted");
    },
    drain: async ({ metadata }) => await evict(this.#admin, metadata.name),
    delete: async ({ metadata }) => await remove(this.#admin, PODS, metadata.name),
    roll: async (_, workload) => await this.#roll(workload),
    scale: async (_, workload) => {
      const { replicas } = workload;
      if (replicas !== undefined) await this.scale(workload, this.#options.random.below(replicas + 1));
    },
    restore: async (_, workload) => await this.#restore(workload),
    again: async (pod) => await this.#again(pod),
    reboot: async () => await this.#kubelet().reboot(),
    shutdown: async () => await this.#shutDown(this.#kubelet()),
    renew: async () => await this.renew(),
    force: async ({ metadata }) => await this.#force(metadata),
    outage: async () => await this.#outage(),
  };

  #kubelet(): DayKubelet {
    return this.#options.random.pick(this.#options.cluster.kubelets);
  }

  /** Its object is gone while its sandbox lives: whoever takes its place waits for the sandbox's end. */
  async #force({ name, uid }: KubeItem["metadata"]): Promise<void> {
    await forceDelete(this.#admin, PODS, { namespace: NAMESPACE_OF_DAY, name }, uid);
  }

  /** The API server is killed amid whatever is under way, and people go on as soon as it answers again. */
  async #outage(): Promise<void> {
    const { cluster, random } = this.#options;
    await cluster.plane.apiServer.stop("SIGKILL");
    await pause(random.fraction() * LONGEST_OUTAGE_MS);
    await cluster.plane.start();
  }

  async #fail({ metadata: { name, uid } }: KubeItem, reason: string): Promise<void> {
    await merge(this.#admin, PODS, name, { metadata: { uid }, status: { phase: "Failed", reason } });
  }

  async #roll({ resource, name, rolls }: Applied): Promise<void> {
    if (rolls !== true) return;
    const annotations = { "day/rolled": this.#options.random.token() };
    await merge(this.#admin, resource, name, { spec: { template: { metadata: { annotations } } } });
  }

  async scale({ resource, name }: Applied, replicas: number): Promise<void> {
    await merge(this.#admin, resource, name, { spec: { replicas } });
  }

  /** Deleted with its pods and made again, twice, as whoever restores a backup does. */
  async #restore(workload: Applied): Promise<void> {
    const { resource, name } = workload;
    await remove(this.#admin, resource, name);
    const isThere = async () =>
      (await listed(this.#admin, resource)).some(({ metadata }) => metadata.name === name);
    await eventually(
      `${resource.kind} ${name} is gone`,
      async () => ((await isThere()) ? undefined : true),
      GONE_MS,
    );
    await apply(this.#admin, workload);
    this.#count(`restore again: ${await applyAgain(this.#admin, workload)}`);
  }

  /**
   * A second create of a pod that is there, without its owner, as a restore of a backup makes it, or by somebody who asks
   * for another address. Nothing may come of it; where the first one has just gone, the second goes, too.
   */
  async #again({ metadata }: KubeItem): Promise<void> {
    const { name, annotations = {} } = metadata;
    const { short } = this.#options;
    if (short && annotations["berth.dev/claim"] !== name) return;
    const other = { "berth.dev/ips": `10.60.15.${this.#options.random.below(200) + 10}` };
    const own = short || this.#options.random.fraction() < 0.5 ? annotations : other;
    const { excused, kept } = this.#options.cluster.expected;
    const [{ spec } = { spec: {} }] = pods(1);
    const body = { metadata: { annotations: own }, spec } satisfies Json;
    const status = await applyAgain(this.#admin, { resource: PODS, name, body });
    this.#count(`create again: ${status}`);
    if (status === 409 || status === 403) return;
    excused.add(name);
    kept.delete(name);
    await remove(this.#admin, PODS, name);
  }

  /** As a node that is told to power off: it ends its pods, and says so of each of them. */
  async #shutDown(kubelet: DayKubelet): Promise<void> {
    const own = await listed(this.#admin, PODS, { fieldSelector: `spec.nodeName=${kubelet.name}` });
    for (const pod of own.filter((one) => phaseOf(one) === "Running")) await this.#fail(pod, "Terminated");
    await kubelet.reboot();
  }

  /** People make pods again that are gone, and take away those that have ended. */
  async renew(): Promise<void> {
    const there = (await listed(this.#admin, PODS)).filter((pod) => appOf(pod) === "pods");
    for (const { metadata } of there.filter(hasEnded)) await remove(this.#admin, PODS, metadata.name);
    const left = there.filter((pod) => !hasEnded(pod)).map(({ metadata }) => metadata.name);
    const { scale } = this.#options;
    let missing = 3 * scale - left.filter((name) => name.startsWith(GENERATED)).length;
    for (const object of pods(scale)) {
      const name = object.metadata["name"];
      const lacks = typeof name === "string" ? !left.includes(name) : missing-- > 0;
      if (lacks) await makePod(this.#admin, object).catch(() => this.#count("refused pods"));
    }
  }

  #count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }
}
