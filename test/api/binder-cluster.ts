// SPDX-License-Identifier: Apache-2.0
// Nodes, pods and claims of a real API server, and replicas of the binder beside it.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger, noopMetrics } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { syncCache } from "../../allocator/cache/sync.ts";
import { requestFor, slotRequests } from "../../allocator/demand/build-request.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import type { PodIdentity } from "../../allocator/model/identity.ts";
import type { Change, Kind, Store, Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, EVENTS, itemPath, NODES, PODS } from "../../kube/api/resource.ts";
import { EventRecorder } from "../../kube/controller/event-recorder.ts";
import { kubeEventSink } from "../../kube/controller/event-sink.ts";
import { startInformers } from "../../webhook/cluster-state/informers.ts";
import { clusterStates } from "../../webhook/cluster-state/live-and-cached.ts";
import { startBinder } from "../../webhook/controllers/binding/controller.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, applicantOf, granted, poolRecord } from "../support/fixtures.ts";
import { hostDeps } from "../support/host-deps.ts";
import { LeapingClock } from "../support/leaping-clock.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { listItems } from "./list-items.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { change, forceDelete } from "./replica-objects.ts";

export const NAMESPACE = "shop";
const TAINT = { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" };
const AT_ONCE = { kind: "DeleteOptions", apiVersion: "v1", gracePeriodSeconds: 0 };

export interface ReplicaOptions {
  /** Default true. */
  readonly leads?: boolean;
  /** So much later it hears of each change of a claim. */
  readonly lagMs?: number;
}

/** One process that runs the binder, with a view and a clock of its own. */
export interface Replica {
  readonly clock: LeapingClock;
  /** Claims that it had the garbage collector look at. */
  readonly suspects: readonly string[];
  close(): Promise<void>;
}

/** What the scheduler, the workloads' controllers, the webhook and the agents would do. */
export class BinderCluster {
  readonly connection: Connection;
  readonly store: Store;
  readonly #plane: ControlPlane;
  readonly #context: Context;
  readonly #cache = new RecordCache(noopLogger);
  readonly #stop = new AbortController();
  readonly #following: Promise<void>;

  private constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.connection = plane.connect();
    const deps = hostDeps();
    this.store = openStore(this.connection);
    this.#context = { ...deps, store: this.store, view: this.#cache, serial: new KeyedMutex() };
    this.#following = syncCache(this.store, this.#cache, this.#stop.signal).ended;
  }

  static async open(plane: ControlPlane): Promise<BinderCluster> {
    await installDefinitions(plane.connect());
    const cluster = new BinderCluster(plane);
    await makeNamespaces(cluster.connection, [NAMESPACE]);
    await cluster.store.create("pool", poolRecord("db", ["10.20.0.0/16", "fd00:20::/64"]));
    await eventually("the pool", () => cluster.#cache.pool("db"));
    return cluster;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#following;
    await this.store.close();
  }

  /** Starts a replica, which has seen everything. */
  async replica({ leads = true, lagMs = 0 }: ReplicaOptions = {}): Promise<Replica> {
    const connection = this.#plane.connect();
    const stop = new AbortController();
    const deps = hostDeps();
    const clock = new LeapingClock();
    const cache = new RecordCache(noopLogger);
    const store = openStore(connection);
    const following = syncCache(lagging(store, lagMs), cache, stop.signal);
    const informers = startInformers({ ...deps, connection }, stop.signal);
    await Promise.all([following.synced, informers.synced]);
    const sink = kubeEventSink(connection, { controller: "berth.dev/webhook", instance: "webhook-0" });
    const events = new EventRecorder({ ...deps, sink });
    const telling = events.run(stop.signal);
    const suspects: string[] = [];
    const binder = startBinder({
      ...{ cache, watches: informers, connection, events },
      context: { ...deps, clock, store, view: cache, serial: new KeyedMutex() },
      inventory: clusterStates({ watches: informers, connection, clock }),
      leadership: { leads: () => leads, onGain: () => () => {} },
      boundEvents: true,
      metrics: noopMetrics,
      enqueueForGc: (claim) => void suspects.push(claimKey(claim)),
    });
    const close = async () => {
      await binder.close();
      stop.abort();
      await Promise.all([following.ended, informers.ended, telling]);
      await store.close();
    };
    return { clock, suspects, close };
  }

  async node(name: string): Promise<void> {
    await new Client(this.connection, NODES).create({ name }, {});
  }

  async deleteNode(name: string): Promise<void> {
    await this.#call("DELETE", itemPath(NODES, { name }));
  }

  async taint(name: string): Promise<void> {
    const body = { spec: { taints: [TAINT] } };
    await new Client(this.connection, NODES).patch({ name }, { type: "merge", body });
  }

  /** A claim of the pod of that name. */
  async claim(name: string, address: string): Promise<Stored<"claim">> {
    const identity = { kind: "Pod", apiVersion: "v1", name };
    return await this.#reserve(requestOf({ kind: "named", claim: name, identity }, address, ""));
  }

  /** A claim that is held for whoever has the token. */
  async hold(token: string, address: string): Promise<Stored<"claim">> {
    const identity = { kind: "Pod", apiVersion: "v1", name: "etl-" };
    return await this.#reserve(requestOf({ kind: "anonymous", identity }, address, token));
  }

  /** The same of an entry of a list, which the next pod of its Deployment may have. */
  async slot(token: string, address: string): Promise<Stored<"claim">> {
    const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web" };
    const podIdentity = { kind: "set", workload: "web", identity } as const;
    const request = { entries: [addrs(address)] };
    const input = applicantOf({ podIdentity, request, token, now: Date.now() });
    const [allocation = assert.fail("no slot")] = slotRequests(input, "web");
    return await this.#reserve(allocation);
  }

  /** As the webhook lets it pass; gives its name and uid. */
  async pod(
    named: { readonly name: string } | { readonly generateName: string },
    { record }: Pick<Stored<"claim">, "record">,
  ): Promise<{ readonly name: string; readonly uid: string }> {
    const token = record.binding?.token ?? "";
    const annotations = {
      [ASSIGNED_CLAIM]: record.name,
      [ASSIGNED_ADDRESSES]: record.addresses.join(","),
      ...(token === "" ? {} : { [ASSIGNED_TOKEN]: token }),
    };
    const body = {
      ...{ apiVersion: "v1", kind: "Pod" },
      metadata: { ...named, namespace: NAMESPACE, annotations },
      spec: { containers: [{ name: "main", image: "registry.example/app:1" }] },
    };
    const made = await this.#call("POST", `/api/v1/namespaces/${NAMESPACE}/pods`, body);
    return (made as { metadata: { name: string; uid: string } }).metadata;
  }

  /** As the scheduler does. */
  async schedule(pod: string, node: string): Promise<void> {
    const target = { apiVersion: "v1", kind: "Node", name: node };
    const body = { apiVersion: "v1", kind: "Binding", metadata: { name: pod }, target };
    await this.#call("POST", `${podPath(pod)}/binding`, body);
  }

  async run(
    name: string,
    node: string,
    claim: Pick<Stored<"claim">, "record">,
  ): Promise<{ readonly uid: string }> {
    const made = await this.pod({ name }, claim);
    await this.schedule(name, node);
    return made;
  }

  /** Gone at once, as after the kubelet has ended it or by `--force`. */
  async forceDelete(pod: string): Promise<void> {
    await forceDelete(this.connection, PODS, { namespace: NAMESPACE, name: pod });
  }

  async forceDeleteAll(): Promise<void> {
    await this.#call("DELETE", `/api/v1/namespaces/${NAMESPACE}/pods`, AT_ONCE);
  }

  /** Something about it changes that means nothing. */
  async touch(pod: string): Promise<void> {
    const body = { metadata: { labels: { touched: "yes" } } };
    await change(this.connection, PODS, { namespace: NAMESPACE, name: pod }, body);
  }

  /** Its node is to end it, and does not. */
  async deleteSlowly(pod: string): Promise<void> {
    await this.#call("DELETE", podPath(pod), { ...AT_ONCE, gracePeriodSeconds: 600 });
  }

  async end(pod: string): Promise<void> {
    const body = { status: { phase: "Succeeded" } };
    await new Client(this.connection, PODS).patch(
      { namespace: NAMESPACE, name: pod },
      { type: "merge", body },
      "status",
    );
  }

  /** What the agent of its node reports about the sandbox of that pod, whoever the claim is bound to by then. */
  async report(claim: string, podUID: string, detached: boolean): Promise<void> {
    const seen = await this.read(claim);
    const { node = "", since = 0 } = seen.binding ?? {};
    const of = { node, containerID: `sandbox-of-${podUID}`, interface: "eth0", podUID, since, detached };
    const stored = await this.store.get("claim", `${NAMESPACE}/${claim}`);
    assert.ok(stored !== undefined);
    assert.equal((await this.store.report(stored, { attachment: of })).kind, "replaced");
  }

  async read(claim: string): Promise<Claim> {
    const stored = await this.store.get("claim", `${NAMESPACE}/${claim}`);
    assert.ok(stored !== undefined, `there is no claim ${claim}`);
    return stored.record;
  }

  /** How often the claim was written, its status apart. */
  async generation(claim: string): Promise<number> {
    const item = await new Client(this.connection, CLAIMS).get({ namespace: NAMESPACE, name: claim });
    return new Fields(item).at("metadata").count("generation", 0);
  }

  /** Waits until the claim is bound to that pod on that node. */
  async bound(claim: string, uid: string, node: string): Promise<void> {
    await eventually(`claim ${claim} is bound to ${uid} on ${node}`, async () => {
      const { binding } = await this.read(claim);
      return (binding?.podUID === uid && binding.node === node) || undefined;
    });
  }

  /** Events on pods of that name, as "type reason: note", each once, the oldest first. */
  async events(pod: string): Promise<readonly string[]> {
    const items = await listItems(new Client(this.connection, EVENTS), { namespace: NAMESPACE });
    const all = items as unknown as readonly {
      readonly type: string;
      readonly reason: string;
      readonly note: string;
      readonly eventTime: string;
      readonly regarding: { readonly name: string };
    }[];
    return all
      .filter(({ regarding }) => regarding.name === pod)
      .sort((a, b) => (a.eventTime < b.eventTime ? -1 : 1))
      .map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
  }

  async #reserve(allocation: AllocationRequest): Promise<Stored<"claim">> {
    return granted(await reserve(this.#context, allocation, "pod")).claim;
  }

  async #call(method: "POST" | "DELETE", path: string, body?: unknown): Promise<unknown> {
    const answer = await this.connection.call({ method, path, ...(body === undefined ? {} : { body }) });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
}

/** As `follow` sees the store: its watches. */
function lagging(store: Store, lagMs: number): Store {
  return Object.create(store, {
    watch: {
      async *value(kind: Kind, signal: AbortSignal): AsyncGenerator<Change<Kind>, void, void> {
        let late = 0;
        for await (const change of store.watch(kind, signal)) {
          if (late > 0) await pause(late);
          if (kind === "claim" && change.type === "synced") late = lagMs;
          yield change;
        }
      },
    },
  });
}

function podPath(name: string): string {
  return itemPath(PODS, { namespace: NAMESPACE, name });
}

function requestOf(podIdentity: PodIdentity, addresses: string, token: string): AllocationRequest {
  const request = { entries: [addrs(...addresses.split(","))] };
  return granted(requestFor(applicantOf({ podIdentity, request, token, now: Date.now() })));
}
