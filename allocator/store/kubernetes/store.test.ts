// SPDX-License-Identifier: Apache-2.0
// What a real API server does too rarely to wait for; the rest is the contract, in test/api/store.api-test.ts.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventLoopTurns } from "../../../kube/testing/event-loop-turns.ts";
import { PagingConnection } from "../../../kube/testing/paging-connection.ts";
import { ScriptedConnection } from "../../../kube/testing/scripted-connection.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { type Logger, noopLogger } from "../../base/ports.ts";
import { RecordCache } from "../../cache/cache.ts";
import type { Kind } from "../store.ts";
import { openKubernetesStore } from "./store.ts";

const random = { fraction: () => 0, token: () => "t" };

function claimObject(name: string, revision: number, more: object = {}) {
  return {
    metadata: {
      ...{ namespace: "shop", name, uid: `uid-${name}`, resourceVersion: String(revision) },
      creationTimestamp: "2026-01-01T00:00:00Z",
    },
    spec: {
      identity: { kind: "Pod", apiVersion: "v1", name },
      ...{ request: {}, addresses: [], nonce: "n" },
      retention: { whenDeleted: "Release", whenScaled: "Retain", ttl: null },
      ...more,
    },
  };
}

const BROKEN = { addresses: ["10.20.0.51/24"] };
const END = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "9", annotations: { "k8s.io/initial-events-end": "true" } } },
};

/** What a cache has after these events, what was said of a watch and what was logged. */
async function watched(kind: Kind, events: readonly object[]) {
  const connection = new ScriptedConnection({ lines: events, after: "is silent" });
  const errors: unknown[] = [];
  const log: Logger = { ...noopLogger, error: (message, fields) => void errors.push([message, fields]) };
  const store = openKubernetesStore({ connection, clock: new ManualClock(), random, log });
  const cache = new RecordCache(noopLogger);
  const said: string[] = [];
  const reading = (async () => {
    for await (const change of store.watch(kind, new AbortController().signal)) {
      cache.apply(kind, change);
      said.push("key" in change ? `${change.type} ${change.key}` : change.type);
    }
  })();
  await eventLoopTurns();
  await store.close();
  await reading;
  return { cache, said, errors };
}

describe("a watch of an API server with a record that cannot be read", () => {
  it("passes it over, says which and why, and goes on", async () => {
    const { cache, errors } = await watched("claim", [
      { type: "ADDED", object: claimObject("a", 1) },
      { type: "ADDED", object: claimObject("b", 2, BROKEN) },
      { type: "ADDED", object: claimObject("c", 3) },
      END,
    ]);
    assert.deepEqual(
      [...cache.claims()].map(({ key }) => key),
      ["shop/a", "shop/c"],
    );
    const words =
      'the IPClaim shop/b cannot be read: claim.addresses[0] must be an address, not "10.20.0.51/24"; correct or delete it';
    assert.deepEqual(errors, [
      ["record cannot be read and is passed over", { kind: "claim", key: "shop/b", error: words }],
    ]);
  });

  it("does not go on with what it was before, and takes it up again once it can be read", async () => {
    const { cache, said } = await watched("claim", [
      { type: "ADDED", object: claimObject("a", 1) },
      END,
      { type: "MODIFIED", object: claimObject("a", 10, BROKEN) },
      { type: "MODIFIED", object: claimObject("a", 11, { admittedAt: "2026-01-01T00:00:00Z" }) },
    ]);
    assert.deepEqual(said, ["relist", "put", "synced", "gone shop/a", "put"]);
    assert.equal(cache.claim("shop/a")?.revision, "11");
  });

  it("does not take what has no address for its name for a reservation", async () => {
    const metadata = { name: "stray", uid: "u", resourceVersion: "1" };
    const { said, errors } = await watched("reservation", [
      { type: "ADDED", object: { metadata, spec: {} } },
      END,
      { type: "DELETED", object: { metadata, spec: {} } },
    ]);
    assert.deepEqual([said, errors.length], [["relist", "synced"], 1]);
  });
});

describe("claims of a namespace that are too large for one answer", () => {
  const open = (bytes: number) => {
    const connection = new PagingConnection(Array.from({ length: 30 }, () => bytes));
    const store = openKubernetesStore({ connection, clock: new ManualClock(), random, log: noopLogger });
    return { connection, store };
  };

  it("are listed a few at a time", async () => {
    const { connection, store } = open(1_400_000);
    const names: string[] = [];
    for await (const { record } of store.list("claim", "shop")) names.push(record.name);
    assert.deepEqual(names, connection.names);
    assert.ok(connection.most < 5_000_000, `read ${connection.most} bytes at once`);
  });

  it("are not listed at once", async () => {
    assert.equal((await open(2_000).store.listAtOnce?.("claim", "shop"))?.length, 30);
    const { connection, store } = open(1_400_000);
    assert.equal(await store.listAtOnce?.("claim", "shop"), undefined);
    assert.equal(connection.limits.length, 1);
  });
});
