// SPDX-License-Identifier: Apache-2.0
// What it takes an etcd to be restored for; the rest is in the contract and in test/etcd.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../base/ports.ts";
import { followKind } from "./follow.ts";
import type { Source, WatchNews } from "./messages.ts";

const US: Source = { cluster: "a", term: 3 };

/**
 * How often everything is listed where it was listed at revision 10 once, in one page of each of `sources`, and then a watch begins with this; it
 * began as ours before, where there was one page. `waits`: is told each wait.
 */
async function lists(
  news: Source & { readonly revision: number },
  sources: readonly Source[] = [US],
  waits: number[] = [],
): Promise<number> {
  const stop = new AbortController();
  const { signal } = stop;
  let [listed, watched] = [0, 0];
  const watch = async function* (): AsyncGenerator<WatchNews, void, void> {
    const begun = watched++ === 0 && sources.length === 1 ? { ...US, revision: 10 } : news;
    if (watched === 6) stop.abort();
    yield { ...begun, created: true, canceled: false, compactRevision: 0, reason: "", events: [] };
  };
  const pages = async function* () {
    for (const source of sources) yield { ...source, revision: 10, entries: [] };
  };
  const changes = followKind({
    ...{ kind: "pool", client: { watch }, pages, signal, log: noopLogger },
    clock: { now: () => 0, monotonic: () => 0, sleep: async (ms) => void waits.push(ms) },
    random: { fraction: () => 0, token: () => "t" },
    range: { key: "/p/", end: "/p0" },
    read: () => assert.fail(),
  });
  for await (const { type } of changes) if (type === "relist") listed++;
  return listed;
}

describe("a watch of etcd that is resumed", () => {
  for (const [what, news, isAnew] of [
    ["goes on where it was", { ...US, revision: 10 }, false],
    ["goes on after elections", { cluster: "a", term: 5, revision: 90 }, false],
    [
      "goes on behind a proxy that does not say whose answer it is",
      { cluster: "", term: 0, revision: 90 },
      false,
    ],
    ["starts over where etcd is behind", { ...US, revision: 9 }, true],
    ["starts over in another cluster, whatever its revision", { cluster: "b", term: 3, revision: 90 }, true],
    ["starts over where elections are counted anew", { cluster: "a", term: 2, revision: 90 }, true],
  ] as const)
    it(what, async () => assert.equal((await lists(news)) > 1, isAnew));

  it("starts over where etcd was restored between two pages of the list", async () => {
    assert.ok((await lists({ cluster: "b", term: 2, revision: 10 }, [US, { cluster: "b", term: 2 }])) > 1);
  });

  it("waits longer each time where it has to start over again and again", async () => {
    const waits: number[] = [];
    await lists({ cluster: "b", term: 3, revision: 90 }, [US], waits);
    assert.deepEqual(waits.slice(0, 4), [100, 200, 400, 800]);
  });
});
