// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ANNOTATION_FORMATS } from "../../allocator/manifest/annotations.ts";
import { keptKeysIn } from "../../allocator/manifest/dialects.ts";
import { IDENTITY_ANNOTATIONS, IDENTITY_LABELS } from "../../allocator/model/identity.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { type Json, namespaceObject, ownedBy, pod, workload } from "../../test/support/objects.ts";
import { startInformers } from "./informers.ts";
import { clusterStates } from "./live-and-cached.ts";
import type { ObservedPod } from "./observed-objects.ts";

const WHOLE = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "5", annotations: { "k8s.io/initial-events-end": "true" } } },
};

/** An API server of a cluster without objects, and what it says next of those under a path. */
function tellingServer() {
  const watchers = new Map<string, (line: string) => void>(); // end of the path -> who hears of it
  let revision = 10;
  const connection: Connection = {
    call: async () => ({ status: 404, body: { code: 404 } }),
    stream: async ({ path }, signal) => {
      const lines: string[] = [JSON.stringify(WHOLE)];
      let wake = () => {};
      signal.addEventListener("abort", () => wake(), { once: true });
      watchers.set(path.split("/").at(-1) ?? "", (line) => {
        lines.push(line);
        wake();
      });
      const told = async function* () {
        while (!signal.aborted) {
          yield* lines.splice(0);
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      };
      return { lines: told() };
    },
    close: () => {},
  };
  const tell = (plural: string, type: string, object: Json) => {
    const { metadata, ...rest } = object as { metadata: Json };
    const of = { uid: "u", ...metadata, resourceVersion: String(++revision) };
    watchers.get(plural)?.(JSON.stringify({ type, object: { ...rest, metadata: of } }));
  };
  return { connection, tell };
}

/** Watches of a cluster without objects. */
function openWatches() {
  const { connection, tell } = tellingServer();
  const stop = new AbortController();
  const deps = { connection, clock: new ManualClock(), random: { fraction: () => 1, token: () => "t" } };
  const watches = startInformers({ ...deps, log: noopLogger }, stop.signal);
  return { tell, stop, deps, watches };
}

describe("what the watches tell of", () => {
  it("is every pod that comes or goes, and of workloads and namespaces what is read of them", async () => {
    const { tell, stop, deps, watches } = openWatches();
    const heard: string[] = [];
    const { cached } = clusterStates({ watches, ...deps });
    const end = cached.onChange?.((kind, key) => void heard.push(`${kind} ${key}`));
    const after = async (...told: Parameters<typeof tell>) => {
      await eventLoopTurns();
      tell(...told);
      await eventLoopTurns();
      return heard.splice(0);
    };
    const set = workload("StatefulSet", "mysql", { replicas: 2 });
    const asks = { "berth.dev/pools": "db" };
    assert.deepEqual(await after("pods", "ADDED", pod("a")), ["Pod shop/a"]);
    assert.deepEqual(await after("pods", "DELETED", pod("a")), ["Pod shop/a"]);
    assert.deepEqual(await after("statefulsets", "ADDED", set), ["StatefulSet shop/mysql"]);
    assert.deepEqual(await after("statefulsets", "MODIFIED", { ...set, status: { replicas: 2 } }), []);
    assert.deepEqual(
      await after("statefulsets", "MODIFIED", workload("StatefulSet", "mysql", { replicas: 1 })),
      ["StatefulSet shop/mysql"],
    );
    assert.deepEqual(await after("namespaces", "ADDED", namespaceObject("shop")), []);
    assert.deepEqual(await after("namespaces", "MODIFIED", namespaceObject("shop", asks)), [
      "Namespace shop",
    ]);
    assert.deepEqual(await after("namespaces", "DELETED", namespaceObject("shop", asks)), ["Namespace shop"]);
    end?.();
    assert.deepEqual(await after("pods", "ADDED", pod("a")), []);
    stop.abort();
    await watches.ended;
  });
});

const OWNER = ownedBy("ReplicaSet", "web");
const KEPT = { ownerReferences: [OWNER], labels: { app: "web" }, annotations: { note: "a" } };
const WAITS: Json = { metadata: KEPT, spec: { nodeName: "n1" }, status: { phase: "Pending" } };
const UP: Json = {
  ...{ metadata: KEPT, spec: { nodeName: "n1" } },
  status: { phase: "Running", podIP: "10.1.0.5", podIPs: [{ ip: "10.1.0.5" }] },
};

/** The pod with these fields in the place of its own. */
function changed(base: Json, change: Readonly<Record<string, Json>>): Json {
  const parts = Object.entries(change).map(([part, fields]) => [
    part,
    { ...(base[part] as Json), ...fields },
  ]);
  return { ...base, ...Object.fromEntries(parts) };
}

const annotated = (base: Json, annotations: Json) => changed(base, { metadata: { annotations } });
const NETWORKS = { "k8s.v1.cni.cncf.io/networks": "lan" };
const STATIC = { "kubernetes.io/config.mirror": "m" };

/** For each field that is read of a pod, a pod, and what it becomes. */
const HEARD: Readonly<Record<Exclude<keyof ObservedPod, "namespace" | "name">, readonly [Json, Json]>> = {
  uid: [UP, changed(UP, { metadata: { uid: "other" } })],
  node: [{ metadata: KEPT, status: { phase: "Pending" } }, WAITS],
  labels: [WAITS, changed(WAITS, { metadata: { labels: { app: "db" } } })],
  annotations: [UP, annotated(UP, { "berth.dev/ips": "10.20.0.70" })],
  owner: [UP, changed(UP, { metadata: { ownerReferences: [ownedBy("ReplicaSet", "other")] } })],
  onHostNetwork: [UP, changed(UP, { spec: { hostNetwork: true } })],
  ended: [UP, changed(UP, { status: { phase: "Succeeded" } })],
  deleting: [UP, changed(UP, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } })],
  up: [WAITS, changed(WAITS, { status: { podIP: "10.1.0.5" } })],
  addresses: [UP, changed(UP, { status: { podIPs: [{ ip: "10.1.0.5" }, { ip: "fd00::5" }] } })],
  exempt: [UP, annotated(UP, STATIC)],
  networks: [UP, annotated(UP, NETWORKS)],
  attachments: [annotated(WAITS, NETWORKS), annotated(WAITS, { "k8s.v1.cni.cncf.io/networks": "wan" })],
};

