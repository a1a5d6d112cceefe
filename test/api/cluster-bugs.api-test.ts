// SPDX-License-Identifier: Apache-2.0
// Bugs of the catalogue (docs/reliability.md) against the real API server: what its preconditions, its compare-and-set
// and its create-if-absent keep out. cluster-bugs-put-in.api-test.ts puts each in, and the test must notice.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import { PODS } from "../../kube/api/resource.ts";
import { startBinder } from "../../webhook/controllers/binding/controller.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, DB_POOL, granted, podFactsOf, poolRecord, refusalOf } from "../support/fixtures.ts";
import { hostDeps } from "../support/host-deps.ts";
import { LeapingClock } from "../support/leaping-clock.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { openStore } from "./open-store.ts";
import { controllerDeps, openTestReplica } from "./replica-deps.ts";
import { forceDelete, makeNode, makePod } from "./replica-objects.ts";
import { openControlPlane, type StoppablePlane } from "./shared-plane.ts";

const NAMESPACE = "shop";
const KINDS: readonly Kind[] = ["pool", "claim", "reservation"];
/** Of those that only who asks for them by name gets. */
const ADDRESS = "10.20.0.50";

/** The time of so much later. */
function ahead(ms: number): LeapingClock {
  const clock = new LeapingClock();
  clock.skip(ms);
  return clock;
}

function requestOf(
  name: string,
  request: { addresses?: string; pools?: readonly string[] },
): AllocationRequest {
  const addresses = request.addresses === undefined ? undefined : addrs(request.addresses);
  const { pools } = request;
  return {
    key: { namespace: NAMESPACE, name },
    identity: { kind: "Pod", apiVersion: "v1", name },
    request: { ...(addresses ? { addresses } : {}), ...(pools ? { pools } : {}) },
    retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
    constraints: {
      ...{ namespace: NAMESPACE, name, namespaceLabels: {}, podLabels: {} },
      ...(addresses ? { addresses } : {}),
      ...(pools ? { pools } : {}),
    },
  };
}

