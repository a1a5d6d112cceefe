// SPDX-License-Identifier: Apache-2.0
// Where a day takes place: the control plane of Kubernetes with its controllers and scheduler, Berth, and two nodes.
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { NODES, POOLS } from "../../kube/api/resource.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { poolObject } from "../support/objects.ts";
import { AgentNode } from "./agent-node.ts";
import { makeNamespaces } from "./crds.ts";
import type { Daemon } from "./daemon.ts";
import { type DayBook, DayKubelet } from "./day-kubelets.ts";
import { NAMESPACE_OF_DAY } from "./day-objects.ts";
import { type OwnControlPlane, startControlPlane } from "./harness.ts";
import { startControllers } from "./kubernetes-controllers.ts";
import { type Replicas, startReplicas } from "./replicas.ts";

export const NODE_NAMES = ["n1", "n2"];
const CONTROLLERS = [
  ...["statefulset", "deployment", "replicaset", "daemonset", "job", "cronjob"],
  ...["garbage-collector", "ttl-after-finished"],
];

export class DayCluster {
  readonly plane: OwnControlPlane;
  readonly admin: Connection;
  readonly replicas: Replicas;
  readonly kubelets: readonly DayKubelet[];
  readonly expected: DayBook;
  readonly #nodes: readonly AgentNode[];
  readonly #daemons: readonly Daemon[];

  private constructor(
    parts: Pick<DayCluster, "plane" | "admin" | "replicas" | "kubelets" | "expected"> & {
      readonly nodes: readonly AgentNode[];
    },
  ) {
    ({
      plane: this.plane,
      admin: this.admin,
      replicas: this.replicas,
      kubelets: this.kubelets,
      expected: this.expected,
      nodes: this.#nodes,
    } = parts);
    this.#daemons = startControllers(this.plane, { controllers: CONTROLLERS, scheduler: true });
  }

  static async open(): Promise<DayCluster> {
    await buildPlugin();
    const plane = await startControlPlane({ definitions: true });
    const admin = plane.connect();
    await makeNamespaces(admin, ["berth-system", NAMESPACE_OF_DAY]);
    const replicas = await startReplicas(plane, { count: 2 });
    await makePools(admin);
    const expected: DayBook = { kept: new Map(), excused: new Set(), wrongs: [] };
    const nodes: AgentNode[] = [];
    for (const name of NODE_NAMES) nodes.push(await makeNode(plane, admin, name));
    const kubelets = nodes.map((node) => new DayKubelet(plane.connect(), node, expected));
    return new DayCluster({ plane, admin, replicas, kubelets, expected, nodes });
  }

  /** Kubernetes' own, as a person does who sees that they stand still. */
  async restartControllers(): Promise<void> {
    for (const daemon of this.#daemons) {
      await daemon.stop();
      daemon.keepRunning();
    }
  }

  async close(): Promise<void> {
    for (const kubelet of this.kubelets) await kubelet.close();
    for (const daemon of this.#daemons) await daemon.stop("SIGKILL");
    for (const node of this.#nodes) await node.remove();
    await this.replicas.close();
    await this.plane.close();
  }
}

async function makePools(admin: Connection): Promise<void> {
  const limits = { retention: { perNamespace: 10_000 } };
  for (const [name, cidr] of [
    ["day", "10.60.0.0/20"],
    ["set", "10.61.0.0/20"],
  ] as const) {
    await new Client(admin, POOLS).create(
      { name },
      poolObject(name, { ranges: [{ cidr }], cooldown: "1s", limits }),
    );
  }
}

/** A node that is ready and has room, with its agent. */
async function makeNode(plane: OwnControlPlane, admin: Connection, name: string): Promise<AgentNode> {
  const nodes = new Client(admin, NODES);
  await nodes.create({ name }, { metadata: { labels: { "kubernetes.io/hostname": name } } });
  await nodes.patch({ name }, { type: "merge", body: { spec: { taints: null } } });
  const capacity = { cpu: "1000", memory: "1000Gi", pods: "1000" };
  const now = new Date().toISOString();
  const ready = { type: "Ready", status: "True", reason: "Played", message: "" };
  const conditions = [{ ...ready, lastHeartbeatTime: now, lastTransitionTime: now }];
  const status = { capacity, allocatable: capacity, conditions };
  await nodes.patch({ name }, { type: "merge", body: { status } }, "status");
  const node = await AgentNode.make(name, plane.kubeConfig());
  await node.start();
  return node;
}
