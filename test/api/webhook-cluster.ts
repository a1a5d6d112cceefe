// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { Connection } from "../../kube/api/connection.ts";
import { accountConfig, installAccounts, installPolicies } from "./accounts.ts";
import { AgentNode } from "./agent-node.ts";
import { AuditLog } from "./audit-log.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { type Replicas, type ReplicasOptions, startReplicas } from "./replicas.ts";
import { openControlPlane } from "./shared-plane.ts";

interface ClusterOptions extends ReplicasOptions {
  readonly namespaces?: readonly string[];
  readonly policies?: true;
  /** What is there before the webhook is. */
  readonly prepare?: (admin: Connection) => Promise<void>;
}

/** A shared control plane with Berth's kinds and accounts, the webhook as processes of its own, and agents of nodes, if any. */
export class WebhookCluster {
  readonly plane: ControlPlane;
  readonly admin: Connection;
  readonly replicas: Replicas;
  /** From before webhook and agents were there. */
  readonly audit: AuditLog;
  readonly nodes = new Map<string, AgentNode>(); // name -> node

  private constructor(parts: Pick<WebhookCluster, "plane" | "admin" | "replicas" | "audit">) {
    ({ plane: this.plane, admin: this.admin, replicas: this.replicas, audit: this.audit } = parts);
  }

  static async open(options: ClusterOptions = {}): Promise<WebhookCluster> {
    const { namespaces = ["shop"], policies, prepare, ...replicas } = options;
    const plane = await openControlPlane();
    try {
      const [admin, audit] = [plane.connect(), new AuditLog(plane)];
      await installDefinitions(admin);
      await makeNamespaces(admin, namespaces);
      await installAccounts(admin);
      if (policies === true) await installPolicies(admin);
      await prepare?.(admin);
      return new WebhookCluster({ plane, admin, audit, replicas: await startReplicas(plane, replicas) });
    } catch (error) {
      await plane.close();
      throw error;
    }
  }

  /** A node whose agent has loaded what it serves. */
  async addNode(name: string): Promise<AgentNode> {
    const node = await AgentNode.make(name, await accountConfig(this.plane, "berth-agent", name));
    this.nodes.set(name, node);
    await node.start();
    return node;
  }

  node(name: string): AgentNode {
    return this.nodes.get(name) ?? assert.fail(`there is no node ${name}`);
  }

  async close(): Promise<void> {
    await Promise.all([...this.nodes.values()].map((node) => node.remove()));
    await this.replicas.close();
    await this.plane.close();
  }
}
