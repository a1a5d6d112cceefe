// SPDX-License-Identifier: Apache-2.0

import { Client } from "../../../kube/api/client.ts";
import { apiVersionOf, NODES } from "../../../kube/api/resource.ts";
import type { Controller } from "../../../kube/controller/run-queue.ts";
import { Reflector } from "../../../kube/watch/reflector.ts";
import type { ControllerDeps } from "../controller.ts";
import { type Passes, PassLoop, PoolNotices } from "../pass-loop.ts";
import { CILIUM_NODES, type CiliumMode, type CiliumNode, readCiliumNode } from "./cilium-node.ts";
import { foreignWords } from "./foreign-cidrs.ts";
import { CiliumOperator, type Lack } from "./operator.ts";
import { ciliumPools } from "./situation.ts";

export interface CiliumOptions {
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
  readonly #notices: PoolNotices;
  readonly #nodes: Reflector<CiliumNode>;
  readonly #foreign = new Map<string, string>(); // node -> what an event told of CIDRs that others gave it
  #operator: CiliumOperator | undefined;
  #lacks: readonly Lack[] = [];
  constructor(deps: ControllerDeps, options: CiliumOptions) {
    this.#deps = deps;
    this.#options = options;
    const { clock, random, log } = deps.context;
    const { metrics, connection } = deps;
    this.#loop = new PassLoop(deps, this);
    this.#notices = new PoolNotices(deps);
    const watch = { connection, clock, random, log, resource: CILIUM_NODES };
    this.#nodes = new Reflector({ ...watch, project: readCiliumNode });
    const count = (name: string, of: () => number) =>
      metrics.gauge?.(name, () => [{ labels: {}, value: of() }]);
    count("berth_cilium_short_nodes", () => new Set(this.#lacks.map(({ node }) => node)).size);
    count("berth_cilium_foreign_nodes", () => this.#foreign.size);
    count("berth_cilium_shared_nodes", () => this.#operator?.shared.length ?? 0);
  }

  start(): Controller {
    const { mirror, watches } = this.#deps;
    const watching = this.#nodes.run(this.#loop.stopped);
    const controller = this.#loop.start([
      (soon) => mirror.onChange("pool", soon),
      (soon) => mirror.onChange("block", soon),
      (soon) => watches.nodes.onChange(soon),
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
    const { mirror, watches } = this.#deps;
    return mirror.ready && mirror.knows("block") && watches.nodes.isSynced && this.#nodes.isSynced;
  }

  hasWork(): boolean {
    return true;
  }

  /** Rests for as long as it took. */
  async pass(): Promise<number> {
    const { context, mirror, watches, connection } = this.#deps;
    const began = context.clock.monotonic();
    this.#operator ??= new CiliumOperator({
      ...{ context, view: mirror, nodes: watches.nodes, ciliumNodes: this.#nodes },
      ...this.#options,
      client: new Client(connection, CILIUM_NODES),
      nodeClient: new Client(connection, NODES),
      mayWrite: () => this.#loop.mayWrite(),
    });
    this.#lacks = await this.#operator.pass();
    this.#notices.tell(notesOf(this.#lacks));
    this.#tellForeign();
    return context.clock.monotonic() - began;
  }

  forget(): void {
    this.#operator = undefined;
    this.#lacks = [];
    this.#notices.forget();
    this.#foreign.clear();
  }

  /** An event of each Node whose CIDRs another operator gave; not in the CiliumNode's status, which that operator would clear again and again. */
  #tellForeign(): void {
    const { mirror, watches, events } = this.#deps;
    const pools = ciliumPools(mirror);
    for (const name of [...this.#foreign.keys()])
      if (this.#nodes.get(name) === undefined) this.#foreign.delete(name);
    for (const [name, node] of this.#nodes.all()) {
      const note = foreignWords(this.#options.mode, pools, node);
      if (this.#foreign.get(name) === note) continue;
      if (note === undefined) this.#foreign.delete(name);
      else this.#foreign.set(name, note);
      const uid = watches.nodes.get(name)?.uid;
      if (note === undefined || uid === undefined) continue;
      events.record({
        regarding: { apiVersion: apiVersionOf(NODES), kind: NODES.kind, name, uid },
        ...{ type: "Warning", reason: "CiliumCIDRForeign", action: "Granting", note },
      });
    }
  }
}

/** Nodes that a message names. */
const NAMED = 5;

function notesOf(lacks: readonly Lack[]) {
  const short = new Map<string, { family: string; nodes: Set<string> }>();
  for (const { pools, family, node } of lacks) {
    for (const { pool } of pools) {
      const one = short.get(pool) ?? { family, nodes: new Set() };
      short.set(pool, one);
      one.nodes.add(node);
    }
  }
  const notes = [...short].map(([pool, { family, nodes }]) => {
    const named = [...nodes].sort().slice(0, NAMED).join(", ");
    const more = nodes.size > NAMED ? ` and ${nodes.size - NAMED} more` : "";
    const words = `Cilium's pods lack ${family} addresses and no CIDR of this pool is free, on ${named}${more}; add a range, or another pool with nodeCIDRs of use Cilium`;
    return [pool, { pool, note: words }] as const;
  });
  return new Map(notes);
}
