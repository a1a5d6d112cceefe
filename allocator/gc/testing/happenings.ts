// SPDX-License-Identifier: Apache-2.0
// Whatever may happen to claims and to what they are kept for, in any order.
import { altered } from "../../../test/simulation/altered.ts";
import {
  entries,
  ordinalAllocation,
  podAllocation,
  slotsFor,
} from "../../../test/support/allocation-requests.ts";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  granted,
  poolRecord,
  reservationRecord,
} from "../../../test/support/fixtures.ts";
import { type Json, namespaceObject, pod, workload } from "../../../test/support/objects.ts";
import type { World } from "../../../test/support/world.ts";
import { reserve } from "../../lifecycle/reserve.ts";
import { readObject } from "../../manifest/kubernetes-object.ts";
import type { Claim, Retention } from "../../model/claim.ts";
import type { ClusterState } from "../../model/cluster-state.ts";
import type { Kind, Stored } from "../../store/store.ts";

const PODS = ["mysql-0", "mysql-1", "licence", "web-0"];
const NODES = ["node-a", "node-b"];
const ADDRESSES = ["10.20.0.70", "10.20.0.71", "10.20.0.72", "10.20.0.73"];
const CIDR = "10.20.0.72/30";
const TERMS_MS = [1_000, 9_000, 31_000, 31_000, 121_000];
const RETENTIONS: readonly Partial<Retention>[] = [
  {},
  { whenScaled: "Release" },
  { whenDeleted: "Retain", ttlMs: 60_000 },
];
/** Of templates, pods and namespaces. */
const ASKED: readonly Readonly<Record<string, string>>[] = [
  {},
  { "berth.dev/pools": "db" },
  { "berth.dev/ips": "10.20.0.70;10.20.0.71" },
  { "berth.dev/ips": "10.20.0.70" },
];

export const POOL = poolRecord("db", "10.20.0.0/24", { cooldown: "20s" });

export class Happenings {
  readonly #world: World;
  readonly #fenced = new Set<string>();
  readonly state: ClusterState;
  readonly #acts: readonly (readonly [weight: number, name: string, act: () => Promise<unknown>])[];

