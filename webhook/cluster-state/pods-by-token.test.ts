// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { podFactsOf } from "../../test/support/fixtures.ts";
import { type ByToken, PodsByToken } from "./pods-by-token.ts";

/** Lists that end when the test says so. */
class Lists {
  readonly begun: string[] = [];
  readonly #ends: PromiseWithResolvers<ByToken>[] = [];

  list(namespace: string): Promise<ByToken> {
    this.begun.push(namespace);
    const end = Promise.withResolvers<ByToken>();
    this.#ends.push(end);
    return end.promise;
  }

  end(at: number, ...tokens: readonly string[]): void {
    this.#ends[at]?.resolve(new Map(tokens.map((token) => [token, podFactsOf(`pod-${token}`)])));
  }

  fail(at: number): void {
    this.#ends[at]?.reject(new Error("no answer"));
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("pods by token", () => {
  it("come from one list for all who ask before it begins, and from another for who asks later", async () => {
    const lists = new Lists();
    const pods = new PodsByToken((namespace) => lists.list(namespace));
    const [a, none] = [pods.find("shop", "a"), pods.find("shop", "b")];
    await turn();
    const [late, latest] = [pods.find("shop", "b"), pods.find("shop", "c")];
    const other = pods.find("bank", "a");
    await turn();
    assert.deepEqual(lists.begun, ["shop", "bank"]);
    lists.end(0, "a");
    lists.end(1);
    assert.equal((await a)?.name, "pod-a");
    assert.deepEqual([await none, await other], [undefined, undefined]);
    await turn();
    assert.deepEqual(lists.begun, ["shop", "bank", "shop"]);
    lists.end(2, "a", "b");
    assert.deepEqual([(await late)?.name, await latest], ["pod-b", undefined]);
  });

  it("are listed anew after a list that failed, for those who asked during it too", async () => {
    const lists = new Lists();
    const pods = new PodsByToken((namespace) => lists.list(namespace));
    const first = pods.find("shop", "a");
    await turn();
    const second = pods.find("shop", "a");
    lists.fail(0);
    await assert.rejects(first, /no answer/);
    await turn();
    lists.end(1, "a");
    assert.equal((await second)?.name, "pod-a");
    const third = pods.find("shop", "a");
    await turn();
    lists.end(2);
    assert.equal(await third, undefined);
  });
});
