// SPDX-License-Identifier: Apache-2.0
import type { Connection } from "../../kube/api/connection.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually, patient } from "../support/eventually.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { AgentNode } from "./agent-node.ts";
import { makeNamespaces } from "./crds.ts";
import type { Daemon } from "./daemon.ts";
import { type OwnControlPlane, startControlPlane } from "./harness.ts";
import { makeNode } from "./replica-objects.ts";
import { type ReplicaProcess, type Replicas, readyz, startReplicas } from "./replicas.ts";

export const NODES = ["n1", "n2"] as const;
const READY_MS = 90_000;

/** A process of the cluster that may be ended at any moment, and is started again by whoever looks after it. */
export interface Victim {
  readonly name: string;
  end(signal: NodeJS.Signals): Promise<void>;
  /** It stands still until `thaw`; absent: it is not to. */
  readonly freeze?: () => void;
  readonly thaw?: () => void;
  /** Starts it, again if it ends at once, until it can do its work. */
  restore(): Promise<void>;
}

/** etcd that keeps what it says that it keeps, an API server, two replicas of the webhook and the agents of two nodes. */
export class ChaosCluster {
  readonly plane: OwnControlPlane;
  readonly replicas: Replicas;
  readonly nodes: ReadonlyMap<string, AgentNode>; // name -> node
  readonly victims: readonly Victim[];

  private constructor(plane: OwnControlPlane, replicas: Replicas, nodes: ReadonlyMap<string, AgentNode>) {
    this.plane = plane;
    this.replicas = replicas;
    this.nodes = nodes;
    this.victims = [
      daemonVictim(plane.etcd, async () => true),
      daemonVictim(plane.apiServer, () => isReady(plane.connect())),
      ...replicas.all.map((replica) => replicaVictim(replica, replicas.ca)),
      ...[...nodes.values()].map(agentVictim),
    ];
  }

  static async open(): Promise<ChaosCluster> {
    await buildPlugin();
    const plane = await startControlPlane({ durable: true, definitions: true });
    const nodes = new Map<string, AgentNode>();
    let replicas: Replicas | undefined;
    try {
      const connection = plane.connect();
      await makeNamespaces(connection, ["berth-system", NAMESPACE]);
      replicas = await startReplicas(plane, { count: 2 });
      for (const name of NODES) {
        await makeNode(connection, name);
        nodes.set(name, await AgentNode.make(name, plane.kubeConfig()));
      }
      const cluster = new ChaosCluster(plane, replicas, nodes);
      await cluster.restore();
      return cluster;
    } catch (error) {
      for (const node of nodes.values()) await node.remove();
      await replicas?.close();
      await plane.close();
      throw error;
    }
  }

  /** Everything runs and is ready. */
  async restore(): Promise<void> {
    for (const victim of this.victims) await victim.restore();
  }

  /** The ends of what the processes wrote. */
  logs(): string {
    const { plane, replicas, nodes } = this;
    const daemons = [plane.etcd, plane.apiServer, ...replicas.all.map(({ process }) => process)];
    return [
      ...daemons.map((process) => `${process.name}:\n${process.tail(2_000)}`),
      ...[...nodes.values()].map(({ name, log }) => `${name}:\n${log}`),
    ].join("\n");
  }

  async close(): Promise<void> {
    for (const node of this.nodes.values()) await node.remove();
    await this.replicas.close();
    await this.plane.close();
  }
}

function daemonVictim(process: Daemon, ready: () => Promise<boolean>): Victim {
  const { name } = process;
  return {
    name,
    end: (signal) => process.stop(signal),
    restore: () =>
      untilReady(name, async () => {
        process.start();
        return await ready();
      }),
  };
}

function replicaVictim({ process, port }: ReplicaProcess, ca: string): Victim {
  const ready = async () => (await readyz(port, ca)) === 200;
  return { ...daemonVictim(process, ready), freeze: () => process.pause(), thaw: () => process.resume() };
}

function agentVictim(node: AgentNode): Victim {
  const signal = (name: NodeJS.Signals) => {
    if (node.pid !== 0) process.kill(node.pid, name);
  };
  return {
    name: node.name,
    end: async (how) => void (await node.stop(how)),
    freeze: () => signal("SIGSTOP"),
    thaw: () => signal("SIGCONT"),
    restore: async () => {
      if (node.pid === 0) await node.serve();
    },
  };
}

async function untilReady(name: string, ready: () => Promise<boolean>): Promise<void> {
  await eventually(`${name} is ready`, async () => (await ready()) || undefined, READY_MS);
}

async function isReady(connection: Connection): Promise<boolean> {
  try {
    const { status } = await connection.call({ method: "GET", path: "/readyz", timeoutMs: patient(2_000) });
    return status === 200;
  } catch {
    return false;
  } finally {
    connection.close();
  }
}
