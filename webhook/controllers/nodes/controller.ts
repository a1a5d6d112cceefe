// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../../allocator/base/counted.ts";
import {
  type CidrReport,
  NodeCidrDistributor,
  type NodeFacts,
} from "../../../allocator/blocks/node-cidr-distributor.ts";
import type { CidrShortage, ExhaustedPool } from "../../../allocator/blocks/node-cidr-plan.ts";
import type { CidrCollision } from "../../../allocator/blocks/node-cidr-take-over.ts";
import { apiVersionOf, NODES } from "../../../kube/api/resource.ts";
import type { Controller } from "../../../kube/controller/run-queue.ts";
import { NodeAbsences } from "../../cluster-state/node-grace.ts";
import type { ControllerDeps } from "../controller.ts";
import { type Passes, PassLoop } from "../pass-loop.ts";
import { followNodes, followPools } from "../pass-triggers.ts";
import { RefusedPools } from "../refused-pools.ts";
import { clusterNode, NodeClient } from "./node-client.ts";

/** Nodes that are told in one pass why they have nothing: thousands may join at once. */
const MOST_EVENTS = 50;
/** Pools that a message names. */
const NAMED = 3;

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
  readonly #refused: RefusedPools;
  readonly #reported = new Map<string, string>(); // UID of a Node -> what an event told of it
  #distributor: NodeCidrDistributor | undefined;
  #report: CidrReport = NOTHING;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { metrics, context } = deps;
    this.#client = new NodeClient(deps.connection);
    this.#absences = new NodeAbsences(context.clock);
    this.#loop = new PassLoop(deps, this);
    this.#refused = new RefusedPools(deps, "CIDRs");
    metrics.gauge?.("berth_node_cidrs_missing_nodes", () => [{ labels: {}, value: this.#report.waiting }]);
    metrics.gauge?.("berth_node_cidrs_shared_nodes", () => [
      { labels: {}, value: new Set(this.#report.collisions.map(({ node }) => node)).size },
    ]);
  }

  start(): Controller {
    const { cache, watches } = this.#deps;
    return this.#loop.start([
      (soon) => followPools(cache, soon),
      (soon) =>
        cache.onChange("block", (_, now, before) => {
          if ((now ?? before)?.record.use === "PodCIDR") soon();
        }),
      (soon) => followNodes(watches.nodes, soon),
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
    if (signal.aborted) return 0;
    this.#refused.publish(this.#distributor.faults);
    this.#publishEvents();
    return 0;
  }

  forget(): void {
    this.#distributor = undefined;
    this.#report = NOTHING;
    this.#refused.forget();
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
      writePodCIDRs: (node, cidrs) => client.writePodCIDRs(node, cidrs),
    };
  }

  /** An event of each Node that has no CIDR, or another's, when there is another reason than before. */
  #publishEvents(): void {
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

/** Why a Node has no CIDR, for whoever describes it. */
function shortageWords({ family, pools }: CidrShortage): string {
  if (pools.length === 0)
    return `no pool with nodeCIDRs for PodCIDR selects this node and has ${family} ranges; create an IPPool, or change a nodeSelector`;
  const some = pools.slice(0, NAMED).map(poolWords);
  const more = pools.length > NAMED ? `; and ${pools.length - NAMED} more` : "";
  return `no ${family} CIDR is free for this node: ${some.join("; ")}${more}; add a range to a pool, or delete nodes that are gone`;
}

function poolWords({ pool, length, total, reason, other, large, owners }: ExhaustedPool): string {
  if (reason === "disabled") return `pool "${pool}" is disabled`;
  if (reason === "overlaps") return `pool "${pool}" shares addresses with pool "${other ?? ""}"`;
  const have = owners.map(({ node, blocks }) => `${node} ${blocks}`).join(", ");
  const size = counted(Number(total), `CIDR of /${length}`, `CIDRs of /${length}`);
  const free = have === "" ? ", none of which is free" : `, of which nodes have ${have}`;
  const most =
    large === undefined
      ? ""
      : `, and node "${large.node}" says that it has ${large.cidr}: create that node again`;
  return `pool "${pool}" has ${size}${free}${most}`;
}

/** Why a Node's own CIDR is not recorded as its. */
function collisionWords({ cidr, pool, with: conflict }: CidrCollision): string {
  if (conflict === undefined)
    return `its podCIDR ${cidr} is so large that it takes most of pool "${pool}"; create the node again, or take that range out of the pool`;
  if (conflict.isCooling)
    return `its podCIDR ${cidr} is being given back by node "${conflict.node}" (${conflict.cidr} of pool "${pool}"); it is recorded as this node's after that`;
  return `its podCIDR ${cidr} shares addresses with ${conflict.cidr} of pool "${pool}", which node "${conflict.node}" has; delete one of the two nodes and let it join again`;
}