/** Every pod that is asked for is there and was given the claim of its name, so that nothing is let go. */
const ALL_THERE: ClusterState = {
  pod: async (namespace, name) => {
    const annotations = { "berth.dev/claim": name };
    return podFactsOf(name, { namespace, uid: "u", node: "n1", annotations });
  },
  workload: async () => "unknown",
  namespace: async (name) => ({ name, labels: {}, annotations: {} }),
  fenced: async () => false,
};

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("bugs of others, at the API server", () => {
    let plane: StoppablePlane;
    let store: Store;
    before(async () => {
      plane = await openControlPlane();
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), [NAMESPACE]);
      for (const node of ["n1", "n2"]) await makeNode(plane.connect(), node);
      store = openStore(plane.connect());
      await store.create("pool", DB_POOL);
    });
    after(async () => await plane?.close());

    /** A process that knows what is stored now, and hears of nothing that comes later. */
    async function remembering(over: Partial<Context> = {}): Promise<Context> {
      const view = new RecordCache(noopLogger);
      for (const kind of KINDS) {
        view.apply(kind, { type: "relist" });
        for await (const stored of store.list(kind)) view.apply(kind, { type: "put", stored });
        view.apply(kind, { type: "synced" });
      }
      return { ...hostDeps(), store, view, serial: new KeyedMutex(), ...over };
    }

    async function claimOf(name: string): Promise<Stored<"claim">> {
      return (await store.get("claim", `${NAMESPACE}/${name}`)) ?? assert.fail(`claim ${name} is gone`);
    }

    const fromMemory = async (_: Claim) => ({ fenced: false, holdExpired: true });

    it("B5 a garbage collector that is behind does not delete a reservation that its identity took back", async () => {
      const licence = requestOf("licence", { addresses: ADDRESS });
      granted(await reserve(await remembering(), licence, "pod"));
      await release(await remembering(), await claimOf("licence"));
      const behind = await remembering({ clock: ahead(3_600_000) });
      granted(await reserve(await remembering(), licence, "pod"));
      await new GarbageCollector(behind, ALL_THERE).pass();
      const kept = await store.get("reservation", ADDRESS);
      assert.equal(kept?.record.nonce, (await claimOf("licence")).record.nonce);
    });

    it("B8 two that bind by what they remember do not bind one claim twice", async () => {
      granted(await reserve(await remembering(), requestOf("copied", { addresses: "10.20.0.52" }), "pod"));
      const seen = await claimOf("copied");
      const bindTo = async (node: string) => {
        const target = { name: "copied", uid: `uid-${node}`, node, token: "" };
        return await bind(await remembering(), seen, target, fromMemory);
      };
      granted(await bindTo("n1"));
      assert.match(refusalOf(await bindTo("n2")), /^CLAIM_BUSY/);
    });

    it("B10 two binders that both believe to lead bind each pod once, and move nothing that runs", async () => {
      const replicas = await Promise.all([1, 2].map(() => openTestReplica(plane.connect())));
      const binders = replicas.map((replica) => startBinder(controllerDeps(replica)));
      try {
        const names = Array.from({ length: 10 }, (_, n) => `pod-${n}`);
        for (const name of names)
          granted(await reserve(await remembering(), requestOf(name, { pools: ["db"] }), "pod"));
        const bound = async (name: string, node: string) => {
          const place = { namespace: NAMESPACE, name };
          const annotations = { "berth.dev/claim": name };
          const { metadata } = await makePod(plane.connect(), place, { node, annotations });
          return metadata.uid;
        };
        const uids = await Promise.all(names.map((name) => bound(name, "n1")));
        const bindings = async () =>
          await Promise.all(
            names.map(async (name) => {
              const { binding } = (await claimOf(name)).record;
              return binding && `${binding.podUID} on ${binding.node}`;
            }),
          );
        const wanted = uids.map((uid) => `${uid} on n1`);
        await eventually("all are bound", async () =>
          (await bindings()).join() === wanted.join() ? true : undefined,
        );
        for (const name of names) await forceDelete(plane.connect(), PODS, { namespace: NAMESPACE, name });
        await Promise.all(names.map((name) => bound(name, "n2")));
        await pause(1_500);
        assert.deepEqual(await bindings(), wanted);
      } finally {
        for (const part of [...binders, ...replicas]) await part.close();
      }
    });

    it("a pod that was admitted while its claim was let go has it again", async () => {
      const name = "raced";
      const addresses = "10.20.0.55";
      granted(await reserve(await remembering(), requestOf(name, { addresses }), "pod"));
      await release(await remembering(), await claimOf(name));
      const replica = await openTestReplica(plane.connect());
      const binder = startBinder(controllerDeps(replica));
      try {
        const annotations = {
          "berth.dev/ips": addresses,
          "berth.dev/claim": name,
          "berth.dev/addresses": addresses,
        };
        const place = { namespace: NAMESPACE, name };
        const { metadata } = await makePod(plane.connect(), place, { node: "n1", annotations });
        await eventually("it is bound", async () => {
          const claim = await store.get("claim", `${NAMESPACE}/${name}`);
          return claim?.record.binding?.podUID === metadata.uid ? true : undefined;
        });
        assert.deepEqual((await claimOf(name)).record.addresses, [addresses]);
      } finally {
        await binder.close();
        await replica.close();
      }
    });

    it("B12 an API server that dies between two records leaks nothing and forgets nothing that it took", async () => {
      const lost = requestOf("lost", { addresses: "10.20.0.56" });
      const kept = requestOf("kept", { addresses: "10.20.0.57" });
      const dying = dyingAfterCreates(2);
      const both = await Promise.all([remembering({ store: dying }), remembering({ store: dying })]);
      await Promise.all(
        [lost, kept].map((allocation, n) =>
          assert.rejects(reserve(both[n] ?? assert.fail(), allocation, "pod"), { code: "STORE_UNAVAILABLE" }),
        ),
      );
      await plane.start();
      assert.deepEqual(await holders(), ["lost", "kept"]);
      assert.equal(await store.get("claim", `${NAMESPACE}/kept`), undefined);
      granted(await reserve(await remembering(), kept, "pod"));
      await collectFor(await remembering(), 240_000);
      assert.deepEqual(await holders(), [undefined, "kept"]);
      assert.deepEqual((await claimOf("kept")).record.addresses, ["10.20.0.57"]);
    });

    /** The store of processes whose API server, and its etcd, are gone as soon as they have made the first record of each. */
    function dyingAfterCreates(count: number): Store {
      const died = Promise.withResolvers<void>();
      let left = count;
      return {
        async create(kind, record) {
          const created = await store.create(kind, record);
          if (--left === 0)
            await Promise.all([plane.apiServer.stop("SIGKILL"), plane.etcd.stop("SIGKILL")]).then(
              () => died.resolve(),
              died.reject,
            );
          await died.promise;
          return created;
        },
        get: store.get.bind(store),
        replace: store.replace.bind(store),
        report: store.report.bind(store),
        reportBlock: store.reportBlock.bind(store),
        remove: store.remove.bind(store),
        list: store.list.bind(store),
        watch: store.watch.bind(store),
        close: async () => {},
      };
    }

    /** What a garbage collector does in that time, a look each minute. */
    async function collectFor(context: Context, ms: number): Promise<void> {
      const clock = new LeapingClock();
      const collector = new GarbageCollector({ ...context, clock }, ALL_THERE);
      for (let later = 0; later <= ms; later += 60_000) {
        await collector.pass();
        clock.skip(60_000);
      }
    }

    /** Whose the addresses are that were taken when the API server died. */
    async function holders(): Promise<(string | undefined)[]> {
      const found = ["10.20.0.56", "10.20.0.57"].map((key) => store.get("reservation", key));
      return (await Promise.all(found)).map((stored) => stored?.record.claim.name);
    }

    it("B15 eight replicas that start at once never choose one address twice", async () => {
      await store.create("pool", poolRecord("big", "10.64.0.0/26"));
      const contexts = await Promise.all(Array.from({ length: 8 }, () => remembering()));
      const reserving = contexts.flatMap((context, i) =>
        Array.from({ length: 5 }, async (_, n) => {
          const got = granted(await reserve(context, requestOf(`pod-${i}-${n}`, { pools: ["big"] }), "pod"));
          return got.claim.record.addresses.join();
        }),
      );
      assert.equal(new Set(await Promise.all(reserving)).size, 40);
    });
  });
}
