// SPDX-License-Identifier: Apache-2.0
// The bench of a real API server, in its smallest size: whether it runs whole and its ratios are those of what it
// measured. Its numbers say nothing here, and nothing is asked of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { median } from "../bench/statistics.ts";
import { type Ended, inheritedEnv, run } from "../support/process.ts";
import { havePartsOrSkip } from "./binaries.ts";

const ROOT = join(import.meta.dirname, "../..");
const MAIN = join(ROOT, "test/bench-api/main.ts");
const QUICK_MS = 600_000;

interface Load {
  readonly contender: string;
  readonly workers: number;
  readonly processes: number;
  readonly taken: number;
  readonly rates: readonly number[];
}
interface Share {
  readonly what: string;
  readonly found: { readonly ratio: number };
}
interface Admission {
  readonly kind: string;
  readonly perSecond: number;
  readonly waits: readonly { readonly count: number; readonly sum: number }[];
  readonly meanMs: number;
}
interface Recreation {
  readonly ratio: { readonly ratio: number };
  readonly pods: number;
  readonly changed: number;
  readonly rounds: readonly Readonly<Record<"first" | "again", { readonly ipamMs: number }>>[];
}
interface Figure {
  readonly name: string;
  readonly goals: readonly { readonly what: string; readonly met: boolean }[];
  readonly data: unknown;
}

interface Agents {
  readonly fixedMs: readonly number[];
  readonly dynamicMs: readonly number[];
  readonly free: number;
  readonly alone: number;
  readonly memory: readonly { readonly resident: number }[];
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the bench of a real API server, quick", { timeout: QUICK_MS }, () => {
    let ended: Ended;
    let figures: readonly Figure[];
    before(async () => {
      const env = inheritedEnv();
      ended = await run(process.execPath, [MAIN, "--quick"], { env });
      assert.equal(ended.rc, 0, `${ended.stdout}\n${ended.stderr}`);
      figures = JSON.parse(readFileSync(join(ROOT, "build/bench-api.json"), "utf8")).figures;
    });

    function dataOf<T>(name: string): T {
      const figure = figures.find((one) => one.name === name);
      assert.ok(figure, `no figure ${name}`);
      return figure.data as T;
    }

    it("makes every figure and every plot", () => {
      assert.deepEqual(
        figures.map(({ name }) => name),
        ["api-creates", "api-admission", "api-recreation", "api-blocks", "api-agents", "api-agent-memory"],
      );
      for (const plot of ["api-creates", "api-shares", "api-admission", "api-recreation"]) {
        assert.match(readFileSync(join(ROOT, `build/bench-api/${plot}.svg`), "utf8"), /^<svg /);
        assert.ok(ended.stdout.includes(`build/bench-api/${plot}.svg`), plot);
      }
    });

    it("divides the rates that it measured", () => {
      const { loads, shares } = dataOf<{ loads: Load[]; shares: Share[] }>("api-creates");
      const rateOf = (contender: string, workers: number, processes = 1) => {
        const load = loads.find(
          (one) => one.contender === contender && one.workers === workers && one.processes === processes,
        );
        assert.ok(load && load.rates.length === 2, `${contender}, ${workers}`);
        return median(load.rates);
      };
      const expected = [
        ["berth to bare creates, 1 worker", rateOf("berth", 1) / rateOf("bare", 1)],
        ["berth to bare creates, 8 workers", rateOf("berth", 8) / rateOf("bare", 8)],
        ["berth to bare creates, 8 workers in 4 processes", rateOf("berth", 8, 4) / rateOf("bare", 8, 4)],
        ["berth to model: one object, 8 workers", rateOf("berth", 8) / rateOf("one object", 8)],
        ["berth to model: lease around it, 8 workers", rateOf("berth", 8) / rateOf("lease", 8)],
      ] as const;
      for (const [what, ratio] of expected) {
        const found = shares.find((share) => share.what === what)?.found.ratio ?? Number.NaN;
        assert.ok(Math.abs(found / ratio - 1) < 1e-9, `${what}: ${found}, not ${ratio}`);
      }
    });

    it("counts every pod in the API server's histogram, once", () => {
      const lanes = dataOf<Admission[]>("api-admission");
      assert.deepEqual(
        lanes.map(({ kind, perSecond }) => `${kind} ${perSecond}`),
        ["noop 40", "new 40", "again 40", "noop 80", "new 80", "again 80"],
      );
      for (const { perSecond, waits, meanMs } of lanes) {
        assert.deepEqual(
          waits.map(({ count }) => count),
          [perSecond / 2, perSecond / 2],
        );
        assert.ok(Math.abs(meanMs / median(waits.map(({ sum, count }) => (1000 * sum) / count)) - 1) < 1e-9);
      }
    });

    it("compares pods that come again with their first time, and sees no address change", () => {
      const { ratio, rounds, pods, changed } = dataOf<Recreation>("api-recreation");
      assert.deepEqual([pods, changed], [20, 0]);
      const times = (which: "first" | "again") => median(rounds.map((round) => round[which].ipamMs));
      assert.ok(Math.abs(ratio.ratio / (times("again") / times("first")) - 1) < 1e-9);
    });

    it("sees no block twice, none left, and how many calls each pod cost", () => {
      const { nodes, pods, blocks, doubles, left, perPod } = dataOf<Record<string, number>>("api-blocks");
      assert.deepEqual([nodes, pods, doubles, left], [40, 100, 0, 0]);
      assert.equal(blocks, 160, "two for the pods of each node, and two ahead");
      assert.ok(perPod !== undefined && perPod > 0 && perPod < 1, String(perPod));
    });

    it("times ADDs of real agents, serves all that their blocks have without an API server, and weighs an agent", () => {
      const { fixedMs, dynamicMs, free, alone, memory } = dataOf<Agents>("api-agents");
      assert.deepEqual([fixedMs.length, dynamicMs.length], [20, 20]);
      assert.ok(free > 0 && alone === free, `${alone} of ${free}`);
      assert.equal(memory.length, 2);
      for (const { resident } of memory) assert.ok(resident > 0);
    });
  });
}
