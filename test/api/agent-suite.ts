// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { buildPlugin } from "../cni/plugin.ts";
import type { Env } from "../support/process.ts";
import { accountConfig, installAccounts, installPolicies } from "./accounts.ts";
import { AgentCluster, NAMESPACE } from "./agent-cluster.ts";
import { ApiGate } from "./agent-gate.ts";
import { AgentNode } from "./agent-node.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import type { TokenConfig } from "./token-config.ts";

interface Running<Plane> {
  readonly plane: Plane;
  readonly cluster: AgentCluster;
  readonly gate: ApiGate;
}

/** A control plane for the tests of one file, opened so, and the nodes of each test, which end with it. */
export class AgentSuite<Plane extends ControlPlane> {
  #running: Running<Plane> | undefined;
  #nodes: AgentNode[] = [];
  /** Those that stay for all tests of the file. */
  readonly #kept = new Map<string, AgentNode>(); // name -> node

  constructor(open: () => Promise<Plane>) {
    before(async () => {
      await buildPlugin();
      const plane = await open();
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), [NAMESPACE]);
      await installAccounts(plane.connect());
      await installPolicies(plane.connect(), ["agents.berth.dev"]);
      const cluster = new AgentCluster(plane);
      await cluster.makePool();
      this.#running = { plane, cluster, gate: await ApiGate.start(plane) };
    });
    afterEach(async () => {
      await Promise.all(this.#nodes.map((node) => node.remove()));
      this.#nodes = [];
    });
    after(async () => {
      for (const node of this.#kept.values()) await node.remove();
      await this.#running?.gate.close();
      await this.#running?.plane.close();
    });
  }

  get plane(): Plane {
    return this.#parts.plane;
  }

  get cluster(): AgentCluster {
    return this.#parts.cluster;
  }

  get gate(): ApiGate {
    return this.#parts.gate;
  }

  /** A node whose agent does not run yet, and has the token of its service account unless another is given. */
  async makeNode(name: string, kubeConfig?: TokenConfig): Promise<AgentNode> {
    const own = kubeConfig ?? (await accountConfig(this.plane, "berth-agent", name));
    const node = await AgentNode.make(name, own);
    this.#nodes.push(node);
    return node;
  }

  /** A node whose agent has loaded its claims. */
  async startNode(name: string, kubeConfig?: TokenConfig): Promise<AgentNode> {
    const node = await this.makeNode(name, kubeConfig);
    await node.start();
    return node;
  }

  /**
   * One that stays for the tests after this one: an agent takes most of a second of a processor to start. Whoever has it leaves
   * it as it was, and its sandboxes have names of their own.
   */
  async keptNode(name: string, more: Env = {}): Promise<AgentNode> {
    const kept = this.#kept.get(name);
    if (kept !== undefined) return kept;
    const node = await AgentNode.make(name, await accountConfig(this.plane, "berth-agent", name));
    this.#kept.set(name, node);
    node.more = more;
    await node.start();
    return node;
  }

  get #parts(): Running<Plane> {
    return this.#running ?? assert.fail("the control plane does not run yet");
  }
}
