// SPDX-License-Identifier: Apache-2.0

import { Client } from "../../../kube/api/client.ts";
import { NODES } from "../../../kube/api/resource.ts";
import type { Controller } from "../../../kube/controller/run-queue.ts";
import { Reflector } from "../../../kube/watch/reflector.ts";
import {
  type ChangedEvents,
  type NodeNote,
  nodeEvents,
  type PoolNote,
  poolEvents,
} from "../changed-events.ts";
import type { ControllerDeps } from "../controller.ts";
import { type Passes, PassLoop } from "../pass-loop.ts";
import { followNodes, followPools } from "../pass-triggers.ts";
import { RefusedPools } from "../refused-pools.ts";
import { shortPools, unservedNodes } from "./cilium-messages.ts";
import { CILIUM_NODES, type CiliumMode, type CiliumNode, readCiliumNode } from "./cilium-node.ts";
import { foreignWords } from "./foreign-cidrs.ts";
import { GoneCiliumNodes } from "./gone-cilium-nodes.ts";
import { CiliumOperator, type Lack } from "./operator.ts";
import { ciliumPools } from "./situation.ts";

/** After so long a definition that is missing is not on its way any more. */
const UNREAD_MS = 15_000;

interface CiliumOptions {
  readonly mode: CiliumMode;
  /** How long nothing of a block must be used before its agent is asked for it; for tests. */
  readonly quietMs?: number;
}

/** Manages the addresses of Cilium's nodes in the place of Cilium's operator, for as long as this replica leads. */
export function startCilium(deps: ControllerDeps, options: CiliumOptions): Controller {
  return new Cilium(deps, options).start();
}

class Cilium implements Passes {
  readonly name = "cilium";
  readonly #deps: ControllerDeps;
  readonly #options: CiliumOptions;
  readonly #loop: PassLoop;
  readonly #shortageEvents: ChangedEvents<PoolNote>;
  readonly #nodes: Reflector<CiliumNode>;
  readonly #gone: GoneCiliumNodes;
  /** Of CIDRs that others gave. Not in the CiliumNode's status, which another operator would clear again and again. */
  readonly #foreignEvents: ChangedEvents<NodeNote>;
  readonly #unservedEvents: ChangedEvents<NodeNote>;
  readonly #refused: RefusedPools;
  #operator: CiliumOperator | undefined;
  #unreadSince: number | undefined; // monotonic
  #isUnreadReported = false;
  #lacks: readonly Lack[] = [];
  constructor(deps: ControllerDeps, options: CiliumOptions) {
    this.#deps = deps;
    this.#options = options;
    const { clock, random, log } = deps.context;
    const { metrics, connection } = deps;
    this.#gone = new GoneCiliumNodes(clock);
    this.#loop = new PassLoop(deps, this);
    this.#shortageEvents = poolEvents(deps);
    const watch = { connection, clock, random, log, resource: CILIUM_NODES };
    this.#nodes = new Reflector({ ...watch, project: readCiliumNode });
    this.#foreignEvents = nodeEvents(deps, "CiliumCIDRForeign");
    this.#unservedEvents = nodeEvents(deps, "NoCiliumCIDR");
    this.#refused = new RefusedPools(deps, "CIDRs");
    // none before the objects are known: 0 would say that all is well
    const count = (name: string, of: () => number) =>
      metrics.gauge?.(name, () => (this.#nodes.isSynced ? [{ labels: {}, value: of() }] : []));
    count("berth_cilium_short_nodes", () => new Set(this.#lacks.map(({ node }) => node)).size);
    count("berth_cilium_foreign_nodes", () => this.#foreignEvents.size);
    count("berth_cilium_shared_nodes", () => this.#operator?.shared.length ?? 0);
  }

  start(): Controller {
    const { cache, watches } = this.#deps;
    const watching = this.#nodes.run(this.#loop.stopped);
    const controller = this.#loop.start([
      (soon) => followPools(cache, soon),
      (soon) =>
        cache.onChange("block", (_, now, before) => {
          if (now === undefined && before !== undefined) this.#operator?.examineAgain(before.record.node);
          if ((now ?? before)?.record.use === "Cilium") soon();
        }),
      (soon) => followNodes(watches.nodes, soon),
      () => this.#gone.follow(watches.nodes, this.#nodes),
      (soon) => this.#nodes.onChange(soon),
    ]);
    return {
      close: async () => {
        await controller.close();
        await watching;
      },
    };
  }

  knows(): boolean {
    const { cache, watches } = this.#deps;
    if (!this.#nodes.isSynced) this.#tellUnread();
    return cache.ready && cache.knows("block") && watches.nodes.isSynced && this.#nodes.isSynced;
  }

  hasWork(): boolean {
    return true;
  }

  /** Rests for as long as it took. */
  async pass(): Promise<number> {
    const { context, cache, watches, connection } = this.#deps;
    const began = context.clock.monotonic();
    this.#operator ??= new CiliumOperator({
      ...{ context, view: cache, nodes: watches.nodes, ciliumNodes: this.#nodes },
      ...this.#options,
      client: new Client(connection, CILIUM_NODES),
      nodeClient: new Client(connection, NODES),
      mayWrite: () => this.#loop.mayWrite(),
      isAbsentLong: (name) => this.#gone.isLong(name),
    });
    this.#lacks = await this.#operator.pass();
    this.#shortageEvents.publish(shortPools(this.#lacks));
    this.#unservedEvents.publish(unservedNodes(this.#lacks));
    this.#foreignEvents.publish(this.#foreignNotes());
    this.#refused.publish(this.#operator.faults);
    return context.clock.monotonic() - began;
  }

  forget(): void {
    this.#operator = undefined;
    this.#lacks = [];
    this.#shortageEvents.forget();
    this.#unservedEvents.forget();
    this.#foreignEvents.forget();
    this.#refused.forget();
  }

  #foreignNotes(): ReadonlyMap<string, NodeNote> {
    const pools = ciliumPools(this.#deps.cache);
    const notes = new Map<string, NodeNote>();
    for (const [name, node] of this.#nodes.all()) {
      const note = foreignWords(this.#options.mode, pools, node);
      if (note !== undefined) notes.set(name, { node: name, note });
    }
    return notes;
  }

  /** Said once: what else is logged is that a watch is interrupted, which it is now and then. */
  #tellUnread(): void {
    const { clock, log } = this.#deps.context;
    this.#unreadSince ??= clock.monotonic();
    if (this.#isUnreadReported || clock.monotonic() - this.#unreadSince < UNREAD_MS) return;
    this.#isUnreadReported = true;
    log.error("CiliumNodes cannot be read, and Cilium's nodes get nothing until they can", {
      remedy:
        "see that the CustomResourceDefinition ciliumnodes.cilium.io is installed (docs/cilium.md, Begin)",
    });
  }
}