  constructor(world: World) {
    this.#world = world;
    this.state = altered<ClusterState>(world.objects, { fenced: async (node) => this.#fenced.has(node) });
    const { objects, clock } = world;
    // what has everything looked at is rare: it would hide what else was to be looked at
    this.#acts = [
      [3, "a namespace changes", () => this.#keep(namespaceObject("shop", this.#pick(ASKED)))],
      [1, "a pool changes", () => this.#changePool()],
      [3, "a block comes or goes", () => this.#block()],
      [1, "much time passes", async () => clock.advance(301_000)],
      [24, "time passes", async () => clock.advance(this.#pick(TERMS_MS))],
      [12, "a pod comes", () => this.#podComes()],
      [8, "a pod goes", () => objects.forget("Pod", "shop", this.#pick(PODS))],
      [4, "a set is applied", () => this.#apply("StatefulSet", "mysql")],
      [4, "a list is applied", () => this.#apply("Deployment", "web")],
      [2, "a set goes", () => objects.forget("StatefulSet", "shop", "mysql")],
      [2, "a list goes", () => objects.forget("Deployment", "shop", "web")],
      [12, "a claim is reserved", () => this.#reserve(this.#pick(PODS))],
      [8, "a claim is bound", () => this.#bind()],
      [8, "a sandbox ends", () => this.#detach()],
      [2, "a claim is made by hand", () => this.#make()],
      [3, "a claim vanishes", () => this.#remove("claim")],
      [3, "a reservation vanishes", () => this.#remove("reservation")],
      [2, "a reservation is left", () => this.#leave()],
      [3, "a node is fenced, or is not", () => this.#fence(this.#pick(NODES))],
    ];
  }

  async next(): Promise<string> {
    let n = this.#world.random.below(this.#acts.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, name, act] of this.#acts) {
      n -= weight;
      if (n >= 0) continue;
      await act();
      await this.#world.settle();
      return name;
    }
    throw new RangeError("nothing happens");
  }

  #pick<T>(choices: readonly T[]): T {
    return this.#world.random.pick(choices);
  }

  async #keep(object: Json): Promise<void> {
    await this.#world.objects.keep(granted(readObject(object)));
  }

  async #podComes(): Promise<void> {
    const name = this.#pick(PODS);
    const own = { "berth.dev/claim": name };
    const given = this.#pick([own, own, own, {}, { "berth.dev/claim": "another" }]);
    const uid = this.#pick([`uid-of-${name}`, `uid-of-${name}`, `other-uid-of-${name}`]);
    const object = pod(name, { uid, annotations: { ...this.#pick(ASKED), ...given } });
    await this.#keep({ ...object, status: { phase: this.#pick(["Running", "Running", "Failed"]) } });
  }

  async #apply(kind: string, name: string): Promise<void> {
    const hostNetwork = this.#pick([false, false, false, true]);
    const metadata = { annotations: this.#pick(ASKED) };
    const spec = { template: { metadata, spec: { hostNetwork } } };
    const uid = this.#pick([`uid-of-${name}`, `other-uid-of-${name}`]);
    await this.#keep(workload(kind, name, { uid, replicas: this.#world.random.below(4), spec }));
  }

  /** As a review does, whatever comes of it. */
  async #reserve(name: string): Promise<void> {
    const world = this.#world;
    const retention = this.#pick(RETENTIONS);
    const one = { ...entries(this.#pick(ADDRESSES)), retention };
    const list = { ...entries(ADDRESSES.slice(0, 3).join(";")), retention };
    const allocations = {
      mysql: () => ordinalAllocation(world, name, list),
      web: () => slotsFor(world, list)[0],
      licence: () => podAllocation(world, name, one),
    };
    const allocation = allocations[name.split("-")[0] as keyof typeof allocations]();
    if (allocation !== undefined) await reserve(world.context, allocation, "pod");
  }

  async #bind(): Promise<void> {
    const seen = await this.#any("claim");
    if (seen === undefined) return;
    const { name } = seen.record;
    const podName = this.#pick([name, name, name, this.#pick(PODS)]);
    const node = this.#pick(["", ...NODES, ...NODES]);
    const over = { since: this.#world.clock.now(), token: this.#pick(["", "", "token"]) };
    const binding = bindingTo(podName, node, over);
    await this.#world.realStore.replace("claim", seen, { ...seen.record, binding });
  }

  async #detach(): Promise<void> {
    const seen = await this.#any("claim");
    if (seen === undefined) return;
    const attachment = attachmentOf(seen.record.binding?.podName ?? "", {
      detached: this.#pick([true, true, false]),
    });
    await this.#world.realStore.report(seen, { attachment });
  }

  async #make(): Promise<void> {
    const name = `made-${this.#world.random.below(2)}`;
    const identity = { kind: "Pod", apiVersion: "v1", name };
    const claim: Claim = claimRecord({ name, identity, handMade: true, addresses: [], nonce: "" });
    const addresses = addrs(this.#pick(ADDRESSES));
    const nonce = `nonce of ${name}`;
    await this.#world.realStore.create(
      "claim",
      this.#pick([claim, { ...claim, addresses, nonce, handMade: false }]),
    );
  }

  async #leave(): Promise<void> {
    const nonce = this.#pick(["left", "nonce of made-0"]);
    const claim = { namespace: "shop", name: this.#pick(["gone", "made-0"]) };
    const record = reservationRecord(this.#pick(ADDRESSES), { nonce, claim });
    await this.#world.realStore.create("reservation", record);
  }

  async #block(): Promise<void> {
    const { realStore } = this.#world;
    const there = await realStore.get("block", CIDR);
    if (there !== undefined) return void (await realStore.remove("block", there));
    await realStore.create("block", { cidr: CIDR, pool: "db", node: "node-a", nodeUID: "", holes: [] });
  }

  async #changePool(): Promise<void> {
    const seen = await this.#world.realStore.get("pool", "db");
    if (seen === undefined) return;
    const spec = { ...seen.record.spec, cooldown: this.#pick(["20s", "1m"]) };
    await this.#world.realStore.replace("pool", seen, { ...seen.record, spec });
  }

  async #fence(node: string): Promise<void> {
    if (!this.#fenced.delete(node)) this.#fenced.add(node);
  }

  async #remove(kind: "claim" | "reservation"): Promise<void> {
    const seen = await this.#any(kind);
    if (seen !== undefined) await this.#world.realStore.remove(kind, seen);
  }

  async #any<K extends Kind>(kind: K): Promise<Stored<K> | undefined> {
    const all = await this.#world.all(kind);
    return all[this.#world.random.below(all.length)];
  }
}
