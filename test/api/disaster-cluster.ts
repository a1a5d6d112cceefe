// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, itemPath, PODS, POOLS } from "../../kube/api/resource.ts";
import { call } from "../../webhook/testing/api-server.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { AgentNode } from "./agent-node.ts";
import { makeNamespaces } from "./crds.ts";
import { EtcdSnapshot } from "./etcd-snapshot.ts";
import { type OwnControlPlane, startControlPlane } from "./harness.ts";
import { forceDelete, make, makeNode, makePod } from "./replica-objects.ts";
import { type Replicas, startReplicas } from "./replicas.ts";

interface Binding {
  readonly podUID: string;
  readonly node: string;
}

/** A replica of the webhook and the agents of n1 and n2, on an etcd that can be put back to where it was. */
export class DisasterCluster {
  readonly plane: OwnControlPlane;
  readonly replicas: Replicas;
  readonly n1: AgentNode;
  readonly n2: AgentNode;
  readonly snapshot: EtcdSnapshot;
  readonly #api: Connection;

  private constructor(plane: OwnControlPlane, replicas: Replicas, nodes: readonly [AgentNode, AgentNode]) {
    this.plane = plane;
    this.replicas = replicas;
    [this.n1, this.n2] = nodes;
    this.snapshot = new EtcdSnapshot(plane);
    this.#api = plane.connect();
  }

  static async open(): Promise<DisasterCluster> {
    await buildPlugin();
    const plane = await startControlPlane({ definitions: true });
    try {
      const api = plane.connect();
      await makeNamespaces(api, ["berth-system", NAMESPACE]);
      const ranges = [{ cidr: "10.20.0.0/24", gateway: "10.20.0.1" }];
      await make(api, POOLS, { name: "db" }, { spec: { ranges, cooldown: "0s" } });
      for (const name of ["n1", "n2"]) await makeNode(api, name);
      const replicas = await startReplicas(plane);
      const [n1, n2] = [
        await AgentNode.make("n1", plane.kubeConfig()),
        await AgentNode.make("n2", plane.kubeConfig()),
      ];
      const cluster = new DisasterCluster(plane, replicas, [n1, n2]);
      await Promise.all([n1.start(), n2.start()]);
      return cluster;
    } catch (error) {
      await plane.close();
      throw error;
    }
  }

  /** A pod that wants the address, scheduled to the node, and its claim bound to it. */
  async pod(name: string, address: string, node: string): Promise<{ name: string; uid: string }> {
    const place = { namespace: NAMESPACE, name };
    const made = await makePod(this.#api, place, { node, annotations: { "berth.dev/ips": address } });
    const { uid } = made.metadata;
    const look = async () => {
      const binding = await this.bindingOf(name);
      return binding?.podUID === uid && binding.node === node ? true : undefined;
    };
    await eventually(`claim ${name} is bound to ${node}`, look, 30_000);
    return { name, uid };
  }

  async delete(name: string): Promise<void> {
    await forceDelete(this.#api, PODS, { namespace: NAMESPACE, name });
  }

  /** Of the claim of that name; undefined: it has none, or there is no such claim. */
  async bindingOf(name: string): Promise<Binding | undefined> {
    const path = itemPath(CLAIMS, { namespace: NAMESPACE, name });
    const { status, body } = await this.#api.call({ method: "GET", path });
    return status === 200 ? (body as { spec: { binding?: Binding } }).spec.binding : undefined;
  }

  /** All metrics of the webhook. */
  async webhookMetrics(): Promise<string> {
    const [replica = assert.fail("there is no replica")] = this.replicas.all;
    const { port } = replica;
    return (await call({ port, ca: this.replicas.ca, path: "/metrics", method: "GET" })).text;
  }

  /** What the webhook says of one metric, with its labels as they are exposed; undefined: nothing. */
  async webhookSays(metric: string): Promise<number | undefined> {
    return numberIn(await this.webhookMetrics(), metric);
  }

  async agentSays(node: AgentNode, metric: string): Promise<number | undefined> {
    return numberIn(await (await node.fetch("/metrics")).text(), metric);
  }

  async close(): Promise<void> {
    await this.n1.remove();
    await this.n2.remove();
    await this.replicas.close();
    await this.plane.close();
  }
}

function numberIn(exposed: string, metric: string): number | undefined {
  const line = exposed.split("\n").find((one) => one.startsWith(`${metric} `));
  return line === undefined ? undefined : Number(line.slice(metric.length + 1));
}
