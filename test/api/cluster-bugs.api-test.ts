// SPDX-License-Identifier: Apache-2.0
// Bugs of the catalogue (docs/reliability.md) against the real API server: what its preconditions, its compare-and-set
// and its create-if-absent keep out. Then each bug is put in, for one process, and its test must notice.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { bind } from "../../allocator/bind.ts";
import type { Claim } from "../../allocator/claim.ts";
import type { Context } from "../../allocator/context.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import { Mirror } from "../../allocator/mirror.ts";
import { KeyedMutex } from "../../allocator/mutex.ts";
import { type Clock, silent } from "../../allocator/ports.ts";
import { Reaper } from "../../allocator/reaper.ts";
import { release } from "../../allocator/release.ts";
import { type Intent, reserve } from "../../allocator/reserve.ts";
import { openKubernetesStore } from "../../allocator/store/kubernetes.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { PODS } from "../../webhook/cluster/resources.ts";
import { startBinder } from "../../webhook/controllers/binder.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, DB_POOL, granted, poolRecord, refusalOf } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CLUSTER_MUTATIONS, type ClusterMutation } from "./cluster-bugs-mutations.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { type ControlPlane, startControlPlane } from "./harness.ts";
import { controllerDeps, openTestReplica } from "./replica-deps.ts";
import { forceDelete, makeNode, makePod } from "./replica-objects.ts";

const NAMESPACE = "shop";
const KINDS: readonly Kind[] = ["pool", "claim", "reservation"];
/** Of those that only who asks for them by name gets. */
const ADDRESS = "10.20.0.50";
const MUTATE = new URL("./cluster-bugs-mutate.ts", import.meta.url).href;
const IS_MUTATED = process.env["BERTH_MUTATION"] !== undefined;
/** Some mutations make a test wait for ever. */
const LIMIT_MS = 90_000;

/** Wall clock of so much later. */
function ahead(ms: number): Clock {
  const clock = createClock();
  return {
    now: () => clock.now() + ms,
    monotonic: () => clock.monotonic() + ms,
    sleep: (time, signal) => clock.sleep(time, signal),
  };
}

function wish(name: string, request: { addresses?: string; pools?: readonly string[] }): Intent {
  const addresses = request.addresses === undefined ? undefined : addrs(request.addresses);
  const { pools } = request;
  return {
    key: { namespace: NAMESPACE, name },
    identity: { kind: "Pod", apiVersion: "v1", name },
    request: { ...(addresses ? { addresses } : {}), ...(pools ? { pools } : {}) },
    retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
    ask: {
      ...{ namespace: NAMESPACE, name, namespaceLabels: {}, podLabels: {} },
      ...(addresses ? { entry: addresses } : {}),
      ...(pools ? { pools } : {}),
    },
  };
}

