// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Stored } from "../../allocator/store/store.ts";
import { eventually } from "../support/eventually.ts";
import { BinderCluster, type Replica, type ReplicaOptions } from "./binder-cluster.ts";
import { openControlPlane, type StoppablePlane } from "./shared-plane.ts";

/** A control plane and three nodes for the tests of one file, and the replicas of each test, which end with it. */
export class BinderSuite {
  readonly replicas: Replica[] = [];
  #plane: StoppablePlane | undefined;
  #cluster: BinderCluster | undefined;

  constructor() {
    before(async () => {
      this.#plane = await openControlPlane();
      this.#cluster = await BinderCluster.open(this.#plane);
      for (const node of ["node-a", "node-b", "node-c"]) await this.#cluster.node(node);
    });
    afterEach(async () => {
      await Promise.all(this.replicas.splice(0).map((replica) => replica.close()));
      await this.cluster.forceDeleteAll(); // the next test's binder would see to those that still wait
    });
    after(async () => {
      await this.#cluster?.close();
      await this.#plane?.close();
    });
  }

  get plane(): StoppablePlane {
    return this.#plane ?? assert.fail("it is not open yet");
  }

  get cluster(): BinderCluster {
    return this.#cluster ?? assert.fail("it is not open yet");
  }

  readonly binder = async (options: ReplicaOptions = {}): Promise<Replica> => {
    const replica = await this.cluster.replica(options);
    this.replicas.push(replica);
    return replica;
  };

  readonly told = async (pod: string, event: string): Promise<void> => {
    await eventually(event, async () => (await this.cluster.events(pod)).includes(event) || undefined);
  };

  /** Lets time pass until the event is there. */
  readonly reported = async (replica: Replica, pod: string, event: string): Promise<void> => {
    await eventually(`${event} on ${pod}`, async () => {
      replica.clock.skip(1_000);
      return (await this.cluster.events(pod)).includes(event) || undefined;
    });
  };

  /** A pod on that node that its claim is bound to. */
  readonly placed = async (pod: string, node: string, claim: Stored<"claim">): Promise<{ uid: string }> => {
    const made = await this.cluster.run(pod, node, claim);
    await this.cluster.bound(claim.record.name, made.uid, node);
    return made;
  };

  /** Until whoever waits looks again after 15 s at the earliest, unless something wakes it. */
  readonly settled = async (replica: Replica): Promise<void> => {
    for (let i = 0; i < 8; i++) {
      replica.clock.skip(30_000);
      await pause(20);
    }
  };

  /** Everything that came before was looked at when this pod, which nothing keeps from its claim, is bound. */
  readonly overtaken = async (name: string, address: string): Promise<void> => {
    await this.placed(name, "node-c", await this.cluster.claim(name, address));
  };
}

export function busy({ key, record: { name, addresses } }: Stored<"claim">, node: string): string {
  return (
    `Warning ClaimBusy: claim ${key} (${addresses.join()}) is still bound to pod ${name} on node ${node}, whose sandbox was not seen to end; ` +
    "it moves when that node's agent reports, the node is deleted, or it is tainted out-of-service or annotated berth.dev/fenced=true"
  );
}
