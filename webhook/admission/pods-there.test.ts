// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { PodState } from "../../allocator/model/cluster-state.ts";
import { podsThere } from "./pods-there.ts";

const POD: Omit<PodState, "name"> = {
  ...{ namespace: "shop", uid: "uid", node: "", labels: {}, annotations: {}, ended: false },
};
const keyOf = (n: number) => ({ namespace: "shop", name: `mysql-${n}` });
const KEYS = Array.from({ length: 200 }, (_, n) => keyOf(n));

describe("the pods that a review looks up", () => {
  it("are 128 at most, 16 at a time, and each once", async () => {
    const asked: string[] = [];
    let [now, most] = [0, 0];
    const lookUp = podsThere({
      pod: async (_, name) => {
        asked.push(name);
        most = Math.max(most, ++now);
        await nextTurn();
        now--;
        return { ...POD, name };
      },
    });
    await lookUp(KEYS.slice(0, 3));
    for (let again = 0; again < 3; again++) await lookUp(KEYS);
    assert.equal(most, 16);
    assert.deepEqual([asked.length, new Set(asked).size], [128, 128]);
    assert.equal((await lookUp([])).get("shop/mysql-0"), true);
  });

  it("are not there where they are ending; of one that is unknown nothing is known on one host", async () => {
    const pods: Record<string, Partial<PodState> | undefined> = {
      ...{ "mysql-0": {}, "mysql-1": { ended: true }, "mysql-2": { deleting: true } },
    };
    const inventory = {
      pod: async (_: string, name: string) => pods[name] && { ...POD, name, ...pods[name] },
    };
    const saidOf = async (lookUp: ReturnType<typeof podsThere>) => {
      const found = await lookUp(KEYS.slice(0, 4));
      return KEYS.slice(0, 4).map(({ name }) => found.get(`shop/${name}`));
    };
    assert.deepEqual(await saidOf(podsThere(inventory)), [true, false, false, undefined]);
    const inCluster = podsThere({ ...inventory, admittedWith: async () => undefined });
    assert.deepEqual(await saidOf(inCluster), [true, false, false, false]);
  });

  it("are asked for again where it could not be known", async () => {
    let isUp = false;
    const lookUp = podsThere({
      pod: async (_, name) => {
        if (!isUp) throw new Error("no answer");
        return { ...POD, name };
      },
    });
    await assert.rejects(lookUp(KEYS), /no answer/);
    isUp = true;
    assert.equal((await lookUp(KEYS)).get("shop/mysql-0"), true);
  });
});
