// SPDX-License-Identifier: Apache-2.0
// What people and Kubernetes' own controllers do, around Berth's controllers on a real API server.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { noopMetrics } from "../../allocator/base/ports.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { type GcLoop, startGcLoop } from "../../allocator/gc/gc-loop.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  CLAIMS,
  type KubeItem,
  type ObjectName,
  POOLS,
  type Resource,
  STATEFULSETS,
} from "../../kube/api/resource.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import type { ClusterCaches } from "../../webhook/cluster-state/caches.ts";
import { type Condition, conditionsOf } from "../../webhook/controllers/conditions.ts";
import type { ControllerDeps } from "../../webhook/controllers/controller.ts";
import { auditWorld } from "../support/assert-audit.ts";
import { eventually } from "../support/eventually.ts";
import { LeapingClock } from "../support/leaping-clock.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { ForwardClock } from "./forward-clock.ts";
import type { ControlPlane } from "./plane.ts";
import { controllerDeps, Notices, openTestReplica } from "./replica-deps.ts";
import { workloadSpec } from "./replica-objects.ts";
import { openControlPlane } from "./shared-plane.ts";

export const NAMESPACE = "shop";
/** With each look: a minute passes in a second or so. */
const SKIP_MS = 1_000;

type Json = Readonly<Record<string, unknown>>;

export interface SetSpec {
  readonly replicas: number;
  readonly start?: number;
  readonly annotations: Readonly<Record<string, string>>;
  /** OpenKruise's. */
  readonly reserveOrdinals?: readonly (number | string)[];
}

/** A control plane with Berth's kinds, and one replica's view of it. */
export class ControllersCluster {
  readonly plane: ControlPlane;
  readonly connection: Connection;
  readonly replica: ClusterCaches;
  readonly notices = new Notices();
  /** For controllers that wait for long: their time passes when a test waits for something. */
  readonly clock = new LeapingClock();
  readonly #controllers: Controller[] = [];
  readonly #houses: GcLoop[] = [];

  private constructor(plane: ControlPlane, connection: Connection, replica: ClusterCaches) {
    this.plane = plane;
    this.connection = connection;
    this.replica = replica;
  }

  /** `prepare` comes before anything is watched. */
  static async open(prepare: (connection: Connection) => Promise<void> = async () => {}) {
    const plane = await openControlPlane();
    try {
      const connection = plane.connect();
      await installDefinitions(connection);
      await makeNamespaces(connection, [NAMESPACE]);
      await prepare(connection);
      return new ControllersCluster(plane, connection, await openTestReplica(connection));
    } catch (error) {
      await plane.close();
      throw error;
    }
  }

  get context(): Context {
    return this.replica.context;
  }

  get store(): Store {
    return this.replica.context.store;
  }

  async close(): Promise<void> {
    await this.endAll();
    await this.replica.close();
    await this.plane.close();
  }

  /** Starts a controller that leads; `endAll` ends it. */
  start(startOne: (deps: ControllerDeps) => Controller, over: Partial<ControllerDeps> = {}): Controller {
    const deps = controllerDeps(this.replica, { events: this.notices, ...over });
    const controller = startOne(deps);
    this.#controllers.push(controller);
    return controller;
  }

  /** The garbage collector of a leader; give its `enqueue` to controllers. */
  collectGarbage(): (claim: Claim) => void {
    const collector = new GarbageCollector(this.context, this.replica.inventory.live);
    const gcLoop = startGcLoop(this.context, collector, noopMetrics);
    this.#houses.push(gcLoop);
    return (claim) => gcLoop.enqueue(claim);
  }