/** Every pod that is asked for is there, so that nothing is let go. */
const ALL_THERE: Inventory = {
  pod: async (namespace, name) => ({ namespace, name, uid: "u", node: "n1", labels: {}, annotations: {} }),
  workload: async () => "unknown",
  namespace: async (name) => ({ name, labels: {}, annotations: {} }),
  fenced: async () => false,
};

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("bugs of others, at the API server", () => {
    let plane: ControlPlane;
    let store: Store;
    before(async () => {
      plane = await startControlPlane({ durable: true });
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), [NAMESPACE]);
      for (const node of ["n1", "n2"]) await makeNode(plane.connect(), node);
      store = openKubernetesStore({ connection: plane.connect(), ...processDeps() });
      await store.create("pool", DB_POOL);
    });
    after(async () => await plane?.close());

    function processDeps() {
      return { clock: createClock(), random: createRandom(), log: silent };
    }

    /** A process that knows what is stored now, and hears of nothing that comes later. */
    async function remembering(over: Partial<Context> = {}): Promise<Context> {
      const view = new Mirror(silent);
      for (const kind of KINDS) {
        view.apply(kind, { type: "relist" });
        for await (const stored of store.list(kind)) view.apply(kind, { type: "put", stored });
        view.apply(kind, { type: "synced" });
      }
      return { ...processDeps(), store, view, serial: new KeyedMutex(), ...over };
    }

    async function claimOf(name: string): Promise<Stored<"claim">> {
      return (await store.get("claim", `${NAMESPACE}/${name}`)) ?? assert.fail(`claim ${name} is gone`);
    }

    const fromMemory = async (_: Claim) => ({ fenced: false, promiseOver: true });

    it("B5 a reaper that is behind does not delete a reservation that its identity took back", async () => {
      const licence = wish("licence", { addresses: ADDRESS });
      granted(await reserve(await remembering(), licence));
      await release(await remembering(), await claimOf("licence"));
      const behind = await remembering({ clock: ahead(3_600_000) });
      granted(await reserve(await remembering(), licence));
      await new Reaper(behind, ALL_THERE).pass();
      const kept = await store.get("reservation", ADDRESS);
      assert.equal(kept?.record.nonce, (await claimOf("licence")).record.nonce);
    });

    it("B8 two that bind by what they remember do not lend one claim twice", async () => {
      granted(await reserve(await remembering(), wish("copied", { addresses: "10.20.0.52" })));
      const seen = await claimOf("copied");
      const lendTo = async (node: string) => {
        const bindee = { name: "copied", uid: `uid-${node}`, node, token: "" };
        return await bind(await remembering(), seen, bindee, fromMemory);
      };
      granted(await lendTo("n1"));
      assert.match(refusalOf(await lendTo("n2")), /^CLAIM_BUSY/);
    });

    it("B10 two binders that both believe to lead bind each pod once, and move nothing that runs", async () => {
      const replicas = await Promise.all([1, 2].map(() => openTestReplica(plane.connect())));
      const binders = replicas.map((replica) => startBinder(controllerDeps(replica)));
      try {
        const names = Array.from({ length: 10 }, (_, n) => `pod-${n}`);
        for (const name of names) granted(await reserve(await remembering(), wish(name, { pools: ["db"] })));
        const bound = async (name: string, node: string) => {
          const place = { namespace: NAMESPACE, name };
          const annotations = { "berth.dev/claim": name };
          const { metadata } = await makePod(plane.connect(), place, { node, annotations });
          return metadata.uid;
        };
        const uids = await Promise.all(names.map((name) => bound(name, "n1")));
        const lent = async () =>
          await Promise.all(
            names.map(async (name) => {
              const { binding } = (await claimOf(name)).record;
              return binding && `${binding.podUID} on ${binding.node}`;
            }),
          );
        const wanted = uids.map((uid) => `${uid} on n1`);
        await eventually("all are bound", async () =>
          (await lent()).join() === wanted.join() ? true : undefined,
        );
        for (const name of names) await forceDelete(plane.connect(), PODS, { namespace: NAMESPACE, name });
        await Promise.all(names.map((name) => bound(name, "n2")));
        await pause(1_500);
        assert.deepEqual(await lent(), wanted);
      } finally {
        for (const part of [...binders, ...replicas]) await part.close();
      }
    });

    it("a pod that was admitted while its claim was let go has it again", async () => {
      const name = "raced";
      const addresses = "10.20.0.55";
      granted(await reserve(await remembering(), wish(name, { addresses })));
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
      const lost = wish("lost", { addresses: "10.20.0.56" });
      const kept = wish("kept", { addresses: "10.20.0.57" });
      for (const intent of [lost, kept]) {
        const dying = dyingAfterCreate();
        await assert.rejects(reserve(await remembering({ store: dying }), intent), {
          code: "STORE_UNAVAILABLE",
        });
        await plane.start();
      }
      assert.deepEqual(await holders(), ["lost", "kept"]);
      assert.equal(await store.get("claim", `${NAMESPACE}/kept`), undefined);
      granted(await reserve(await remembering(), kept));
      await reapFor(await remembering(), 240_000);
      assert.deepEqual(await holders(), [undefined, "kept"]);
      assert.deepEqual((await claimOf("kept")).record.addresses, ["10.20.0.57"]);
    });

    /** The store of a process whose API server, and its etcd, are gone as soon as they have made its first record. */
    function dyingAfterCreate(): Store {
      return {
        async create(kind, record) {
          const created = await store.create(kind, record);
          await Promise.all([plane.apiServer.stop("SIGKILL"), plane.etcd.stop("SIGKILL")]);
          return created;
        },
        get: store.get.bind(store),
        replace: store.replace.bind(store),
        report: store.report.bind(store),
        remove: store.remove.bind(store),
        list: store.list.bind(store),
        watch: store.watch.bind(store),
        close: async () => {},
      };
    }

    /** What a reaper does in that time, a look each minute. */
    async function reapFor(context: Context, ms: number): Promise<void> {
      let later = 0;
      const host = createClock();
      const clock: Clock = {
        now: () => host.now() + later,
        monotonic: () => host.monotonic() + later,
        sleep: (ms, signal) => host.sleep(ms, signal),
      };
      const reaper = new Reaper({ ...context, clock }, ALL_THERE);
      for (; later <= ms; later += 60_000) await reaper.pass();
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
          const got = granted(await reserve(context, wish(`pod-${i}-${n}`, { pools: ["big"] })));
          return got.claim.record.addresses.join();
        }),
      );
      assert.equal(new Set(await Promise.all(reserving)).size, 40);
    });
  });

  /** Runs the tests of this file whose names begin so, with the mutation. */
  async function runWith({ name, test }: ClusterMutation) {
    const how = ["--test-reporter=tap", `--test-timeout=${LIMIT_MS}`, `--test-name-pattern=^${test}`];
    const file = fileURLToPath(import.meta.url);
    const { NODE_TEST_CONTEXT: _, ...own } = process.env as Record<string, string>;
    const env = { ...own, BERTH_MUTATION: name };
    const { stdout, stderr } = await run(process.execPath, ["--import", MUTATE, ...how, file], { env });
    const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, "m").exec(stdout)?.[1]);
    return { passed: count("pass"), failed: count("fail") + count("cancelled"), printed: stdout + stderr };
  }

  describe("a bug of the catalogue that is put in", { skip: IS_MUTATED }, () => {
    for (const mutation of CLUSTER_MUTATIONS) {
      const { name, file, harmless = false } = mutation;
      it(`${name} in ${file} is ${harmless ? "no guard that anything rests on" : "noticed"}`, async () => {
        const { passed, failed, printed } = await runWith(mutation);
        assert.equal(passed + failed, 1, printed);
        assert.equal(failed, harmless ? 0 : 1, printed);
        assert.doesNotMatch(printed, /its place is gone|SyntaxError/);
      });
    }
  });
}
