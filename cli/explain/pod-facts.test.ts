// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { claimRecord, DB_POOL, NOW, poolRecord, reservationsOf } from "../../test/support/fixtures.ts";
import { type Json, pod } from "../../test/support/objects.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { diagnosePod } from "./pod-diagnosis.ts";
import { factsOfPod } from "./pod-facts.ts";

function object(json: Json): KubeObject {
  const read = readObject(json);
  assert.ok(!isRefusal(read));
  return read;
}

const nodeIn = (zone: string) => object({ kind: "Node", metadata: { name: `in-${zone}`, labels: { zone } } });

describe("a pod that is not scheduled", () => {
  it("is told that no node is of its pool, where nodes can be read", async () => {
    const database = openDatabase(":memory:");
    const given = { clock: createClock(), random: createRandom(), log: noopLogger };
    const store = openSqliteStore(database, given);
    const claim = claimRecord();
    const nodeSelector = { matchLabels: { zone: "beijing" } };
    await store.create("pool", poolRecord("db", "10.20.0.0/24", { nodeSelector }));
    await store.create("claim", claim);
    for (const reservation of reservationsOf(claim)) await store.create("reservation", reservation);
    const waiting = object(pod(claim.name, { annotations: { "berth.dev/claim": claim.name } }));
    const told = async (nodes: readonly KubeObject[] | undefined, place: Backend["place"] = "cluster") => {
      const world = {
        object: async (kind: string) => (kind === "Pod" ? waiting : undefined),
        namespace: async () => undefined,
        workload: async () => undefined,
        pod: async () => undefined,
        fenced: async () => false,
        objects: async () => [],
        async *each() {
          if (nodes === undefined) throw new BerthError("STORE_READ_ONLY", "may not list nodes");
          yield* nodes;
        },
      };
      const backend = { place, store, world } as unknown as Backend;
      return (await factsOfPod(backend, claim, NOW))?.nodeless;
    };
    try {
      assert.equal(
        await told([nodeIn("shanghai")]),
        'pool "db" is for nodes with zone=beijing, and no node has that now: the pod stays Pending until one has',
      );
      assert.equal(await told([nodeIn("shanghai"), nodeIn("beijing")]), undefined);
      assert.equal(await told(undefined), undefined);
      assert.equal(await told([], "data"), undefined);
    } finally {
      await store.close();
      database.close();
    }
  });
});

describe("a pod whose namespace has a default in another system's words", () => {
  async function told(pool: string): Promise<string> {
    const database = openDatabase(":memory:");
    const given = { clock: createClock(), random: createRandom(), log: noopLogger };
    const store = openSqliteStore(database, given);
    await store.create("pool", poolRecord("db", "10.20.0.0/24"));
    const up = { ...pod("web"), status: { phase: "Running", podIPs: [{ ip: "192.168.0.5" }] } };
    const annotations = { "cni.projectcalico.org/ipv4pools": `["${pool}"]` };
    const world = {
      object: async (kind: string) => (kind === "Pod" ? object(up) : undefined),
      namespace: async (name: string) => ({
        name,
        labels: { "berth.dev/admission": "enabled" },
        annotations,
      }),
      objects: async () => [],
      async *each() {},
    };
    try {
      const backend = { place: "cluster", node: "", store, world } as unknown as Backend;
      const facts = await factsOfPod(backend, { namespace: "shop", name: "web" }, NOW);
      return diagnosePod(object(up), facts ?? assert.fail()).words;
    } finally {
      await store.close();
      database.close();
    }
  }

  it("was left to that system where it names no pool of Berth's, and else was never reviewed", async () => {
    assert.doesNotMatch(await told("default-ipv4"), /its namespace/);
    assert.match(
      await told("db"),
      /; what its namespace says in cni\.projectcalico\.org\/ipv4pools was not asked/,
    );
  });
});

describe("a pod that no review has seen", () => {
  async function said(t: TestContext, asks: string, isUp = false): Promise<string> {
    const waiting = pod("mysql-0", { annotations: { "berth.dev/ips": asks }, uid: "u2" });
    const up = { ...waiting, status: { phase: "Running", podIPs: [{ ip: "10.20.0.70" }] } };
    const claim = claimRecord();
    const contents = { pools: [DB_POOL], claims: [claim], reservations: reservationsOf(claim) };
    const data = await Folder.of(t, { ...contents, objects: [isUp ? up : waiting] });
    return await withBackend(data.context(), "read", async (backend) => {
      const facts = await factsOfPod({ ...backend, place: "cluster" }, claim, NOW);
      assert.ok(facts?.pod);
      return diagnosePod(facts.pod, facts).words;
    });
  }

  it("is told that it does not get the claim of its name, if it asks for something else", async (t) => {
    assert.equal(
      await said(t, "10.20.0.99"),
      "waits: claim shop/mysql-0, which is kept for pods of this name, holds 10.20.0.70, and pod shop/mysql-0, which no review has seen, asks for 10.20.0.99; delete the pod and create it again, so that it is reviewed, or ask for what the claim holds",
    );
    assert.doesNotMatch(await said(t, "10.20.0.70"), /no review/);
    assert.doesNotMatch(await said(t, "10.20.0.99", true), /no review/, "it has that address");
  });
});
