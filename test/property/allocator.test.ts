// SPDX-License-Identifier: Apache-2.0
// The invariants of ARCHITECTURE.md after every step of random lives of pods on three nodes.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { describeIdentity } from "../../allocator/model/identity.ts";
import { altered } from "../simulation/altered.ts";
import { assertClean, assertSound } from "../support/assert-audit.ts";
import { poolRecord } from "../support/fixtures.ts";
import { deploymentPod, type Json, ownedBy, pod, statefulPod, workload } from "../support/objects.ts";
import type { SeededRandom } from "../support/random.ts";
import { skipAllBut } from "../support/runs.ts";
import { LittleCluster, NODES, type Running } from "./little-cluster.ts";

const POOLS = [
  poolRecord("db", ["10.1.0.0/28", "fd01::/124"]),
  poolRecord("web", "10.2.0.0/29", { cooldown: "10s", limits: { perNamespace: 5 } }),
  poolRecord("any", "10.3.0.0/29", { priority: 5, cooldown: "0s" }),
];
const SET = "10.2.0.1;10.2.0.2;10.2.0.3";
/** Template annotations of the StatefulSets; each keeps the addresses that it first gets. */
const SETS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sticky: { "berth.dev/sticky": "true" },
  mysql: { "berth.dev/pools": "db", "berth.dev/when-scaled": "Release" },
  listed: {
    "berth.dev/ips": "10.1.0.9/fd01::9;10.1.0.10/fd01::a",
    "berth.dev/when-deleted": "Retain",
    "berth.dev/ttl": "90s",
  },
};

function setOf(name: string, replicas: number): Json {
  return workload("StatefulSet", name, { replicas, annotations: SETS[name] ?? {} });
}

const WEB = workload("Deployment", "web", {
  replicas: 3,
  annotations: { "berth.dev/ips": SET },
  spec: { strategy: { rollingUpdate: { maxSurge: 0 } } },
});

/** One random life: what may happen next, and what must always hold. */
class Life {
  readonly cluster: LittleCluster;
  readonly random: SeededRandom;
  readonly collector: GarbageCollector;
  /** Looks at everything in each pass, as nobody tells it of changes. */
  readonly #looksAtAll: GarbageCollector;
  readonly replicas = new Map<string, number>(); // StatefulSet -> replicas, if it exists
  readonly #kept = new Map<string, string>(); // claim of an ordinal -> the addresses that it must keep
  #pods = 0;

  constructor(cluster: LittleCluster) {
    this.cluster = cluster;
    this.random = cluster.world.random;
    const { world } = cluster;
    this.collector = world.collector();
    this.#looksAtAll = new GarbageCollector(world.context, altered(world.objects, { onChange: undefined }));
  }

