// SPDX-License-Identifier: Apache-2.0

import {
  type CidrReport,
  NodeCidrDistributor,
  type NodeFacts,
} from "../../../allocator/blocks/node-cidr-distributor.ts";
import { apiVersionOf, NODES } from "../../../kube/api/resource.ts";
import type { Controller } from "../../../kube/controller/run-queue.ts";
import { NodeAbsences } from "../../cluster-state/node-grace.ts";
import type { ControllerDeps } from "../controller.ts";
import { type Passes, PassLoop } from "../pass-loop.ts";
import { collisionWords, shortageWords } from "./node-cidr-messages.ts";
import { clusterNode, NodeClient } from "./node-client.ts";

/** Nodes that are told in one pass why they have nothing: thousands may join at once. */
const MOST_EVENTS = 50;

/** Gives Nodes their podCIDRs while this replica leads; if there is nothing to give, it only takes back what is left. */
export function startNodeCidrs(deps: ControllerDeps): Controller {
  return new NodeCidrs(deps).start();
}

class NodeCidrs implements Passes {
  readonly name = "node-cidrs";
  readonly #deps: ControllerDeps;
  readonly #loop: PassLoop;
  readonly #client: NodeClient;
  readonly #absences: NodeAbsences;
  readonly #reported = new Map<string, string>(); // UID of a Node -> what an event told of it
  #distributor: NodeCidrDistributor | undefined;
  #report: CidrReport = NOTHING;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { metrics, context } = deps;
    this.#client = new NodeClient(deps.connection);
    this.#absences = new NodeAbsences(context.clock);
    this.#loop = new PassLoop(deps, this);
    metrics.gauge?.("berth_node_cidrs_missing_nodes", () => [{ labels: {}, value: this.#report.waiting }]);
    metrics.gauge?.("berth_node_cidrs_shared_nodes", () => [
      { labels: {}, value: new Set(this.#report.collisions.map(({ node }) => node)).size },
    ]);
  }

  start(): Controller {
    const { cache, watches } = this.#deps;
    return this.#loop.start([
      (soon) => cache.onChange("pool", soon),
      (soon) =>
        cache.onChange("block", (_, now, before) => {
          if ((now ?? before)?.record.use === "PodCIDR") soon();
        }),
      (soon) => watches.nodes.onChange(soon),
      () => this.#absences.follow(watches.nodes),
    ]);
  }

  async pass(signal: AbortSignal): Promise<number> {
    const { context, cache, nodeCIDRs = [] } = this.#deps;
    this.#distributor ??= new NodeCidrDistributor({ ...context, view: cache }, this.#facts(), {
      families: nodeCIDRs,
      mayWrite: () => this.#loop.mayWrite(),
    });
    this.#report = await this.#distributor.pass();
    if (!signal.aborted) this.#tell();
    return 0;
  }

  forget(): void {
    this.#distributor = undefined;
    this.#report = NOTHING;
    this.#reported.clear();
  }

  knows(): boolean {
    const { cache, watches } = this.#deps;
    return cache.ready && cache.knows("block") && watches.nodes.isSynced;
  }

  hasWork(): boolean {
    return (this.#deps.nodeCIDRs ?? []).length > 0 || this.#hasBlocks();
  }

  #hasBlocks(): boolean {
    for (const { record } of this.#deps.cache.blocks()) if (record.use === "PodCIDR") return true;
    return false;
  }

  #facts(): NodeFacts {
    const { nodes } = this.#deps.watches;
    const client = this.#client;
    return {
      nodes: function* () {
        for (const [, node] of nodes.all()) yield clusterNode(node);
      },
      live: (name) => client.live(name),
      gone: async (name) => {
        if (nodes.get(name) !== undefined) this.#absences.present(name);
        else if (this.#absences.absent(name)) return (await client.live(name)) === undefined;
        return false;
      },
      tell: (node, cidrs) => client.tell(node, cidrs),
    };
  }

  /** An event of each Node that has no CIDR, or another's, when there is another reason than before. */
  #tell(): void {
    const notes = new Map([
      ...this.#report.short.map(
        (one) => [one.nodeUID, noteOf(one.node, "NoPodCIDR", shortageWords(one))] as const,
      ),
      ...this.#report.collisions.map(
        (one) => [one.nodeUID, noteOf(one.node, "PodCIDRShared", collisionWords(one))] as const,
      ),
    ]);
    for (const uid of [...this.#reported.keys()]) if (!notes.has(uid)) this.#reported.delete(uid);
    const news = [...notes]
      .filter(([uid, { note }]) => this.#reported.get(uid) !== note)
      .slice(0, MOST_EVENTS);
    for (const [uid, { name, reason, note }] of news) {
      this.#reported.set(uid, note);
      this.#deps.context.log.warn("node has no CIDR of its own", { node: name, error: note });
      this.#deps.events.record({
        regarding: { apiVersion: apiVersionOf(NODES), kind: NODES.kind, name, uid },
        ...{ type: "Warning", reason, action: "Granting", note },
      });
    }
  }
}

const NOTHING: CidrReport = { short: [], collisions: [], waiting: 0 };

function noteOf(name: string, reason: string, note: string) {
  return { name, reason, note };
}
