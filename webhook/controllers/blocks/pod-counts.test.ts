// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { RecordCache } from "../../../allocator/cache/cache.ts";
import { bindingTo, claimRecord, poolRecord, storedAs } from "../../../test/support/fixtures.ts";
import { SeededRandom } from "../../../test/support/random.ts";
import { runsOf } from "../../../test/support/runs.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";
import { observedPod } from "../../cluster-state/projections.ts";
import { PodCounts } from "./pod-counts.ts";

type Handler = (key: string, now: ObservedPod | undefined, before: ObservedPod | undefined) => void;

const NAMES = ["a", "b", "c", "d"];
const POOLS = [
  poolRecord("web", "10.0.0.0/24", { blockSize: { ipv4: 28 } }),
  poolRecord("web", "10.0.0.0/28", { blockSize: { ipv4: 30 } }),
  poolRecord("web", "10.0.0.0/24"),
  poolRecord("db", ["10.0.0.0/24", "fd00::/64"], { blockSize: { ipv4: 28, ipv6: 124 }, priority: 3 }),
];
const STATUSES = [
  {},
  { phase: "Running", podIPs: [{ ip: "10.0.0.9" }] },
  { phase: "Running", podIPs: [{ ip: "10.0.0.99" }, { ip: "fd00::1" }] },
  { phase: "Running", podIPs: [{ ip: "192.0.2.1" }] },
  { phase: "Succeeded", podIPs: [{ ip: "10.0.0.9" }] },
];
const ANNOTATIONS = [
  {},
  { "berth.dev/ips": "10.0.0.9" },
  { "berth.dev/claim": "x", "berth.dev/addresses": "10.0.0.9@net1" },
  { "k8s.v1.cni.cncf.io/networks": "one,two" },
];

/** A cluster whose pods, claims and pools change at random, and the counts that follow it. */
class Scene {
  readonly cache = new RecordCache(noopLogger);
  readonly #random: SeededRandom;
  readonly #pods = new Map<string, ObservedPod>();
  readonly #handlers: Handler[] = [];
  readonly counts: PodCounts;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.counts = new PodCounts(this.cache, this.#watches());
    this.counts.follow(this.cache, {
      onChange: (handler) => {
        this.#handlers.push(handler);
        return () => {};
      },
    });
  }

  #watches() {
    return { pods: { all: () => this.#pods.entries() as never, get: (key: string) => this.#pods.get(key) } };
  }

  change(): void {
    const what = this.#random.below(10);
    if (what < 6) this.put(this.#random.pick(NAMES));
    else if (what < 9) this.#changeClaim();
    else this.#changePool();
  }

  /** As it is by now, or gone. */
  put(name: string): void {
    const key = `shop/${name}`;
    const before = this.#pods.get(key);
    const now = this.#random.below(4) === 0 ? undefined : this.#made(name);
    if (now === undefined) this.#pods.delete(key);
    else this.#pods.set(key, now);
    for (const handler of this.#handlers) handler(key, now, before);
  }

  #made(name: string): ObservedPod {
    const annotations = this.#random.pick(ANNOTATIONS);
    const nodeName = this.#random.pick(["", "n1", "n2"]);
    const spec = { nodeName, hostNetwork: this.#random.below(5) === 0 };
    const metadata = { name, namespace: "shop", uid: `u-${name}`, resourceVersion: "1", annotations };
    return observedPod({ metadata, spec, status: this.#random.pick(STATUSES) } as never);
  }

  #changeClaim(): void {
    const [name, pod] = [this.#random.pick(NAMES), this.#random.pick(NAMES)];
    const interfaces = this.#random.pick([{}, { interfaces: { net1: ["10.0.0.9"] } }]);
    const of = { name, namespace: "shop", binding: bindingTo(pod, "n1"), ...interfaces } as never;
    const stored = storedAs("claim", claimRecord(of));
    if (this.#random.below(3) === 0) this.cache.apply("claim", { type: "gone", key: `shop/${name}` });
    else this.cache.apply("claim", { type: "put", stored });
  }

  #changePool(): void {
    const record = this.#random.pick(POOLS);
    if (this.#random.below(3) === 0) this.cache.apply("pool", { type: "gone", key: record.name });
    else this.cache.apply("pool", { type: "put", stored: storedAs("pool", record) });
  }

  /** What is counted, and what it is when everything is counted anew. */
  async compare(): Promise<void> {
    await this.counts.update(async () => {});
    const anew = new PodCounts(this.cache, this.#watches());
    await anew.update(async () => {});
    assert.deepEqual(contentOf(this.counts), contentOf(anew));
  }
}

function contentOf(counts: PodCounts) {
  const groups = [...counts.groups()].map(({ node, interfaces, homes, pods }) =>
    JSON.stringify([node, interfaces, homes ?? "none", pods]),
  );
  return [groups.sort(), [...counts.unaddressed()].map(({ name }) => name).sort()];
}

describe("counts of pods", () => {
  it("are, after whatever has changed, what they are when all pods are counted", async () => {
    for (let seed = 1; seed <= runsOf(300, 30); seed++) {
      const scene = new Scene(seed);
      for (let n = 0; n < 20; n++) {
        for (let changes = 0; changes < 1 + (seed % 5); changes++) scene.change();
        await scene.compare();
        if (n === 10 && seed % 3 === 0) scene.counts.forget();
      }
    }
  });

  it("count what changes while they are made, with the next update", async () => {
    const scene = new Scene(7);
    const names = Array.from({ length: 2_000 }, (_, n) => `p${n}`);
    const changeSome = async () => {
      for (let n = 0; n < 50; n++) scene.change();
      for (let n = 0; n < 2_000; n += 40) scene.put(`p${n}`);
    };
    for (const name of names) scene.put(name);
    await scene.counts.update(changeSome);
    for (const name of names) scene.put(name);
    await scene.counts.update(changeSome);
    await scene.compare();
  });

  it("look at what has changed alone", async () => {
    const scene = new Scene(3);
    for (let n = 0; n < 1_000; n++) scene.put(`p${n}`);
    let rests = 0;
    const rest = async () => void rests++;
    await scene.counts.update(rest);
    const all = rests;
    scene.put("p1");
    await scene.counts.update(rest);
    assert.deepEqual([all, rests], [1, 1]);
  });
});
