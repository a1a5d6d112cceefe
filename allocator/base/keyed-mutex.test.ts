// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { KeyedMutex } from "./keyed-mutex.ts";

describe("KeyedMutex", () => {
  it("runs the work of one key in order, one at a time, also after a failure", async () => {
    const mutex = new KeyedMutex();
    const seen: string[] = [];
    const work = (name: string, fail = false) =>
      mutex.run("k", async () => {
        seen.push(`${name}+`);
        await new Promise((resolve) => setImmediate(resolve));
        seen.push(`${name}-`);
        if (fail) throw new Error(name);
        return name;
      });
    const results = await Promise.allSettled([work("a"), work("b", true), work("c")]);
    assert.deepEqual(seen, ["a+", "a-", "b+", "b-", "c+", "c-"]);
    assert.deepEqual(
      results.map((r) => r.status),
      ["fulfilled", "rejected", "fulfilled"],
    );
  });

  it("lets keys overlap", async () => {
    const mutex = new KeyedMutex();
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = mutex.run("a", () => promise);
    await mutex.run("b", async () => resolve());
    await first;
  });

  it("begins work for several once, after all of them have asked", async () => {
    const mutex = new KeyedMutex();
    const { promise, resolve } = Promise.withResolvers<void>();
    let begun = 0;
    const ask = () =>
      mutex.together("k", async () => {
        const mine = ++begun;
        if (mine === 1) await promise;
        return mine;
      });
    const first = [ask(), ask()];
    await new Promise((again) => setImmediate(again));
    assert.equal(begun, 1);
    const later = [ask(), ask()];
    resolve();
    assert.deepEqual(await Promise.all([...first, ...later]), [1, 1, 2, 2]);
    assert.equal(mutex.isBusy("k"), false);
  });
});