const READ_ANNOTATIONS = [
  ...ANNOTATION_FORMATS.map(({ key }) => key),
  ...["berth.dev/claim", "berth.dev/addresses", "berth.dev/token"],
  ...[...IDENTITY_ANNOTATIONS, ...keptKeysIn({}, () => true)],
];

/** What nobody here reads. */
const UNHEARD: Readonly<Record<string, readonly [Json, Json]>> = {
  "its revision alone": [UP, UP],
  "who manages which field": [UP, changed(UP, { metadata: { managedFields: [{ manager: "kubelet" }] } })],
  "a condition": [UP, changed(UP, { status: { conditions: [{ type: "Ready", status: "True" }] } })],
  "a container": [WAITS, changed(WAITS, { status: { containerStatuses: [{ name: "main", ready: false }] } })],
  "its host's address": [WAITS, changed(WAITS, { status: { hostIP: "192.168.0.1", startTime: "x" } })],
  "that it runs": [changed(UP, { status: { phase: "Pending" } }), UP],
  "how long it may take to end": [UP, changed(UP, { metadata: { deletionGracePeriodSeconds: 0 } })],
  "a finalizer": [UP, changed(UP, { metadata: { finalizers: ["example.com/a"] } })],
  "an annotation of somebody else's": [UP, annotated(UP, { note: "b" })],
  "a label once it has its address": [UP, changed(UP, { metadata: { labels: { app: "db" } } })],
  "an owner that is no controller": [
    UP,
    changed(UP, { metadata: { ownerReferences: [OWNER, { ...OWNER, uid: "b", controller: false }] } }),
  ],
};

describe("a change of a pod", () => {
  /** How often it is told of, by a watch of pods that has told of the pod before. */
  async function timesTold([before, now]: readonly [Json, Json]): Promise<number> {
    const { tell, stop, watches } = openWatches();
    await eventLoopTurns();
    const named = (object: Json) => changed(object, { metadata: { name: "a", namespace: "shop" } });
    tell("pods", "ADDED", named(before));
    await eventLoopTurns();
    let told = 0;
    watches.pods.onChange(() => told++);
    tell("pods", "MODIFIED", named(now));
    await eventLoopTurns();
    stop.abort();
    await watches.ended;
    return told;
  }

  for (const [field, change] of Object.entries(HEARD))
    it(`is told of: ${field}`, async () => assert.equal(await timesTold(change), 1));

  for (const [what, change] of Object.entries(UNHEARD))
    it(`is told to nobody: ${what}`, async () => assert.equal(await timesTold(change), 0));

  it("is told of for each annotation that is read", async () => {
    for (const key of new Set(READ_ANNOTATIONS)) {
      assert.equal(await timesTold([UP, annotated(UP, { [key]: "a" })]), 1, key);
      assert.equal(await timesTold([annotated(UP, { [key]: "a" }), annotated(UP, { [key]: "b" })]), 1, key);
    }
  });

  it("is told of for each label that says whose the pod is", async () => {
    for (const key of IDENTITY_LABELS)
      assert.equal(await timesTold([UP, changed(UP, { metadata: { labels: { [key]: "b" } } })]), 1, key);
  });
});