  async endAll(): Promise<void> {
    for (const part of [...this.#controllers.splice(0), ...this.#houses.splice(0)]) await part.close();
  }

  /** What a garbage collector does whose wall clock is so much ahead. */
  async collectAt(aheadMs: number, passes = 1): Promise<void> {
    const clock = new ForwardClock();
    clock.forward(aheadMs);
    await this.caughtUp();
    const collector = new GarbageCollector({ ...this.context, clock }, this.replica.inventory.live);
    for (let pass = 0; pass < passes; pass++) {
      await collector.pass();
      clock.forward(31_000);
    }
    await this.caughtUp();
  }

  async all<K extends Kind>(kind: K): Promise<Stored<K>[]> {
    return await listed(this.store, kind);
  }

  /** Waits until the view shows what the store has. */
  async caughtUp(): Promise<void> {
    const { cache } = this.replica;
    await eventually("the view catches up", async () => {
      const [claims, reservations] = [await this.all("claim"), await this.all("reservation")];
      const same =
        [...cache.claims()].length === claims.length &&
        [...cache.reservations()].length === reservations.length &&
        claims.every(({ key, revision }) => cache.claim(key)?.revision === revision) &&
        reservations.every((r) => cache.reservation(r.record.address)?.revision === r.revision);
      return same ? true : undefined;
    });
  }

  /** No invariant is broken, and in a moment nothing is left over either. */
  async sound(): Promise<void> {
    let findings: Finding[] = [];
    try {
      await eventually("nothing is found", async () => {
        findings = await auditWorld(this);
        const defect = findings.some(({ severity }) => severity === "defect");
        return defect || findings.length === 0 ? true : undefined;
      });
    } finally {
      assert.deepEqual(findings, []);
    }
  }

  /** Makes the pool and waits until the view has it. */
  async makePool(pool: PoolRecord): Promise<void> {
    await this.store.create("pool", pool);
    await eventually(`pool ${pool.name}`, () => this.replica.cache.pool(pool.name));
  }

  /** Claims whose names begin like that, with their addresses. */
  async holdings(prefix: string): Promise<Record<string, string>> {
    const claims = (await this.all("claim")).filter(({ record }) => record.name.startsWith(prefix));
    return Object.fromEntries(claims.map(({ record }) => [record.name, record.addresses.join(",")]));
  }

  /** Waits until those claims are exactly these. */
  async holds(prefix: string, wanted: Record<string, string>): Promise<void> {
    let seen: Record<string, string> = {};
    try {
      await eventually("the claims", async () => {
        seen = await this.holdings(prefix);
        return JSON.stringify(seen) === JSON.stringify(wanted) ? true : undefined;
      });
    } catch {
      assert.deepEqual(seen, wanted);
    }
  }

  async claim(name: string): Promise<Stored<"claim"> | undefined> {
    return await this.store.get("claim", `${NAMESPACE}/${name}`);
  }

  /** As a person applies it. */
  async applyClaim(name: string, request: Json, spec: Json = {}): Promise<void> {
    const object = { metadata: { name, namespace: NAMESPACE }, spec: { request, ...spec } };
    await this.apply(CLAIMS, object);
  }

  /** Past every webhook: none is registered here. */
  async deleteClaim(name: string): Promise<void> {
    await this.delete(CLAIMS, name);
  }

  async claimItem(name: string): Promise<KubeItem> {
    return await this.item(CLAIMS, name);
  }

  async poolItem(name: string): Promise<KubeItem> {
    return await this.item(POOLS, name);
  }

  async item(resource: Resource, name: string): Promise<KubeItem> {
    const item = await this.find(resource, name);
    assert.ok(item, `there is no ${resource.kind} ${name}`);
    return item;
  }

  async find(resource: Resource, name: string): Promise<KubeItem | undefined> {
    return await new Client(this.connection, resource).get(placeIn(resource, name));
  }

  /** The condition once it is as wanted. */
  async condition(resource: Resource, name: string, wanted: string): Promise<Condition> {
    let seen = "";
    try {
      return await eventually(`${name} is ${wanted}`, async () => {
        this.clock.skip(SKIP_MS);
        const item = await this.find(resource, name);
        const all = item === undefined ? [] : conditionsOf(item);
        seen = all.map(({ type, status, reason }) => `${type}=${status} ${reason}`).join("; ");
        return all.find(({ type, status, reason }) => `${type}=${status} ${reason}` === wanted);
      });
    } catch {
      return assert.fail(`${name} is not ${wanted} but ${seen}`);
    }
  }

  async applySet(name: string, set: SetSpec, resource = STATEFULSETS): Promise<void> {
    const { replicas, start, annotations, reserveOrdinals } = set;
    const spec = {
      ...{ serviceName: name, ...workloadSpec(name, { replicas, annotations }) },
      ...(start === undefined ? {} : { ordinals: { start } }),
      ...(reserveOrdinals === undefined ? {} : { reserveOrdinals }),
    };
    await this.apply(resource, { metadata: { name, namespace: NAMESPACE }, spec });
  }

  async scale(name: string, replicas: number): Promise<void> {
    await this.patch(STATEFULSETS, name, { spec: { replicas } });
  }

  async deleteSet(name: string): Promise<void> {
    await this.delete(STATEFULSETS, name);
  }

  async patch(resource: Resource, name: string, body: Json): Promise<void> {
    const client = new Client(this.connection, resource);
    assert.ok(await client.patch(placeIn(resource, name), { type: "merge", body }), `${name} is gone`);
  }

  async apply(resource: Resource, object: Json & { readonly metadata: ObjectName }): Promise<void> {
    const client = new Client(this.connection, resource);
    const place = placeIn(resource, object.metadata.name);
    if ((await client.create(place, object)) !== undefined) return;
    assert.ok(await client.patch(place, { type: "merge", body: { spec: object["spec"] } }));
  }

  async delete(resource: Resource, name: string): Promise<void> {
    const client = new Client(this.connection, resource);
    for (;;) {
      const item = await client.get(placeIn(resource, name));
      if (item === undefined || (await client.remove(placeIn(resource, name), item.metadata))) return;
    }
  }

  /** Waits until exactly that was told about the object: an event follows the write that it is about. */
  async tells(name: string, wanted: readonly string[]): Promise<void> {
    try {
      await eventually("the events", () => (isDeepStrictEqual(this.told(name), wanted) ? true : undefined));
    } finally {
      assert.deepEqual(this.told(name), wanted);
    }
  }

  /** What was told about the object last. */
  note(name: string): EventInput | undefined {
    return this.notices.all.filter(({ regarding }) => regarding.name === name).at(-1);
  }

  /** What was told about the object: "Warning AddressTaken". */
  told(name: string): readonly string[] {
    return this.notices.all
      .filter(({ regarding }) => regarding.name === name)
      .map(({ type, reason }) => `${type} ${reason}`);
  }
}

function placeIn({ namespaced }: Resource, name: string) {
  return namespaced ? { namespace: NAMESPACE, name } : { name };
}
