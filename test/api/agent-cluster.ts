// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { parseAddress } from "../../allocator/ip/address.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { PODS } from "../../kube/api/resource.ts";
import { argsOf, type Said } from "../cni/caller.ts";
import { eventually } from "../support/eventually.ts";
import { hostDeps } from "../support/host-deps.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { forceDelete } from "./replica-objects.ts";

export const NAMESPACE = "shop";

/** A pod of the API server's, as a runtime knows it. */
export interface TestPod {
  readonly name: string;
  readonly uid: string;
}

type Annotations = Readonly<Record<string, string>>;

/** What webhook, scheduler, binder and kubelet do in a cluster, done by hand. */
export class AgentCluster {
  readonly context: Context;
  readonly #connection: Connection;
  readonly #pods: Client;
  #address = 50;

  constructor(plane: ControlPlane) {
    this.#connection = plane.connect();
    this.#pods = new Client(this.#connection, PODS);
    const deps = hostDeps();
    const store = openStore(this.#connection);
    this.context = { ...deps, store, view: new RecordCache(noopLogger), serial: new KeyedMutex() };
  }

  /** A pool 10.20.0.0/24 whose gateway is 10.20.0.1. */
  async makePool(): Promise<void> {
    const ranges = [{ cidr: "10.20.0.0/24", gateway: "10.20.0.1" }];
    await this.context.store.create("pool", { name: "db", spec: { ranges } });
  }

  /** A pod that is scheduled to the node. */
  async pod(name: string, node: string, annotations: Annotations = {}): Promise<TestPod> {
    const spec = { nodeName: node, containers: [{ name: "main", image: "registry.example/app:1" }] };
    const place = { namespace: NAMESPACE, name };
    const made = await this.#pods.create(place, { metadata: { annotations }, spec });
    assert.ok(made, `pod ${name} is there already`);
    return { name, uid: made.metadata.uid };
  }

  /** A claim of that name with the next address, which its reservation holds; gives the address. */
  async claim(name: string): Promise<string> {
    const address = parseAddress(`10.20.0.${this.#address++}`) ?? assert.fail();
    const { store, random } = this.context;
    const nonce = random.token();
    await store.create("reservation", {
      address,
      pool: "db",
      claim: { namespace: NAMESPACE, name },
      nonce,
    });
    await store.create("claim", {
      namespace: NAMESPACE,
      name,
      identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql" },
      request: { addresses: [address] },
      retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
      addresses: [address],
      nonce,
      status: {},
    });
    return `${address}/24`;
  }

  /** What the binder does for a pod that is scheduled. */
  async bind(pod: TestPod, node: string, name = pod.name): Promise<Stored<"claim"> | Refusal> {
    const target = { name: pod.name, uid: pod.uid, node, token: "" };
    const nothing = async () => ({ fenced: false, holdExpired: false });
    return await bind(this.context, `${NAMESPACE}/${name}`, target, nothing);
  }

  /** A pod on the node whose claim, of its name, is bound to it. */
  async boundPod(name: string, node: string): Promise<TestPod & { readonly cidr: string }> {
    const cidr = await this.claim(name);
    const pod = await this.pod(name, node, { "berth.dev/claim": name });
    assert.ok(!isRefusal(await this.bind(pod, node)));
    return { ...pod, cidr };
  }

  /** Takes the pod's object away, as the kubelet does at the end and `kubectl delete --force` at once. */
  async forget({ name }: TestPod): Promise<void> {
    await forceDelete(this.#connection, PODS, { namespace: NAMESPACE, name });
  }

  /** The kubelet says how the pod ended. */
  async finish({ name }: TestPod, phase: "Succeeded" | "Failed"): Promise<void> {
    const place = { namespace: NAMESPACE, name };
    assert.ok(await this.#pods.patch(place, { type: "merge", body: { status: { phase } } }, "status"));
  }

  async stored(name: string): Promise<Claim> {
    const found = await this.context.store.get("claim", `${NAMESPACE}/${name}`);
    return found?.record ?? assert.fail(`there is no claim ${name}`);
  }

  /** `Attached c1`: what its status says of the sandbox. */
  async status(name: string): Promise<string> {
    const { attachment } = (await this.stored(name)).status;
    if (attachment === undefined) return "not reported";
    return `${attachment.detached ? "Detached" : "Attached"} ${attachment.containerID}`.trim();
  }

  async untilStatus(name: string, wanted: string, ms?: number): Promise<void> {
    let last = "";
    const look = async () => {
      last = await this.status(name).catch(String);
      return last === wanted ? true : undefined;
    };
    await eventually(`claim ${name} is ${wanted}`, look, ms).catch((error: unknown) => {
      throw new Error(`it is ${last}`, { cause: error });
    });
  }
}

/** How a runtime calls for a sandbox of the pod. */
export function sandbox(pod: TestPod, cid: string, over: Said = {}): Said {
  return { cid, args: argsOf({ namespace: NAMESPACE, ...pod }), ...over };
}