  async step(): Promise<string> {
    const moves: readonly (readonly [number, string, () => Promise<unknown>])[] = [
      [6, "an ordinal is created", () => this.#createOrdinal()],
      [4, "a pod of the Deployment is created", () => this.#createOfSet()],
      [3, "a bare pod is created", () => this.#createBare()],
      [2, "a pod that nothing tells from its like is created", () => this.#createAnonymous()],
      [12, "a sandbox starts", () => this.#start()],
      [5, "a pod is deleted", () => this.#deletePod()],
      [5, "a sandbox ends", () => this.#endSandbox()],
      [2, "an old DEL comes again", () => this.#repeatDel()],
      [3, "a set is scaled or comes", () => this.#scale()],
      [1, "a workload is deleted", () => this.#deleteWorkload()],
      [1, "the Deployment comes", () => this.cluster.putWorkload(WEB)],
      [3, "the garbage collector passes", () => this.#pass()],
      [2, "time passes", async () => this.cluster.world.clock.advance(this.random.below(40_000))],
    ];
    let n = this.random.below(moves.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, name, move] of moves) {
      n -= weight;
      if (n >= 0) continue;
      await move();
      return name;
    }
    throw new RangeError("no move");
  }

  async #createOrdinal(): Promise<void> {
    const [name, replicas] = this.random.pick([...this.replicas, ["none", 0]] as [string, number][]);
    if (replicas === 0) return;
    const ordinal = this.random.below(replicas);
    const annotations = SETS[name] ?? {};
    const wants = annotations["berth.dev/ips"]?.split(";")[ordinal]?.replace("/", ",") ?? "";
    await this.cluster.createPod(statefulPod(name, ordinal, { annotations }), `${name}-${ordinal}`, wants);
  }

  async #createOfSet(): Promise<void> {
    if (!this.cluster.workloads.has("web")) return;
    const annotations = { "berth.dev/ips": SET };
    await this.cluster.createPod(deploymentPod("web", { annotations }), `web-5d9c7b-${this.#pods++}`);
  }

  async #createBare(): Promise<void> {
    const name = `bare-${this.random.below(3)}`;
    const wants = this.random.pick(["10.1.0.3,fd01::3", "10.2.0.4", "10.1.0.9,fd01::9"]);
    await this.cluster.createPod(pod(name, { annotations: { "berth.dev/ips": wants } }), name, wants);
  }

  async #createAnonymous(): Promise<void> {
    const annotations = { "berth.dev/pools": this.random.pick(["web", "db", "any"]) };
    const object = pod("", { generateName: "etl-", annotations, owner: ownedBy("Workflow", "etl") });
    await this.cluster.createPod(object, `etl-${this.#pods++}`);
  }

  async #start(): Promise<void> {
    const waiting = [...this.cluster.pods.values()].filter((one) => !this.#runs(one));
    if (waiting.length === 0) return;
    const chosen = this.random.pick(waiting);
    if (chosen.node === "") chosen.node = this.random.pick(NODES);
    await this.cluster.add(chosen);
  }

  #runs(one: Running): boolean {
    return this.cluster.sandboxes.some((sandbox) => sandbox.pod === one);
  }

  async #deletePod(): Promise<void> {
    const pods = [...this.cluster.pods.values()];
    if (pods.length > 0) await this.cluster.deletePod(this.random.pick(pods));
  }

  async #endSandbox(): Promise<void> {
    const { sandboxes } = this.cluster;
    if (sandboxes.length > 0) await this.cluster.end(this.random.pick(sandboxes));
  }

  async #repeatDel(): Promise<void> {
    const { ended } = this.cluster;
    if (ended.length > 0) await this.cluster.tell(this.random.pick(ended));
  }

  async #scale(): Promise<void> {
    const name = this.random.pick(Object.keys(SETS));
    const replicas = this.random.below(3);
    if (!(await this.cluster.putWorkload(setOf(name, replicas)))) return;
    this.replicas.set(name, replicas);
    if (name === "sticky") return; // the others let go: Release, or Retain with a ttl
    for (const key of [...this.#kept.keys()]) {
      const ordinal = key.startsWith(`shop/${name}-`) ? Number(key.split("-").at(-1)) : -1;
      if (ordinal >= replicas) this.#kept.delete(key);
    }
  }

  async #deleteWorkload(): Promise<void> {
    const names = [...this.cluster.workloads];
    if (names.length === 0) return;
    const name = this.random.pick(names);
    await this.cluster.deleteWorkload(name === "web" ? WEB : setOf(name, 0));
    this.replicas.delete(name);
    for (const key of [...this.#kept.keys()]) if (key.startsWith(`shop/${name}-`)) this.#kept.delete(key);
  }

  /** What it left out would be left as it is. */
  async #pass(): Promise<void> {
    const { world } = this.cluster;
    for (let did = 1; did > 0; ) {
      did = Object.values(await this.collector.pass()).reduce((sum, count) => sum + count, 0);
      await world.settle();
    }
    const before = world.dump();
    const did = await this.#looksAtAll.pass();
    await world.settle();
    assert.deepEqual(did, { orphans: 0, cooled: 0, released: 0, retained: 0 });
    assert.ok(world.dump() === before, "something was left to do");
  }

  async check(): Promise<void> {
    const { world, sandboxes } = this.cluster;
    await assertSound(
      world,
      sandboxes.map(({ attachment }) => attachment),
    );
    const claims = new Map((await world.all("claim")).map(({ record }) => [claimKey(record), record])); // key -> claim
    this.#checkIdentities([...claims.values()]);
    for (const { claim, pod: owner } of sandboxes) {
      const record = claims.get(claim);
      assert.ok(record, `${claim} is gone under the sandbox of ${owner.ref.name}`);
      assert.equal(
        record.binding?.podUID,
        owner.ref.uid,
        `${claim} is bound to another pod than the one that uses it`,
      );
      assert.ok(!isDetached(record), `${claim} is taken for unused, and ${owner.ref.name} uses it`);
    }
    for (const [key, addresses] of this.#kept) {
      assert.equal(claims.get(key)?.addresses.join(","), addresses, `${key} lost its addresses`);
    }
    for (const [key, { identity, addresses, releasing }] of claims) {
      const wanted =
        identity.kind === "StatefulSet" && this.replicas.has(identity.name) && releasing !== true;
      if (wanted && (identity.ordinal ?? 0) < (this.replicas.get(identity.name) ?? 0)) {
        this.#kept.set(key, addresses.join(","));
      }
    }
  }

  #checkIdentities(claims: readonly Claim[]): void {
    const seen = new Set<string>();
    for (const { namespace, name, identity } of claims) {
      const who = name.startsWith("c-") ? name : `${namespace} ${describeIdentity(identity)}`;
      assert.ok(!seen.has(who), `${who} has two claims`);
      seen.add(who);
    }
  }

  /** Everything ends, and retention lets go. */
  async finish(): Promise<void> {
    const { cluster } = this;
    for (const name of [...cluster.workloads])
      await cluster.deleteWorkload(name === "web" ? WEB : setOf(name, 0));
    for (const one of [...cluster.pods.values()]) await cluster.deletePod(one);
    for (const sandbox of [...cluster.sandboxes]) await cluster.end(sandbox);
    for (let ms = 0; ms < 300_000; ms += 20_000) {
      await this.#pass();
      cluster.world.clock.advance(20_000);
    }
  }
}

describe("the allocator, whatever happens", () => {
  for (const seed of [11, 12, 13, 14, 15, 16]) {
    it(`keeps the invariants at every step, and nothing leaks (seed ${seed})`, {
      skip: skipAllBut(1, 6, seed - 11),
    }, async () => {
      const cluster = await LittleCluster.open(POOLS, seed);
      await using world = cluster.world;
      const life = new Life(cluster);
      const steps: string[] = [];
      try {
        for (let n = 0; n < 250; n++) {
          steps.push(await life.step());
          await life.check();
        }
        await life.finish();
        await assertClean(world);
        assert.deepEqual([await world.all("claim"), await world.all("reservation")], [[], []]);
        assert.ok(cluster.ended.length > 0, "no sandbox ever ran");
      } catch (error) {
        console.error(`step ${steps.length}: ${steps.slice(-12).join(", ")}`);
        throw error;
      }
    });
  }
});
